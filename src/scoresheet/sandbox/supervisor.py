"""The parent of an agent that is not isolated: a program of its own, started with `python -I -S`.

It adopts every process that the agent leaves behind (PR_SET_CHILD_SUBREAPER), ends them all when the agent ends, when
it is told to, or when the runner goes away, reaps them so that their CPU time is counted, and reports once. Standard
library only, and of that what loads quickly: every episode pays for it. It isolates nothing.
"""

import _signal as signal
import ctypes
import marshal
import os
import resource
import select
import sys
import time

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36


def main() -> None:
    """Serve one agent; argv[1] is a socket: an order in, then any byte or its end stops; a report out.

    The order is 8 bytes of length, then marshalled data; the report is one line of JSON.
    """
    control = int(sys.argv[1])
    packed, stop_now = _received(control)
    order = marshal.loads(packed)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)

    agent = os.fork()
    if agent == 0:
        _become(order)
    for descriptor in (0, 1, 2):  # the runner must see end of file when the agent's own processes are dead
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    code = None if stop_now else _watch(control, woken, agent)
    left = _end_all(agent)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = code if code is not None else left
    exit_code = "null" if ended is None else ended
    cpu_s, peak_bytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    try:
        report = f'{{"exit_code": {exit_code}, "cpu_s": {cpu_s:.6f}, "peak_memory_bytes": {peak_bytes}}}\n'
        os.write(control, report.encode())
    except OSError:  # the runner is gone: nobody reads the report, and nobody else clears up
        import shutil

        shutil.rmtree(order["root"], ignore_errors=True)


def _received(control: int) -> tuple[bytes, bool]:
    """The order, and whether a stop came right behind it."""
    data = b""
    while len(data) < 8 or len(data) < 8 + int.from_bytes(data[:8], "big"):
        part = os.read(control, 65536)
        if not part:
            sys.exit(1)
        data += part
    end = 8 + int.from_bytes(data[:8], "big")
    return data[8:end], len(data) > end


def _become(order: dict) -> None:  # type: ignore[type-arg]  # plain values
    try:
        signal.set_wakeup_fd(-1)
        for name in (
            signal.SIGTERM,
            signal.SIGINT,
            signal.SIGHUP,
            signal.SIGQUIT,
            signal.SIGCHLD,
            signal.SIGPIPE,
            signal.SIGXFSZ,
        ):
            signal.signal(name, signal.SIG_DFL)
        os.setsid()
        os.chdir(order["cwd"])
        for name, value in order["rlimits"].items():
            which = getattr(resource, name)
            hard = resource.getrlimit(which)[1]
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (bound, bound))
        os.closerange(3, 65536)
        os.execvpe(order["argv"][0], order["argv"], order["env"])
    except BaseException as error:  # noqa: BLE001  # a forked child must never return into its parent's code
        os.write(2, f"cannot start the agent: {error}\n".encode())
    os._exit(127)


def _watch(control: int, woken: int, agent: int) -> int | None:
    """The agent's exit status, or `None` when it must be ended first."""
    while True:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                break
            if pid == agent:
                return os.waitstatus_to_exitcode(status)
        ready, _, _ = select.select([control, woken], [], [])
        if control in ready:
            return None
        try:  # noqa: SIM105  # contextlib loads slowly
            os.read(woken, 4096)
        except BlockingIOError:
            pass


def _end_all(agent: int) -> int | None:
    """End and reap every descendant: first stopped, so that none can outrun its end by forking."""
    code = None
    while True:
        seen: set[int] = set()
        while fresh := [pid for pid in _descendants() if pid not in seen]:
            seen.update(fresh)
            for pid in fresh:
                _signal(pid, signal.SIGSTOP)
        for pid in seen:
            _signal(pid, signal.SIGKILL)
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == agent:
                    code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return code
        time.sleep(0.001)


def _descendants() -> list[int]:
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] not in (b"Z", b"X"):
                parents.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    below = [os.getpid()]
    while below:
        children = parents.get(below.pop(), [])
        found += children
        below += children
    return found


def _signal(pid: int, number: int) -> None:
    try:  # noqa: SIM105  # as above
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


if __name__ == "__main__":
    main()
