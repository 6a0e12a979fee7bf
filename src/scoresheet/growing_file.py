"""Files of lines that only grow: one writer at a time, each line on the disk before anything rests on it.

A writer that is killed may leave a torn last line. It is no line for whoever reads, and the next who appends cuts it
off.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scoresheet import atomic_file
from scoresheet.errors import Usage

_BLOCK = 65536


@dataclass(frozen=True, slots=True)
class Growing:
    """Such a file, open, while nobody else writes to it."""

    fd: int
    path: Path
    what: str

    def lines(self) -> bytes:
        """All that was written, without a torn last line."""
        with open(self.fd, "rb", buffering=0, closefd=False) as file:
            file.seek(0)
            data = file.readall()
        return data[: data.rfind(b"\n") + 1]

    def append(self, lines: bytes) -> None:
        """Whole lines, written and synced; a torn one before them is cut off. Raises `Usage`."""
        try:
            cut(self.fd)
            write(self.fd, lines)
            os.fsync(self.fd)
        except OSError as error:
            raise _cannot(self.path, self.what, error) from error


@contextlib.contextmanager
def held(path: Path, what: str) -> Iterator[Growing]:
    """The file at `path`, made when it is not there, for this process alone; `what` names its content.

    Raises `Usage` when it can't be written, and for a link.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o644)
    except OSError as error:
        raise _cannot(path, what, error) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # until the file is closed
        yield Growing(fd, path, what)
    finally:
        os.close(fd)
    atomic_file.sync_folder(path.parent)


def cut(fd: int) -> bool:
    """Cut a torn last line off; whether there was one."""
    size = os.fstat(fd).st_size
    end = size
    while end > 0:
        start = max(0, end - _BLOCK)
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end != size:
        os.ftruncate(fd, end)
    return end != size


def write(fd: int, data: bytes) -> None:
    """All of it; a system may take less at a time. Raises `OSError`."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _cannot(path: Path, what: str, error: OSError) -> Usage:
    return Usage(f"{what} can't be written: {error.strerror}", str(path))
