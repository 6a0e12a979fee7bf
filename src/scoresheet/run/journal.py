"""The run directory: `rows.jsonl` that only grows, `run.json` that is replaced whole, one runner at a time."""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from scoresheet import atomic_file, bounded_file, canonical, growing_file
from scoresheet.documents.confound import Confound
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Malformed, Refused, ScoresheetError, Usage
from scoresheet.pack.freeze import MANIFEST

ROWS = "rows.jsonl"
PLAN = "run.json"
BASELINES = "baselines.json"
CARD = "card.yaml"
PACK = "pack.json"
CONFOUNDS = "confounds.jsonl"
RECEIPTS = "receipts.jsonl"
_LOCK = ".lock"
_SHOWN = 5


class Rows:
    """Appends rows, each on the disk before `append` returns. Any thread may append."""

    def __init__(self, path: Path) -> None:
        """Opens or makes the file; a torn last line, which a killed runner may leave, is cut off."""
        self._lock = threading.Lock()
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if growing_file.cut(self._fd):
                os.fsync(self._fd)
            atomic_file.sync_folder(path.parent)
        except BaseException:
            os.close(self._fd)
            raise

    def append(self, row: Row) -> None:
        """One line, written and synced. Raises `OSError`; what of it was written is cut off at the next open."""
        line = canonical.line(row.model_dump(mode="json"))
        with self._lock:
            growing_file.write(self._fd, line)
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
        data = bounded_file.read(out / PLAN)
    except OSError as error:
        raise no_run(out, error) from error
    try:
        return RunPlan.from_bytes(data, PLAN)
    except Refused as error:
        error.mend = f"put back the {PLAN} that the run wrote — in {out}"
        raise


def no_run(folder: Path, error: OSError) -> Usage:
    """That no run can be read in a folder, with what lies there instead."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        return Usage(f"no run can be read here: {error.strerror}", str(folder / PLAN))
    if (folder / MANIFEST).is_file():
        mend = f"scoresheet run {folder} --agent SPEC --seat LABEL makes a run of it"
        return Usage("this is a pack, not a run", str(folder), mend)
    try:
        below = sorted(each.name for each in os.scandir(folder) if os.path.isfile(Path(each.path) / PLAN))
    except OSError:
        below = []
    mend = "name the directory that `scoresheet run --out DIR` wrote"
    if below:
        mend = f"name one of the runs in it: {', '.join(below[:_SHOWN])}{', …' if len(below) > _SHOWN else ''}"
    return Usage(f"no run can be read here: there is no {PLAN}", str(folder), mend)


def write_plan(out: Path, plan: RunPlan) -> None:
    """Replace the plan whole: a reader sees the old one or the new one."""
    atomic_file.replace(out / PLAN, plan.text())


def add_confounds(out: Path, entries: Iterable[Confound]) -> None:
    """Append entries to the run's confound log, which is made when it is not there; synced. Raises `Usage`."""
    lines = b"".join(canonical.line(entry.model_dump(mode="json", exclude_none=True)) for entry in entries)
    with growing_file.held(out / CONFOUNDS, "the confound log") as file:
        file.append(lines)


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
