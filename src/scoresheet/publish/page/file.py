"""Puts a page where it was asked for: whole or not at all, and over nothing that is there unless that was said."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from scoresheet import atomic_file
from scoresheet.digest import Digest

_MEND = "name another file, or add --replace"


def write(path: Path, pieces: Iterable[str], *, replace: bool = False) -> Digest:
    """The digest of the file that was written. Raises `Usage` when it can't be, or stands there already."""
    hashed = hashlib.sha256()
    with atomic_file.written(path, "the page", replace=replace, mend=_MEND) as file:
        for piece in pieces:
            data = piece.encode()
            hashed.update(data)
            file.write(data)
    return Digest(hashed.hexdigest())
