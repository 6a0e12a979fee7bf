"""Writes an export: whole or not at all, and never over anything. The same members give the same bytes anywhere."""

import hashlib
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path
from typing import BinaryIO

from scoresheet import atomic_file
from scoresheet.publish.exports.subject import Member

_EPOCH = (1980, 1, 1, 0, 0, 0)
_WHAT, _MEND = "the export", "name another file: -o FILE"


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written."""

    path: Path
    sha256: str
    size_bytes: int


def file(out: Path, members: Iterable[Member]) -> tuple[Written, ...]:
    """One file, of one member."""
    with atomic_file.written(out, _WHAT, replace=False, mend=_MEND) as found:
        for member in members:
            found.writelines(member.chunks)
        return (_facts(found, out),)


def archive(out: Path, members: Iterable[Member]) -> tuple[Written, ...]:
    """One zip file: its members stored as they are, without times, owners or compression that differs by library."""
    with atomic_file.written(out, _WHAT, replace=False, mend=_MEND) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as found:
            for member in members:
                info = zipfile.ZipInfo(member.path, _EPOCH)
                info.create_system, info.external_attr = 3, 0o644 << 16
                found.writestr(info, b"".join(member.chunks))
        return (_facts(file, out),)


def folder(out: Path, members: Iterable[Member]) -> tuple[Written, ...]:
    """A new folder with a file for each member."""
    with atomic_file.new_folder(out, _WHAT, _MEND) as temporary:
        written = []
        for member in members:
            path = temporary / member.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x+b") as found:
                found.writelines(member.chunks)
                written.append(_facts(found, out / member.path))
        return tuple(written)


def stream(out: BinaryIO, members: Iterable[Member]) -> None:
    """The one member, as it comes."""
    for member in members:
        for chunk in member.chunks:
            out.write(chunk)


def _facts(file: BufferedRandom, out: Path) -> Written:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return Written(out, hashlib.file_digest(file, "sha256").hexdigest(), size)
