"""What an episode needs of a sandbox, and what it gives back. Every backend has this one shape.

with BwrapSandbox(...) as sandbox:                 # preflight, canaries, positive control: once a run
    with sandbox.open(spec) as opened:             # sockets exist, the probe has passed, the agent waits
        ...serve opened.sockets...
        ended = opened.start(launch)               # blocks until the whole tree is dead
"""

import socket
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, Self

from scoresheet.documents.evidence import Evidence

WORK = "/work"
HOME = "/home/agent"
"""The agent's home: empty, in memory."""
ANSWER = "/run/answer/answer.json"
"""Inside the sandbox: on a small mount of its own, read by our pid 1 when every other process is dead."""
TASK = "/run/scoresheet/task.json"
HOME = "/home/agent"
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Bind:
    """A host path that the agent sees, read-only."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class Door:
    """A listening socket inside the sandbox, served by the host."""

    name: str
    port: int
    """Port on 127.0.0.1 inside the sandbox's own network; without isolation any free port is taken instead."""
    kind: Literal["tcp", "udp"] = "tcp"

    @property
    def privileged(self) -> bool:
        """Opened by the host, when the sandbox was proved; without isolation there is none."""
        return self.port < 1024 or self.kind == "udp"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one episode. What really holds each of them is written in the evidence."""

    wall_clock_s: float
    pids: int = 256
    memory_bytes: int | None = None
    work_bytes: int = 1024 * MIB
    """Size of /work, where it is a mount of its own, and of each of /tmp and the home."""
    file_bytes: int = 1024 * MIB
    output_bytes: int = 8 * MIB
    """Of stdout and stderr each: what comes after it ends the episode (`output`)."""
    answer_bytes: int = 1 * MIB
    open_files: int = 1024


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """One episode's sandbox."""

    doors: tuple[Door, ...]
    """With a door of kind `udp` at port 53, names are asked there; without one there are no names."""
    limits: Limits
    binds: tuple[Bind, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()
    """Read-only files: path inside, content."""
    programs: tuple[tuple[str, bytes], ...] = ()
    """Python programs that can be run by their path, by the interpreter that is inside anyway: path inside, source."""
    workspace: Path | None = None
    """Bound at /work, as the last mount; `None` gives an empty /work of `work_bytes` in memory.

    It is given away: as root its files become the episode's account's."""
    workspace_writable: bool = True
    workspace_bytes: int = 0
    """What lies in it at the start, and may lie there beside `work_bytes`."""


def executable(source: bytes, interpreter: str) -> bytes:
    """A program's source as a file that runs itself, whatever characters the interpreter's path holds."""
    head = f"""#!/bin/sh\n'''exec' "{interpreter}" -I -S "$0" "$@"\n' '''\n"""
    return head.encode() + source


@dataclass(frozen=True, slots=True)
class Launch:
    """The agent's process."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    """The whole environment: nothing of the host's is added."""
    stdin: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """What was measured, outside the agent's reach, when its last process was dead."""

    exit_code: int | None
    """Status of the agent's own process, negative for a signal; `None` when it was ended by a limit or by `stop`."""
    limit: str | None
    """`wall_clock`, `output`, `disk`, `memory`, `pids`, or `None`."""
    limit_at_s: float | None
    stopped: str | None
    """The reason that `stop` was called with, or `None`."""
    elapsed_s: float
    cpu_s: float
    """User and system time of every process of the episode, also of those that were killed."""
    peak_memory_bytes: int | None
    stdout: bytes
    stderr: bytes
    answer: bytes | None
    """Bytes of the answer file; `None` when there is none."""
    answer_fault: str | None = None
    """Why an answer file that exists is no answer: too large, not a regular file."""


class Opened(Protocol):
    """A sandbox whose agent has not started yet."""

    @property
    def sockets(self) -> Mapping[str, socket.socket]:
        """Door name → listening socket. They belong to the sandbox, which closes them."""

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """Door name → address as the agent must write it."""

    @property
    def evidence(self) -> Evidence:
        """What was proved of this very sandbox."""

    def start(self, launch: Launch) -> Ended:
        """Run the agent to its end, kill what it left, and return what was measured. Called once."""

    def stop(self, reason: str) -> None:
        """End the episode now; from any thread, any number of times: the first reason counts."""


class Sandbox(Protocol):
    """A way to isolate, for a whole run."""

    name: str

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Opened]:
        """A sandbox for one episode. Raises `NotIsolated` when isolation was not proved; nothing then runs."""
