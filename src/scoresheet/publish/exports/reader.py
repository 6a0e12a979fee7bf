"""Reads a run directory or a bundle for an export; says why nothing may be exported of it."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from scoresheet import digest
from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.protocol_card import ProtocolCard
from scoresheet.documents.row import Row
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.gate import reading
from scoresheet.pack import tree
from scoresheet.pack.folder import Pack
from scoresheet.publish import bundle, laid, run_folder
from scoresheet.publish.admissible import Reason, counted
from scoresheet.publish.exports.subject import Attempt, Names, Subject
from scoresheet.publish.run_folder import CARD, ROWS, Judged, RunFolder

_CALLS = "calls.jsonl"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that may be exported when nothing is unmet."""

    root: Path
    """Where its files lie: the run directory, or what was laid out of a bundle."""
    run: RunFolder
    unmet: tuple[Reason, ...]
    """Every unmet condition of admissibility; of a bundle, everything in it that does not hold, too."""
    pack: Pack | None
    why_no_prompts: str

    def subject(self, names: Names, calls: bool) -> Subject:
        """What the builders take, with or without each episode's calls. Raises `Refused` when it may not go out."""
        if self.unmet:
            findings = [Finding(reason.rule, str(self.root.name), reason.text) for reason in self.unmet]
            raise Refused("not admissible, so nothing is exported", findings)
        report = self.run.report()
        assert not report.draft
        card = ProtocolCard.from_value(reading.read(self.root / CARD).located.value, CARD)
        prompts = {} if self.pack is None else {task.task_id: task.prompt for task in self.pack.tasks()}
        return Subject(self.run.plan, report, card, names, lambda: _attempts(self, prompts, calls))


@contextlib.contextmanager
def opened(path: Path, pack: Pack | None = None) -> Iterator[Candidate]:
    """The run in a directory, or in a bundle that is verified first. Raises `Usage` or `Refused` when there is none."""
    if path.is_dir():
        run = run_folder.read(path, pack)
        yield _candidate(path, run, run.unmet, pack)
        return
    with tempfile.TemporaryDirectory(prefix="scoresheet-") as scratch:
        found = laid.lay(path, Path(scratch), pack)
        there = found.audit.run
        found.audit.refuse_no_bundle(path)
        if there is None:
            mend = f"scoresheet verify {path} says all that does not hold"
            raise Refused("there is no run to export", found.audit.findings, str(path), mend)
        told = {str(reason) for reason in there.unmet}
        faults = [Reason(each.rule, f"{each.where}: {each.what}") for each in found.faults]
        unmet = (*there.unmet, *(fault for fault in faults if str(fault) not in told))
        yield _candidate(found.root, there, unmet, found.pack)


def _candidate(root: Path, run: RunFolder, unmet: tuple[Reason, ...], pack: Pack | None) -> Candidate:
    carried, why_not = (None, "") if unmet else bundle.carried(root, pack)
    if pack is None and why_not:
        why_not = "the pack was not named (--pack): the export holds no prompts"
    return Candidate(
        root, run, unmet, carried, why_not.replace("the bundle holds its digest only", "no prompts go out")
    )


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    task_id: bytes
    repeat: int
    attempt: int
    offset: int


def _attempts(candidate: Candidate, prompts: dict[str, str], with_calls: bool) -> Iterator[Attempt]:
    """Every attempt in its order; rows.jsonl must still be what the report was made of."""
    run = candidate.run
    card, receipts = run.evidence.card, run.evidence.receipts or {}
    holdout = {task.task_id for task in counted(run.plan, card)}
    judged = Judged(run.evidence.judgments)
    outcomes = run.outcomes.episodes
    with tree.opened_root(candidate.root) as root, _open(root, ROWS) as file:
        places, offset = [], 0
        for line in file:
            row = Row.from_bytes(line, ROWS)
            places.append(_Place(row.task_id.encode(), row.repeat, row.attempt, offset))
            offset += len(line)
        places.sort()
        last = {(place.task_id, place.repeat): place.attempt for place in places}
        for place in places:
            file.seek(place.offset)
            line = file.readline()
            row = judged.row(Row.from_bytes(line, ROWS), line)
            counts = row.task_id in holdout and last[place.task_id, place.repeat] == place.attempt
            if counts:
                outcome = outcomes.find(row.task_id, row.repeat)
                assert outcome is not None  # a row that was not planned is a finding, and is not exported
                row = row.model_copy(update={"success": outcome.success})
            receipt = receipts.get(row.task_id)
            yield Attempt(
                row,
                counts,
                receipt.oracle_kind if receipt is not None else None,
                _calls(root, row) if with_calls and counts else (),
                prompts.get(row.task_id),
            )


def _calls(root: int, row: Row) -> tuple[CallRecord, ...]:
    """What the door wrote down, which must be what the row was folded from. Raises `Refused`."""
    where = f"episodes/{row.task_id}/{row.repeat}.{row.attempt}/{_CALLS}"
    try:
        with _open(root, where) as file:
            data = file.read()
    except Usage:
        data = b""
    if row.calls_sha256 is not None and digest.of(data) != row.calls_sha256:
        what = "not the journal that its row was made from"
        raise Refused("the run is not what it says, so nothing is exported", [Finding("export-calls", where, what)])
    return tuple(CallRecord.from_bytes(line, where) for line in data.splitlines())


@contextlib.contextmanager
def _open(root: int, path: str) -> Iterator[BinaryIO]:
    try:
        fd = tree.opened(root, path)
    except OSError as error:
        raise Usage(f"the file can't be read: {error.strerror}", path) from error
    with open(fd, "rb") as file:
        yield file
