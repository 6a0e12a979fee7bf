"""Everything that can be recomputed of a run, from its directory or from a bundle, without network and without trust.

What is said three times over is told apart: what was checked, what could not be, what rests on the submitter's word.
"""

import errno
import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal

from scoresheet import bounded_file, canonical, digest
from scoresheet.canonical import JsonValue
from scoresheet.documents.bundle import INDEX, BundleIndex
from scoresheet.documents.dns_record import DnsRecord
from scoresheet.documents.pack_record import PackRecord
from scoresheet.documents.protocol_card import Controls
from scoresheet.documents.report import Report
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.documents.task import Task
from scoresheet.errors import Finding, Refused, ScoresheetError, Usage
from scoresheet.gate import pack_triage, reading
from scoresheet.model.entry import MODEL_LOG
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import MANIFEST
from scoresheet.publish import (
    baseline_audit,
    block,
    bundle_file,
    claims,
    confound_audit,
    plan_audit,
    quotes,
    recording_audit,
    run_folder,
    word,
)
from scoresheet.publish.bundle_file import BundleFile, Member
from scoresheet.publish.outcome import Grid, Numbers
from scoresheet.publish.plan_audit import Clock
from scoresheet.publish.run_folder import BASELINES, CARD, PACK, ROWS, RUN, RunFolder
from scoresheet.publish.trajectories import Trajectories
from scoresheet.publish.work_audit import Works
from scoresheet.replay.hosts import Hosts
from scoresheet.run import journal, judgments, model_calls, oracle
from scoresheet.run.baselines import FOLDER
from scoresheet.run.model_recording import RECORDING
from scoresheet.run.patch import PATCH
from scoresheet.run.proof import Proofs
from scoresheet.run.refold import Recorded, Refold

Kind = Literal["run", "bundle"]
OUTPUTS = "outputs.sha256"
_ROW_BYTES = 32 << 20
_JOURNAL_LINE_BYTES = 4 << 20
_EVIDENCE_BYTES = 4 << 20
_SMALL_BYTES = 64 << 20
_MOST = 200
"""Findings that are told; the rest are counted."""
_TASKS_KEPT = 8
_FOLDER = re.compile(r"episodes/([^/]+)/([0-9]+)\.([0-9]+)/[^/]+")
_FIRST = re.compile(r"episodes/([^/]+)/(0|[1-9][0-9]{0,17})\.0", re.ASCII)
_NAMED = {
    MODEL_LOG: ("row-model", "model_sha256", "was folded from"),
    PATCH: ("row-patch", "patch_sha256", "left"),
}
"""File of an episode that a row names by its digest → rule, member and what is said of another."""
_COMPARED = ("manifest_sha256", "intact", "fixture_sha256", "timeout_s", "seed", "retries", "tools", "tasks")


