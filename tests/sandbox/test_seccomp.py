"""The filter's verdict on system calls, by a small interpreter of its bytes; the kernel's is in other tests."""

import hashlib
import struct

import pytest

from scoresheet.sandbox import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS, EAFNOSUPPORT = (0x00050000 | number for number in (1, 38, 97))
X86_64, AARCH64, I386 = 0xC000003E, 0xC00000B7, 0x40000003


def verdict(program: bytes, number: int, arch: int, first: int = 0) -> int:
    data = struct.pack("<IIQQ", number, arch, 0, first)
    held, place = 0, 0
    while True:
        code, jump_true, jump_false, value = struct.unpack_from("<HBBI", program, place * 8)
        place += 1
        if code == 0x20:
            held = struct.unpack_from("<I", data, value)[0]
        elif code == 0x15:
            place += jump_true if held == value else jump_false
        elif code == 0x35:
            place += jump_true if held >= value else jump_false
        else:
            assert code == 0x06
            return value


@pytest.mark.parametrize(("machine", "arch", "socket"), [("x86_64", X86_64, 41), ("aarch64", AARCH64, 198)])
def test_only_four_families_of_sockets_exist(machine, arch, socket):
    program = seccomp.program(machine)
    for call in (socket, socket + (12 if machine == "x86_64" else 1)):
        allowed = {family for family in range(64) if verdict(program, call, arch, family) == ALLOW}
        assert allowed == {1, 2, 10, 16}
        assert verdict(program, call, arch, 40) == EAFNOSUPPORT
        assert verdict(program, call, arch, (1 << 32) | 40) == EAFNOSUPPORT, "the kernel takes the low word alone"


@pytest.mark.parametrize(
    ("machine", "arch", "number", "expected"),
    [
        *(("x86_64", X86_64, number, ENOSYS) for number in (425, 426, 427)),
        *(("aarch64", AARCH64, number, ENOSYS) for number in (425, 426, 427)),
        *(("x86_64", X86_64, number, EPERM) for number in (248, 249, 250)),
        *(("aarch64", AARCH64, number, EPERM) for number in (217, 218, 219)),
        *(("x86_64", X86_64, number, ALLOW) for number in (0, 1, 42, 59, 231, 435)),
        *(("aarch64", AARCH64, number, ALLOW) for number in (56, 63, 203, 221)),
        ("x86_64", X86_64, 0x40000000 | 41, ENOSYS),
        ("x86_64", I386, 359, KILL),
        ("x86_64", AARCH64, 198, KILL),
        ("aarch64", X86_64, 41, KILL),
    ],
)
def test_each_system_call_gets_its_verdict(machine, arch, number, expected):
    assert verdict(seccomp.program(machine), number, arch) == expected


def test_the_bytes_are_what_the_evidence_of_earlier_runs_names():
    assert {machine: hashlib.sha256(seccomp.program(machine)).hexdigest()[:16] for machine in seccomp.MACHINES} == {
        "x86_64": "aea5fb1810908247",
        "aarch64": "fb658b9eacac8fc1",
    }


def test_another_machine_has_no_filter():
    with pytest.raises(KeyError):
        seccomp.program("riscv64")
