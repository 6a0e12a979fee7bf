"""One thread that starts every process of a run, in a mount namespace that is only its own.

Why a thread of its own: `--die-with-parent` ends a sandbox with the *thread* that started it, and a thread can leave
the host's mount namespace by itself. What it mounts there is seen by nobody else and is gone with the process, also
when that is killed; no helper process holds it.
"""

import contextlib
import ctypes
import os
import queue
import struct
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from scoresheet.sandbox.refusal import refuse

_CLONE_NEWNS = 0x0002_0000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same on every machine
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = 1, 4
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_IDMAP = 0x1, 0x0010_0000
_KEPT_FLAGS = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC  # the same bits as MS_NOSUID, MS_NODEV, MS_NOEXEC

_T = TypeVar("_T")
_libc = ctypes.CDLL(None, use_errno=True)


class Launcher:
    """Starts processes; as root it also makes paths reachable for accounts that can't traverse to them."""

    def __init__(self, stage: Path | None) -> None:
        """`stage` is an empty directory of ours when started as root, else `None`."""
        self._stage = stage
        self._staged: dict[tuple[Path, bool], Path] = {}
        self._count = 0
        self._denied: OSError | None = None
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="scoresheet-launcher", daemon=True)
        self._thread.start()
        if stage is not None:
            self._do(self._leave_the_host)

    def close(self) -> None:
        """End the thread: whatever it started and still lives dies with it."""
        self._jobs.put(None)
        self._thread.join()

    def spawn(
        self,
        argv: Sequence[str],
        *,
        stdin: int,
        stdout: int,
        stderr: int,
        pass_fds: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
        uid: int | None = None,
    ) -> subprocess.Popen[bytes]:
        """A process with nothing of ours but what is given; under another account when `uid` is."""

        def start() -> subprocess.Popen[bytes]:
            account = {} if uid is None else {"user": uid, "group": uid, "extra_groups": ()}
            return subprocess.Popen(  # type: ignore[call-overload, no-any-return]  # the account's keywords
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=pass_fds,
                env=env or {},
                cwd="/",
                umask=0o022,
                start_new_session=True,
                **account,
            )

        return self._do(start)

    def reach(self, path: Path, *, writable: bool = False) -> Path:
        """Where an episode's account can bind that host path from. Raises `NotIsolated`."""
        if self._stage is None:
            return path.absolute()  # bwrap is started in /
        path = path.resolve()  # what a link says can lie where the account can't go
        if traversable(path):
            return path
        if self._denied is not None:
            raise refuse("staging-denied", where=f"{path}: {self._denied.strerror}")
        return self._do(lambda: self._bound(path, writable))

    def reach_as(self, path: Path, uid: int) -> Path:
        """Where that account can bind and read a host path that is private to its owner, read-only.

        A mount that maps the owner's ids to the account's (mount_setattr(2), MOUNT_ATTR_IDMAP). Raises `OSError`
        where the kernel or the file system can't.
        """
        if self._denied is not None:
            raise self._denied
        return self._do(lambda: self._bind_mapped(path.resolve(), uid))

    def leave(self, place: Path) -> None:
        """Undo one `reach_as`."""
        self._do(lambda: _call("umount2", os.fsencode(place), _MNT_DETACH))

    def forget(self, path: Path) -> None:
        """Undo what `reach` did for a workspace."""
        if self._stage is not None:
            self._do(lambda: self._unbind(path.resolve()))

    def _do(self, job: Callable[[], _T]) -> _T:
        done: Future[_T] = Future()

        def run() -> None:
            try:
                done.set_result(job())
            except BaseException as error:  # noqa: BLE001  # handed to who asked
                done.set_exception(error)

        self._jobs.put(run)
        return done.result()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _leave_the_host(self) -> None:
        assert self._stage is not None
        try:
            _call("unshare", _CLONE_NEWNS)
            _call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
            _call("mount", b"tmpfs", os.fsencode(self._stage), b"tmpfs", 0, b"mode=755")
        except OSError as error:  # a container without CAP_SYS_ADMIN: nothing is lost until something must be staged
            self._denied = error

    # The following run in the thread, one after the other.

    def _bound(self, path: Path, writable: bool) -> Path:
        key = (path, writable)
        if key not in self._staged:
            self._staged[key] = self._bind(path, writable)
        return self._staged[key]

    def _unbind(self, workspace: Path) -> None:
        for writable in (True, False):
            if (staged := self._staged.pop((workspace, writable), None)) is not None:
                _call("umount2", os.fsencode(staged), _MNT_DETACH)

    def _place(self, path: Path) -> Path:
        """A new mount point for that path."""
        assert self._stage is not None
        self._count += 1
        place = self._stage / str(self._count)
        if path.is_dir():
            place.mkdir(mode=0o755)
        else:
            place.touch()
        return place

    def _bind_mapped(self, path: Path, uid: int) -> Path:
        mapping = self._map(path.stat(), uid)
        try:
            tree = _system_call(
                _OPEN_TREE, _AT_FDCWD, os.fsencode(path), _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
            )
            try:
                change = struct.pack("QQQQ", _MOUNT_ATTR_IDMAP | _MOUNT_ATTR_RDONLY, 0, 0, mapping)
                _system_call(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, change, len(change))
                place = self._place(path)
                _system_call(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(place), _MOVE_MOUNT_F_EMPTY_PATH)
            finally:
                os.close(tree)
        finally:
            os.close(mapping)
        return place

    @staticmethod
    def _map(owner: os.stat_result, uid: int) -> int:
        """A user namespace in which the owner is that account; it lives as long as the descriptor."""
        with subprocess.Popen(
            ["unshare", "--user", "/bin/sh", "-c", "echo; read -r _"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            for kind, theirs in (("uid_map", owner.st_uid), ("gid_map", owner.st_gid)):
                Path(f"/proc/{process.pid}/{kind}").write_text(f"{theirs} {uid} 1")
            return os.open(f"/proc/{process.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)

    def _bind(self, path: Path, writable: bool) -> Path:
        place = self._place(path)
        _call("mount", os.fsencode(path), os.fsencode(place), None, _MS_BIND | _MS_REC, None)
        if not writable:
            with contextlib.suppress(OSError):  # bwrap binds it read-only in any case
                flags = os.statvfs(place).f_flag & _KEPT_FLAGS
                _call("mount", b"none", os.fsencode(place), None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | flags, None)
        return place


def traversable(path: Path) -> bool:
    """Whether an account that owns nothing can walk to a real path: every directory above lets others in."""
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def _system_call(*arguments: object) -> int:
    result = int(_libc.syscall(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
