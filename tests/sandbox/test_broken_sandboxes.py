"""Every way to break a sandbox that we could think of is refused, and the refusal names what is broken.

Each case is a real sandbox with one mutation. The product has no switch for any of them: the tests override the
methods that say what is started, and how.
"""

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from scoresheet.errors import NotIsolated
from scoresheet.sandbox.bwrap import BwrapSandbox
from tests.sandbox.episodes import a_spec, as_ordinary

Words = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    name: str
    names: frozenset[str]
    """Checks that the refusal must name."""
    mutate: Callable[[Words], Words] = lambda words: words
    environment: dict[str, str] = field(default_factory=dict)
    leak_a_socket: bool = False
    as_root: bool = False


def without(*gone: str) -> Callable[[Words], Words]:
    """Drop a run of words each time it occurs."""

    def mutate(words: Words) -> Words:
        kept: list[str] = []
        place = 0
        while place < len(words):
            if words[place : place + len(gone)] == gone:
                place += len(gone)
            else:
                kept.append(words[place])
                place += 1
        assert len(kept) < len(words), f"{gone} is not there to be dropped"
        return tuple(kept)

    return mutate


def all_of(*mutations: Callable[[Words], Words]) -> Callable[[Words], Words]:
    def mutate(words: Words) -> Words:
        for one in mutations:
            words = one(words)
        return words

    return mutate


def instead(old: Words, new: Words) -> Callable[[Words], Words]:
    def mutate(words: Words) -> Words:
        for place in range(len(words)):
            if words[place : place + len(old)] == old:
                return words[:place] + new + words[place + len(old) :]
        raise AssertionError(f"{old} is not there to be replaced")

    return mutate


def before_the_end(*more: str) -> Callable[[Words], Words]:
    return instead(("--chdir",), (*more, "--chdir"))


def without_seccomp(words: Words) -> Words:
    place = words.index("--seccomp")
    return words[:place] + words[place + 2 :]


def with_the_hosts_resolver(words: Words) -> Words:
    place = words.index("/etc/resolv.conf")
    return (*words[: place - 4], "--ro-bind", "/etc/hostname", "/etc/resolv.conf", *words[place + 1 :])


CASES = (
    Case(
        "the host's network",
        frozenset({"tcp4_host_loopback", "udp4_host_loopback", "unix_abstract", "canary_hit", "network_namespace"}),
        without("--unshare-net"),
    ),
    Case("no filter of system calls", frozenset({"io_uring", "keyring", "seccomp"}), without_seccomp),
    Case(
        "the host's processes",
        frozenset({"host_process", "host_proc", "processes", "namespaces"}),
        all_of(without("--unshare-pid"), without("--as-pid-1")),
    ),
    Case("the host's /proc", frozenset({"host_proc"}), instead(("--proc", "/proc"), ("--ro-bind", "/proc", "/proc"))),
    Case("the host's IPC", frozenset({"namespaces"}), without("--unshare-ipc")),
    Case(
        "the host's name", frozenset({"namespaces"}), all_of(without("--unshare-uts"), without("--hostname", "sandbox"))
    ),
    Case("nested user namespaces", frozenset({"user_namespace"}), without("--disable-userns")),
    Case("an environment", frozenset({"environment"}), without("--clearenv"), {"AWS_SECRET_ACCESS_KEY": "x"}),
    Case("a leaked socket", frozenset({"descriptors"}), leak_a_socket=True),
    Case("/ can be written to", frozenset({"writable_mounts"}), without("--remount-ro", "/")),
    Case("/dev can be written to", frozenset({"writable_mounts"}), without("--remount-ro", "/dev")),
    Case("the host's / in a folder", frozenset({"mounts"}), before_the_end("--ro-bind", "/", "/mnt")),
    Case("the host's /run in a folder", frozenset({"mounts"}), before_the_end("--ro-bind", "/run", "/run/host")),
    Case(
        "the host's temporary folder",
        frozenset({"unix_path", "host_file", "canary_hit"}),
        lambda words: before_the_end("--ro-bind", tempfile.gettempdir(), tempfile.gettempdir())(words),
    ),
    Case("another writable folder", frozenset({"mounts", "writable_mounts"}), before_the_end("--tmpfs", "/mnt")),
    Case("the host's devices", frozenset({"devices"}), instead(("--dev", "/dev"), ("--dev-bind", "/dev", "/dev"))),
    Case("another resolver", frozenset({"names"}), with_the_hosts_resolver),
    Case("capabilities", frozenset({"capabilities"}), instead(("--cap-drop", "ALL"), ("--cap-add", "ALL"))),
)
AS_ROOT = (
    Case("root behind the scenes", frozenset({"account"}), as_root=True),
    Case(
        "root with its capabilities",
        frozenset({"account", "capabilities", "user_namespace"}),
        all_of(
            without("--unshare-user"),
            without("--disable-userns"),
            without("--uid", "1000"),
            without("--gid", "1000"),
            without("--cap-drop", "ALL"),
        ),
        as_root=True,
    ),
)


