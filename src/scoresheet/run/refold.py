"""A row held against what it was folded from: the door's journal, the evidence, the recordings. Pure.

`fold` made the row once; this is the same rules read backwards, for whoever did not see the episode.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.manifest import Protocol
from scoresheet.documents.protocol_card import Controls
from scoresheet.documents.row import Mismatch, Row
from scoresheet.documents.task import Task
from scoresheet.documents.tool import Tool
from scoresheet.errors import Finding, Malformed, Refused
from scoresheet.model.entry import MODEL_LOG
from scoresheet.replay import session
from scoresheet.run import model_calls, oracle
from scoresheet.run.fold import SUSPENDED_S, usages
from scoresheet.run.model_calls import ModelCalls, Reading
from scoresheet.run.oracle import Answer
from scoresheet.run.proof import Proof, Proofs

SLACK_S = 60.0
"""Clocks that are read in other places, on a machine with too much to do, agree within this."""
_ROUNDING_S = 1e-5
_SHOWN = 3
_BY_DOOR = (
    "model_calls", "model_retries", "model_door_retries", "tokens_in", "tokens_out", "models", "model_usage",
    "model_untold", "model_unrecorded", "controls", "violations", "cost", "model_sha256",
)  # fmt: skip
"""Members that only what passed a model's door can fill."""
_BY_WORK = (
    "patch_lines", "patch_sha256", "tests_identical", "test_files_changed", "tests_changed", "tests_added",
    "grading_surface", "patch_left_out",
)  # fmt: skip
"""Members that only a workspace can fill."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a task's recordings allow: fingerprint → the latencies of its entries."""

    task: Task
    """Without its calls."""
    entries: Mapping[str, frozenset[float]]
    unchecked: tuple[str, ...] | None = None
    """Tools whose arguments can't be checked; `None`: it is not known here."""

    @classmethod
    def of(cls, task: Task, tools: Mapping[str, Tool], protocol: Protocol) -> "Recorded":
        """The recordings of `task`, without their bodies; `tools`: the pack's, by name."""
        entries: dict[str, set[float]] = {}
        for call in task.calls:
            entries.setdefault(call.request_fingerprint, set()).add(call.latency_ms_recorded)
        found = {fingerprint: frozenset(latencies) for fingerprint, latencies in entries.items()}
        return cls(task.model_copy(update={"calls": ()}), found, session.unchecked(task, tools, protocol))


