"""What this process can reach, and what it is: the same attempts inside a sandbox and outside, as the control.

A program of its own: standard library only, and of that only modules of C, for it is started once an episode. Only
canaries that scoresheet itself put up are ever addressed, so that a sandbox that is broken harms nobody.
Run as a program it is the positive control: a marshalled dictionary on stdin, JSON on stdout.
"""

import _ctypes
import _socket
import marshal
import posix
import sys
from _json import encode_basestring_ascii as quote

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
STREAM, DGRAM, RAW, SEQPACKET = 1, 2, 3, 5
FAMILIES = (
    ("af_vsock", 40, STREAM),
    ("af_packet", 17, RAW),
    ("af_bluetooth", 31, RAW),
    ("af_tipc", 30, SEQPACKET),
    ("af_alg", 38, SEQPACKET),
    ("af_qipcrtr", 42, DGRAM),
    ("af_can", 29, RAW),
    ("af_rds", 21, SEQPACKET),
    ("af_xdp", 44, RAW),
)
KEYCTL = {"x86_64": 250, "aarch64": 219}
UNSHARE = {"x86_64": 272, "aarch64": 97}
CLONE_NEWUSER = 0x10000000
USUAL_DEVICES = frozenset(
    [
        *("null", "zero", "full", "random", "urandom", "tty", "console", "core"),
        *("fd", "stdin", "stdout", "stderr", "pts", "ptmx", "shm"),
    ]
)


class c_long(_ctypes._SimpleCData):  # ctypes itself would cost two milliseconds
    _type_ = "l"


