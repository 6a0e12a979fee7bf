"""One thread that starts every process of a run, in a mount namespace that is only its own.

Why a thread of its own: `--die-with-parent` ends a sandbox with the *thread* that started it, and a thread can leave
the host's mount namespace by itself. What it mounts there is seen by nobody else and is gone with the process, also
when that is killed; no helper process holds it.
"""

import contextlib
import ctypes
import os
import queue
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
            return path
        path = path.resolve()  # what a link says can lie where the account can't go
        if traversable(path):
            return path
        if self._denied is not None:
            raise refuse("staging-denied", where=f"{path}: {self._denied.strerror}")
        return self._do(lambda: self._bound(path, writable))

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

    def _bind(self, path: Path, writable: bool) -> Path:
        assert self._stage is not None
        self._count += 1
        place = self._stage / str(self._count)
        if path.is_dir():
            place.mkdir(mode=0o755)
        else:
            place.touch()
        _call("mount", os.fsencode(path), os.fsencode(place), None, _MS_BIND | _MS_REC, None)
        if not writable:
            with contextlib.suppress(OSError):  # bwrap binds it read-only in any case
                flags = os.statvfs(place).f_flag & _KEPT_FLAGS
                _call("mount", b"none", os.fsencode(place), None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | flags, None)
        return place


def traversable(path: Path) -> bool:
    """Whether an account that owns nothing can walk to a real path: every directory above lets others in."""
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


def readable(path: Path) -> bool:
    """Whether an account that owns nothing can read the file, or list and enter the folder."""
    needed = 0o005 if path.is_dir() else 0o004
    return path.stat().st_mode & needed == needed


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
