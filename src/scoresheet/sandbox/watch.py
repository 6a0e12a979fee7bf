"""One episode from "go" until its last process is dead: pipes, clock, bounds, and the end. No threads, no polling.

Everything is one wait: the agent's stdin, stdout and stderr are served at once, so that no agent can block itself or
us by flooding one of them; the clock is CLOCK_MONOTONIC; the end is the pidfd of process 1, which is readable only
when its whole namespace is empty.
"""

import contextlib
import os
import selectors
import signal
import socket
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from scoresheet.sandbox.control import Frames
from scoresheet.sandbox.spec import Limits

_CHUNK = 1 << 16
_GRACE_S = 2.0
"""What process 1 gets to kill and reap the tree, so that its processor time is counted, before it is killed itself."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 256
"""Levels of folders: honest trees have fewer, and each is a descriptor while it is looked through."""
_SCAN_S = 0.25
"""How often a bound workspace is measured, at most; a large one is measured more rarely."""


@dataclass(slots=True)
class Ending:
    """What was seen. Mutable while the watch runs."""

    limit: str | None = None
    limit_at_s: float | None = None
    stopped: bool = False
    elapsed_s: float = 0.0
    suspended_s: float = 0.0
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    frames: Frames = field(default_factory=Frames)


@dataclass(frozen=True, slots=True)
class Handles:
    """The host's ends of everything that an episode has."""

    pidfd: int
    """Of process 1."""
    control: socket.socket
    stdin: int
    stdout: int
    stderr: int
    wake: int
    """An eventfd that `stop` writes to."""


def watch(
    handles: Handles, stdin: bytes, limits: Limits, workspace: Path | None, stopped: Callable[[], bool]
) -> Ending:
    """Serve the episode to its end; returns when process 1 is dead. `handles.stdin` is closed here."""
    ending = Ending()
    began, began_boot = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
    deadline = began + limits.wall_clock_s
    kill_at: float | None = None
    scan_at = began + _SCAN_S if workspace is not None else None
    waiting = memoryview(stdin)
    handles.control.setblocking(False)
    for descriptor in (handles.stdin, handles.stdout, handles.stderr):
        os.set_blocking(descriptor, False)

    def end(limit: str | None) -> None:
        nonlocal kill_at
        if kill_at is None:
            if limit is None:
                ending.stopped = True
            else:
                ending.limit, ending.limit_at_s = limit, time.monotonic() - began
            kill_at = time.monotonic() + _GRACE_S
            _signal(handles.pidfd, signal.SIGTERM)

    with selectors.DefaultSelector() as selector:
        for readable in (handles.pidfd, handles.control, handles.stdout, handles.stderr, handles.wake):
            selector.register(readable, selectors.EVENT_READ)
        if waiting:
            selector.register(handles.stdin, selectors.EVENT_WRITE)
        else:
            os.close(handles.stdin)
        dead = False
        while not dead:
            now = time.monotonic()
            next_at = [moment for moment in (kill_at or deadline, scan_at) if moment is not None]
            ready = selector.select(max(0.0, min(next_at) - now))
            for key, _ in ready:
                match key.fd:
                    case handles.pidfd:
                        dead = True
                    case handles.wake:
                        selector.unregister(handles.wake)
                    case handles.stdin:
                        waiting = waiting[_write(handles.stdin, waiting) :]
                        if not waiting:
                            selector.unregister(handles.stdin)
                            os.close(handles.stdin)
                    case handles.stdout | handles.stderr:
                        kept = ending.stdout if key.fd == handles.stdout else ending.stderr
                        state = _read(key.fd, kept, limits.output_bytes)
                        if state == "end":
                            selector.unregister(key.fd)
                        elif state == "over":
                            end("output")
                    case _:
                        if not _receive(handles.control, ending.frames):
                            selector.unregister(handles.control)
            if dead:
                break
            if stopped():
                end(None)
            now = time.monotonic()
            if kill_at is None and now >= deadline:
                end("wall_clock")
            if workspace is not None and scan_at is not None and now >= scan_at:
                limit = crossed(workspace, limits.work_bytes) if kill_at is None else None
                if limit is not None:
                    end(limit)
                scan_at = time.monotonic() + max(_SCAN_S, 20 * (time.monotonic() - now))
            if kill_at is not None and now >= kill_at:
                _signal(handles.pidfd, signal.SIGKILL)
                kill_at = now + _GRACE_S
        ending.elapsed_s = time.monotonic() - began
        ending.suspended_s = max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began_boot - ending.elapsed_s)
        if waiting:
            os.close(handles.stdin)
    # Nobody can write any more: what lies in the pipes and the socket is all there will ever be.
    while _receive(handles.control, ending.frames) == "more":
        pass
    for descriptor, kept in ((handles.stdout, ending.stdout), (handles.stderr, ending.stderr)):
        while (state := _read(descriptor, kept, limits.output_bytes)) not in ("end", "later"):
            if state == "over" and kill_at is None:
                ending.limit, ending.limit_at_s = "output", ending.elapsed_s
                kill_at = deadline
    return ending


def crossed(folder: Path, most_bytes: int) -> str | None:
    """The limit that what lies beneath a folder crosses: `disk`, `files` when it is too deep to be looked through.

    Symbolic links are not followed. What can't be read is not counted.
    """
    total = 0
    levels = [_listed(os.open(folder, _FOLDER))]
    try:
        while levels:
            descriptor, names = levels[-1]
            if not names:
                os.close(levels.pop()[0])
                continue
            name = names.pop()
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                total += status.st_blocks * 512
                if total > most_bytes:
                    return "disk"
                if stat.S_ISDIR(status.st_mode):
                    if len(levels) > _DEEPEST:
                        return "files"
                    levels.append(_listed(os.open(name, _FOLDER, dir_fd=descriptor)))
    finally:
        for descriptor, _ in levels:
            os.close(descriptor)
    return None


def _listed(descriptor: int) -> tuple[int, list[str]]:
    try:
        return descriptor, os.listdir(descriptor)
    except OSError:
        return descriptor, []


def _read(descriptor: int, kept: bytearray, most: int) -> str:
    """Take a chunk: `more`, `later`, `end`, or `over` when it no longer fits; what does not fit is dropped."""
    try:
        chunk = os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return "later"
    if not chunk:
        return "end"
    room = most - len(kept)
    kept += chunk[:room]
    return "over" if len(chunk) > room else "more"


def _write(descriptor: int, data: memoryview) -> int:
    """How much of stdin is done with: all of it when nobody reads it any more."""
    try:
        return os.write(descriptor, data[:_CHUNK])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(data)


def _receive(control: socket.socket, frames: Frames) -> str:
    """`more` or `later`, or nothing at the end."""
    try:
        data = control.recv(_CHUNK)
    except BlockingIOError:
        return "later"
    except OSError:
        return ""
    frames.feed(data)
    return "more" if data else ""


def _signal(pidfd: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)
