"""The pack as one file: an uncompressed tar whose bytes depend on the pack's files alone. Its digest is
`suite.fixture_hash` of the protocol card.

Entries are sorted by the bytes of their path; mtime, uid and gid are 0, owners have no names, modes are 0644 or 0755.
"""

import contextlib
import hashlib
import itertools
import os
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from scoresheet.digest import Digest, FileDigest
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.pack import tree

BLOCK = tarfile.BLOCKSIZE
"""Content is filled up to whole blocks."""
_BLANK = tarfile.TarInfo("").tobuf(tarfile.PAX_FORMAT)
_REST_SUM = sum(_BLANK[108:124] + _BLANK[136:148] + _BLANK[156:]) + 8 * 0x20
"""Of what is the same in every header. POSIX: the checksum's own field counts as spaces."""
_CHUNK = 1 << 20
_RECORD = 10240
"""POSIX.1-2017 pax: an archive ends with two zero blocks and is filled up to whole records."""


def write(root: str | Path, files: Mapping[str, FileDigest], out: str | Path) -> Digest:
    """The digest of the tar of `files` below `root`, written to `out`.

    Raises `Refused` when a file is not what `files` says, and `Usage` when `out` lies inside `root` or can't be
    written; nothing is left at `out` then.
    """
    out = Path(out)
    if out.resolve().is_relative_to(Path(root).resolve()):
        raise Usage("the tarball would lie inside the pack that it holds", str(out), "write it beside the pack")
    temporary = out.with_name(f".scoresheet-{os.getpid()}.tmp")
    hashed = hashlib.sha256()
    try:
        with temporary.open("xb") as file:
            for block in blocks(root, files):
                hashed.update(block)
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, out)
    except OSError as error:
        raise Usage(f"the tarball can't be written: {error.strerror}", str(out)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
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
    if len(path) <= 100 and facts.size < 8**11 and path.isascii():
        return _plain_header(path.encode(), facts)
    member = tarfile.TarInfo(path)
    member.size = facts.size
    member.mode = 0o755 if facts.exec else 0o644
    return member.tobuf(tarfile.PAX_FORMAT)


def header_size(path: str) -> int:
    """Bytes of the header of a file of less than 8 GiB."""
    return BLOCK if len(path) <= 100 and path.isascii() else len(header(path, FileDigest(Digest(""), 0, False, 1)))


def _plain_header(name: bytes, facts: FileDigest) -> bytes:
    """What tarfile gives for a short ASCII path, several times faster: a pack may have 100,000 of them."""
    mode = b"0000755\0" if facts.exec else b"0000644\0"
    size = b"%011o\0" % facts.size
    total = b"%06o\0 " % (_REST_SUM + sum(name) + sum(mode) + sum(size))
    return b"".join((name, bytes(100 - len(name)), mode, _BLANK[108:124], size, _BLANK[136:148], total, _BLANK[156:]))


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
