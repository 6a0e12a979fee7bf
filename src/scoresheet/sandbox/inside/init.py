"""Process 1 of a sandbox: opens the doors, probes, waits for the host's verdict, runs the agent, buries everything.

A program of its own: standard library only, python -I -S. Its argument is the descriptor of the control socket; the
program around it (see `programs.py`) has put the probe's names beside these. Frames on that socket: 8 bytes of
length, then marshalled data from the host, JSON or raw bytes to the host.
"""

import _signal
import _socket
import marshal
import posix
import resource
import sys

import probe

SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGPIPE, SIGTERM, SIGXFSZ = 1, 2, 3, 9, 13, 15, 25
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
ENOENT, ENXIO, ELOOP = 2, 6, 40
REFUSED = 97


def receive(control):
    """One frame, or None when the host has gone."""
    head = take(control, 8)
    return None if head is None else take(control, int.from_bytes(head, "big"))


def take(control, size):
    parts = []
    while size:
        part = control.recv(min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send(control, data, descriptors=()):
    frame = len(data).to_bytes(8, "big") + data
    sent = 0
    if descriptors:
        packed = b"".join([one.to_bytes(4, sys.byteorder) for one in descriptors])
        sent = control.sendmsg([frame], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])
    control.sendall(frame[sent:])


def open_doors(ports):
    doors = []
    for port in ports:
        door = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        door.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", port))
        door.listen(512)
        doors.append(door)
    return doors


def become_agent(launch):
    """In the child: never returns."""
    try:
        probe.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        try:
            score = posix.open("/proc/self/oom_score_adj", posix.O_WRONLY)
            posix.write(score, b"500")  # the agent goes before its process 1, which has the measurements
        except OSError:
            pass
        posix.setsid()
        posix.closerange(3, 1 << 16)
        # Python ignores the last two, a shell's `&` or nohup the others, and exec would hand that on
        for number in (SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ):
            _signal.signal(number, _signal.SIG_DFL)
        for name, value in launch["rlimits"]:
            resource.setrlimit(getattr(resource, name), (value, value))
        argv, environment = launch["argv"], dict(launch["env"])
        failure = None
        if b"/" in argv[0]:
            places = [argv[0]]
        else:
            search = environment.get(b"PATH", b"/usr/local/bin:/usr/bin:/bin")
            places = [folder + b"/" + argv[0] for folder in search.split(b":") if folder]
        for place in places:
            try:
                posix.execve(place, argv, environment)
            except OSError as error:
                if failure is None or error.errno not in (2, 20):
                    failure = error
        number = 2 if failure is None or failure.errno is None else failure.errno
        said = "not found" if number == 2 else posix.strerror(number)
        posix.write(2, b"scoresheet: can't start " + argv[0] + b": " + said.encode() + b"\n")
        posix._exit(127 if number == 2 else 126)
    except BaseException as error:
        posix.write(2, b"scoresheet: can't start the agent: " + repr(error).encode() + b"\n")
    finally:
        posix._exit(126)


def kill_all():
    """Kill everybody else in this process's own namespace, and nobody where it has none of its own."""
    if posix.getpid() == 1:
        try:
            posix.kill(-1, SIGKILL)
        except ProcessLookupError:
            pass


def answer(path, most):
    """(bytes or None, why it is no answer or None). Nobody else is alive: nothing can change while it is read."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC)
    except OSError as error:
        fault = "not a regular file" if error.errno in (ELOOP, ENXIO) else "it can't be opened"
        return None, None if error.errno == ENOENT else fault
    if posix.fstat(fd).st_mode & 0o170000 != 0o100000:
        return None, "not a regular file"
    data = b""
    while len(data) <= most:
        more = posix.read(fd, most + 1 - len(data))
        if not more:
            return data, None
        data += more
    return None, "larger than " + str(most) + " bytes"


def full(places):
    """Those of the places whose file system has no room left."""
    found = []
    for place in places:
        state = posix.statvfs(place)
        if state.f_blocks and (state.f_bavail == 0 or (state.f_files and state.f_favail == 0)):
            found.append(place)
    return found


def main():
    ended = []

    def end(*_):
        ended.append(True)
        kill_all()

    probe.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    control = _socket.socket(fileno=int(sys.argv[1]))
    asked = receive(control)
    if asked is None:
        posix._exit(REFUSED)
    asked = marshal.loads(asked)
    _signal.signal(SIGTERM, end)
    doors = open_doors(asked["ports"])
    known = [control.fileno()] + [door.fileno() for door in doors]
    posture = probe.posture(known, asked["binds"], asked["name"])
    report = {"posture": posture, "reach": probe.reach(asked["canary"])}
    send(control, probe.to_json(report).encode(), [door.fileno() for door in doors])
    for door in doors:
        door.close()
    launch = receive(control)
    if launch is None or posix.getpid() != 1:
        posix._exit(REFUSED)
    launch = marshal.loads(launch)
    probe.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # the agent can neither trace this process nor read its memory
    agent = posix.fork()
    if agent == 0:
        become_agent(launch)
    if ended:
        end()
    nothing = posix.open("/dev/null", posix.O_RDWR)
    for number in (0, 1, 2):
        posix.dup2(nothing, number)
    while True:
        pid, status = posix.wait()
        if pid == agent:
            break
    while True:  # kill and reap: what is only killed would vanish from the processor time
        kill_all()
        try:
            posix.wait()
        except ChildProcessError:
            break
    data, fault = answer(launch["answer"], launch["answer_bytes"])
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    last = {
        "status": status,
        "cpu_us": int((spent.ru_utime + spent.ru_stime) * 1_000_000),
        "peak_kib": spent.ru_maxrss,
        "full": full(launch["sized"]),
        "answer": data is not None,
        "answer_fault": fault,
    }
    send(control, probe.to_json(last).encode())
    if data is not None:
        send(control, data)
    posix._exit(0)


if __name__ == "__main__":
    main()
