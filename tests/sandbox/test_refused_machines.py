"""Machines that can't isolate, made for real with namespaces of our own: refused with the code that fits."""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

from scoresheet.errors import NotIsolated
from scoresheet.sandbox.bwrap import BwrapSandbox
from tests.sandbox.episodes import a_spec, as_ordinary

CLONE_NEWUSER, PR_SET_DUMPABLE = 0x1000_0000, 4


def in_a_user_namespace(inner: int, then: Callable[[], None]) -> str:
    """What an ordinary account hears that is `inner` in a user namespace with no other ids."""
    libc = ctypes.CDLL(None, use_errno=True)
    outer, outer_group = os.geteuid(), os.getegid()
    assert libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0  # it was lost with root, and with it our own /proc
    assert libc.unshare(CLONE_NEWUSER) == 0
    Path("/proc/self/uid_map").write_text(f"{inner} {outer} 1")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{inner} {outer_group} 1")
    then()
    try:
        with BwrapSandbox() as sandbox, sandbox.open(a_spec()):
            return "isolated"
    except NotIsolated as error:
        return error.code


def forbid_user_namespaces() -> None:
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def test_a_machine_without_user_namespaces_is_refused():
    assert as_ordinary(lambda: in_a_user_namespace(1234, forbid_user_namespaces)) == "userns-off"


def test_a_root_that_has_no_other_account_is_refused():
    assert as_ordinary(lambda: in_a_user_namespace(0, lambda: None)) == "account-missing"


def test_an_ordinary_account_in_a_user_namespace_still_isolates():
    assert as_ordinary(lambda: in_a_user_namespace(1234, lambda: None)) == "isolated"
