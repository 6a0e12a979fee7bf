"""Episodes in bubblewrap: proved to reach nothing but the sockets that the host listens on, or refused.

The road of one episode: bwrap builds the namespaces and starts our process 1 (`inside/init.py`), which opens the
doors, hands them to the host, and probes; the host judges, and only then sends what to run. See docs/isolation.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import marshal
import os
import platform
import secrets
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from scoresheet.canonical import JsonValue
from scoresheet.documents.evidence import Evidence
from scoresheet.errors import ScoresheetError, Usage
from scoresheet.sandbox import accounts, control, recipe, refusal, seccomp
from scoresheet.sandbox.binds import Tree, look_through, readable
from scoresheet.sandbox.canary import Canaries
from scoresheet.sandbox.evidence import Expected, Judgement, judge
from scoresheet.sandbox.launcher import Launcher, traversable
from scoresheet.sandbox.memory import Group, Groups
from scoresheet.sandbox.ports import Ports
from scoresheet.sandbox.programs import Programs, compile_for
from scoresheet.sandbox.spec import ANSWER, Ended, Launch, Limits, SandboxSpec
from scoresheet.sandbox.watch import Handles, watch

_REPORT_WITHIN_S = 30.0
_OLDEST_PYTHON = (3, 9)
_SYSTEM_PYTHON = "/usr/bin/python3"
_LONGEST_FOLDER = 60
"""Bytes: the path of a unix socket in it must fit into 108."""


class BwrapSandbox:
    """Isolation by the distribution's bubblewrap, for a whole run. As root, episodes get unprivileged accounts."""

    name = "bwrap"

    def __init__(self, bwrap: Path | None = None) -> None:
        """`bwrap` is looked for on PATH when not given."""
        self._asked_bwrap = bwrap
        self._close = contextlib.ExitStack()
        self._opened = itertools.count()
        self._trees: dict[Path, Tree] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Preflight, canaries, positive control. Raises `NotIsolated`."""
        with contextlib.ExitStack() as entered:
            self._enter(entered)
            self._close = entered.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._close.close()

    @contextlib.contextmanager
    def open(self, spec: SandboxSpec) -> Iterator["Opened"]:
        """A sandbox that was proved, whose agent waits. Raises `NotIsolated`, and `Usage` for a bind that is unsafe."""
        recipe.check(spec)
        with contextlib.ExitStack() as undo:
            yield self._build(spec, undo)

    # What a whole run needs.

    def _enter(self, undo: contextlib.ExitStack) -> None:
        self._bwrap, self._bwrap_version = self._find_bwrap()
        self._bwrap_sha256 = hashlib.sha256(self._bwrap.read_bytes()).hexdigest()
        self._machine = platform.machine()
        self._seccomp = seccomp.program(self._machine)
        self._root = _root()
        self._host_namespace = os.readlink("/proc/self/ns/net")
        self._accounts = accounts.pool(_read("/proc/self/uid_map"), _read("/proc/self/gid_map"))
        self._first = 0 if self._accounts is None else secrets.randbelow(self._accounts.size)
        self._interpreter, self._interpreter_tree = _interpreter()
        self._programs: Programs = compile_for(self._interpreter)

        folder = self._folder = _run_folder()
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        self._groups = Groups(folder.name)
        undo.callback(self._groups.close)
        undo.enter_context(_janitor(folder, self._groups.folder))
        stage = None
        if os.geteuid() == 0:
            stage = folder / "stage"
            stage.mkdir()
        self._launcher = Launcher(stage)
        undo.callback(self._launcher.close)
        self._ports = Ports(self._interpreter, self._launcher)
        undo.callback(self._ports.close)
        self._canaries = Canaries(folder)
        undo.callback(self._canaries.close)
        self._decoy = undo.enter_context(self._start_decoy())
        self._control, self._hits_control = self._positive_control()

    def _find_bwrap(self) -> tuple[Path, str]:
        if sys.platform != "linux":
            raise refusal.refuse("not-linux")
        kernel = _read("/proc/version").lower()
        if "microsoft" in kernel and "wsl2" not in kernel:
            raise refusal.refuse("wsl1")
        if platform.machine() not in seccomp.MACHINES:
            raise refusal.refuse("machine", where=platform.machine())
        found = self._asked_bwrap or next((Path(one) for one in (shutil.which("bwrap"),) if one), None)
        if found is None or not os.access(found, os.X_OK):
            raise refusal.refuse("bwrap-missing", where=str(found or ""))
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False, env={}).stdout.strip()
        number = refusal.version(said)
        if number is None or number < refusal.OLDEST_BWRAP:
            raise refusal.refuse("bwrap-too-old", where=f"{found}: {said}")
        return found.resolve(), said

    def _account(self) -> int | None:
        """The next episode's account, or `None`: our own."""
        if os.geteuid() != 0:
            return None
        if self._accounts is None:
            raise refusal.refuse("account-missing", where="/proc/self/uid_map")
        return self._accounts.first + (self._first + next(self._opened)) % self._accounts.size

    @contextlib.contextmanager
    def _start_decoy(self) -> Iterator[int]:
        """A process of the host that must not be seen; it ends when this process does, for then its stdin ends."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            decoy = self._launcher.spawn(
                ["/bin/sh", "-c", "read -r _"],
                stdin=reading,
                stdout=nothing,
                stderr=nothing,
                env={"SCORESHEET_CANARY": "seen"},
                uid=self._account(),
            )
        finally:
            os.close(reading)
            os.close(nothing)
        try:
            yield decoy.pid
        finally:
            os.close(writing)
            decoy.wait()

    def _positive_control(self) -> tuple[Mapping[str, str], int]:
        """The probe, outside: what must be reachable there is. Raises `NotIsolated`."""
        nonce = self._canaries.nonce("control")
        program = _memory_file(self._programs.control)
        asked = _memory_file(marshal.dumps(self._canaries.targets(nonce, self._decoy), 2))
        reading, writing = os.pipe2(os.O_CLOEXEC)
        errors = os.memfd_create("stderr")
        interpreter, environment = self._interpreter, {}
        if self._interpreter_tree is not None:
            reached = self._launcher.reach(Path(self._interpreter_tree))
            interpreter = str(reached / Path(interpreter).relative_to(self._interpreter_tree))
            environment["LD_LIBRARY_PATH"] = str(reached / "lib")  # its own library is looked for by an absolute path
        try:
            started = self._launcher.spawn(
                [interpreter, "-I", "-S", f"/proc/self/fd/{program}"],
                stdin=asked,
                stdout=writing,
                stderr=errors,
                pass_fds=(program,),
                env=environment,
                uid=self._account(),
            )
            os.close(writing)
            with open(reading, "rb") as found:
                said = found.read()
            if started.wait() != 0:
                raise refusal.refuse("control-failed", where=os.pread(errors, 2000, 0).decode(errors="replace")[-300:])
        finally:
            for descriptor in (program, asked, errors):
                os.close(descriptor)
        return MappingProxyType(json.loads(said)), self._canaries.hits(nonce)

    # What one episode needs.

    def _arguments(
        self,
        spec: SandboxSpec,
        descriptor: Callable[[bytes], str],
        place: Callable[[str, bool], str],
        control_descriptor: str,
    ) -> tuple[str, ...]:
        return recipe.arguments(
            spec,
            self._root,
            self._programs.init,
            self._seccomp,
            descriptor,
            place,
            self._interpreter,
            self._interpreter_tree,
            control_descriptor,
        )

    def _spawn(self, argv: tuple[str, ...], uid: int | None, pass_fds: tuple[int, ...], pipes: "_Pipes") -> "_Process":
        return self._launcher.spawn(
            argv,
            stdin=pipes.stdin[0],
            stdout=pipes.stdout[1],
            stderr=pipes.stderr[1],
            pass_fds=pass_fds,
            uid=uid,
        )

    def _build(self, spec: SandboxSpec, undo: contextlib.ExitStack) -> "Opened":
        uid = self._account()
        if spec.workspace is not None and uid is not None and spec.workspace_writable:
            _give(spec.workspace, uid)
        if spec.workspace is not None:
            undo.callback(self._launcher.forget, spec.workspace)
        bound = {bind.source: self._look_through(bind.source) for bind in spec.binds}

        with contextlib.ExitStack() as mine:  # closed here as soon as bwrap has its copies
            files: list[int] = []

            def descriptor(content: bytes) -> str:
                files.append(_memory_file(content))
                mine.callback(os.close, files[-1])
                return str(files[-1])

            def place(path: str, writable: bool) -> str:
                tree = bound.get(Path(path))
                if uid is not None and not writable and tree is not None and tree.private:
                    return str(self._reach_private(Path(path), uid, undo))
                return str(self._launcher.reach(Path(path), writable=writable))

            pipes = _Pipes(undo, mine)
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            undo.callback(ours.close)
            mine.callback(theirs.close)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            arguments = self._arguments(spec, descriptor, place, str(theirs.fileno()))
            process = self._spawn((str(self._bwrap), *arguments), uid, (*files, theirs.fileno()), pipes)
        life = _Life(process)
        undo.callback(life.close)
        undo.callback(life.end)

        nonce = self._canaries.nonce("inside")
        asked = {
            "ports": [door.port for door in spec.doors if not door.privileged],
            "canary": self._canaries.targets(nonce, self._decoy),
            "binds": [bind.target for bind in spec.binds],
            "name": nonce.replace(b"-", b"") + b".invalid",
        }
        with contextlib.suppress(OSError):  # bwrap has failed: what it said is read below
            control.send(ours, marshal.dumps(asked, 2))
        reported = control.receive_report(ours, _REPORT_WITHIN_S)
        if reported is None:
            life.end()
            raise refusal.classify(_drain(pipes.stderr[0]), _machine())
        plain = [door.name for door in spec.doors if not door.privileged]
        doors = {name: _adopt(undo, found) for name, found in zip(plain, reported.descriptors, strict=True)}
        life.pidfd = os.pidfd_open(reported.pid)

        own = uid if uid is not None else os.geteuid()
        expected = self._expected(spec, own, reported, bound)
        hits = self._canaries.hits(nonce)
        judged = judge(json.loads(reported.data), self._control, hits, expected)
        evidence = self._evidence(spec, judged, hits, expected)
        if judged.failing:
            life.end()
            raise refusal.NotProved(evidence)
        privileged = [door for door in spec.doors if door.privileged]
        if privileged:  # only now: while the probe ran nothing answered there
            for door, found in zip(privileged, self._ports.open(reported.pid, uid, privileged), strict=True):
                doors[door.name] = _adopt(undo, found)
        group = None
        if spec.limits.memory_bytes is not None:
            group = self._groups.hold(reported.pid, spec.limits.memory_bytes)
        if group is not None:
            undo.callback(group.remove)
            undo.callback(life.end)  # a group can be removed only when it is empty
        evidence = evidence.model_copy(update={"limits": _enforced(spec, group is not None)})
        return Opened(spec, doors, evidence, life, ours, pipes, group, lambda: self._canaries.hits(nonce), undo)

    def _expected(
        self, spec: SandboxSpec, own: int, reported: control.Reported, bound: Mapping[Path, Tree]
    ) -> Expected:
        """What the probe must have found, by what was declared and by what the host sees of the sandbox."""
        places, trees = recipe.declared(spec, self._root, self._interpreter_tree)
        return Expected(
            writable=recipe.writable(spec),
            places=places,
            trees=trees,
            uid=own,
            seen_uid=reported.uid,
            host_namespace=self._host_namespace,
            seen_namespace=_link(f"/proc/{reported.pid}/ns/net"),
            name_service=recipe.name_service(spec),
            shared_namespaces=_shared(reported.pid),
            bound_sockets=tuple(itertools.chain.from_iterable(tree.sockets for tree in bound.values())),
        )

    def _evidence(self, spec: SandboxSpec, judged: Judgement, hits: int, expected: Expected) -> Evidence:
        """What is told of the sandbox, before its limits are known to be held."""
        digest = self._arguments(
            spec, lambda content: hashlib.sha256(content).hexdigest(), lambda path, _: path, "control"
        )
        return Evidence(
            backend=self.name,
            state="not_proved" if judged.failing else "proved",
            reasons=judged.failing,
            checks=judged.checks,
            canary_hits_inside=hits,
            canary_hits_control=self._hits_control,
            kernel=platform.release(),
            bwrap=self._bwrap_version,
            bwrap_sha256=self._bwrap_sha256,
            argv_sha256=hashlib.sha256("\0".join(digest).encode("utf-8", "surrogateescape")).hexdigest(),
            seccomp_sha256=hashlib.sha256(self._seccomp).hexdigest(),
            uid=expected.uid,
            network_namespace=expected.seen_namespace,
            host_network_namespace=self._host_namespace,
        )

    def _look_through(self, source: Path) -> Tree:
        with self._lock:
            if source not in self._trees:
                self._trees[source] = look_through(source)
            return self._trees[source]

    def _reach_private(self, path: Path, uid: int, undo: contextlib.ExitStack) -> Path:
        """A path with files that only their owner may read, shown as the episode's account's. Raises `Usage`."""
        try:
            place = self._launcher.reach_as(path, uid)
        except OSError as error:  # this file system has no such mounts
            if readable(path.stat().st_mode):
                return self._launcher.reach(path)
            mend = f"chmod -R go+rX {shlex.quote(str(path))}"
            raise Usage(f"the account of an episode can't read this: {error.strerror}", str(path), mend) from error
        undo.callback(self._launcher.leave, place)
        return place


_Process = subprocess.Popen[bytes]


class Opened:
    """A proved sandbox whose agent has not started yet."""

    def __init__(
        self,
        spec: SandboxSpec,
        doors: dict[str, socket.socket],
        evidence: Evidence,
        life: "_Life",
        ours: socket.socket,
        pipes: "_Pipes",
        group: Group | None,
        hits: Callable[[], int],
        undo: contextlib.ExitStack,
    ) -> None:
        self._spec, self._doors, self._evidence = spec, doors, evidence
        self._life, self._control, self._pipes, self._group, self._hits = life, ours, pipes, group, hits
        self._reason: str | None = None
        self._lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        undo.callback(self._close_wake)

    @property
    def sockets(self) -> Mapping[str, socket.socket]:
        return MappingProxyType(self._doors)

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        return MappingProxyType({door.name: ("127.0.0.1", door.port) for door in self._spec.doors})

    @property
    def evidence(self) -> Evidence:
        return self._evidence

    def stop(self, reason: str) -> None:
        with self._lock:
            if self._reason is None:
                self._reason = reason
                if self._wake >= 0:
                    os.eventfd_write(self._wake, 1)

    def start(self, launch: Launch) -> Ended:
        assert self._life.pidfd is not None
        limits = self._spec.limits
        frame = marshal.dumps(_launch(launch, self._spec, self._group is not None), 2)
        with contextlib.suppress(OSError):  # process 1 is gone: the watch sees that
            control.send(self._control, frame)
        handles = Handles(
            self._life.pidfd,
            self._control,
            self._pipes.give_stdin(),
            self._pipes.stdout[0],
            self._pipes.stderr[0],
            self._wake,
        )
        workspace = self._spec.workspace if self._spec.workspace_writable else None
        roomy = dataclasses.replace(limits, work_bytes=limits.work_bytes + self._spec.workspace_bytes)
        ending = watch(handles, launch.stdin, roomy, workspace, lambda: self._reason is not None)
        total_cpu_s, most_kib = self._life.end()
        hits = self._hits()
        if hits:
            self._evidence = self._evidence.model_copy(
                update={"state": "not_proved", "reasons": ("canary_hit",), "canary_hits_inside": hits}
            )
        self._evidence = self._evidence.model_copy(update={"suspended_s": round(ending.suspended_s, 3)})

        used = None if self._group is None else self._group.used()
        last = _last(ending.frames.take())
        answer = ending.frames.take() if last is not None and last["answer"] else None
        code = None if last is None else os.waitstatus_to_exitcode(last["status"])
        limit, limit_at_s = ending.limit, ending.limit_at_s
        if limit is None and not ending.stopped:
            limit = _cause(code, () if last is None else last["full"], 0 if used is None else used.oom_kills)
            limit_at_s = None if limit is None else ending.elapsed_s
            if limit is None and last is None:
                raise ScoresheetError(
                    "the sandbox's first process died without a word", where=self._said(ending.stderr)
                )
        peak = None if last is None else last["peak_kib"] * 1024
        return Ended(
            exit_code=None if limit is not None or ending.stopped else code,
            limit=limit,
            limit_at_s=limit_at_s,
            stopped=self._reason if ending.stopped else None,
            elapsed_s=ending.elapsed_s,
            cpu_s=total_cpu_s if last is None else last["cpu_us"] / 1e6,
            peak_memory_bytes=used.peak_bytes
            if used is not None and used.peak_bytes is not None
            else peak or most_kib * 1024,
            stdout=bytes(ending.stdout),
            stderr=bytes(ending.stderr),
            answer=answer,
            answer_fault=None if last is None else last["answer_fault"],
        )

    @staticmethod
    def _said(stderr: bytearray) -> str:
        return bytes(stderr[-300:]).decode(errors="replace").strip()

    def _close_wake(self) -> None:
        with self._lock:
            os.close(self._wake)
            self._wake = -1


class _Life:
    """The processes of one sandbox, until they are dead."""

    def __init__(self, process: _Process) -> None:
        self._process = process
        self.pidfd: int | None = None
        self._used: tuple[float, int] | None = None

    def end(self) -> tuple[float, int]:
        """Kill what lives; returns processor time in seconds and the largest process in KiB. Any number of times."""
        if self._used is None:
            with contextlib.suppress(ProcessLookupError):
                if self.pidfd is not None:
                    signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)  # then bwrap ends by itself
                else:
                    os.kill(self._process.pid, signal.SIGKILL)  # takes process 1 along: --die-with-parent
            _, status, used = os.wait4(self._process.pid, 0)
            self._process.returncode = os.waitstatus_to_exitcode(status)
            if self.pidfd is not None:
                select.select([self.pidfd], [], [])
            self._used = used.ru_utime + used.ru_stime, used.ru_maxrss
        return self._used

    def close(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)


class _Pipes:
    """(read end, write end) of the agent's three; its own ends are closed with `theirs`, ours with `undo`."""

    def __init__(self, undo: contextlib.ExitStack, theirs: contextlib.ExitStack) -> None:
        self.stdin, self.stdout, self.stderr = (os.pipe2(os.O_CLOEXEC) for _ in range(3))
        self._stdin_given = False
        for descriptor in (self.stdin[0], self.stdout[1], self.stderr[1]):
            theirs.callback(os.close, descriptor)
        for descriptor in (self.stdout[0], self.stderr[0]):
            undo.callback(os.close, descriptor)
        undo.callback(self._close_stdin)

    def give_stdin(self) -> int:
        """The write end of stdin: who takes it closes it."""
        self._stdin_given = True
        return self.stdin[1]

    def _close_stdin(self) -> None:
        if not self._stdin_given:
            os.close(self.stdin[1])


