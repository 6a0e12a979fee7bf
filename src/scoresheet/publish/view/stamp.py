"""What tells whether the files of a run have changed: by their metadata, without reading them. Nothing is followed."""

import hashlib
import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scoresheet.errors import Finding, Refused
from scoresheet.publish.bundle_file import TOP
from scoresheet.publish.page.attempts import Attempt

_READ = ("calls.jsonl", "model.jsonl", "trajectory.json", "patch.diff", "stderr", "stdout")
"""What a page reads in an episode's folder."""
_SETTLED_NS = 2_000_000_000
"""A file that changed so shortly before it was looked at can change again within one tick of the clock."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The state of some files."""

    digest: bytes
    settled: bool
    """False when a file had just changed: the next change might not be seen, so nothing may be kept by this stamp."""

    def still(self, now: "Stamp") -> bool:
        """True when the files are certainly what they were."""
        return self.settled and self.digest == now.digest


class _Stamps:
    def __init__(self) -> None:
        self._hashed = hashlib.sha256()
        self._newest = 0

    def take(self, name: str, status: os.stat_result | None) -> None:
        if status is None:
            self._hashed.update(f"{name!r} -\n".encode())
            return
        self._newest = max(self._newest, status.st_ctime_ns, status.st_mtime_ns)
        times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
        self._hashed.update(f"{name!r} {status.st_mode} {status.st_ino} {status.st_size} {times}\n".encode())

    def stamp(self) -> Stamp:
        return Stamp(self._hashed.digest(), self._newest < time.time_ns() - _SETTLED_NS)


def of_run(path: Path) -> Stamp:
    """Of the files of a run itself. Raises `Refused` for one that is no regular file."""
    found = _Stamps()
    for name in sorted(TOP):
        status = _status(f"{path}/{name}")
        if status is not None and not stat.S_ISREG(status.st_mode):
            kind = "a link" if stat.S_ISLNK(status.st_mode) else "no regular file"
            finding = Finding("view-file", name, f"{kind}: it is not read")
            raise Refused(finding.what, [finding], name)
        found.take(name, status)
    return found.stamp()


def of_attempts(path: Path, attempts: Iterable[Attempt]) -> Stamp:
    """Of what a page reads in the folders of a run's attempts."""
    found = _Stamps()
    for each in attempts:
        folder = f"{path}/episodes/{each.task_id}/{each.repeat}.{each.attempt}"
        for name in _READ:
            found.take(name, _status(f"{folder}/{name}"))
    return found.stamp()


def _status(path: str) -> os.stat_result | None:
    """`None` when it is not there, or out of reach."""
    try:
        return os.lstat(path)
    except OSError:
        return None
