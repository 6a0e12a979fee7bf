"""Reads a run directory into values. Every line that is not what it should be is a finding, never ignored."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from scoresheet import canonical
from scoresheet.documents.baselines import Baselines
from scoresheet.documents.receipt import GENESIS, ChainedReceipt
from scoresheet.documents.report import Report
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.publish.admissible import Evidence, Reason, reasons
from scoresheet.publish.figures import Method
from scoresheet.publish.outcomes import Ledger, Outcomes
from scoresheet.publish.report import build

RUN, ROWS = "run.json", "rows.jsonl"
CONFOUNDS, RECEIPTS, BASELINES = "confounds.jsonl", "receipts.jsonl", "baselines.json"


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


def read(folder: Path) -> RunFolder:
    """The run in `folder`. Raises `Usage` when it is none, `Refused` when its run.json can't be read as one."""
    try:
        plan = RunPlan.from_bytes((folder / RUN).read_bytes(), RUN)
    except OSError as error:
        mend = "name the directory that `scoresheet run --out DIR` wrote"
        raise Usage(f"no run can be read here: {error.strerror}", str(folder / RUN), mend) from error
    if not plan.tasks:
        raise Refused("the run has no task", [Finding("run-empty", RUN, "the run has no task")], RUN)
    evidence = _beside(folder)
    ledger, hashed = Ledger(plan), hashlib.sha256()
    for line in _lines(folder / ROWS):
        hashed.update(line.data)
        if line.torn:
            evidence = replace(evidence, torn=len(line.data))
            continue
        try:
            ledger.add(Row.from_bytes(line.data, line.where), line.where)
        except Refused as error:
            for finding in error.findings:
                ledger.bad_line(finding)
    return RunFolder(plan, ledger.close(), evidence, hashed.hexdigest())


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


def _beside(folder: Path) -> Evidence:
    findings: list[Finding] = []
    receipts, head = _receipts(folder, findings)
    baselines: Baselines | None = None
    if (folder / BASELINES).exists():
        try:
            baselines = Baselines.from_bytes((folder / BASELINES).read_bytes(), BASELINES)
        except Refused as error:
            findings += error.findings
    return Evidence(
        receipts=receipts,
        receipts_head=head,
        baselines=baselines,
        confounds=_confounds(folder, findings),
        findings=tuple(findings),
    )


def _confounds(folder: Path, findings: list[Finding]) -> tuple[str, ...] | None:
    if not (folder / CONFOUNDS).exists():
        return None
    entries = []
    for line in _lines(folder / CONFOUNDS):
        try:
            canonical.as_object(canonical.loads(line.data))
        except canonical.JsonError as error:
            findings.append(Finding("confounds-json", line.where, error.what))
        entries.append(line.data.decode("utf-8", "replace").strip())  # a bad entry is one, too
    return tuple(entries)


def _receipts(folder: Path, findings: list[Finding]) -> tuple[dict[str, ChainedReceipt] | None, str | None]:
    if not (folder / RECEIPTS).exists():
        return None, None
    latest: dict[str, ChainedReceipt] = {}
    previous, count = GENESIS, 0
    for line in _lines(folder / RECEIPTS):
        count += 1
        try:
            receipt = ChainedReceipt.from_bytes(line.data, line.where)
        except Refused as error:
            findings += error.findings
        else:
            if receipt.previous != previous:
                findings.append(Finding("receipt-chain", line.where, "the receipt does not follow the line before it"))
            latest[receipt.task_id] = receipt
        previous = hashlib.sha256(line.data.removesuffix(b"\n")).hexdigest()
    return latest, f"{previous} ({count} receipts)"