@dataclass(slots=True)
class Refold:
    """One row, and what lies in its episode's folder: `call` for every line, `evidence`, then `findings`."""

    row: Row
    where: str
    """`rows.jsonl:LINE`."""
    folder: str
    """The episode's, below the run."""
    protocol: Protocol
    on_mismatch: str
    recorded: Recorded | None = None
    """`None` where the pack is not at hand."""
    models: bool = False
    """Whether the run's episodes had a door of models."""
    logs: bool = True
    """Whether what passed it, and what was left in a workspace, would be at hand: a bundle holds their digests."""
    backend: str | None = None
    """What was to isolate the run's episodes."""
    limits: Mapping[str, float | int | None] = field(default_factory=dict)
    """Bounds that the run set, by their names in the evidence."""
    kinds: tuple[str, ...] = ()
    """Whose models' doors they had."""
    proofs: Proofs = field(default_factory=Proofs)
    """Of the whole run, so that what many episodes have in common is judged once."""
    _found: list[Finding] = field(default_factory=list)
    _hashed: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    _lines: int = 0
    _made: int = 0
    _repeats: int = 0
    _latency: float = 0.0
    _missed: list[CallRecord] = field(default_factory=list)
    _errors: list[str] = field(default_factory=list)
    _ignored: Counter[str] = field(default_factory=Counter)
    _first_end: CallRecord | None = None
    _last_s: float = 0.0
    _journal: bool = False
    _patch: bool = False
    _passed: ModelCalls | None = None
    _proof: Proof | None = None

    def journal(self) -> None:
        """There is a calls.jsonl, if only an empty one."""
        self._journal = True

    def call(self, line: bytes) -> None:
        """Take the next line of calls.jsonl."""
        self._hashed.update(line)
        where = f"{self.folder}/calls.jsonl:{self._lines + 1}"
        try:
            call = CallRecord.from_bytes(line, where)
        except Refused as refused:
            self._found += refused.findings[:_SHOWN]
            self._lines += 1
            return
        self._last_s = max(self._last_s, call.at_s)
        if call.seq != self._lines:
            self._find("journal-order", where, f"call {call.seq} stands where call {self._lines} should")
        self._lines += 1
        if self._first_end is None and (
            call.outcome == "capped" or (call.outcome == "miss" and self.on_mismatch == "stop")
        ):
            self._first_end = call
        if call.outcome not in ("hit", "miss"):
            return
        self._made += 1
        self._repeats += call.repeat
        self._latency += call.latency_ms_recorded
        self._errors += call.schema_errors
        self._ignored.update(f"{call.tool or '?'} {rule}" for rule in call.ignored)
        if call.outcome == "miss":
            self._missed.append(call)
        self._against_recordings(call, where)

    def patch(self) -> None:
        """There is a patch.diff, whose digest is compared elsewhere."""
        self._patch = True

    def model(self, log: BinaryIO, controls: Controls | None, cap: int | None) -> None:
        """Take model.jsonl; `controls`: the card's, when they hold; `cap`: the run's on tool calls."""
        limits = None if self.recorded is None else self.recorded.task.limits.max_tool_calls
        caps = [each for each in (cap, limits) if each is not None]
        reading = Reading(log, model_calls.pinned(controls, self.row.episode_seed, min(caps, default=None)))
        try:
            for entry, _ in reading.exchanges():
                if self.kinds and entry.kind not in self.kinds:
                    self._find("row-model", f"{self.folder}/{MODEL_LOG}", f"a call of {entry.kind}, which had no door")
        except Malformed as error:
            self._find("row-model", f"{self.folder}/{(error.where or MODEL_LOG)}", error.what)
            return
        self._passed = reading.seen()

    def evidence(self, data: bytes) -> None:
        """Take evidence.json."""
        self._proof = self.proofs.of(data, f"{self.folder}/evidence.json")
        self._found += self._proof.findings

    def findings(self) -> Iterator[Finding]:
        """Everything in which the row does not follow from what was taken."""
        yield from self._found
        yield from (Finding(rule, self.where, f"{self._name}: {what}") for rule, what in self._faults())

    @property
    def _name(self) -> str:
        return f"{self.row.task_id} {self.row.repeat}.{self.row.attempt}"

    def _find(self, rule: str, where: str, what: str) -> None:
        if len(self._found) < 50:
            self._found.append(Finding(rule, where, what))

    def _against_recordings(self, call: CallRecord, where: str) -> None:
        if self.recorded is None:
            return
        if call.outcome != "hit":
            return
        latencies = self.recorded.entries.get(call.fingerprint)
        if latencies is None:
            self._find("journal-recording", where, "a call that was answered, though the task has no such recording")
        elif call.latency_ms_recorded not in latencies:
            self._find("journal-recording", where, "its latency is that of no recording of the same request")

    def _faults(self) -> Iterator[tuple[str, str]]:
        row = self.row
        if row.exit_reason == "harness_error":
            if row.success:
                yield "row-follows", "lost by our own error, and yet a success"
            return
        yield from self._from_journal()
        yield from self._from_models()
        yield from self._from_evidence()
        yield from self._from_itself()
        yield from self._from_work()
        yield from self._from_oracle()

    def _from_journal(self) -> Iterator[tuple[str, str]]:
        row = self.row
        if not self._journal:
            yield "row-journal", f"its journal {self.folder}/calls.jsonl is not there"
            return
        if row.calls_sha256 != self._hashed.hexdigest():
            yield "row-journal", f"{self.folder}/calls.jsonl is not the journal that the row was folded from"
        v1 = self.protocol == "tool-replay-v1"
        told = {
            "tool_calls": (row.tool_calls, self._made),
            "repeated_calls": (row.repeated_calls, self._repeats),
            "recorded_latency_ms": (row.recorded_latency_ms, round(self._latency, 6)),
            "unauthorized": (row.unauthorized, int(bool(self._missed))),
            "schema_ok": (row.schema_ok, int(not self._errors and not (v1 and self._missed))),
            "ignored": (row.ignored, dict(self._ignored)),
            "schema_errors": (row.schema_errors, tuple(self._errors)),
            "mismatches": (row.mismatches, tuple(map(_mismatch, self._missed))),
        }
        for name, (said, seen) in told.items():
            if said != seen:
                yield "row-follows", f"{name} does not follow from {self.folder}/calls.jsonl ({_short(said, seen)})"
        unchecked = None if self.recorded is None else self.recorded.unchecked
        if unchecked is not None and row.schema_unchecked != unchecked:
            yield "row-follows", f"schema_unchecked is not what the pack gives ({', '.join(unchecked) or 'none'})"
        end = self._first_end
        expected = None if end is None else "tool_cap" if end.outcome == "capped" else "mismatch"
        if row.exit_reason in ("mismatch", "tool_cap"):
            if row.exit_reason != expected and not self._by_model(expected):
                yield "row-follows", f"exit_reason {row.exit_reason} does not follow from {self.folder}/calls.jsonl"
        elif end is not None and (row.limit_at_s is None or end.at_s <= row.limit_at_s):
            what = f"exit_reason {row.exit_reason}, but the journal shows {expected} at {end.at_s:.3f} s"
            yield "row-follows", what

    def _by_model(self, expected: str | None) -> bool:
        """True when the model's calls ended the episode, which its own journal shows, and not this one."""
        if self._passed is not None and (self._capped or self.row.exit_reason != "tool_cap"):
            return expected is None and self._passed.observation.ending == self.row.exit_reason
        control = {"mismatch": "controls.tool_allowlist", "tool_cap": "controls.max_tool_calls"}
        violated = self.row.controls.get(control[self.row.exit_reason]) == "violated"
        return expected is None and (violated or bool(self.row.model_unrecorded))

    @property
    def _capped(self) -> bool:
        """Whether the cap on tool calls is known: a task may lower it."""
        return self.recorded is not None

    def _from_models(self) -> Iterator[tuple[str, str]]:
        """What the row says of models, by what passed their doors."""
        row, passed, log = self.row, self._passed, f"{self.folder}/{MODEL_LOG}"
        if not self.models:
            for name in _BY_DOOR:
                if getattr(row, name) not in (None, (), {}):
                    yield "row-follows", f"{name} is told, though the run had no model's door"
            return
        if passed is None:
            if self.logs and not any(finding.rule == "row-model" for finding in self._found):
                yield "row-model", f"its model calls {log} are not there"
            return
        if row.model_sha256 != passed.sha256:
            yield "row-model", f"{log} is not what the row was folded from"
        seen = passed.observation
        controls = {each.control: each.status for each in seen.controls}
        violations = tuple(map(str, seen.violated))
        told: dict[str, tuple[object, object]] = {
            "model_calls": (row.model_calls, seen.calls),
            "model_retries": (row.model_retries, seen.retries),
            "model_door_retries": (row.model_door_retries, seen.door_retries),
            "tokens_in": (row.tokens_in, seen.tokens_in),
            "tokens_out": (row.tokens_out, seen.tokens_out),
            "models": (row.models, seen.models),
            "model_usage": (row.model_usage, usages(seen)),
            "model_untold": (row.model_untold, seen.untold),
            "model_unrecorded": (row.model_unrecorded, seen.unrecorded),
        }
        names = {**row.controls, **controls}
        told |= {name: (row.controls.get(name), controls.get(name)) for name in names if self._compared(name)}
        told["violations"] = (self._compared_of(row.violations), self._compared_of(violations))
        for name, (said, found) in told.items():
            if said != found:
                yield "row-follows", f"{name} does not follow from {log} ({_short(said, found, 'the log')})"
        if seen.ending is not None and row.limit in (None, "tool_calls") and self._first_end is None:
            if row.exit_reason != seen.ending:
                yield "row-follows", f"exit_reason {row.exit_reason}, but {log} shows {seen.ending}"
            return
        died = row.exit_reason in ("agent_error", "model_error") and row.limit is None and row.agent_exit != 0
        if died and (row.exit_reason == "model_error") != (seen.gave_up is not None):
            last = "failed" if seen.gave_up is not None else "did not fail"
            yield "row-follows", f"exit_reason {row.exit_reason}, but its last model call {last} by {log}"

    def _compared(self, name: str) -> bool:
        return self._capped or not name.startswith("controls.max_tool_calls")

    def _compared_of(self, violations: Iterable[str]) -> tuple[str, ...]:
        return tuple(text for text in violations if self._compared(text))

    def _from_evidence(self) -> Iterator[tuple[str, str]]:
        if self._proof is None:
            yield "row-evidence", f"its evidence {self.folder}/evidence.json is not there"
        elif self._proof.state is not None:
            if self._proof.state != self.row.isolation:
                what = f"isolation {self.row.isolation} does not follow from {self.folder}/evidence.json"
                yield "row-follows", f"{what} ({self._proof.state})"
            if self.backend is not None and self._proof.backend != self.backend:
                what = (
                    f"its sandbox was {self._proof.backend}, the run's episodes were to be isolated by {self.backend}"
                )
                yield "row-evidence", what
            known = self._proof.limits
            for name, value in self.limits.items():
                if known.get(name, value) != value:
                    yield "row-evidence", f"its limit {name} was {known[name]}, the run's was {value}"
            if self._proof.suspended_s > SUSPENDED_S:
                yield "row-follows", f"the machine slept {self._proof.suspended_s:.0f} s, so its clock proves nothing"

    def _from_itself(self) -> Iterator[tuple[str, str]]:
        row = self.row
        if row.timeout != int(row.exit_reason == "timeout"):
            yield "row-follows", f"timeout {row.timeout} contradicts exit_reason {row.exit_reason}"
        if row.success and (row.exit_reason != "completed" or row.unauthorized):
            yield "row-follows", f"success contradicts exit_reason {row.exit_reason}, unauthorized {row.unauthorized}"
        if row.exit_reason == "completed" and row.agent_exit != 0:
            yield "row-follows", f"completed contradicts agent_exit {row.agent_exit}"

        yield from self._from_ending()

    def _from_ending(self) -> Iterator[tuple[str, str]]:
        """Exit reason, limit and exit status, as `fold` gives them together."""
        row = self.row
        reason, limit = row.exit_reason, row.limit
        limits = {"timeout": "wall_clock", "tool_cap": "tool_calls"}
        fits = limit not in limits.values() if reason == "agent_error" else limit == limits.get(reason)
        if not fits:
            yield "row-follows", f"limit {limit or 'none'} contradicts exit_reason {reason}"
        if reason in ("agent_error", "model_error") and limit is None and row.agent_exit == 0:
            yield "row-follows", f"agent_exit 0 contradicts exit_reason {reason}"
        if limit is None and row.limit_at_s is not None:
            yield "row-follows", "limit_at_s is told without a limit"
        if limit == "wall_clock" and row.limit_at_s is None:
            yield "row-follows", "limit wall_clock is told without limit_at_s"
        if row.limit_at_s is not None and row.elapsed_s < row.limit_at_s - _ROUNDING_S:
            yield "row-follows", f"elapsed_s {row.elapsed_s} ends before limit_at_s {row.limit_at_s}"
        if row.elapsed_s < self._last_s - SLACK_S:
            yield "row-follows", f"elapsed_s {row.elapsed_s}, but its journal goes on to {self._last_s:.3f} s"

    def _from_work(self) -> Iterator[tuple[str, str]]:
        """What the row says of a workspace: there must have been one, and the patch must be there."""
        row = self.row
        told = tuple(name for name in _BY_WORK if getattr(row, name) not in (None, ()))
        if self.recorded is not None and self.recorded.task.kind != "workspace":
            for name in told:
                yield "row-follows", f"{name} is told, though the task has no workspace"
            return
        if row.patch_sha256 is None:
            for name in told:
                yield "row-follows", f"{name} is told without a patch"
            if self._patch:
                yield "row-patch", f"{self.folder}/patch.diff is there, and the row does not name it"
        elif not self._patch and self.logs:
            yield "row-patch", f"its patch {self.folder}/patch.diff is not there"
        if row.tests_identical is not None and row.tests_identical != int(not row.tests_changed):
            yield "row-follows", f"tests_identical {row.tests_identical} contradicts tests_changed"
        if row.test_files_changed is not None and row.test_files_changed != len(row.tests_changed):
            yield "row-follows", f"test_files_changed {row.test_files_changed} contradicts tests_changed"

    def _from_oracle(self) -> Iterator[tuple[str, str]]:
        """The oracle's word again, where it judges the answer and the pack is at hand."""
        row, recorded = self.row, self.recorded
        if recorded is None or row.success is None or row.exit_reason != "completed":
            return
        if oracle.by_work(recorded.task) or oracle.kind_of(recorded.task) not in ("match", "schema", "human"):
            return
        answer = row.answer if isinstance(row.answer, dict) else None
        right, _ = oracle.judged(recorded.task, Answer(answer))
        if oracle.by_human(recorded.task):
            waits = (right or bool(row.patch_lines)) and not self._missed
            if row.success or waits:
                yield "row-oracle", f"success {row.success}, though a human must say it"
            return
        if row.success != int(right and not self._missed):
            yield "row-oracle", f"success {row.success} does not follow from its answer and the task's oracle"


def _mismatch(call: CallRecord) -> Mismatch:
    """The row's word for a call that was not recorded."""
    kind = call.kind or "no_match"
    return Mismatch(method=call.method, path=call.path, fingerprint=call.fingerprint, kind=kind, nearest=call.nearest)


def _short(said: object, seen: object, by: str = "journal") -> str:
    left, right = str(said), str(seen)
    if len(left) + len(right) > 120:
        return "they differ"
    return f"row {left}, {by} {right}"
