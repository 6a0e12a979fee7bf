"""sha256 digests: of bytes, of a file as it lies, and the one spelling that is accepted.

In code a digest is 64 lower-case hex digits; a field shown with `sha256:` adds the prefix where it is written.
"""

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NewType

from scoresheet.errors import Finding, Malformed, Refused

Digest = NewType("Digest", str)

_HEX = re.compile(r"[0-9a-f]{64}")
_EMPTY = hashlib.sha256(b"").hexdigest()
_CHUNK = 1 << 20


def of(data: bytes) -> Digest:
    """The digest of bytes."""
    return Digest(hashlib.sha256(data).hexdigest())


def parse(text: str, where: str = "") -> Digest:
    """The digest that `text` spells, with or without the `sha256:` prefix.

    Raises `Malformed` for any other spelling, and for digests that stand for nothing (all zeros, the empty input).
    """
    hex_digits = text.removeprefix("sha256:")
    if not _HEX.fullmatch(hex_digits):
        raise Malformed(f"{text!r} is not a sha256 digest", where, "write 64 lower-case hex digits")
    if hex_digits in (_EMPTY, "0" * 64):
        raise Malformed(f"{text!r} is the digest of nothing", where, "write the digest of the real bytes")
    return Digest(hex_digits)


@dataclass(frozen=True, slots=True)
class FileDigest:
    """What a manifest says of one file."""

    sha256: Digest
    size: int
    exec: bool
    hard_links: int


def of_open(fd: int, where: str) -> FileDigest:
    """The digest of an open regular file, read once.

    Raises `Refused` (rule `pack-type`) when it is no regular file, and (rule `pack-changed`) when it changed while it
    was read: both states are taken from the same descriptor, so a file swapped under its name can't pass.
    """
    before = os.fstat(fd)
    if not stat.S_ISREG(before.st_mode):
        raise Refused("not a regular file", [Finding("pack-type", where, "not a regular file")], where)
    if before.st_size <= _CHUNK:
        data = os.read(fd, before.st_size + 1)
        size, hashed = len(data), hashlib.sha256(data)
    else:
        size, hashed = 0, hashlib.sha256()
        buffer = memoryview(bytearray(_CHUNK))
        while size <= before.st_size and (count := os.readv(fd, [buffer])):  # a file that grows must end
            hashed.update(buffer[:count])
            size += count
    _unchanged(fd, before, size, where)
    return FileDigest(Digest(hashed.hexdigest()), size, bool(before.st_mode & 0o100), before.st_nlink)


def read_open(fd: int, where: str) -> tuple[FileDigest, bytes]:
    """`of_open`, and the very bytes that were hashed."""
    before = os.fstat(fd)
    if not stat.S_ISREG(before.st_mode):
        raise Refused("not a regular file", [Finding("pack-type", where, "not a regular file")], where)
    data = os.read(fd, before.st_size + 1)
    while len(data) < before.st_size and (more := os.read(fd, before.st_size + 1 - len(data))):
        data += more
    _unchanged(fd, before, len(data), where)
    return FileDigest(of(data), len(data), bool(before.st_mode & 0o100), before.st_nlink), data


def of_file(path: str | Path) -> FileDigest:
    """The digest of the file at `path`, which may be a symlink (the user named it). Raises `OSError`, `Refused`."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # NONBLOCK: opening a FIFO must not hang
    try:
        return of_open(fd, str(path))
    finally:
        os.close(fd)


def _unchanged(fd: int, before: os.stat_result, size: int, where: str) -> None:
    if size != before.st_size or _state(before) != _state(os.fstat(fd)):
        what = "the file changed while it was read"
        raise Refused(what, [Finding("pack-changed", where, what, "freeze again when nothing writes to it")], where)


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