@dataclass(frozen=True, slots=True)
class Audit:
    """What is known of a run after everything was recomputed."""

    kind: Kind
    name: str
    findings: tuple[Finding, ...]
    """Everything that does not hold; empty when the run is what it says."""
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]
    word: tuple[str, ...]
    """What rests on the submitter's word."""
    run: RunFolder | None = None
    report: Report | None = None
    """`None` when it can't be computed."""
    sha256: str | None = None
    """Of bundle.json, which names the bundle."""
    index: BundleIndex | None = None
    index_bytes: bytes = b""
    signatures: dict[str, bytes] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True when nothing contradicts."""
        return not self.findings

    def refuse_no_bundle(self, path: Path) -> None:
        """Raise `Usage` when the file at `path` is no bundle at all."""
        if self.kind == "bundle" and self.sha256 is None:
            what = self.findings[0].what.removeprefix("this is no bundle: ")
            mend = "name the folder that `scoresheet run --out DIR` wrote, or the file that `scoresheet bundle` wrote"
            raise Usage(f"this is no bundle: {what}", str(path), mend)


def of_run(folder: Path, pack: Pack | None = None, printed: bool = True) -> Audit:
    """The audit of a run directory; without what was `printed` (report.*) when that is made anew.

    Raises `Usage` when it is none, `Refused` when run.json can't be read.
    """
    work = _Work("run", folder.name, folder, pack, printed=printed)
    plan = work.plan()
    if plan is None:
        raise Refused("not a run", work.findings, str(folder))
    work.rows(plan)
    for at in range(len(work.places)):
        row = work.row(at)
        work.refold(plan, at, row, _on_disk(folder, _folder(row)))
    work.close(plan)
    return work.audit()


def of_bundle(path: Path, into: Path, pack: Pack | None = None, keep_agent: bool = False) -> Audit:
    """The audit of a bundle; its top files are laid out in `into/run`, a pack in `into/pack`, an agent in `into/agent`.

    Raises `Usage` when there is no such file. What makes it unreadable is a finding.
    """
    folder = into / "run"
    folder.mkdir()
    work = _Work("bundle", path.name, folder, pack)
    try:
        with bundle_file.opened(path) as bundle:
            work.bundle = bundle
            try:
                _unpack(bundle, work, into, keep_agent)
            finally:
                work.findings[:0] = bundle.findings
    except Refused as refused:
        known = set(work.findings)
        work.findings += [finding for finding in refused.findings if finding not in known]
        where = refused.where or "the bundle"
        work.unchecked.append(f"everything from {where} on: the bundle can't be read further")
        return work.audit()
    plan = work.plan()
    if plan is not None:
        work.close(plan)
    return work.audit()


def read(path: Path, into: Path, pack: Pack | None = None) -> Audit:
    """The audit of the run directory or the bundle at `path`."""
    return of_run(path, pack) if path.is_dir() else of_bundle(path, into, pack)


@dataclass(slots=True)
class _Places:
    """Where rows stand in rows.jsonl, in few bytes each: there may be very many."""

    grid: Grid
    first: Numbers = field(init=False)
    """Planned episode → which entry of the arrays is that of its first attempt, from 1; 0: none."""
    others: dict[str, int] = field(default_factory=dict)
    """Folder of any other attempt → its entry, from 1."""
    numbers: "array[int]" = field(default_factory=lambda: array("L"))
    offsets: "array[int]" = field(default_factory=lambda: array("Q"))
    sizes: "array[int]" = field(default_factory=lambda: array("L"))
    seen: bytearray = field(default_factory=bytearray)
    """1: the row was held against what lies in its folder."""

    def __post_init__(self) -> None:
        self.first = Numbers(len(self.grid))

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, row: Row, number: int, offset: int, size: int) -> None:
        """Take the place of a row; of two with one folder the first counts."""
        entry = len(self.numbers) + 1
        at = None if row.attempt else self.grid.find(row.task_id, row.repeat)
        if at is None:
            if self.others.setdefault(_folder(row), entry) != entry:
                return
        elif self.first.get(at):
            return
        else:
            self.first.put(at, entry)
        self.numbers.append(number)
        self.offsets.append(offset)
        self.sizes.append(size)
        self.seen.append(0)

    def find(self, folder: str) -> int | None:
        """The entry of the row whose files lie in `folder`; `None` when no row says so."""
        entry = self.others.get(folder)
        if entry is None and (match := _FIRST.fullmatch(folder)):
            at = self.grid.find(match[1], int(match[2]))
            entry = None if at is None else self.first.get(at)
        return entry - 1 if entry else None


def _folder(row: Row) -> str:
    return f"episodes/{row.task_id}/{row.repeat}.{row.attempt}"


Found = Iterator[tuple[str, Iterable[bytes]]]
"""(name, pieces) of the files in an episode's folder; lines, of calls.jsonl."""


