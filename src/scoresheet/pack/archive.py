"""The pack as one file: an uncompressed tar whose bytes depend on the pack's files alone. Its digest is
`suite.fixture_hash` of the protocol card.

Entries are sorted by the bytes of their path; mtime, uid and gid are 0, owners have no names, modes are 0644 or 0755.
"""

import hashlib
import itertools
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from scoresheet import atomic_file
from scoresheet.digest import Digest, FileDigest
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.pack import tree

BLOCK = tarfile.BLOCKSIZE
"""Content is filled up to whole blocks."""
_BLANK = tarfile.TarInfo("").tobuf(tarfile.PAX_FORMAT)
_OWNER, _TIME, _TAIL = _BLANK[108:124], _BLANK[136:148], _BLANK[156:]
_FILE_SUM = sum(b"0000644\0" + _OWNER + _TIME + _TAIL) + 8 * 0x20
"""Of what is the same in the header of every file. POSIX: the checksum's own field counts as spaces."""
_EXECUTABLE_SUM = _FILE_SUM + sum(b"0000755\0") - sum(b"0000644\0")
_CHUNK = 1 << 20
_WHAT = "the tarball"
_RECORD = 10240
"""POSIX.1-2017 pax: an archive ends with two zero blocks and is filled up to whole records."""


def refuse_unwritable(root: str | Path, out: Path) -> None:
    """Raise the `Usage` that writing the tarball of `root` to `out` would end with, as far as it can be seen before."""
    if out.resolve().is_relative_to(Path(root).resolve()):
        raise Usage("the tarball would lie inside the pack that it holds", str(out), "write it beside the pack")
    atomic_file.refuse_unwritable(out, _WHAT, replace=True)


def write(root: str | Path, files: Mapping[str, FileDigest], out: str | Path) -> Digest:
    """The digest of the tar of `files` below `root`, written to `out`.

    Raises `Refused` when a file is not what `files` says, and `Usage` when `out` lies inside `root` or can't be
    written; nothing is left at `out` then.
    """
    out = Path(out)
    refuse_unwritable(root, out)
    hashed = hashlib.sha256()
    with atomic_file.written(out, _WHAT, replace=True) as file:
        for block in blocks(root, files):
            hashed.update(block)
            file.write(block)
    return Digest(hashed.hexdigest())


def digest_of(root: str | Path, files: Mapping[str, FileDigest]) -> Digest:
    """What `write` would give, with nothing written."""
    hashed = hashlib.sha256()
    for block in blocks(root, files):
        hashed.update(block)
    return Digest(hashed.hexdigest())


def blocks(root: str | Path, files: Mapping[str, FileDigest]) -> Iterator[bytes]:
    """The bytes of the tar, in pieces. Raises `Refused` at the first file that is not what `files` says."""
    length = 0
    with tree.opened_root(root) as root_fd:
        for path in sorted(files, key=str.encode):
            for block in entry(root_fd, path, files[path]):
                length += len(block)
                yield block
    yield end(length)


def entry(root_fd: int, path: str, facts: FileDigest, named: str | None = None) -> Iterator[bytes]:
    """The blocks of one file below an open folder, under its path or as it is `named` in the archive.

    Raises `Refused` when it is not what `facts` says.
    """
    return itertools.chain((header(named or path, facts),), _content(root_fd, path, facts))


def end(length: int) -> bytes:
    """What closes an archive whose entries took `length` bytes."""
    length += 2 * tarfile.BLOCKSIZE
    return bytes(2 * tarfile.BLOCKSIZE + -length % _RECORD)


def header(path: str, facts: FileDigest) -> bytes:
    """The blocks that stand before a file's content."""
    return header_of(path, facts.size, facts.exec)


def header_of(path: str, size: int, executable: bool) -> bytes:
    """The same, of a file of that size."""
    if len(path) <= 100 and size < 8**11 and path.isascii():
        return _plain_header(path.encode(), size, executable)
    member = tarfile.TarInfo(path)
    member.size = size
    member.mode = 0o755 if executable else 0o644
    return member.tobuf(tarfile.PAX_FORMAT)


def header_size(path: str) -> int:
    """Bytes of the header of a file of less than 8 GiB."""
    return BLOCK if len(path) <= 100 and path.isascii() else len(header_of(path, 0, False))


def _plain_header(name: bytes, size: int, executable: bool) -> bytes:
    """What tarfile gives for a short ASCII path, several times faster: a pack may have 100,000 of them."""
    mode, sums = (b"0000755\0", _EXECUTABLE_SUM) if executable else (b"0000644\0", _FILE_SUM)
    length = b"%011o\0" % size
    total = b"%06o\0 " % (sums + sum(name) + sum(length))
    return b"".join((name.ljust(100, b"\0"), mode, _OWNER, length, _TIME, total, _TAIL))


def _content(root_fd: int, path: str, facts: FileDigest) -> Iterator[bytes]:
    hashed = hashlib.sha256()
    size = 0
    try:
        with open(tree.opened(root_fd, path), "rb", buffering=0) as file:
            while size <= facts.size and (data := file.read(_CHUNK)):
                size += len(data)
                hashed.update(data)
                yield data
    except OSError as error:
        raise _changed(path) from error
    if size != facts.size or hashed.hexdigest() != facts.sha256:
        raise _changed(path)
    yield bytes(-size % tarfile.BLOCKSIZE)


def _changed(path: str) -> Refused:
    what = "the file changed while it was put into the tarball"
    return Refused(what, [Finding("pack-changed", path, what, "freeze again when nothing writes to it")], path)
