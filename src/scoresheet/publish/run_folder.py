"""Reads a run directory into values. Every line that is not what it should be is a finding, never ignored."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from io import BufferedReader
from pathlib import Path

from scoresheet import bounded_file, digest
from scoresheet.canonical import JsonValue
from scoresheet.documents.baselines import Baselines
from scoresheet.documents.confound import Confound
from scoresheet.documents.manifest import Exclusion
from scoresheet.documents.pack_record import PackRecord
from scoresheet.documents.prices import PriceTable
from scoresheet.documents.protocol_card import ProtocolCard
from scoresheet.documents.receipt import ChainedReceipt
from scoresheet.documents.report import Report
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.documents.task_card import TaskCard
from scoresheet.errors import Finding, Malformed, Refused, Usage
from scoresheet.gate import chain, inputs, pack_triage, reading, rules
from scoresheet.gate import receipts as receipts_file
from scoresheet.gate.chain import Head
from scoresheet.gate.facts import CardFacts
from scoresheet.pack.folder import Pack
from scoresheet.publish.admissible import Card, Evidence, Reason, reasons
from scoresheet.publish.figures import Method
from scoresheet.publish.outcomes import Ledger, Outcomes
from scoresheet.publish.report import build
from scoresheet.run import journal, judgments, prices
from scoresheet.run.judgments import JUDGMENTS, Judgments

RUN, ROWS = "run.json", "rows.jsonl"
CONFOUNDS, RECEIPTS, BASELINES = "confounds.jsonl", "receipts.jsonl", "baselines.json"
CARD, PACK = "card.yaml", "pack.json"
_FILES = (RUN, ROWS, CONFOUNDS, RECEIPTS, BASELINES, CARD, PACK, JUDGMENTS, prices.PRICES)
_RECEIPTS_BYTES = 256 << 20
"""Of the files that hold a line a task, or a line an episode that a human judged."""
_MOST_PLANNED = 2_000_000
"""Each takes room before its row is read."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run as it lies on the disk."""

    plan: RunPlan
    outcomes: Outcomes
    evidence: Evidence
    rows_sha256: str

    @property
    def unmet(self) -> tuple[Reason, ...]:
        """Every unmet condition of admissibility."""
        return reasons(self.plan, self.outcomes, self.evidence)

    def report(self, method: Method | None = None) -> Report:
        """The report, a draft when a condition is not met."""
        return build(self.plan, self.outcomes, self.evidence, self.rows_sha256, method)


Place = Callable[[Row, int, int, int], None]
"""Takes a row as it was written, its line's number, and where the line begins and how long it is, in bytes."""


def read(folder: Path, pack: Pack | None = None, each: Place | None = None) -> RunFolder:
    """The run in `folder`; with its `pack` at hand, card and receipts are judged by the pack's bytes.

    Without it they are judged by what the run recorded of the pack. `each` is called for every row. Raises `Usage` when
    the folder is no run, `Refused` when its run.json can't be read as one.
    """
    plan = plan_of(folder)
    evidence = _beside(folder, plan, pack)
    judged = Judged(evidence.judgments)
    ledger, hashed, offset = Ledger(plan, evidence.prices), hashlib.sha256(), 0
    for number, line in enumerate(_lines(folder / ROWS), 1):
        hashed.update(line.data)
        if line.torn:
            evidence = replace(evidence, torn=len(line.data))
            continue
        try:
            row = Row.from_bytes(line.data, line.where)
            if each is not None:
                each(row, number, offset, len(line.data))
            ledger.add(judged.row(row, line.data), number)
        except Refused as error:
            for finding in error.findings:
                ledger.bad_line(finding)
        offset += len(line.data)
    evidence = replace(evidence, findings=(*evidence.findings, *judged.strays()))
    return RunFolder(plan, ledger.close(), evidence, hashed.hexdigest())


class Judged:
    """Puts what people decided into the rows that wait for it."""

    def __init__(self, found: Judgments | None) -> None:
        self._found = found or Judgments()
        self._used: set[str] = set()
        self._other: list[Finding] = []

    def row(self, row: Row, line: bytes) -> Row:
        """The row with its judgment."""
        if row.success is not None:
            return row
        sha256 = digest.of(line.removesuffix(b"\n"))
        judgment = self._found.standing.get(sha256)
        if judgment is None:
            return row
        self._used.add(sha256)
        if (judgment.task_id, judgment.repeat, judgment.attempt) != (row.task_id, row.repeat, row.attempt):
            what = (
                f"{judgment.task_id} {judgment.repeat}.{judgment.attempt} is not the episode of the row that it judges"
            )
            self._other.append(Finding("judgments-row", self._found.places[sha256], what))
        return row.model_copy(update={"success": int(judgment.verdict == "pass")})

    def strays(self) -> Iterator[Finding]:
        """Decisions on rows that are not there, or that no human judges, or under the name of another episode."""
        yield from self._other
        for sha256, judgment in self._found.standing.items():
            if sha256 not in self._used:
                what = f"{judgment.task_id} repeat {judgment.repeat} has no row of that digest that waits for a human"
                yield Finding("judgments-row", self._found.places[sha256], what)


