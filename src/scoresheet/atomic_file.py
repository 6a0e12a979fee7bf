"""Files that come to stand whole or not at all: whoever is killed half way leaves what stood there before.

The content is written beside the place, under a name that freezing knows for a dropping, is synced, and then put into
the place at once. What prevents it is told as `Usage`, with its mend.
"""

import contextlib
import errno
import os
import shlex
import shutil
from collections.abc import Iterator
from io import BufferedRandom
from pathlib import Path

from scoresheet.errors import Usage

_ANOTHER = "name another file"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""How a file system says that it has no hard links, as on memory cards and some shares."""
_THERE = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
"""How a system says that a new folder's name is taken."""


@contextlib.contextmanager
def written(out: Path, what: str, *, replace: bool, mend: str = _ANOTHER) -> Iterator[BufferedRandom]:
    """A file open for writing and reading, that is put at `out` at the end; after a failure nothing of it is left.

    Without `replace` nothing may stand there: `mend` says how else. `what` names the content, as in `the page`.
    Raises `Usage`.
    """
    refuse_unwritable(out, what, replace=replace, mend=mend)
    temporary = _beside(out)
    with _told(out, what, temporary):
        try:
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            with open(fd, "w+b") as file:
                yield file
                file.flush()
                os.fsync(fd)
            if replace:
                os.replace(temporary, out)
            else:
                _link(temporary, out, mend)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
        sync_folder(out.parent)


@contextlib.contextmanager
def new_folder(out: Path, what: str, mend: str = _ANOTHER) -> Iterator[Path]:
    """An empty folder, that is put at `out` at the end with what lies in it then; otherwise as `written`."""
    refuse_unwritable(out, what, replace=False, mend=mend)
    temporary = _beside(out)
    with _told(out, what, temporary):
        try:
            temporary.mkdir()
            yield temporary
            _sync_all(temporary)
            try:
                os.rename(temporary, out)  # fails over a file, and over a folder that is not empty
            except OSError as error:
                if error.errno in _THERE:
                    raise _taken(out, mend) from error
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        sync_folder(out.parent)


def replace(out: Path, data: bytes, what: str = "") -> None:
    """Put `data` at `out`, whatever file stood there. Raises `Usage`; several processes may do so at once."""
    with written(out, what or out.name, replace=True) as file:
        file.write(data)


def refuse_unwritable(out: Path, what: str, *, replace: bool, mend: str = _ANOTHER) -> None:
    """Raise the `Usage` that writing to `out` would end with, as far as it can be seen: before long work is begun."""
    folder = out.parent
    if not replace and os.path.lexists(out):
        raise _taken(out, mend)
    if not os.path.lexists(folder):
        raise _cannot(what, "there is no such folder", folder, f"make it: mkdir -p {shlex.quote(str(folder))}")
    if not os.path.isdir(folder):
        raise _cannot(what, "it is no folder", folder, "name a file in a folder")
    if os.path.islink(out) and os.path.realpath(folder) == "/dev":  # such as stdout, also when it goes to a file
        raise _cannot(what, "it is a device or a pipe", out, _ANOTHER)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _cannot(what, "nothing can be written to this folder", folder, "choose a folder that you can write to")
    if os.path.isdir(out) and not os.path.islink(out):
        raise _cannot(what, "it is a folder", out, _ANOTHER)
    if os.path.exists(out) and not os.path.isdir(out) and not os.path.isfile(out):
        raise _cannot(what, "it is a device or a pipe", out, _ANOTHER)  # a rename would put a file in its place


def refuse_unmakeable(folder: Path, what: str, mend: str) -> None:
    """Raise `Usage` when `folder`, which is to be written to, can't be one, as far as that can be seen."""
    place = folder
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    if not os.path.isdir(place):
        raise _cannot(what, "it is no folder", place, mend)
    if not os.access(place, os.W_OK | os.X_OK):
        raise _cannot(what, "nothing can be written to this folder", place, mend)


def sync_folder(folder: Path) -> None:
    """Make new names in `folder` survive a crash."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # who may write to it and not list it can't sync it either
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _beside(out: Path) -> Path:
    return out.with_name(f".scoresheet-{os.urandom(8).hex()}.tmp")  # process ids come again, in containers at once


def _link(temporary: Path, out: Path, mend: str) -> None:
    try:
        try:
            os.link(temporary, out)  # unlike a rename, it fails where somebody was faster
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.close(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))  # so does this
            os.replace(temporary, out)
    except FileExistsError as error:
        raise _taken(out, mend) from error


def _taken(out: Path, mend: str) -> Usage:
    return Usage("something is there already, and is not overwritten", str(out), mend)


def _cannot(what: str, why: str | None, where: Path | str, mend: str) -> Usage:
    return Usage(f"{what} can't be written: {why}", str(where), mend)


@contextlib.contextmanager
def _told(out: Path, what: str, temporary: Path) -> Iterator[None]:
    """Tells what the system says: of the place, or of the file of the content that it names."""
    try:
        yield
    except OSError as error:
        mend = "make room, or name a file on another disk" if error.errno in _FULL else _ANOTHER
        ours = not isinstance(error.filename, str | os.PathLike) or Path(error.filename).is_relative_to(temporary)
        raise _cannot(what, error.strerror, out if ours else error.filename, mend if ours else "") from error


def _sync_all(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                os.fsync(file.fileno())
        sync_folder(Path(place))
