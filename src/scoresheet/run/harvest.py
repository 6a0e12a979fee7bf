"""What an agent left in its workspace, read as hostile input when its last process is dead.

Walked by descriptors, never through a link; a FIFO, device or socket is never opened; the number of entries, the depth
and the bytes that are read are bounded.
"""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from scoresheet.documents.manifest import FrozenFile
from scoresheet.run import surface
from scoresheet.run.patch import Change, Entry, File, Link
from scoresheet.run.workspace import GIT, Work

MOST_ENTRIES = 200_000
"""Beside those that were there at the start."""
DEEPEST = 256
LONGEST_PATH = 1024
LARGEST_FILE = 32 << 20
LARGEST_PATCH = 128 << 20
_SHOWN = 50
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Harvest:
    """The state of a workspace against its start."""

    changes: tuple[Change, ...]
    left_out: tuple[str, ...]
    """What is there but in no change, `path: why`; the first few, then how many more."""
    crossed: str | None
    """The limit that what lies there crosses: `files`, `disk`."""
    unread: tuple[bytes, ...] = ()
    """Files of the start that are no longer what they were, but too large to say how."""


def harvest(root: Path, work: Work, most_bytes: int | None = None) -> Harvest:
    """Everything that differs below `root` from the files of `work`. Nothing may write there any more.

    More than `most_bytes` on the disk cross the limit, also where the agent hid them from who watched it.
    """
    reader = _Reader(work)
    fd = os.open(root, _FOLDER)
    reader.walk(fd)
    if most_bytes is not None and reader.taken > most_bytes:
        reader.crossed = reader.crossed or "disk"
    if reader.crossed is not None:
        return Harvest((), reader.said(), reader.crossed)
    changes = list(reader.changes.values())
    for path in work.files.keys() - reader.seen:
        changes.append(Change(path, File(work.content(path), work.files[path].exec), None))
    paths = reader.seen | {change.path for change in changes}
    kept = [change for change in changes if not _cache(change, paths)]
    return Harvest(
        tuple(sorted(kept, key=lambda change: change.path)), reader.said(), None, tuple(sorted(reader.unread))
    )


def _cache(change: Change, paths: set[bytes]) -> bool:
    if change.before is not None or not isinstance(change.after, File):
        return False
    return surface.is_cache(change.path, paths, change.after.content)


def output(changes: tuple[Change, ...], work: Work, path: bytes) -> bytes | None:
    """The bytes of one file as the agent left it; `None` when there is none, or it is no regular file."""
    for change in changes:
        if change.path == path:
            return change.after.content if isinstance(change.after, File) else None
    return work.content(path) if path in work.files else None


class _Reader:
    def __init__(self, work: Work) -> None:
        self._work = work
        self._left: list[str] = []
        self._room = LARGEST_PATCH
        self._entries = 0
        self._most = MOST_ENTRIES + 2 * len(work.files)
        self.seen: set[bytes] = set()
        """Paths of the start that are still there, changed or not, and of every file that was read."""
        self.changes: dict[bytes, Change] = {}
        self.unread: set[bytes] = set()
        self.taken = 0
        """Bytes on the disk."""
        self.crossed: str | None = None

    def said(self) -> tuple[str, ...]:
        more = len(self._left) - _SHOWN
        return (*self._left[:_SHOWN], *((f"and {more} more",) if more > 0 else ()))

    def walk(self, top: int) -> None:
        """Depth first, without recursion: one descriptor a level."""
        levels: list[tuple[int, bytes, list[bytes]]] = [(top, b"", self._names(top))]
        try:
            while levels and self.crossed is None:
                fd, prefix, names = levels[-1]
                if not names:
                    os.close(levels.pop()[0])
                    continue
                name = names.pop()
                path = prefix + name
                below = self._entry(fd, name, path, len(levels))
                if below is not None:
                    levels.append((below, path + b"/", self._names(below)))
        finally:
            for fd, _, _ in levels:
                os.close(fd)

    def _names(self, fd: int) -> list[bytes]:
        names: list[bytes] = []
        with os.scandir(fd) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > self._most:
                    self.crossed = "files"
                    return []
                names.append(os.fsencode(entry.name))
        return sorted(names, reverse=True)

    def _entry(self, fd: int, name: bytes, path: bytes, depth: int) -> int | None:
        """A descriptor of the folder to go on with, or `None`."""
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        mode = status.st_mode
        self.taken += status.st_blocks * 512
        if path == GIT and self._work.git:
            return None
        if stat.S_ISDIR(mode):
            if depth >= DEEPEST:
                self._leave(path, "too deep")
                self.crossed = "files"
                return None
            return self._opened(fd, name, path, _FOLDER, 0o700)
        if len(path) > LONGEST_PATH:
            self._leave(path, "its path is too long")
        elif stat.S_ISLNK(mode):
            self._changed(path, Link(os.readlink(name, dir_fd=fd)))
        elif stat.S_ISREG(mode):
            self._file(fd, name, path, status)
        else:
            kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
            self._leave(path, f"{kinds.get(stat.S_IFMT(mode), 'a device')}, which was not opened")
        return None

    def _file(self, fd: int, name: bytes, path: bytes, status: os.stat_result) -> None:
        known = self._work.files.get(path)
        executable = bool(status.st_mode & 0o100)
        if known is not None:
            self.seen.add(path)
        if (known is None or known.size != status.st_size) and self._too_large(path, status.st_size):
            return
        opened = self._opened(fd, name, path, _FILE, 0o600)
        if opened is None:
            return
        try:
            if known is not None and known.size == status.st_size and self._same(opened, known):
                if known.exec != executable:
                    content = self._work.content(path)
                    self.changes[path] = Change(path, File(content, known.exec), File(content, executable))
                return
            if self._too_large(path, status.st_size):
                return
            content = self._content(opened, status.st_size)
        finally:
            os.close(opened)
        self._room -= len(content)
        self._changed(path, File(content, executable))

    def _too_large(self, path: bytes, size: int) -> bool:
        if size <= min(LARGEST_FILE, self._room):
            return False
        self._leave(path, f"too large: {size} bytes")
        if path in self._work.files:
            self.unread.add(path)
        return True

    def _changed(self, path: bytes, after: Entry) -> None:
        known = self._work.files.get(path)
        self.seen.add(path)
        before = None if known is None else File(self._work.content(path), known.exec)
        self.changes[path] = Change(path, before, after)

    def _opened(self, fd: int, name: bytes, path: bytes, flags: int, mode: int) -> int | None:
        try:
            return os.open(name, flags, dir_fd=fd)
        except PermissionError:  # it is ours, and nobody lives who could put a link in its place
            try:
                os.chmod(name, mode, dir_fd=fd)
                return os.open(name, flags, dir_fd=fd)
            except OSError as error:
                self._leave(path, f"it can't be read: {error.strerror}")
        except OSError as error:
            self._leave(path, f"it can't be read: {error.strerror}")
        return None

    def _leave(self, path: bytes, why: str) -> None:
        self._left.append(f"{surface.shown(path)[:200]}: {why}")

    @staticmethod
    def _content(fd: int, size: int) -> bytes:
        os.lseek(fd, 0, os.SEEK_SET)
        data = b""
        while len(data) < size and (more := os.read(fd, size - len(data))):
            data += more
        return data

    @staticmethod
    def _same(fd: int, known: FrozenFile) -> bool:
        hashed = hashlib.sha256()
        buffer = memoryview(bytearray(min(_CHUNK, known.size + 1)))
        while count := os.readv(fd, [buffer]):
            hashed.update(buffer[:count])
        return hashed.hexdigest() == known.sha256
