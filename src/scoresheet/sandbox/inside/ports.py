"""Opens ports below 1024, and ports for datagrams, in the network of a sandbox. Standard library only.

Runs outside, one process a run: `python -I -S ports.py DESCRIPTOR`. Nobody inside a sandbox has the right to open
these; who made the sandbox has it, in the user namespace that owns the sandbox's network. Entering that needs a
process with one thread, so each order is carried out by a child, which then is that sandbox's maker: its account.
Orders and replies are datagrams on the descriptor: marshalled (pid, account or None, [(datagrams, port), …]); then
b"" and the descriptors, or what went wrong.
"""

import _ctypes
import _socket
import fcntl
import marshal
import posix
import sys

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
NS_GET_USERNS = 0xB701


class c_int(_ctypes._SimpleCData):
    _type_ = "i"


class CFunction(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = c_int


setns = CFunction(_ctypes.dlsym(_ctypes.dlopen(None, 0), "setns"))  # type: ignore[arg-type]  # None: this program


def enter(descriptor, kind):
    if setns(descriptor, kind):
        number = _ctypes.get_errno()
        raise OSError(number, posix.strerror(number), "setns")


def carry_out(control, order):
    pid, account, wanted = order
    if account is not None:
        posix.setgroups([])
        posix.setresgid(account, account, account)
        posix.setresuid(account, account, account)
    network = posix.open("/proc/%d/ns/net" % pid, posix.O_RDONLY)
    enter(fcntl.ioctl(network, NS_GET_USERNS), CLONE_NEWUSER)
    enter(network, CLONE_NEWNET)
    opened = []
    for datagrams, port in wanted:
        kind = _socket.SOCK_DGRAM if datagrams else _socket.SOCK_STREAM
        door = _socket.socket(_socket.AF_INET, kind)
        if not datagrams:  # else another could take the port over
            door.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", port))
        if not datagrams:
            door.listen(512)
        opened.append(door)
    packed = b"".join([door.fileno().to_bytes(4, sys.byteorder) for door in opened])
    control.sendmsg([b"+"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])


def main():
    control = _socket.socket(fileno=int(sys.argv[1]))
    while True:
        order = control.recv(1 << 16)
        if not order:
            return
        child = posix.fork()
        if child == 0:
            try:
                carry_out(control, marshal.loads(order))
            except BaseException as error:
                control.send(b"-" + repr(error).encode("utf-8", "replace")[:500])
            finally:
                posix._exit(0)
        posix.waitpid(child, 0)


if __name__ == "__main__":
    main()