@dataclass(slots=True)
class _Work:
    kind: Kind
    name: str
    folder: Path
    pack: Pack | None
    printed: bool = True
    bundle: BundleFile | None = None
    findings: list[Finding] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    run: RunFolder | None = None
    report: Report | None = None
    places: _Places = field(init=False)
    trajectories: Trajectories | None = None
    """`None` where they can't be made again."""
    works: Works = field(init=False)
    clock: Clock = field(init=False)
    limits: Mapping[str, int | None] = field(init=False)
    _plan: RunPlan | None = None
    _rows: int = -1
    """Descriptor of rows.jsonl."""
    _unreadable: tuple[Finding, ...] = ()
    _tasks: dict[str, Recorded | None] = field(default_factory=dict)
    _held: Controls | None = None
    _card_read: bool = False
    _hosts: frozenset[str] | None = None
    _violated: set[str] = field(default_factory=set)
    _lost: int = 0
    _model_logs: int = 0
    _patches: int = 0
    _proofs: Proofs = field(default_factory=Proofs)
    _shown: int = 0
    _baselines: bool = False
    _folded: int = 0
    _judged: int = 0
    _by_work: int = 0
    _more: int = 0

    def plan(self) -> RunPlan | None:
        """run.json, read once."""
        if self._plan is None and not (self.kind == "bundle" and not (self.folder / RUN).exists()):
            try:
                self._plan = run_folder.plan_of(self.folder)
            except Refused as refused:
                self.take(refused.findings)
        return self._plan

    def take(self, findings: Iterable[Finding]) -> None:
        """Take note of findings, as many as a person reads."""
        for finding in findings:
            if len(self.findings) < _MOST:
                self.findings.append(finding)
            else:
                self._more += 1

    def find(self, rule: str, where: str, what: str, mend: str = "") -> None:
        """Take note of one."""
        self.take([Finding(rule, where, what, mend)])

    def rows(self, plan: RunPlan) -> None:
        """Everything of the run but its episodes, and where each row stands."""
        self.places = _Places(Grid(plan))
        self._check_pack(plan)
        self.works, self.clock, self.limits = Works(plan, self.pack), Clock.of(plan), plan_audit.limits(plan)
        if self.pack is not None and self.bundle is None:
            found = Trajectories(self.folder, plan, self.pack)
            self.trajectories = found if found.comparable else None
        with suppress(OSError):  # told by the report
            self._rows = os.open(self.folder / ROWS, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.run = run_folder.read(self.folder, each=self.places.add)
        except ScoresheetError as error:
            self._unreadable = _told(error)
        except ValueError as error:  # a value that no document can hold, such as a task id in an edited receipt
            self._unreadable = (_no_report(error),)

    def refold(self, plan: RunPlan, at: int, row: Row, found: Found) -> None:
        """Hold the row at an entry of `places` against what lies in its folder."""
        self.places.seen[at] = 1
        folder, where = _folder(row), f"{ROWS}:{self.places.numbers[at]}"
        recorded = self._recorded(row.task_id)
        models, manifest = bool(plan.model_kinds or plan.model_endpoints), plan.manifest
        by_digest = self.bundle is not None
        fold = Refold(
            row, where, folder, manifest.protocol, manifest.on_mismatch, recorded, models=models, logs=not by_digest,
            backend=plan.isolation, limits=self.limits, kinds=plan.model_kinds, proofs=self._proofs,
        )  # fmt: skip
        for name, pieces in found:
            match name:
                case "calls.jsonl":
                    fold.journal()
                    for line in pieces:
                        fold.call(line)
                case "evidence.json":
                    fold.evidence(b"".join(pieces))
                case "patch.diff":
                    fold.patch()
                    task = None if recorded is None else recorded.task
                    self.take(self.works.check(row, where, f"{folder}/{name}", pieces, task))
                case "dns.jsonl":
                    self._check_names(plan, f"{folder}/{name}", pieces)
                case judgments.TASK_VIEW:
                    self._check_shown(row, at, folder, b"".join(pieces))
                case _:
                    for _ in pieces:
                        pass
        if models and not by_digest and row.exit_reason != "harness_error":
            with suppress(OSError), run_folder.opened(self.folder / folder / MODEL_LOG) as log:  # told by the fold
                fold.model(log, self._controls(), plan.limits.max_tool_calls)
        if self.trajectories is not None:
            self.take(self.trajectories.check(row, folder))
        if row.exit_reason != "harness_error":
            self._model_logs += row.model_sha256 is not None
            self._patches += row.patch_sha256 is not None
        self.take(fold.findings())
        for what in self.clock.faults(row, None if recorded is None else _clock(plan, recorded.task)):
            self.find("row-plan", where, f"{row.task_id} {row.repeat}.{row.attempt}: {what}")
        if row.controls:
            self._violated |= {control for control, status in row.controls.items() if status == "violated"}
        self._lost += row.exit_reason == "harness_error"
        self._folded += row.exit_reason != "harness_error"
        if recorded is not None and row.exit_reason == "completed":
            if oracle.by_work(recorded.task):
                self._by_work += 1
            else:
                self._judged += 1

    def close(self, plan: RunPlan) -> None:
        """Everything that is left when all rows were held against their episodes."""
        for at, seen in enumerate(self.places.seen):
            if not seen:
                self.refold(plan, at, self.row(at), iter(()))
        self.take(self._unreadable)
        if self.run is None:
            return
        if not self.places:
            self.find("audit-episode", ROWS, "it holds no row: nothing of this run can be checked")
        try:
            self.report = self.run.report()
        except ScoresheetError as error:
            self.take(_told(error))
            return
        except ValueError as error:
            self.take([_no_report(error)])
            return
        self.take((*self.run.outcomes.findings, *self.run.evidence.findings))
        if self.run.evidence.torn:
            self.find("rows-torn", ROWS, f"ends in a torn line of {self.run.evidence.torn} bytes")
        card = self.run.evidence.card
        if (card.sha256 if card is not None else None) != plan.card_sha256:
            self.find("audit-card", CARD, "not the protocol card that the run began with")
        baselines = baseline_audit.findings(self.folder, plan)
        self._baselines = baselines is not None
        self.take(baselines or ())
        self._check_plan(plan, self.run)
        self._check_recording(plan)
        self._check_reports(self.report)
        if self.bundle is not None:
            self._check_output_digests()
            self._check_index(self.bundle.index, self.report)
        self._tell(plan, self.report)

    def audit(self) -> Audit:
        """What came out."""
        if self._rows >= 0:
            os.close(self._rows)
        if self._more:
            self.findings.append(Finding("audit-more", self.name, f"and {self._more} more findings"))
        bundle = self.bundle
        return Audit(
            kind=self.kind,
            name=self.name,
            findings=tuple(self.findings),
            checked=tuple(self.checked),
            unchecked=tuple(self.unchecked),
            word=tuple(line.text for line in self._word()),
            run=self.run,
            report=self.report,
            sha256=bundle.sha256 if bundle is not None else None,
            index=bundle.index if bundle is not None else None,
            index_bytes=bundle.index_bytes if bundle is not None else b"",
            signatures=bundle.signatures if bundle is not None else {},
        )

    # parts

    def _word(self) -> Iterator[word.Line]:
        """What rests on the submitter's word."""
        plan = self._plan
        yield from word.WORD
        yield word.BASELINE_ROWS if self._baselines else word.BASELINE_VERDICT
        if self._patches:
            yield word.WORKSPACES
        if (self.folder / judgments.JUDGMENTS).exists():
            yield word.JUDGES
        if plan is not None and plan.prices_sha256 is not None:
            yield word.PRICES
        if plan is not None and plan.model_endpoints:
            yield word.ENDPOINTS

    def _check_pack(self, plan: RunPlan) -> None:
        """The pack's bytes, and what the run recorded of them."""
        if self.pack is None:
            return
        if self.pack.manifest_sha256 != plan.manifest_sha256:
            what = f"the pack is {self.pack.manifest_sha256}, the run is of {plan.manifest_sha256}"
            self.find("audit-pack", f"pack/{MANIFEST}", what)
            self.pack = None
            return
        wrong = [finding for finding in self.pack.verify() if finding.severity == "error"]
        if wrong:
            self.take(replace(finding, where=f"pack/{finding.where}") for finding in wrong)
            self.pack = None
            return
        card = self.folder / CARD
        try:
            record = PackRecord.from_bytes(bounded_file.read(self.folder / PACK), PACK)
            seen = pack_triage.look(self.pack, card=card if card.exists() else None, verified=True).record
        except FileNotFoundError:
            return
        except ScoresheetError as error:
            self.take(_told(error, "audit-pack", PACK))
            return
        differing = [name for name in _COMPARED if getattr(record, name) != getattr(seen, name)]
        if _leaks(record) != _leaks(seen):
            differing.append("scan.leak_flag")
        if differing:
            self.find("audit-record", PACK, f"the pack's bytes contradict {', '.join(differing)}")
        self.checked.append(f"pack: every file against {plan.manifest_sha256[:12]}…, scanned and recorded again")

    def _recorded(self, task_id: str) -> Recorded | None:
        if self.pack is None:
            return None
        if task_id not in self._tasks:
            while len(self._tasks) >= _TASKS_KEPT:
                del self._tasks[next(iter(self._tasks))]
            protocol = self.pack.manifest.protocol
            try:
                self._tasks[task_id] = Recorded.of(self.pack.task(task_id), self.pack.tools, protocol)
            except ScoresheetError:  # told by the report: not planned
                self._tasks[task_id] = None
        return self._tasks[task_id]

    def _controls(self) -> Controls | None:
        """What the card pins, when it holds."""
        if not self._card_read:
            self._card_read, self._held = True, model_calls.held(self._card())
        return self._held

    def _card(self) -> JsonValue:
        """What the card says; `None` where there is none that can be read."""
        with suppress(ScoresheetError):  # told by the report
            return reading.read(self.folder / CARD).located.value if (self.folder / CARD).exists() else None
        return None

    def _check_plan(self, plan: RunPlan, run: RunFolder) -> None:
        """What run.json and the confound log say, by all that says the same."""
        card, known = self._card(), run.evidence
        record: PackRecord | None = None
        with suppress(ScoresheetError, OSError):  # told by the report
            record = PackRecord.from_bytes(bounded_file.read(self.folder / PACK), PACK)
        self.take(plan_audit.findings(plan, card, record, self.pack, known.prices))
        self.take(plan_audit.of_receipts(plan, known.receipts))
        self.take(plan_audit.of_outcomes(plan, run.outcomes))
        if known.baselines is not None and known.baselines.manifest_sha256 != plan.manifest_sha256:
            self.find("audit-baselines", BASELINES, "of another pack")
        if plan_audit.same_version(plan):
            with suppress(ScoresheetError):  # told by the report
                log = journal.read_confounds(self.folder)
                self.take(confound_audit.findings(log, card, plan, record, self._violated))

    def _check_names(self, plan: RunPlan, where: str, lines: Iterable[bytes]) -> None:
        """The names that were asked for: only hosts of the recordings have an address."""
        if self._hosts is None:
            self._hosts = Hosts.of(plan.manifest.upstreams).names
        hosts = self._hosts
        for number, line in enumerate(lines, 1):
            try:
                record = DnsRecord.from_bytes(line, f"{where}:{number}")
            except Refused as error:
                self.take(error.findings)
                continue
            if record.answer in ("address", "empty") and record.name not in (*hosts, "*"):
                what = f"{record.name!r} had an answer, though it is no host of the recordings"
                self.find("journal-names", f"{where}:{number}", what)

    def _check_recording(self, plan: RunPlan) -> None:
        """The recording as which the run's own model calls were sealed."""
        sha256 = plan.model_recording_sha256
        if self.bundle is not None:
            if sha256 is not None:
                self.unchecked.append(f"{RECORDING} {sha256[:12]}…, {word.RECORDING.text}")
        elif sha256 is not None:
            found = recording_audit.findings(self.folder, plan, map(self.row, range(len(self.places))))
            self.take(found)
            if not found:
                self.checked.append(f"{RECORDING}: sealed again from {self._model_logs} model.jsonl")
        elif (self.folder / RECORDING).exists():
            self.unchecked.append(f"{RECORDING}: {RUN} does not name it; the run went on after it was sealed")

    def _check_output_digests(self) -> None:
        """Model calls and patches, which a bundle holds by digest, by the digests that their rows name."""
        found = dict.fromkeys(_NAMED, 0)
        with suppress(FileNotFoundError), (self.folder / OUTPUTS).open("rb") as file:
            for number, line in enumerate(file, 1):
                sha256, _, path = line.decode("utf-8", "replace").rstrip("\n").partition("  ")
                folder, _, name = path.rpartition("/")
                at = self.places.find(folder)
                if name not in _NAMED or at is None:
                    continue
                row = self.row(at)
                if row.exit_reason == "harness_error":  # nothing was folded
                    continue
                found[name] += 1
                rule, member, verb = _NAMED[name]
                if getattr(row, member) != sha256:
                    what = f"{path} is not what {row.task_id} {row.repeat}.{row.attempt} {verb}"
                    self.find(rule, f"{OUTPUTS}:{number}", what)
        if found[MODEL_LOG] != self._model_logs:
            what = f"{self._model_logs} rows were folded from model calls, and the digests of {found[MODEL_LOG]} logs"
            self.find("row-model", OUTPUTS, f"{what} are here")
        if found[PATCH] != self._patches:
            what = f"{self._patches} rows name a patch, and the digests of {found[PATCH]} are here"
            self.find("row-patch", OUTPUTS, what)

    def row(self, at: int) -> Row:
        """The row at an entry of `places`."""
        return Row.from_bytes(self._line(at), f"{ROWS}:{self.places.numbers[at]}")

    def _line(self, at: int) -> bytes:
        return os.pread(self._rows, self.places.sizes[at], self.places.offsets[at])

    def _check_shown(self, row: Row, at: int, folder: str, view: bytes) -> None:
        """What the judge of an episode was shown, by what he says that he saw, and by the pack."""
        where, recorded = f"{folder}/{judgments.TASK_VIEW}", self._recorded(row.task_id)
        try:
            prompt = canonical.as_object(canonical.loads(view)).get("prompt")
        except canonical.JsonError as error:
            self.find("row-task", where, f"it can't be read: {error.what}")
            return
        if recorded is not None and prompt != recorded.task.prompt:
            self.find("row-task", where, "not what the pack asks")
        known = self.run.evidence.judgments if self.run is not None else None
        said = None if known is None else known.standing.get(digest.of(self._line(at).removesuffix(b"\n")))
        if said is None:
            return
        self._shown += 1
        if said.shown_sha256 != judgments.shown_sha256(str(prompt), row.answer, row.patch_sha256, row.patch_left_out):
            what = f"what {said.judge} was shown is not what the agent was asked and left"
            self.find("row-shown", where, what)

    def _check_reports(self, report: Report) -> None:
        """The printed figures, by what the rows give."""
        told = []
        for name, made in _REPORTS.items() if self.printed else ():
            path = self.folder / name
            if not path.exists():
                if self.kind == "bundle":
                    self.find("audit-report", name, "not there")
                continue
            told.append(name)
            if digest.of_file(path).sha256 == digest.of(made(report).encode()):
                continue
            said = path.read_bytes()
            older = next(
                (n for n in range(report.confounds or 0) if made(_as_of(report, n)).encode() == said),
                None,
            )
            if older is not None and self.kind == "run":
                what = f"{name} was printed when the confound log had {older} of its {report.confounds} entries"
                self.unchecked.append(f"{what}; all else in it holds")
                continue
            self.find("audit-report", name, _differing(said, name, report), "print it anew: scoresheet report")
        self.checked.append(
            f"figures: recomputed from the rows{', and compared with ' if told else ''}{', '.join(told)}"
        )

    def _check_index(self, index: BundleIndex, report: Report) -> None:
        parts = {"pack": index.pack == "included", "agent": index.agent == "included"}
        there = {"pack": (self.folder.parent / "pack").exists(), "agent": (self.folder.parent / "agent").exists()}
        told = {
            "manifest_sha256": report.manifest_sha256,
            "card_sha256": report.card_sha256,
            "rows_sha256": report.rows_sha256,
            "figures_sha256": report.figures_sha256,
            "draft": report.draft,
        }
        wrong = [name for name, value in told.items() if getattr(index, name) != value]
        wrong += [name for name, included in parts.items() if there[name] != included]
        for name in wrong:
            self.find("bundle-index", INDEX, f"{name} is not what the bundle's files give")

    def _tell(self, plan: RunPlan, report: Report) -> None:
        rows = len(self.places)
        if self.bundle is not None:
            self.checked.insert(0, f"bytes: {self.bundle.index.files} files, by SHA256SUMS and bundle.json")
        self.checked.append(f"rows: {rows}, their attempts, seeds and denominators")
        self.checked.append(f"folded again from calls.jsonl and evidence.json: {self._folded} of {rows} rows")
        if report.receipts_head is not None:
            self.checked.append(f"receipts: {report.receipts_head}; every leaf derived again")
        if report.card_sha256 is not None:
            self.checked.append("card: judged again by its rules")
        if plan_audit.same_version(plan):
            self.checked.append(
                "plan and confounds: by card, receipts, rows and evidence, as far as these say the same"
            )
        else:
            self.unchecked.append(
                "confounds: which of them scoresheet must have written, only its version that ran knows"
            )
        if self.pack is None:
            mend = "verify … --pack PACK"
            what = f"{word.NO_PACK.text} ({mend}, digest {plan.manifest_sha256[:12]}…)"
            self.unchecked.append(what)
        else:
            self.checked.append(f"answers: {self._judged} judged again by their task's oracle")
        if self._model_logs and self.bundle is None:
            self.checked.append(f"model calls, tokens and controls: folded again from {self._model_logs} model.jsonl")
        elif self._model_logs:
            self.unchecked.append(f"model calls, tokens and controls: of {self._model_logs} {word.MODEL_LOGS.text}")
        self._tell_works()
        if self._patches and self.bundle is not None:
            self.unchecked.append(f"patches: of {self._patches} {word.PATCHES.text}")
        if plan.model_replayed is not None:
            name = plan.model_replayed.recording_sha256[:12]
            self.unchecked.append(f"the recording {name}… {word.REPLAYED.text}")
        told = self.trajectories
        if told is not None and told.same:
            self.checked.append(f"trajectories: {told.same} made again, byte for byte")
        if self.bundle is None and (told is None or told.absent):
            why = (
                "made again only with the pack, by the version that wrote them" if told is None else "not all are there"
            )
            self.unchecked.append(f"trajectories: {why}")
        if self.kind == "bundle" and (self.folder / OUTPUTS).exists():
            with (self.folder / OUTPUTS).open("rb") as file:
                count = sum(1 for _ in file)
            if count:
                self.unchecked.append(f"{count} files of what agents wrote: only their digests are here")
        if self.bundle is not None and self.bundle.index.agent == "included":
            self.unchecked.append("the agent that is here: whether it is the one that ran")
        known = None if self.run is None else self.run.evidence.judgments
        unshown = len(known.standing) - self._shown if known is not None else 0
        if unshown > 0:
            self.unchecked.append(f"{word.SHOWN.text}, in {unshown} episodes: it is not here")
        if self._lost:
            self.unchecked.append(f"{self._lost} attempts that scoresheet itself lost: nothing of them is folded again")
        if self._shown:
            self.checked.append(f"judgments: what the judges were shown, in {self._shown} episodes")
        if self._baselines:
            self.checked.append("baselines: made again from the rows of both")
        elif (self.folder / BASELINES).exists():
            self.unchecked.append("baselines.json: the rows that it was made of are not here")

    def _tell_works(self) -> None:
        """What is known of the workspaces' patches."""
        works, by_tests = self.works, self._by_work - self.works.judged
        if works.counted:
            self.checked.append(f"patches: the lines of {works.counted} counted again")
        if works.divided:
            of_surface = " and what bends grading" if works.comparable else ""
            what = f"patches: which frozen tests they touch{of_surface}, in {works.divided} workspaces"
            self.checked.append(what)
        if works.divided and not works.comparable:
            what = (
                "tests that patches add, and what of them bends grading: told again only by the version of scoresheet"
            )
            self.unchecked.append(f"{what} and of Python that told it")
        if works.judged:
            self.checked.append(f"output files: {works.judged} judged again by their task's schema")
        if by_tests:
            self.unchecked.append(f"grading of {by_tests} workspaces: {word.GRADING.text}")
        if works.counted > works.divided:
            what = f"which tests {works.counted - works.divided} patches touch: the pack is not here"
            self.unchecked.append(what)


def _unpack(bundle: BundleFile, work: _Work, into: Path, keep_agent: bool) -> None:
    """Every file of the bundle: laid out, or held against its row as it passes."""
    plan: RunPlan | None = None
    ready = False
    members = bundle.members()
    member = next(members, None)
    while member is not None:
        top = member.path.partition("/")[0]
        if top == member.path:
            _lay(member, into / "run" / member.path, False)
        elif top == "pack" or (top == "agent" and keep_agent):
            _lay(member, into / member.path, member.path in bundle.index.executable)
        elif top == FOLDER:
            _lay(member, into / "run" / member.path, False)
        elif top == "agent":
            (into / "agent").mkdir(exist_ok=True)
            member.pass_over()
        else:
            if not ready:
                plan, ready = _ready(work, into), True
            member = _episode(bundle, work, plan, member, members)
            continue
        member = next(members, None)
    if not ready:
        _ready(work, into)


def _ready(work: _Work, into: Path) -> RunPlan | None:
    """What must be known before the first episode: the plan, the pack, the rows."""
    plan = work.plan()
    if plan is None:
        if not (work.folder / RUN).exists():
            work.find("audit-run", RUN, "not in the bundle")
        return None
    if work.pack is None and (into / "pack").exists():
        try:
            work.pack = Pack.open(into / "pack")
        except ScoresheetError as error:
            work.take(_told(error, "audit-pack", "pack"))
    work.rows(plan)
    return plan


def _episode(
    bundle: BundleFile, work: _Work, plan: RunPlan | None, first: Member, members: Iterator[Member]
) -> Member | None:
    """Hold the row of one folder against its files; the first file of the next folder."""
    after: list[Member | None] = []
    folder = first.path.rpartition("/")[0]

    def found() -> Found:
        member: Member | None = first
        while member is not None and member.path.rpartition("/")[0] == folder:
            name = member.path.rpartition("/")[2]
            if name in ("evidence.json", judgments.TASK_VIEW):
                yield name, [member.read(_EVIDENCE_BYTES)]
            else:
                yield name, member.lines(_JOURNAL_LINE_BYTES)
            member = next(members, None)
        after.append(member)

    at = work.places.find(folder) if plan is not None and _FOLDER.fullmatch(first.path) else None
    if plan is not None and at is not None:
        work.refold(plan, at, work.row(at), found())
    else:
        if plan is not None:
            work.find("audit-episode", folder, "no row names this episode: a row was dropped, or a folder was added")
        for _, pieces in found():
            for _ in pieces:
                pass
    return after[0]


def _lay(member: Member, path: Path, executable: bool) -> None:
    journal = path.name.endswith(".jsonl")
    ours = member.path.partition("/")[0] in (member.path, FOLDER)
    if ours and not journal and member.size > _SMALL_BYTES and path.name != OUTPUTS:
        raise bundle_file.fault(member.path, f"{member.size} bytes are too many for such a file", "bundle-size")
    with _made(member, path) as file:
        file.writelines(member.lines(_ROW_BYTES) if journal else member.chunks())
    if executable:
        path.chmod(0o755)


def _made(member: Member, path: Path) -> BinaryIO:
    """The new file for a member. Raises `Refused` for a name that no file can have here."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise
        what = f"it can't lie beside the other files: {error.strerror}"
        raise bundle_file.fault(member.path[:200], what, "bundle-path") from error


def _on_disk(folder: Path, episode: str) -> Found:
    """The files of an episode of a run directory that a row can be held against."""
    for name in ("calls.jsonl", "dns.jsonl", "evidence.json", "patch.diff", judgments.TASK_VIEW):
        try:
            with run_folder.opened(folder / episode / name) as file:
                yield name, file
        except OSError:
            continue


def _told(error: ScoresheetError, rule: str = "audit-run", where: str = RUN) -> tuple[Finding, ...]:
    return tuple(error.findings) if isinstance(error, Refused) else (Finding(rule, where, error.what),)


def _no_report(error: ValueError) -> Finding:
    return Finding("audit-run", RUN, f"no report can be made of it: {' '.join(str(error).split())[:200]}")


def _clock(plan: RunPlan, task: Task) -> float:
    """The wall clock of a task's episodes: it may lower the run's."""
    own = task.limits.wall_clock_s
    return float(plan.limits.wall_clock_s if own is None else min(own, plan.limits.wall_clock_s))


def _leaks(record: PackRecord) -> object:
    return record.scan.leak_flag if record.scan is not None else None


_REPORTS: Mapping[str, Callable[[Report], str]] = {
    "report.txt": block.text,
    "report.json": Report.text,
    "report.md": block.markdown,
}


def _as_of(report: Report, entries: int) -> Report:
    """The report as it was when the confound log had so many entries."""
    return report.model_copy(update={"confounds": entries, "confound_entries": report.confound_entries[:entries]})


def _differing(said: bytes, name: str, report: Report) -> str:
    """Which figures of a printed report the rows don't give."""
    for claim in quotes.claims(said, prose=name != "report.json"):
        if found := claims.differences(claim, report):
            return claims.told(found)
    return "not what the rows give"
