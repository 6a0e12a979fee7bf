"""Reads a run directory for its page: the report behind the same gate as `scoresheet report`, then attempt by attempt.

What lies in an episode's folder was written beside an agent: nothing here follows a link, opens a device or waits for a
pipe, and of a large file only the head is read.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scoresheet.documents.row import Row
from scoresheet.errors import Refused
from scoresheet.pack.folder import Pack
from scoresheet.publish import run_folder
from scoresheet.publish.admissible import Reason
from scoresheet.publish.figures import Method
from scoresheet.publish.page import episodes, model
from scoresheet.publish.page.attempts import Attempt, Attempts
from scoresheet.publish.page.episodes import Expected, Found, Lines, Text
from scoresheet.publish.page.model import RunPage
from scoresheet.publish.run_folder import ROWS, RunFolder

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST = 4 << 20
"""Bytes of a journal that are read at most."""
_TEXTS = ("patch.diff", "stderr", "stdout")


@dataclass(frozen=True, slots=True)
class Closed:
    """A run whose figures may not be shown: why, and nothing else."""

    name: str
    manifest_sha256: str
    reasons: tuple[Reason, ...]

    @property
    def incomplete(self) -> bool:
        """True when resuming the run (or judging) can mend it."""
        return any(reason.incomplete for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Open:
    """A run whose page may be shown."""

    path: Path
    page: RunPage
    attempts: Attempts
    pack: Pack | None
    may_show_expected: bool
    incomplete: bool

    def details(self, attempts: Iterable[Attempt]) -> Iterator[dict[str, Any]]:
        """What `page.episodes.attempt` gives of each, read one after another."""
        characters = episodes.room(len(self.attempts))
        with (self.path / ROWS).open("rb") as rows:
            for each in attempts:
                rows.seek(each.offset)
                row = Row.from_bytes(rows.read(each.length), ROWS)
                expected = self._expected(each.task_id)
                found = look(self.path, each.task_id, each.repeat, each.attempt, characters)
                yield episodes.attempt(row, each.of, each.fate, found, expected, characters)

    def _expected(self, task_id: str) -> Expected:
        if self.pack is None:
            return Expected()
        if not self.may_show_expected:
            return Expected(why_not="a receipt keeps what the pack expects from travelling: its leaf is not score")
        try:
            task = self.pack.task(task_id)
        except Refused as error:
            return Expected(why_not=f"the pack's task can't be read: {error.what}")
        if not task.expected:
            kind = task.oracle.kind if task.oracle is not None else "none"
            return Expected(why_not=f"it is not by members of the answer that this task is judged; its oracle: {kind}")
        return Expected(task.expected)


def read(path: Path, *, draft: bool = False, pack: Pack | None = None, method: Method | None = None) -> Open | Closed:
    """The run in `path`, or why its figures are not shown: a run that is not admissible is open only as a `draft`.

    With its `pack` at hand card and receipts are judged by the pack's bytes, and answers stand beside what is expected.
    Raises as `run_folder.read`.
    """
    found = run_folder.read(path, pack)
    name, unmet = path.resolve().name, found.unmet
    if unmet and not draft:
        return Closed(name, found.plan.manifest_sha256, unmet)
    receipts = found.evidence.receipts or {}
    return Open(
        path=path,
        page=model.page(found.report(method), name, found.plan),
        attempts=_attempts(path, found),
        pack=pack,
        may_show_expected=all(receipt.leaf == "score" for receipt in receipts.values()),
        incomplete=any(reason.incomplete for reason in unmet),
    )


def _attempts(path: Path, found: RunFolder) -> Attempts:
    """Every line of rows.jsonl that is a row; the findings of the others are among the reasons."""
    attempts, offset = Attempts(), 0
    try:
        rows = (path / ROWS).open("rb")
    except FileNotFoundError:
        return attempts
    with rows:
        for data in rows:
            start, offset = offset, offset + len(data)
            try:
                row = Row.from_bytes(data, ROWS)
            except Refused:
                continue
            success = row.success
            if success is None:  # a human's verdict is in the outcome, never in the row
                outcome = found.outcomes.episodes.find(row.task_id, row.repeat)
                success = outcome.success if outcome is not None and outcome.state == "scored" else None
            attempts.add(row, model.fate(row.exit_reason, success), start, len(data))
    return attempts


def look(path: Path, task_id: str, repeat: int, attempt: int, characters: int) -> Found:
    """What lies in the folder of an attempt: of each file so many bytes. `task_id` is one that a row was read with."""
    folders: list[int] = []
    try:
        for part in (path / "episodes", task_id, f"{repeat}.{attempt}"):
            folders.append(os.open(part, _FOLDER, dir_fd=folders[-1] if folders else None))
        found = {name: _text(folders[-1], name, characters) for name in _TEXTS}
        texts = {name: text for name, text in found.items() if text is not None and (text.size or text.fault)}
        trajectory = _text(folders[-1], "trajectory.json", _LONGEST)
        return Found(_lines(folders[-1], "calls.jsonl"), _lines(folders[-1], "model.jsonl"), trajectory, texts)
    except OSError:
        return Found()
    finally:
        for folder in folders:
            os.close(folder)


def _text(folder: int, name: str, most: int) -> Text | None:
    try:
        file = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Text(b"", 0, f"not shown: {error.strerror}")
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return Text(b"", 0, "not shown: not a regular file")
        head = os.read(file, min(most, status.st_size))  # room is made for as many bytes as are asked for
        return Text(head, status.st_size)
    finally:
        os.close(file)


def _lines(folder: int, name: str) -> Lines | None:
    text = _text(folder, name, _LONGEST)
    if text is None or text.fault is not None:
        return None
    lines = text.head.split(b"\n")
    last = lines.pop()
    more = text.size > len(text.head)
    return Lines(tuple(lines) if more or not last else (*lines, last), more)
