"""The system call filter of every sandbox, as the bytes that the kernel takes. Pure: no libseccomp, no machine facts.

A network namespace does not cover AF_VSOCK, and io_uring opens sockets without `socket()`: without this filter an
agent in an empty network can still talk to the machine's hypervisor. What it does:
- socket families other than UNIX, INET, INET6 and NETLINK do not exist;
- io_uring does not exist; the kernel's keyrings are forbidden;
- system calls of another ABI (i386 through int 0x80) kill the process, x32 does not exist.
"""

import struct
from typing import Final

_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SOCKET_CALLS: Final = {"x86_64": (41, 53), "aarch64": (198, 199)}  # socket, socketpair
_KEYRING_CALLS: Final = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}  # add_key, request_key, keyctl
_IO_URING_CALLS: Final = (425, 426, 427)
_X32_BIT: Final = 0x4000_0000
_FAMILIES: Final = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97

MACHINES: Final = tuple(_AUDIT_ARCH)


def program(machine: str) -> bytes:
    """The filter for a machine as `platform.machine()` names it: `struct sock_filter` items. Raises KeyError."""
    lines: list[tuple[int, int, str, str]] = []  # code, value, label when true, label when false ("" = next)
    labels: dict[str, int] = {}

    def line(code: int, value: int, then: str = "", otherwise: str = "") -> None:
        lines.append((code, value, then, otherwise))

    line(_LOAD, 4)  # seccomp_data.arch
    line(_IF_EQUAL, _AUDIT_ARCH[machine], "", "kill")
    line(_LOAD, 0)  # seccomp_data.nr
    if machine == "x86_64":
        line(_IF_AT_LEAST, _X32_BIT, "absent")
    for number in _IO_URING_CALLS:
        line(_IF_EQUAL, number, "absent")
    for number in _KEYRING_CALLS[machine]:
        line(_IF_EQUAL, number, "forbidden")
    socket, socketpair = _SOCKET_CALLS[machine]
    line(_IF_EQUAL, socket, "family")
    line(_IF_EQUAL, socketpair, "family", "allow")
    labels["family"] = len(lines)
    line(_LOAD, 16)  # low word of args[0]: both machines are little endian
    for family in _FAMILIES:
        line(_IF_EQUAL, family, "allow")
    line(_RETURN, _ERRNO | _EAFNOSUPPORT)
    for label, verdict in (
        ("allow", _ALLOW),
        ("absent", _ERRNO | _ENOSYS),
        ("forbidden", _ERRNO | _EPERM),
        ("kill", _KILL),
    ):
        labels[label] = len(lines)
        line(_RETURN, verdict)

    def jump(label: str, place: int) -> int:
        return labels[label] - place - 1 if label else 0

    return b"".join(
        struct.pack("<HBBI", code, jump(then, place), jump(otherwise, place), value)
        for place, (code, value, then, otherwise) in enumerate(lines)
    )
