"""Puts a page where it was asked for: whole or not at all, and over nothing that is there unless that was said."""

import contextlib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from scoresheet.digest import Digest
from scoresheet.errors import Usage


def write(path: Path, pieces: Iterable[str], *, replace: bool = False) -> Digest:
    """The digest of the file that was written. Raises `Usage` when it can't be, or stands there already."""
    if not replace and os.path.lexists(path):
        raise _there(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    hashed = hashlib.sha256()
    try:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(temporary.open("xb"))
            stack.callback(temporary.unlink, missing_ok=True)
            for piece in pieces:
                data = piece.encode()
                hashed.update(data)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if replace:
                os.replace(temporary, path)
            else:
                os.link(temporary, path)  # unlike a rename, it fails where somebody was faster
    except FileExistsError as error:
        raise _there(path) from error
    except OSError as error:
        raise Usage(f"the page can't be written: {error.strerror}", str(path)) from error
    return Digest(hashed.hexdigest())


def _there(path: Path) -> Usage:
    return Usage("something is there already, and is not overwritten", str(path), "name another file, or add --replace")
