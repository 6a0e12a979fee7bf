"""The files of a folder as they lie: walked and read through directory descriptors, no link ever followed.

A FIFO, device or socket is never opened. Digests are taken in threads: hashing releases the interpreter.
"""

import os
import shlex
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scoresheet import digest
from scoresheet.digest import FileDigest
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.pack import portable

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all, from any thread."""

_LARGE = 1 << 20
"""Bytes from which a file is worth a thread before all else."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

DROPPINGS = frozenset(
    {
        ".DS_Store",
        "Thumbs.db",
        "desktop.ini",
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".ipynb_checkpoints",
    }
)
"""What systems and tools leave behind. Never skipped in silence: refused, with the command that removes it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A regular file: its path from the root, and its size when it was seen."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The regular files of a folder, sorted by the bytes of their path, and everything else that was there."""

    files: tuple[Entry, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Ahead:
    """A folder whose large files are being hashed already, by other threads."""

    listing: Listing
    digests: Mapping[str, Future[FileDigest]]


def quiet(done: int, total: int) -> None:
    """Progress that nobody watches."""


def listing(root: str | Path) -> Listing:
    """Everything in the folder `root`. Raises `Usage` when it can't be read.

    `root` itself may be a symlink: the user named it.
    """
    files: list[Entry] = []
    findings: list[Finding] = []
    with opened_root(root) as fd:
        _walk(fd, "", str(root), files, findings)
    files.sort(key=lambda entry: entry.path)  # code points and UTF-8 bytes sort alike
    for first, second in portable.collisions(entry.path for entry in files):
        what = f"{first!r} and {second!r} are one name where case does not count"
        findings.append(Finding("pack-case", second, what, "rename one of them"))
    return Listing(tuple(files), tuple(findings))


@contextmanager
def opened_root(root: str | Path) -> Iterator[int]:
    """A descriptor of the folder `root`. Raises `Usage`."""
    try:
        fd = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    except OSError as error:
        raise Usage(f"the folder can't be read: {error.strerror}", str(root)) from error
    try:
        yield fd
    finally:
        os.close(fd)


def opened(root_fd: int, path: str) -> int:
    """A descriptor, the caller's to close, of the file at `path` below an open folder.

    No part of `path` may be a symlink. Raises `OSError`.
    """
    if "/" not in path:
        return os.open(path, _FILE, dir_fd=root_fd)
    *parents, name = path.split("/")
    at = root_fd
    try:
        for parent in parents:
            below = os.open(parent, _FOLDER, dir_fd=at)
            if at != root_fd:
                os.close(at)
            at = below
        return os.open(name, _FILE, dir_fd=at)
    finally:
        if at != root_fd:
            os.close(at)


def read(root: str | Path, path: str) -> tuple[FileDigest, bytes]:
    """The bytes of one file and their digest. Raises `Refused` when it is gone, a link, or changes meanwhile."""
    with opened_root(root) as root_fd:
        return read_at(root_fd, path)


def read_at(root_fd: int, path: str) -> tuple[FileDigest, bytes]:
    """`read` below an open folder."""
    try:
        fd = opened(root_fd, path)
        try:
            return digest.read_open(fd, path)
        finally:
            os.close(fd)
    except OSError as error:
        raise _unreadable(path, error) from error


@contextmanager
def hashing_ahead(root: str | Path) -> Iterator[Ahead]:
    """The folder's listing while threads hash its large files: the caller still has to get ready. Raises `Usage`."""
    listed = listing(root)
    large = sorted((entry for entry in listed.files if entry.size_bytes >= _LARGE), key=lambda one: -one.size_bytes)
    with opened_root(root) as root_fd, ThreadPoolExecutor(workers()) as pool:
        try:
            yield Ahead(listed, {entry.path: pool.submit(_digest_at, root_fd, entry.path) for entry in large})
        finally:
            pool.shutdown(cancel_futures=True)


def digests(
    root: str | Path, entries: Sequence[Entry], progress: Progress = quiet, ahead: Ahead | None = None
) -> tuple[dict[str, FileDigest], tuple[Finding, ...]]:
    """Path → digest of every file, and the findings of those that could not be read."""
    begun = ahead.digests if ahead is not None else {}
    found: dict[str, FileDigest] = {}
    findings: list[Finding] = []
    total = sum(entry.size_bytes for entry in entries)
    done = 0
    lock = threading.Lock()

    def one(entry: Entry) -> None:
        nonlocal done
        try:
            waiting = begun.get(entry.path)
            found[entry.path] = _digest_at(root_fd, entry.path) if waiting is None else waiting.result()
        except Refused as refused:
            findings.extend(refused.findings)
        except OSError as error:
            findings.extend(_unreadable(entry.path, error).findings)
        with lock:
            done += entry.size_bytes
        progress(done, total)

    largest_first = sorted(entries, key=lambda entry: -entry.size_bytes)
    with opened_root(root) as root_fd, ThreadPoolExecutor(workers()) as pool:
        for _ in pool.map(one, largest_first):
            pass
    return found, tuple(sorted(findings, key=lambda finding: finding.where))


def workers() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _digest_at(root_fd: int, path: str) -> FileDigest:
    fd = opened(root_fd, path)
    try:
        return digest.of_open(fd, path)
    finally:
        os.close(fd)


def _unreadable(path: str, error: OSError) -> Refused:
    if isinstance(error, FileNotFoundError):
        finding = Finding("pack-missing", path, "the file is not there")
    else:
        finding = Finding("pack-unreadable", path, f"the file can't be read: {error.strerror}")
    return Refused(finding.what, [finding], path)


def _walk(fd: int, prefix: str, root: str, files: list[Entry], findings: list[Finding]) -> None:
    with os.scandir(fd) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    if not inside:
        if prefix:
            what = "the folder is empty: a manifest of files can't hold it"
            mend = f"put a file into it, or rmdir -- {_quoted(root, prefix[:-1])}"
            findings.append(Finding("pack-empty-folder", prefix[:-1], what, mend))
        return
    for entry in inside:
        path = prefix + entry.name
        bad_name = portable.fault(entry.name)
        if bad_name:
            what = f"the name `{_shown(entry.name)}` {bad_name}"
            findings.append(Finding("pack-name", _shown(path), what, "rename it"))
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            what = "the file went away while the folder was read"
            findings.append(Finding("pack-changed", path, what, "freeze again when nothing writes to it"))
            continue
        mode = status.st_mode
        if stat.S_ISLNK(mode):
            what = "a symlink: what it means depends on the machine"
            findings.append(Finding("pack-symlink", path, what, "put the file itself there"))
        elif entry.name.lower() == ".git":
            what = "version control inside the pack"
            mend = "move the pack out of its own repository, or remove .git"
            findings.append(Finding("pack-git", path, what, mend))
        elif _is_dropping(entry.name):
            mend = f"rm -r -- {_quoted(root, path)}"
            findings.append(Finding("pack-dropping", path, "left behind by a tool, not part of the pack", mend))
        elif stat.S_ISDIR(mode):
            _descend(fd, entry.name, path, root, files, findings)
        elif stat.S_ISREG(mode):
            files.append(Entry(path, status.st_size))
        else:
            what = f"a {_kind(mode)}, not a file; it was not opened"
            findings.append(Finding("pack-type", path, what, f"rm -- {_quoted(root, path)}"))


def _descend(fd: int, name: str, path: str, root: str, files: list[Entry], findings: list[Finding]) -> None:
    try:
        below = os.open(name, _FOLDER, dir_fd=fd)
    except OSError as error:
        findings.append(Finding("pack-unreadable", path, f"the folder can't be read: {error.strerror}"))
        return
    try:
        _walk(below, path + "/", root, files, findings)
    finally:
        os.close(below)


def _is_dropping(name: str) -> bool:
    if name in DROPPINGS or name[-1] == "~":
        return True
    return name[0] == "." and (
        name.startswith("._")
        or name.endswith((".swp", ".swo"))
        or (name.startswith(".scoresheet-") and name.endswith(".tmp"))
    )


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "FIFO", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
    return kinds.get(stat.S_IFMT(mode), "special file")


def _shown(path: str) -> str:
    """`path` in printable ASCII, whatever bytes it holds."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode() for c in text)


def _quoted(root: str, path: str) -> str:
    return shlex.quote(os.path.join(root, path))
