"""Writes an export: whole or not at all, and never over anything. The same members give the same bytes anywhere."""

import contextlib
import hashlib
import os
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from scoresheet.errors import Usage
from scoresheet.publish.exports.subject import Member

_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written."""

    path: Path
    sha256: str
    size_bytes: int


def file(out: Path, members: Iterable[Member]) -> tuple[Written, ...]:
    """One file, of one member."""
    with _fresh(out) as temporary:
        with temporary.open("xb") as found:
            for member in members:
                found.writelines(member.chunks)
        return (_facts(temporary, out),)


def archive(out: Path, members: Iterable[Member]) -> tuple[Written, ...]:
    """One zip file: its members stored as they are, without times, owners or compression that differs by library."""
    with _fresh(out) as temporary:
        with zipfile.ZipFile(temporary, "x", zipfile.ZIP_STORED) as found:
            for member in members:
                info = zipfile.ZipInfo(member.path, _EPOCH)
                info.create_system, info.external_attr = 3, 0o644 << 16
                found.writestr(info, b"".join(member.chunks))
        return (_facts(temporary, out),)


def folder(out: Path, members: Iterable[Member]) -> tuple[Written, ...]:
    """A new folder with a file for each member."""
    with _fresh(out) as temporary:
        temporary.mkdir()
        written = []
        for member in members:
            path = temporary / member.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as found:
                found.writelines(member.chunks)
            written.append(_facts(path, out / member.path))
        return tuple(written)


def stream(out: BinaryIO, members: Iterable[Member]) -> None:
    """The one member, as it comes."""
    for member in members:
        for chunk in member.chunks:
            out.write(chunk)


@contextlib.contextmanager
def _fresh(out: Path) -> Iterator[Path]:
    """A place beside `out`, that becomes `out` at the end. Raises `Usage` when there is something already."""
    if os.path.lexists(out):
        raise Usage("there is something already, and nothing is overwritten", str(out), "name another file: -o FILE")
    temporary = out.with_name(f".scoresheet-{os.getpid()}-{out.name}.tmp")
    try:
        yield temporary
        if temporary.is_dir():
            os.rename(temporary, out)  # fails over a folder that is not empty
        else:
            os.link(temporary, out)  # fails over anything, unlike a rename
            temporary.unlink()
    except OSError as error:
        raise Usage(f"the export can't be written: {error.strerror}", str(out)) from error
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _facts(path: Path, out: Path) -> Written:
    with path.open("rb") as found:
        sha256 = hashlib.file_digest(found, "sha256").hexdigest()
    return Written(out, sha256, path.stat().st_size)
