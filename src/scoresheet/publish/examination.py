"""One run while it is looked at: its parts, each held against all that says the same, and what came out so far.

Episodes pass one after another, from a folder or from a bundle; of none of them anything is kept but numbers.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

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
from scoresheet.errors import Finding, Refused, ScoresheetError
from scoresheet.gate import pack_triage, reading
from scoresheet.model.entry import MODEL_LOG
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import MANIFEST
from scoresheet.publish import (
    baseline_audit,
    confound_audit,
    plan_audit,
    recording_audit,
    report_audit,
    run_folder,
    word,
)
from scoresheet.publish.bundle import OUTPUTS
from scoresheet.publish.bundle_file import BundleFile
from scoresheet.publish.outcome import Grid
from scoresheet.publish.plan_audit import Clock
from scoresheet.publish.report_audit import Printed
from scoresheet.publish.row_places import RowPlaces, folder_of
from scoresheet.publish.run_folder import BASELINES, CARD, PACK, ROWS, RUN, RunFolder
from scoresheet.publish.trajectories import Trajectories
from scoresheet.publish.work_audit import Works
from scoresheet.replay.hosts import Hosts
from scoresheet.run import journal, judgments, model_calls, oracle
from scoresheet.run.model_recording import RECORDING
from scoresheet.run.patch import PATCH
from scoresheet.run.proof import Proofs
from scoresheet.run.refold import Recorded, Refold

Kind = Literal["run", "bundle"]
_MOST = 200
"""Findings that are told; the rest are counted."""
_TASKS_KEPT = 8
_NAMED = {
    MODEL_LOG: ("row-model", "model_sha256", "was folded from"),
    PATCH: ("row-patch", "patch_sha256", "left"),
}
"""File of an episode that a row names by its digest → rule, member and what is said of another."""
_COMPARED = ("manifest_sha256", "intact", "fixture_sha256", "timeout_s", "seed", "retries", "tools", "tasks")


Found = Iterator[tuple[str, Iterable[bytes]]]
"""(name, pieces) of the files in an episode's folder; lines, of calls.jsonl."""


@dataclass(slots=True)
class Examination:
    """A run while it is looked at: `rows`, then `refold` for each episode as it passes, then `close`."""

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
    places: RowPlaces = field(init=False)
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
    _outside: int = 0
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
        self.places = RowPlaces(Grid(plan))
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
            self._unreadable = told(error)
        except ValueError as error:  # a value that no document can hold, such as a task id in an edited receipt
            self._unreadable = (_no_report(error),)

    def refold(self, plan: RunPlan, at: int, row: Row, found: Found) -> None:
        """Hold the row at an entry of `places` against what lies in its folder."""
        self.places.seen[at] = 1
        folder, where = folder_of(row), f"{ROWS}:{self.places.numbers[at]}"
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
        self._outside += self.clock.outside(row)
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
            self.take(told(error))
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

    def end(self) -> None:
        """Let go of the rows, and say how many findings there were beside those that are told."""
        if self._rows >= 0:
            os.close(self._rows)
        if self._more:
            self.findings.append(Finding("audit-more", self.name, f"and {self._more} more findings"))

    def on_word(self) -> Iterator[word.Line]:
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
            self.take(told(error, "audit-pack", PACK))
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
        found = report_audit.printed(self.folder, report, self.kind == "bundle") if self.printed else Printed()
        self.take(found.findings)
        self.unchecked += found.older
        names = f", and compared with {', '.join(found.names)}" if found.names else ""
        self.checked.append(f"figures: recomputed from the rows{names}")

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
        if self._outside or not self.clock.in_order:
            what = f"the times of the run stand in no order, and {self._outside} rows began outside of it"
            self.unchecked.append(f"{what}: a clock that is set meanwhile leaves this too, so they prove nothing")
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


def told(error: ScoresheetError, rule: str = "audit-run", where: str = RUN) -> tuple[Finding, ...]:
    return tuple(error.findings) if isinstance(error, Refused) else (Finding(rule, where, error.what),)


def _no_report(error: ValueError) -> Finding:
    return Finding("audit-run", RUN, f"no report can be made of it: {' '.join(str(error).split())[:200]}")


def _clock(plan: RunPlan, task: Task) -> float:
    """The wall clock of a task's episodes: it may lower the run's."""
    own = task.limits.wall_clock_s
    return float(plan.limits.wall_clock_s if own is None else min(own, plan.limits.wall_clock_s))


def _leaks(record: PackRecord) -> object:
    return record.scan.leak_flag if record.scan is not None else None