class CFunction(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = c_long


_libc = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is the program itself
syscall = CFunction(_ctypes.dlsym(_libc, "syscall"))
prctl = CFunction(_ctypes.dlsym(_libc, "prctl"))


def to_json(value):
    """JSON text of None, booleans, integers, strings, lists and dictionaries: the json module costs too much here."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return "{" + ",".join([quote(key) + ":" + to_json(item) for key, item in value.items()]) + "}"
    return "[" + ",".join([to_json(item) for item in value]) + "]"


def attempt(action, *arguments):
    """`reached`, or the name of what stopped it."""
    try:
        action(*arguments)
    except OSError as error:
        return errno_name(error.errno)
    except Exception as error:
        return type(error).__name__
    return "reached"


def errno_name(number):
    import errno

    return errno.errorcode.get(number, "errno " + str(number))


def exchange(family, kind, address, nonce):
    """A word with a canary. The datagram socket is connected, so that a refusal shows at once."""
    with_peer = _socket.socket(family, kind)
    try:
        with_peer.settimeout(2.0 if kind == STREAM else 0.5)
        with_peer.connect(address)
        with_peer.send(nonce)
        if with_peer.recv(64) != b"pong:" + nonce:
            raise RuntimeError("wrong peer")
    finally:
        with_peer.close()


def open_family(family, kind, protocol=0):
    _socket.socket(family, kind, protocol).close()


def io_uring():
    fd = call(425, 1, b"\0" * 120)
    posix.close(fd)


def call(number, *arguments):
    result = syscall(number, *arguments)
    if result < 0:
        raise OSError(_ctypes.get_errno(), "")
    return result


def see_process(pid):
    """Reached when the process can be seen, whether it may be signalled or not."""
    try:
        posix.kill(pid, 0)
    except PermissionError:
        pass


def read(path):
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        data = b""
        while True:
            more = posix.read(fd, 1 << 16)
            if not more:
                return data
            data += more
    finally:
        posix.close(fd)


def reach(canary):
    """Name of the attempt → `reached` or what stopped it. `canary` holds the addresses and this side's nonce."""
    nonce = canary["nonce"]
    found = {}
    for name, family, kind, address in canary["addresses"]:
        found[name] = attempt(exchange, family, kind, address, nonce)
    for name, family, kind in FAMILIES:
        found[name] = attempt(open_family, family, kind)
    found["raw_icmp"] = attempt(open_family, AF_INET, RAW, 1)
    found["io_uring"] = attempt(io_uring)
    found["host_process"] = attempt(see_process, canary["pid"])
    found["host_proc"] = attempt(posix.stat, "/proc/" + str(canary["pid"]))
    found["host_file"] = attempt(read, canary["file"])
    machine = posix.uname().machine
    found["keyring"] = attempt(call, KEYCTL[machine], 0, -4, 0)
    # Last: where this is not denied it changes the process, which is then not used any further.
    found["user_namespace"] = attempt(call, UNSHARE[machine], CLONE_NEWUSER)
    return found


def number_at(data, place, size):
    return int.from_bytes(data[place : place + size], sys.byteorder)


def network():
    """Interfaces, and routes that leave by another than the first, asked of the kernel itself by rtnetlink."""
    found = set()
    for kind, header in ((18, 16), (26, 12)):  # RTM_GETLINK, RTM_GETROUTE
        asked = _socket.socket(AF_NETLINK, RAW, 0)
        asked.bind((0, 0))
        size = 16 + header
        asked.send(
            size.to_bytes(4, sys.byteorder)
            + kind.to_bytes(2, sys.byteorder)
            + (0x301).to_bytes(2, sys.byteorder)  # NLM_F_REQUEST | NLM_F_DUMP
            + b"\1\0\0\0\0\0\0\0"
            + b"\0" * header
        )
        done = False
        while not done:
            data = asked.recv(1 << 16)
            while data:
                length, answer = number_at(data, 0, 4), number_at(data, 4, 2)
                if answer == 3:  # NLMSG_DONE
                    done = True
                    break
                if answer == 2 or length < 16:
                    raise OSError(71, "")
                body, place, leaves = data[16:length], header, None
                while place + 4 <= len(body):
                    width, attribute = number_at(body, place, 2), number_at(body, place + 2, 2)
                    if width < 4:
                        break
                    value = body[place + 4 : place + width]
                    if kind == 18 and attribute == 3:  # IFLA_IFNAME
                        found.add("link " + value.rstrip(b"\0").decode("utf-8", "replace"))
                    if kind == 26 and attribute == 4:  # RTA_OIF
                        leaves = number_at(value, 0, 4)
                    place += (width + 3) & ~3
                if kind == 26 and leaves not in (None, 1):
                    found.add("route by interface " + str(leaves))
                data = data[(length + 3) & ~3 :]
        asked.close()
    return sorted(found)


def privileges():
    wanted = ("NoNewPrivs", "Seccomp", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "Uid", "Groups")
    found = {}
    for line in read("/proc/self/status").decode().splitlines():
        name, _, value = line.partition(":")
        if name in wanted:
            found[name] = " ".join(value.split())
    return found


def descriptors(known):
    """Open descriptor → kind, without those that the host knows it gave."""
    found = {}
    for name in posix.listdir("/proc/self/fd"):
        number = int(name)
        if number in known:
            continue
        try:
            mode = posix.fstat(number).st_mode & 0o170000
        except OSError:
            continue  # the listing's own descriptor
        kinds = {0o140000: "socket", 0o010000: "pipe", 0o020000: "device", 0o100000: "file", 0o040000: "directory"}
        found[name] = kinds.get(mode, oct(mode))
    return found


def mounts():
    """[place, may be written, file system] of every mount."""
    found = []
    for line in read("/proc/self/mountinfo").decode("utf-8", "surrogateescape").splitlines():
        fields = line.split(" ")
        place = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
        kind = fields[fields.index("-") + 1]
        found.append([place, "rw" in fields[5].split(","), kind])
    return found


def unix_sockets(roots, skip):
    """Paths of sockets that lie in the file system. Bound trees are looked through by the host, once a run."""
    found, waiting = [], list(roots)
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(posix.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.path in skip:
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif (entry.stat(follow_symlinks=False).st_mode & 0o170000) == 0o140000:
                    found.append(entry.path)
            except OSError:
                continue  # it went away
    return sorted(found)


def name_lookup(name):
    try:
        _socket.getaddrinfo(name, 80)  # bytes: a string would load the idna codec
    except OSError as error:
        return "no answer (" + str(error.errno) + ")"
    return "resolved"


def posture(known_descriptors, binds, name):
    """Facts of this process and its surroundings, unjudged."""
    return {
        "network": network(),
        "network_namespace": posix.readlink("/proc/self/ns/net"),
        "privileges": privileges(),
        "descriptors": descriptors(known_descriptors),
        "mounts": mounts(),
        "devices": sorted([one for one in posix.listdir("/dev") if one not in USUAL_DEVICES]),
        "pids": [int(one) for one in posix.listdir("/proc") if one.isdigit()],
        "unix_sockets": unix_sockets(("/run", "/tmp", "/home", "/work", "/dev/shm"), frozenset(binds)),
        "environment": sorted(
            [one.split(b"=")[0].decode("utf-8", "replace") for one in read("/proc/self/environ").split(b"\0") if one]
        ),
        "name_lookup": name_lookup(name),
        "name_service": read("/etc/nsswitch.conf").decode() + read("/etc/resolv.conf").decode(),
    }


def control():
    """The positive control: the same attempts, outside, by the same account."""
    asked = b""
    while True:
        more = posix.read(0, 1 << 16)
        if not more:
            break
        asked += more
    posix.write(1, to_json(reach(marshal.loads(asked))).encode())


if __name__ == "__main__":
    control()
