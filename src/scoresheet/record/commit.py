"""Changes of a pack that happen as one: all of them, or none.

Files are staged beside the pack, in its own file system, and synced; a list of them is the moment of decision. Whoever
is killed before it leaves the pack as it was; whoever is killed after it is completed by the next recording.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

from scoresheet import atomic_file
from scoresheet.errors import Usage

_DECIDED = "decided.json"
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@contextlib.contextmanager
def locked(pack: Path) -> Iterator[None]:
    """Hold the pack against other recordings; what an earlier one decided and did not finish is finished first."""
    parent = pack.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Usage(f"the pack can't be written: {error.strerror}", str(pack)) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        recover(pack)
        yield
    finally:
        os.close(fd)


def recover(pack: Path) -> None:
    """Finish or forget what an interrupted recording left beside the pack."""
    stage = _stage(pack)
    if stage.is_dir():
        if (stage / _DECIDED).exists():
            _apply(pack, stage)
        shutil.rmtree(stage)


def read(pack: Path) -> dict[str, bytes]:
    """The pack's task, tool and manifest files: path → bytes."""
    files: dict[str, bytes] = {}
    for folder in ("", "tasks", "tools"):
        for path in sorted((pack / folder).glob("*.json")):
            if path.is_file() and not path.is_symlink():
                files[path.relative_to(pack).as_posix()] = path.read_bytes()
    return files


def write(pack: Path, changes: Mapping[str, bytes | None]) -> None:
    """Make all the changes, or none. Call it under `locked`."""
    if not changes:
        return
    stage = _stage(pack)
    try:
        stage.mkdir()
        moves: list[tuple[str | None, str]] = []
        for number, (path, data) in enumerate(sorted(changes.items())):
            moves.append((None if data is None else str(number), path))
            if data is not None:
                _write_synced(stage / str(number), data)
        _write_synced(stage / "deciding", json.dumps(moves).encode())
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            os.rename(stage / "deciding", stage / _DECIDED)
            atomic_file.sync_folder(stage)
            _apply(pack, stage)
            shutil.rmtree(stage)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    except BaseException:
        if not (stage / _DECIDED).exists():
            shutil.rmtree(stage, ignore_errors=True)
        raise


def _apply(pack: Path, stage: Path) -> None:
    for source, path in json.loads((stage / _DECIDED).read_bytes()):
        to = pack / path
        if source is None:
            to.unlink(missing_ok=True)
        elif (stage / source).exists():  # else an earlier try has moved it already
            to.parent.mkdir(parents=True, exist_ok=True)
            os.replace(stage / source, to)
    for folder in {pack, pack / "tasks", pack / "tools"}:
        if folder.is_dir():
            atomic_file.sync_folder(folder)


def _stage(pack: Path) -> Path:
    absolute = pack.absolute()
    return absolute.parent / f".{absolute.name}.recording"


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