class Broken(BwrapSandbox):
    """A sandbox whose parts were changed behind the back of what judges it."""

    case = Case("sound", frozenset())

    def _arguments(self, *arguments, **more):
        return self.case.mutate(super()._arguments(*arguments, **more))

    def _spawn(self, argv, uid, pass_fds, pipes):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            return self._launcher.spawn(
                argv,
                stdin=pipes.stdin[0],
                stdout=pipes.stdout[1],
                stderr=pipes.stderr[1],
                pass_fds=(*pass_fds, theirs.fileno()) if self.case.leak_a_socket else pass_fds,
                env=self.case.environment,
                uid=None if self.case.as_root else uid,
            )


@contextmanager
def a_temporary_folder() -> Iterator[None]:
    """Makes one the place of temporary files that nobody else uses, mounts or clears meanwhile, as they may /tmp."""
    with tempfile.TemporaryDirectory(prefix="own-") as folder:
        os.chmod(folder, 0o711)
        before, tempfile.tempdir = tempfile.tempdir, folder
        try:
            yield
        finally:
            tempfile.tempdir = before


def refusals(cases: tuple[Case, ...]) -> dict[str, str]:
    """Case → what the refusal said, or that there was none."""
    found = {}
    with a_temporary_folder(), Broken() as sandbox:
        for case in cases:
            sandbox.case = case
            try:
                with sandbox.open(a_spec(doors=())):
                    found[case.name] = "not refused"
            except NotIsolated as error:
                found[case.name] = error.what + (f" — {error.where}" if error.where else "")
        sandbox.case = Case("sound", frozenset())
        with sandbox.open(a_spec(doors=())) as opened:
            assert opened.evidence.state == "proved"
    return found


@pytest.fixture(scope="module")
def refused() -> dict[str, str]:
    return refusals(CASES)


@pytest.fixture(scope="module")
def refused_to_an_ordinary_account() -> dict[str, str]:
    return as_ordinary(lambda: refusals(CASES))


def assert_names(case: Case, said: str) -> None:
    assert said.startswith("isolation-not-proved"), said
    named = set(said.split(": ", 1)[-1].split(", "))
    assert case.names <= named, said


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_broken_sandbox_is_refused_by_name(case, refused):
    assert_names(case, refused[case.name])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_broken_sandbox_of_an_ordinary_account_is_refused_by_name(case, refused_to_an_ordinary_account):
    assert_names(case, refused_to_an_ordinary_account[case.name])


def test_a_sandbox_whose_account_is_root_is_refused_by_name():
    if os.geteuid() != 0:
        return  # an ordinary account can't start one
    for name, said in refusals(AS_ROOT).items():
        assert_names(next(case for case in AS_ROOT if case.name == name), said)
