"""The run directory: `rows.jsonl` that only grows, `run.json` that is replaced whole, one runner at a time."""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from scoresheet import atomic_file, canonical
from scoresheet.documents.confound import Confound
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Malformed, Refused, ScoresheetError, Usage

ROWS = "rows.jsonl"
PLAN = "run.json"
BASELINES = "baselines.json"
CARD = "card.yaml"
PACK = "pack.json"
CONFOUNDS = "confounds.jsonl"
RECEIPTS = "receipts.jsonl"
_LOCK = ".lock"


class Rows:
    """Appends rows, each on the disk before `append` returns. Any thread may append."""

    def __init__(self, path: Path) -> None:
        """Opens or makes the file; a torn last line, which a killed runner may leave, is cut off."""
        self._lock = threading.Lock()
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            whole = _whole_bytes(self._fd)
            if whole != os.fstat(self._fd).st_size:
                os.ftruncate(self._fd, whole)
                os.fsync(self._fd)
            atomic_file.sync_folder(path.parent)
        except BaseException:
            os.close(self._fd)
            raise

    def append(self, row: Row) -> None:
        """One line, written and synced. Raises `OSError`; what of it was written is cut off at the next open."""
        line = memoryview(canonical.line(row.model_dump(mode="json")))
        with self._lock:
            while line:
                line = line[os.write(self._fd, line) :]
            os.fdatasync(self._fd)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def __enter__(self) -> "Rows":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a run, one at a time; a torn last line is not one. Raises `Malformed`, `Usage`."""
    seen: set[tuple[str, int, int]] = set()
    try:
        file = path.open("rb")
    except OSError as error:
        raise Usage(f"can't be read: {error.strerror}", str(path)) from error
    with file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                row = Row.from_bytes(line, f"{path.name}:{number}")
            except Refused as refused:
                raise Malformed(f"a row can't be read: {refused.what}", f"{path}:{number}") from refused
            key = row.task_id, row.repeat, row.attempt
            if key in seen:
                raise Malformed(f"{row.task_id} {row.repeat}.{row.attempt} has two rows", f"{path}:{number}")
            seen.add(key)
            yield row


def read_plan(out: Path) -> RunPlan:
    """The plan of a run directory. Raises `Usage` when there is none, `Refused` when it is not one."""
    try:
        data = (out / PLAN).read_bytes()
    except OSError as error:
        mend = "name the directory that `scoresheet run --out DIR` wrote"
        raise Usage(f"no run: {PLAN} can't be read: {error.strerror}", str(out), mend) from error
    return RunPlan.from_bytes(data, PLAN)


def write_plan(out: Path, plan: RunPlan) -> None:
    """Replace the plan whole: a reader sees the old one or the new one."""
    atomic_file.replace(out / PLAN, plan.text())


def add_confounds(out: Path, entries: Iterable[Confound]) -> None:
    """Append entries to the run's confound log, which is made when it is not there; synced. Raises `Usage`."""
    lines = b"".join(canonical.line(entry.model_dump(mode="json", exclude_none=True)) for entry in entries)
    try:
        fd = os.open(out / CONFOUNDS, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise Usage(f"the confound log can't be written: {error.strerror}", str(out / CONFOUNDS)) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.ftruncate(fd, _whole_bytes(fd))
        view = memoryview(lines)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)
    atomic_file.sync_folder(out)


def read_confounds(out: Path) -> tuple[Confound, ...]:
    """The entries of the run's confound log; none when there is no log. Raises `Refused`."""
    try:
        data = (out / CONFOUNDS).read_bytes()
    except FileNotFoundError:
        return ()
    return tuple(
        Confound.from_bytes(line, f"{CONFOUNDS}:{number}") for number, line in enumerate(data.splitlines(), 1) if line
    )


@contextlib.contextmanager
def held(out: Path) -> Iterator[None]:
    """The run directory for this process alone. Raises `ScoresheetError` while another runner holds it."""
    descriptor = os.open(out / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ScoresheetError(
                "another runner is at work in this run directory", str(out), "wait for it, or choose another --out"
            ) from None
        yield
    finally:
        os.close(descriptor)


def _whole_bytes(descriptor: int) -> int:
    """Bytes up to and with the last newline."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - 65536)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
