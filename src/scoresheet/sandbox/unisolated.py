"""The backend `none`: the agent runs as any process does. It can reach everything, so it never proves anything.

Same shape as every sandbox: doors on loopback, clock, output and answer bounds, the whole process tree ended. Paths
inside (`WORK`, `ANSWER`, `TASK`, files) stand for places in a temporary folder, put in the launch where they occur.
"""

import contextlib
import dataclasses
import fcntl
import importlib.util
import json
import logging
import marshal
import os
import selectors
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from scoresheet.documents.evidence import Evidence
from scoresheet.sandbox import supervisor
from scoresheet.sandbox.spec import ANSWER, HOME, WORK, Ended, Launch, Limits, SandboxSpec, executable
from scoresheet.sandbox.watch import crossed

_log = logging.getLogger(__name__)
_PREFIX = "scoresheet-none-"
_CLAIM = "claim"
_STALE_S = 60.0
"""A folder that is younger may be one that its runner has not claimed yet."""
_DISK_EVERY_S = 0.5
_AFTER_STOP_S = 10.0
"""How long the supervisor may take to end a tree before it is ended itself."""


class UnisolatedSandbox:
    """Runs agents without isolation: every report then says `not_isolated`."""

    name = "none"

    def __init__(self) -> None:
        self._close = contextlib.ExitStack()
        self._folder = Path()

    def __enter__(self) -> Self:
        """Makes a folder for the run, and removes those that killed runners left."""
        _sweep()
        with contextlib.ExitStack() as entered:
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            entered.callback(_remove, self._folder)
            entered.enter_context(_claimed(self._folder))
            self._close = entered.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._close.close()

    @contextlib.contextmanager
    def open(self, spec: SandboxSpec) -> Iterator["UnisolatedEpisode"]:
        """A place for one episode on the host itself."""
        with contextlib.ExitStack() as stack:
            root = Path(tempfile.mkdtemp(dir=self._folder))
            stack.callback(_remove, root)
            sockets: dict[str, socket.socket] = {}
            for door in spec.doors:
                if door.privileged:
                    continue  # the host's own 53, 80 and 443 are not ours to take
                sockets[door.name] = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=512))
            yield UnisolatedEpisode(spec, root, sockets)