def _launch(launch: Launch, spec: SandboxSpec, memory_held: bool) -> dict[str, Any]:
    """What process 1 is told, in plain values."""
    return {
        "argv": [os.fsencode(word) for word in launch.argv],
        "env": [(os.fsencode(name), os.fsencode(value)) for name, value in launch.env],
        "rlimits": _rlimits(spec.limits, memory_held),
        "answer": ANSWER,
        "answer_bytes": spec.limits.answer_bytes,
        "sized": [place for place, _ in recipe.sized(spec) if place != recipe.ANSWER_FOLDER],
    }


def _rlimits(limits: Limits, memory_held: bool) -> list[tuple[str, int]]:
    bounds = [
        ("RLIMIT_NPROC", limits.pids),  # counted in this user namespace alone
        ("RLIMIT_FSIZE", limits.file_bytes),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_NOFILE", limits.open_files),
        ("RLIMIT_MEMLOCK", 8 << 20),
    ]
    if limits.memory_bytes is not None and not memory_held:
        bounds.append(("RLIMIT_DATA", limits.memory_bytes))
    return bounds


def _enforced(spec: SandboxSpec, memory_held: bool) -> dict[str, JsonValue]:
    limits = spec.limits
    memory = "none" if limits.memory_bytes is None else "cgroup" if memory_held else "rlimit-per-process"
    return {
        "wall_clock_s": {"value": limits.wall_clock_s, "enforced_by": "clock"},
        "pids": {"value": limits.pids, "enforced_by": "rlimit"},
        "memory_bytes": {"value": limits.memory_bytes, "enforced_by": memory},
        "work_bytes": {"value": limits.work_bytes, "enforced_by": "tmpfs" if spec.workspace is None else "watchdog"},
        "file_bytes": {"value": limits.file_bytes, "enforced_by": "rlimit"},
        "output_bytes": {"value": limits.output_bytes, "enforced_by": "pipe"},
        "answer_bytes": {"value": limits.answer_bytes, "enforced_by": "tmpfs"},
        "open_files": {"value": limits.open_files, "enforced_by": "rlimit"},
    }