def plan_of(folder: Path) -> RunPlan:
    """run.json of the run in `folder`. Raises as `read` does."""
    _check_files(folder)
    try:
        plan = RunPlan.from_bytes(bounded_file.read(folder / RUN), RUN)
    except OSError as error:
        raise journal.no_run(folder, error) from error
    except Refused as error:
        error.mend = f"put back the {RUN} that the run wrote — in {folder}"
        raise
    if not plan.tasks:
        raise Refused("the run has no task", [Finding("run-empty", RUN, "the run has no task")], RUN)
    if plan.planned > _MOST_PLANNED:
        what = f"{len(plan.tasks)} tasks so many times are more than {_MOST_PLANNED} episodes"
        raise Refused(what, [Finding("run-size", f"{RUN}#/repeats", what)], RUN)
    return plan


def _check_files(folder: Path) -> None:
    """Raise `Usage` for a pipe, a device or a folder among the files of a run: reading one might never end."""
    for name in _FILES:
        try:
            mode = (folder / name).stat().st_mode
        except OSError:  # told by whoever reads it
            continue
        if not stat.S_ISREG(mode):
            raise Usage("not a regular file", str(folder / name), "put back the file that the run wrote")


def opened(path: Path) -> BufferedReader:
    """The file at `path`, to be read. Raises `OSError`, also for what is no regular file: no pipe is waited for."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return open(file, "rb")


def frozen_at(folder: Path) -> str | None:
    """When the pack of the run in `folder` was frozen, as the run recorded it; `None` when it did not."""
    try:
        return PackRecord.from_bytes(bounded_file.read(folder / PACK), PACK).frozen_at
    except FileNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class _Line:
    data: bytes
    where: str
    torn: bool
    """True for a last line without its newline: the writer was killed in the middle of it."""


def _lines(path: Path) -> Iterator[_Line]:
    try:
        with path.open("rb") as file:
            for number, data in enumerate(file, 1):
                yield _Line(data, f"{path.name}:{number}", not data.endswith(b"\n"))
    except FileNotFoundError:
        return
    except OSError as error:
        raise Usage(f"the file can't be read: {error.strerror}", str(path)) from error


def _beside(folder: Path, plan: RunPlan, pack: Pack | None) -> Evidence:
    findings: list[Finding] = []
    record = _record(folder, plan, pack, findings)
    card = _card(folder, record, findings)
    receipts, head = _receipts(folder, plan, record, card, findings)
    baselines: Baselines | None = None
    if (folder / BASELINES).exists():
        try:
            baselines = Baselines.from_bytes(bounded_file.read(folder / BASELINES), BASELINES)
        except Refused as error:
            findings += error.findings
    return Evidence(
        card=card.admitted if card is not None else None,
        receipts=receipts,
        receipts_head=head,
        baselines=baselines,
        confounds=_confounds(folder, findings),
        judgments=_judgments(folder, findings),
        prices=_prices(folder, plan, findings),
        findings=tuple(findings),
    )


def _prices(folder: Path, plan: RunPlan, findings: list[Finding]) -> PriceTable | None:
    """The price table that the run was begun with."""
    if plan.prices_sha256 is None:
        return None
    try:
        found = prices.kept(folder)
    except (Malformed, Refused) as error:
        findings.append(Finding("report-prices", prices.PRICES, f"the price table can't be read: {error.what}"))
        return None
    if found is None or found.sha256 != plan.prices_sha256:
        what = "not there" if found is None else "not the price table that the run began with"
        findings.append(Finding("report-prices", prices.PRICES, what, "restore it"))
        return None
    return found.table


def _judgments(folder: Path, findings: list[Finding]) -> Judgments | None:
    try:
        found = judgments.read(bounded_file.read(folder / JUDGMENTS, _RECEIPTS_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Usage(f"the judgments can't be read: {error.strerror}", str(folder / JUDGMENTS)) from error
    findings += found.findings
    return found


@dataclass(frozen=True, slots=True)
class _Card:
    value: JsonValue
    admitted: Card


def _record(folder: Path, plan: RunPlan, pack: Pack | None, findings: list[Finding]) -> PackRecord | None:
    """What is known of the pack: by its bytes when it is at hand, else as the run recorded it."""
    if pack is not None:
        if pack.manifest_sha256 != plan.manifest_sha256:
            what = f"the pack at hand is {pack.manifest_sha256}, the run is of {plan.manifest_sha256}"
            findings.append(Finding("report-pack", str(pack.root), what))
            return None
        card = folder / CARD
        triage = pack_triage.look(pack, card=card if card.exists() else None)
        findings += triage.findings
        return triage.record
    try:
        data = bounded_file.read(folder / PACK)
        record = PackRecord.from_bytes(data, PACK)
    except FileNotFoundError:
        if plan.pack_record_sha256 is not None:
            what = "not there, so no receipt can be derived again"
            findings.append(Finding("report-record", PACK, what, "restore it, or name the pack: --pack PACK"))
        return None
    except Refused as error:
        findings += error.findings
        return None
    if digest.of(data) != plan.pack_record_sha256 or record.manifest_sha256 != plan.manifest_sha256:
        findings.append(Finding("report-record", PACK, "not what the run recorded of its pack"))
        return None
    if not record.intact:
        findings.append(Finding("report-pack", PACK, "the pack's files contradicted its manifest"))
    return record


def _card(folder: Path, record: PackRecord | None, findings: list[Finding]) -> _Card | None:
    """The card as it lies in the run directory, judged again."""
    path = folder / CARD
    if not path.exists():
        return None
    try:
        file = reading.read(path)
    except Malformed as error:
        findings.append(Finding("report-card", CARD, f"the protocol card can't be read: {error.what}"))
        return None
    if record is not None:
        judged = pack_triage.judged(file, record).findings
    else:
        judged = rules.judge(CardFacts(file.path, file.located)).findings
    faults = tuple(finding.what for finding in judged if finding.severity == "error")
    return _Card(file.located.value, card_of(file.located.value, file.sha256, faults))


def card_of(value: JsonValue, sha256: str, faults: tuple[str, ...]) -> Card:
    """What admissibility needs of a card, complete or not: what is not as it should be counts as not said."""
    document = ProtocolCard.from_value(value, CARD) if not faults else None
    if document is None:
        return Card(sha256, faults, frozenset(), attended=False)
    publishing, margin = document.publishing, document.metrics.tie_margin
    return Card(
        sha256=sha256,
        faults=faults,
        holdout=frozenset(document.dataset_split.holdout),
        attended=document.controls.human_intervention == "logged",
        train_like=frozenset(document.dataset_split.train_like),
        repeats=document.controls.repeats,
        tie_margin=None if margin is None else float(margin),
        excluded=tuple(Exclusion(tool=each.tool, task=each.task, reason=each.reason) for each in publishing.excluded),
        upstreams=publishing.upstreams,
        primary=document.metrics.primary,
        secondary=document.metrics.secondary,
        human_minutes=_minutes(document),
        git_sha=document.suite.git_sha,
        fixture_hash=document.suite.fixture_hash,
    )


def _minutes(document: ProtocolCard) -> float | None:
    estimates = document.metrics.estimates
    minutes = estimates.human_minutes_per_task if estimates is not None else None
    return None if minutes is None else float(minutes)


def _confounds(folder: Path, findings: list[Finding]) -> tuple[str, ...] | None:
    if not (folder / CONFOUNDS).exists():
        return None
    entries = []
    for line in _lines(folder / CONFOUNDS):
        try:
            entries.append(str(Confound.from_bytes(line.data, line.where)))
        except Refused as error:
            findings += error.findings
            entries.append(line.data.decode("utf-8", "replace").strip())  # a bad entry is one, too
    return tuple(entries)


def _receipts(
    folder: Path, plan: RunPlan, record: PackRecord | None, card: _Card | None, findings: list[Finding]
) -> tuple[Mapping[str, ChainedReceipt] | None, str | None]:
    """The latest receipt of every task, all of them derived again, and where the chain ends."""
    found = receipts_file.read(folder / RECEIPTS, _RECEIPTS_BYTES)
    if found is None:
        return None, None
    findings += found.findings
    head = Head(plan.receipts_sha256, plan.receipts_count) if plan.receipts_sha256 is not None else None
    if head is None:
        findings.append(Finding("report-receipts", RUN, "run.json does not say where the receipts end"))
    same_card = (card.admitted.sha256 if card is not None else None) == plan.card_sha256
    facts: chain.Facts | None = None
    if record is not None and same_card:
        known, said = record, inputs.said_by(card.value if card is not None else None)

        def derived(task_id: str, now: datetime) -> TaskCard | None:
            return inputs.task_card(task_id, known, said, now) if task_id in known.tasks else None

        facts = derived
    findings += chain.judge(found, plan.manifest_sha256, facts, head)
    return found.latest, str(found.head)