class UnisolatedEpisode:
    """One episode's place: an `Opened`."""

    def __init__(self, spec: SandboxSpec, root: Path, sockets: Mapping[str, socket.socket]) -> None:
        self._spec, self._root = spec, root
        self.sockets = sockets
        self.addresses = {name: ("127.0.0.1", listening.getsockname()[1]) for name, listening in sockets.items()}
        self.evidence = _evidence(spec.limits)
        self._lock = threading.Lock()
        self._stopped: str | None = None
        self._control: socket.socket | None = None
        self._places = {WORK: root / "work", HOME: root / "home", ANSWER: root / "answer" / "answer.json"}
        for folder in ("work", "home", "answer", "files"):
            (root / folder).mkdir()
        if spec.workspace is not None:
            self._places[WORK] = spec.workspace
        for number, (target, content) in enumerate(spec.files):
            place = root / "files" / f"{number}-{Path(target).name}"
            place.write_bytes(content)
            self._places[target] = place
        for target, source in spec.programs:
            place = root / "programs" / Path(target).name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(executable(source, sys.executable))
            place.chmod(0o755)
            self._places |= {target: place, str(Path(target).parent): place.parent}

    def stop(self, reason: str) -> None:
        """End the episode now; the first reason counts."""
        with self._lock:
            if self._stopped is None:
                self._stopped = reason
            if self._control is not None:
                with contextlib.suppress(OSError):
                    self._control.sendall(b"x")

    def start(self, launch: Launch) -> Ended:
        """Run the agent to its end, end what it left, and return what was measured."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            started = time.monotonic()
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", _supervisor(), str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                env={},
                start_new_session=True,
            )
            theirs.close()
            with process:
                order = marshal.dumps(self._order(launch))
                ours.sendall(len(order).to_bytes(8, "big") + order)
                with self._lock:
                    self._control = ours
                    if self._stopped is not None:
                        ours.sendall(b"x")
                limits = self._spec.limits
                roomy = dataclasses.replace(limits, work_bytes=limits.work_bytes + self._spec.workspace_bytes)
                watch = _Watch(process, ours, launch.stdin, roomy, self._places[WORK], started)
                watch.run()
                with self._lock:
                    self._control = None
        answer, answer_fault = _answer(self._places[ANSWER], self._spec.limits.answer_bytes)
        report = watch.report
        ended_by_us = watch.limit is not None or self._stopped is not None
        return Ended(
            exit_code=None if ended_by_us else report.get("exit_code"),
            limit=watch.limit,
            limit_at_s=watch.limit_at_s,
            stopped=self._stopped,
            elapsed_s=watch.ended - started,
            cpu_s=float(report.get("cpu_s", 0.0)),
            peak_memory_bytes=report.get("peak_memory_bytes"),
            stdout=bytes(watch.stdout),
            stderr=bytes(watch.stderr),
            answer=answer,
            answer_fault=answer_fault,
        )

    def _order(self, launch: Launch) -> dict[str, Any]:
        limits = self._spec.limits
        return {
            "argv": [self._placed(word) for word in launch.argv],
            "env": {name: self._placed(value) for name, value in launch.env},
            "cwd": str(self._places[WORK]),
            "root": str(self._root),
            "rlimits": {"RLIMIT_FSIZE": limits.file_bytes, "RLIMIT_NOFILE": limits.open_files, "RLIMIT_CORE": 0},
        }

    def _placed(self, word: str) -> str:
        """`word` with each path inside it, alone, after `=` or between `:`, as it is on the host."""
        return "=".join(":".join(self._host(part) for part in side.split(":")) for side in word.split("="))

    def _host(self, path: str) -> str:
        place = self._places.get(path)
        if place is not None:
            return str(place)
        for bind in self._spec.binds:
            if str(bind.source) != bind.target and (path == bind.target or path.startswith(f"{bind.target}/")):
                return f"{bind.source}{path[len(bind.target) :]}"
        return path


class _Watch:
    """Feeds and reads one agent until its supervisor reports, and ends it when it crosses a bound."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        control: socket.socket,
        stdin: bytes,
        limits: Limits,
        work: Path,
        started: float,
    ) -> None:
        self._process, self._control, self._limits, self._work = process, control, limits, work
        self._stdin = memoryview(stdin)
        self._started = self.ended = started
        self._told_at: float | None = None
        self.stdout, self.stderr = bytearray(), bytearray()
        self.limit: str | None = None
        self.limit_at_s: float | None = None
        self.report: dict[str, Any] = {}

    def run(self) -> None:
        """Blocks until every process of the agent is dead."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for stream in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(stream.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ, self.stdout)
            selector.register(process.stderr, selectors.EVENT_READ, self.stderr)
            selector.register(self._control, selectors.EVENT_READ)
            if self._stdin:
                selector.register(process.stdin, selectors.EVENT_WRITE)
            else:
                process.stdin.close()
            line = b""
            disk_at = self._started + _DISK_EVERY_S
            while True:
                for key, _ in selector.select(self._wait(disk_at)):
                    if key.fileobj is self._control:
                        part = self._control.recv(65536)
                        line += part or b"{}\n"
                    elif key.fileobj is process.stdin:
                        self._feed(selector)
                    else:
                        self._read(selector, key)
                now = time.monotonic()
                if line.endswith(b"\n"):
                    break  # it ended by itself before any bound was looked at
                if now - self._started >= self._limits.wall_clock_s:
                    self._cross("wall_clock", now)
                if now >= disk_at:
                    disk_at = now + _DISK_EVERY_S
                    limit = crossed(self._work, self._limits.work_bytes)
                    if limit is not None:
                        self._cross(limit, now)
                if self._told_at is not None and now - self._told_at > _AFTER_STOP_S:
                    _log.warning("the supervisor of an episode did not end its tree in %s s", _AFTER_STOP_S)
                    process.kill()
                    break
            self.ended = time.monotonic()
            if line != b"{}\n" and line:
                self.report = json.loads(line)
            self._rest(selector)

    def _wait(self, disk_at: float) -> float:
        now = time.monotonic()
        until = min(disk_at, self._started + self._limits.wall_clock_s if self.limit is None else disk_at)
        return max(0.0, until - now)

    def _feed(self, selector: selectors.BaseSelector) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            self._stdin = self._stdin[os.write(stdin.fileno(), self._stdin[:65536]) :]
        except BlockingIOError:
            return
        except OSError:  # the agent does not read its task from here: its right
            self._stdin = self._stdin[:0]
        if not self._stdin:
            selector.unregister(stdin)
            stdin.close()

    def _read(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        try:
            data = os.read(key.fd, 65536)
        except BlockingIOError:
            return
        if not data:
            selector.unregister(key.fileobj)
            return
        kept: bytearray = key.data
        room = self._limits.output_bytes - len(kept)
        kept += data[:room]
        if len(data) > room:
            self._cross("output", time.monotonic())

    def _cross(self, limit: str, now: float) -> None:
        if self.limit is None:
            self.limit, self.limit_at_s = limit, now - self._started
            self._told_at = now
            with contextlib.suppress(OSError):
                self._control.sendall(b"x")

    def _rest(self, selector: selectors.BaseSelector) -> None:
        """What stands in the pipes; a process that escaped must not hold us, so nothing is waited for."""
        self._process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for key in list(selector.get_map().values()):
            if key.fileobj in (self._process.stdout, self._process.stderr):
                while key.fileobj in selector.get_map():
                    before = len(key.data)
                    self._read(selector, key)
                    if len(key.data) == before:
                        break


def _supervisor() -> str:
    """The program, compiled where importing it has left that: it starts once an episode."""
    compiled = importlib.util.cache_from_source(supervisor.__file__)
    return compiled if os.path.exists(compiled) else supervisor.__file__


def _answer(path: Path, most: int) -> tuple[bytes | None, str | None]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        return None, f"the answer file can't be read: {error.strerror}"
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None, "the answer is not a regular file"
        if status.st_size > most:
            return None, f"the answer file has {status.st_size} bytes, more than {most}"
        return os.read(descriptor, most + 1), None
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """`folder` held by this process: the system lets it go when the process dies, however it dies."""
    with (folder / _CLAIM).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _sweep() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another's, held, or just going
            if folder.stat().st_uid == os.getuid() and time.time() - folder.stat().st_mtime > _STALE_S:
                with _claimed(folder):
                    _remove(folder)


def _remove(root: Path) -> None:
    def reopen(_function: object, path: str, _error: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700)
            os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)

    shutil.rmtree(root, onerror=reopen)
    if root.exists():
        _log.warning("could not remove %s", root)


def _evidence(limits: Limits) -> Evidence:
    return Evidence(
        backend="none",
        state="not_isolated",
        reasons=("the run was asked for without isolation",),
        kernel=os.uname().release,
        uid=os.getuid(),
        limits={
            "wall_clock_s": {"value": limits.wall_clock_s, "enforced_by": "watchdog"},
            "output_bytes": {"value": limits.output_bytes, "enforced_by": "pipe"},
            "file_bytes": {"value": limits.file_bytes, "enforced_by": "rlimit"},
            "open_files": {"value": limits.open_files, "enforced_by": "rlimit"},
            "work_bytes": {"value": limits.work_bytes, "enforced_by": "watchdog"},
            "pids": {"value": limits.pids, "enforced_by": "none"},
            "memory_bytes": {"value": limits.memory_bytes, "enforced_by": "none"},
        },
    )