def _cause(code: int | None, full: tuple[str, ...] | list[str], oom_kills: int) -> str | None:
    """The limit that ended an agent which ended by itself, where that is known; never a guess."""
    if oom_kills and code in (None, -9):
        return "memory"
    if code == -25 or (full and code != 0 and code is not None):  # SIGXFSZ, or a full file system and a failure
        return "disk"
    return None


def _last(frame: bytes | None) -> dict[str, Any] | None:
    if frame is None:
        return None
    last: dict[str, Any] = json.loads(frame)
    return last


def _give(workspace: Path, uid: int) -> None:
    """The workspace and all beneath it, to the episode's account; symbolic links are not followed."""
    os.chown(workspace, uid, uid, follow_symlinks=False)
    for _, folders, files, descriptor in os.fwalk(workspace):
        for name in (*folders, *files):
            os.chown(name, uid, uid, dir_fd=descriptor, follow_symlinks=False)


def _adopt(undo: contextlib.ExitStack, descriptor: int) -> socket.socket:
    door = socket.socket(fileno=descriptor)
    undo.callback(door.close)
    return door


def _memory_file(content: bytes) -> int:
    descriptor = os.memfd_create("scoresheet", os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _drain(descriptor: int) -> str:
    """What lies in a pipe whose writers are dead."""
    os.set_blocking(descriptor, False)
    said = b""
    with contextlib.suppress(BlockingIOError):
        while (chunk := os.read(descriptor, 1 << 16)) and len(said) < 1 << 16:
            said += chunk
    return said.decode(errors="replace")


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError as error:
        return f"not seen: {error.strerror}"


def _shared(pid: int) -> tuple[str, ...]:
    """Kinds of namespaces that a process shares with this one, or whose difference can't be seen."""
    shared = []
    for kind in ("user", "net", "pid", "ipc", "uts", "mnt"):
        theirs, ours = _link(f"/proc/{pid}/ns/{kind}"), _link(f"/proc/self/ns/{kind}")
        if theirs == ours or "not seen" in theirs:
            shared.append(kind)
    return tuple(shared)


def _machine() -> refusal.Machine:
    off = _read("/proc/sys/user/max_user_namespaces").strip() == "0"
    cloning = _read("/proc/sys/kernel/unprivileged_userns_clone").strip() == "0"
    return refusal.Machine(
        apparmor_restricts=_read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").strip() == "1",
        user_namespaces_off=off or cloning,
        container=Path("/.dockerenv").exists()
        or Path("/run/.containerenv").exists()
        or "kubepods" in _read("/proc/self/cgroup"),
    )


def _root() -> recipe.Root:
    links, folders = [], []
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        path = Path(name)
        if path.is_symlink():
            links.append((name, os.readlink(name)))
        elif path.is_dir():
            folders.append(name)
    java = sorted(str(path) for path in Path("/etc").glob("java-*-openjdk"))  # Java of Debian starts by reading it
    etc = (*(path for path in recipe.etc_candidates() if Path(path).exists()), *java)
    return recipe.Root(tuple(links), tuple(folders), etc)


def _interpreter() -> tuple[str, str | None]:
    """(the Python of process 1, the tree to bind for it beside /usr). Raises `NotIsolated`."""
    ask = f"import sys; sys.exit(sys.version_info < {_OLDEST_PYTHON})"
    if (
        os.access(_SYSTEM_PYTHON, os.X_OK)
        and Path(_SYSTEM_PYTHON).resolve().is_relative_to("/usr")
        and subprocess.run([_SYSTEM_PYTHON, "-I", "-S", "-c", ask], check=False, capture_output=True).returncode == 0
    ):
        return _SYSTEM_PYTHON, None
    own = Path(sys.executable).resolve()
    base = Path(sys.base_prefix).resolve()
    if not own.is_relative_to(base):
        raise refusal.refuse("python-missing", where=str(own))
    return str(own), None if own.is_relative_to("/usr") else str(base)


def _run_folder() -> Path:
    """A folder of this run that any account can walk to."""
    for parent in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), Path("/run")):
        short = len(os.fsencode(parent)) < _LONGEST_FOLDER
        if short and parent.is_dir() and os.access(parent, os.W_OK) and traversable(parent.resolve() / "x"):
            folder = Path(tempfile.mkdtemp(prefix="scoresheet-sandbox-", dir=parent))
            folder.chmod(0o711)
            return folder
    raise refusal.refuse("staging-denied", where=tempfile.gettempdir())


_TIDY = """
read -r _
rm -rf -- "$1"
[ -n "$2" ] || exit 0
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  [ -d "$2" ] || exit 0
  for group in "$2"/*/ "$2"; do [ -d "$group" ] && rmdir "$group"; done
  [ -d "$2" ] && sleep 0.1
done
"""


@contextlib.contextmanager
def _janitor(folder: Path, groups: Path | None) -> Iterator[None]:
    """Removes what a killed run would leave on the host: it acts when our end of its stdin closes, however that is."""
    janitor = subprocess.Popen(
        ["/bin/sh", "-c", _TIDY, "sh", str(folder), "" if groups is None else str(groups)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin"},
        cwd="/",
        start_new_session=True,
    )
    try:
        yield
    finally:
        assert janitor.stdin is not None
        janitor.stdin.close()
        janitor.wait()
