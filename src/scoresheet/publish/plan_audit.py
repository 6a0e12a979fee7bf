"""What run.json says, held against the pack, the card, the receipts and the rows: as far as they say the same."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from scoresheet import __version__
from scoresheet.canonical import JsonValue
from scoresheet.documents.manifest import DEFAULT_REPEATS
from scoresheet.documents.pack_record import PackRecord
from scoresheet.documents.prices import PriceTable
from scoresheet.documents.receipt import ChainedReceipt
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import QuotedManifest, RunPlan
from scoresheet.errors import Finding, ScoresheetError
from scoresheet.gate.inputs import moment
from scoresheet.pack.folder import Pack
from scoresheet.publish.outcomes import Outcomes
from scoresheet.publish.run_folder import ROWS, RUN
from scoresheet.run.refold import SLACK_S

_SLACK = timedelta(seconds=SLACK_S)
_QUOTED = tuple(QuotedManifest.model_fields)
_LIMITS = ("memory_bytes", "pids", "output_bytes", "work_bytes")
_RECORDED = ("timeout_s", "seed", "retries")


def findings(
    plan: RunPlan, card: JsonValue, record: PackRecord | None, pack: Pack | None, prices: PriceTable | None
) -> Iterator[Finding]:
    """Members of run.json that contradict each other, the card, what was recorded of the pack, or the pack itself."""
    for member, what in (*_of_itself(plan, card), *_of_record(plan, record), *_of_pack(plan, card, pack)):
        yield Finding("audit-plan", f"{RUN}#/{member}", what)
    budget = plan.budget
    if budget is not None and prices is not None and budget.currency != prices.currency:
        what = f"{budget.currency or 'none'}, but the price table says {prices.currency}"
        yield Finding("audit-plan", f"{RUN}#/budget/currency", what)


def of_receipts(plan: RunPlan, receipts: Mapping[str, ChainedReceipt] | None) -> Iterator[Finding]:
    """What the latest receipts say of tasks that were not started, and of the seat."""
    if receipts is None or plan.receipts_sha256 is None:
        return
    started = {task_id for task_id, each in receipts.items() if each.leaf == "score" and each.runner_seat}
    expected = tuple(task.task_id for task in plan.tasks if task.task_id not in started)
    if plan.not_started != expected:
        yield Finding("audit-plan", f"{RUN}#/not_started", f"the receipts bar {', '.join(expected) or 'no task'}")
    if plan.resumed_at:  # by whoever: the seat is that of the first
        return
    for task_id in (task.task_id for task in plan.tasks if task.task_id in started):
        if receipts[task_id].runner_seat != plan.seat:
            what = f"{plan.seat or 'none'}, but the receipt of {task_id} binds {receipts[task_id].runner_seat}"
            yield Finding("audit-plan", f"{RUN}#/seat", what)
            return


def of_outcomes(plan: RunPlan, outcomes: Outcomes) -> Iterator[Finding]:
    """A run that finished has a row for every episode that was to start."""
    missing = outcomes.count("missing") - len(plan.not_started) * plan.repeats
    if plan.status == "finished" and missing > 0:
        what = f"{missing} planned episodes have no row, though the run finished: rows were dropped"
        yield Finding("rows-missing", ROWS, what)


def limits(plan: RunPlan) -> Mapping[str, int | None]:
    """The bounds that no task lowers: what every episode's evidence must say."""
    return {name: getattr(plan.limits, name) for name in _LIMITS}


@dataclass(frozen=True, slots=True)
class Clock:
    """What every row of a run is compared with."""

    plan: RunPlan
    began: datetime | None
    ended: datetime | None
    """`None`: the run goes on."""

    @classmethod
    def of(cls, plan: RunPlan) -> "Clock":
        """That of a plan."""
        return cls(plan, moment(plan.started_at), None if plan.status == "running" else moment(plan.ended_at))

    @property
    def in_order(self) -> bool:
        """Whether start, resumptions and end follow each other; a clock that is set back leaves them otherwise."""
        ended = _some(self.plan.ended_at if self.plan.status != "running" else None)  # one that goes on keeps its first
        times = [moment(each) for each in (self.plan.started_at, *self.plan.resumed_at, *ended)]
        known = [each for each in times if each is not None]
        return all(before - after <= _SLACK for before, after in pairwise(known))

    def outside(self, row: Row) -> bool:
        """Whether a row began before its run or after it, as it does where the clock is set meanwhile."""
        started = moment(row.started_at)
        if started is None:
            return False
        early = self.began is not None and self.began - started > _SLACK
        return early or (self.ended is not None and started - self.ended > _SLACK)

    def faults(self, row: Row, wall_clock_s: float | None) -> Iterator[str]:
        """What a row says otherwise of host and clock; `wall_clock_s`: its task's limit, where the pack is at hand."""
        if row.host != self.plan.host.label:
            yield f"host {row.host!r} is not the run's, {self.plan.host.label!r}"
        if moment(row.started_at) is None:
            yield "started_at is no RFC 3339 time"
        if row.exit_reason == "harness_error":
            return
        if row.elapsed_s > 2 * self.plan.limits.wall_clock_s + SLACK_S:
            yield f"elapsed_s {row.elapsed_s} is far beyond the limit of the run"
        crossed = row.limit_at_s if row.limit == "wall_clock" else None
        if crossed is not None and wall_clock_s is not None and crossed < wall_clock_s - 0.001:
            yield f"limit_at_s {row.limit_at_s} is before any limit"


def _of_itself(plan: RunPlan, card: JsonValue) -> Iterator[tuple[str, str]]:
    quoted, declared, cap = plan.manifest, _count(card, "repeats"), _count(card, "max_tool_calls")
    for member in ("retries", "seed"):
        if getattr(plan, member) != getattr(quoted, member):
            yield member, f"{getattr(plan, member)}, but the manifest says {getattr(quoted, member)}"
    if plan.limits.wall_clock_s != quoted.timeout_s:
        yield "limits/wall_clock_s", f"{plan.limits.wall_clock_s:g}, but the manifest says {quoted.timeout_s:g}"
    if plan.limits.max_tool_calls != cap:
        yield "limits/max_tool_calls", f"{plan.limits.max_tool_calls or 'none'}, but the card says {cap or 'none'}"
    said = {"manifest": quoted.repeats, "card": declared, "default": DEFAULT_REPEATS}.get(plan.repeats_from)
    first = "manifest" if quoted.repeats else "card" if declared else "default"
    if plan.repeats_from != "option" and (plan.repeats_from != first or plan.repeats != said):
        yield "repeats", f"{plan.repeats} from the {plan.repeats_from}, which says {said or 'nothing'}"
    if plan.repeats_from == "option" and plan.repeats == (quoted.repeats or declared):
        yield "repeats_from", f"option, though {plan.repeats} is what is declared"
    if plan.seat is not None and plan.host.label != plan.seat:
        yield "host/label", f"{plan.host.label!r}, but the seat is {plan.seat!r}"
    for task in plan.tasks:
        split = _split(card, task.task_id)
        if split is not None and task.split != split:
            yield "tasks", f"{task.task_id} is {task.split or 'in no split'}, but the card says {split}"
    ended = _some(plan.ended_at if plan.status != "running" else None)
    if any(moment(each) is None for each in (plan.started_at, *plan.resumed_at, *ended)):
        yield "started_at", "not every time is an RFC 3339 time"
    if (plan.status == "running") != (plan.ended_at is None) and not plan.resumed_at:
        yield "ended_at", f"{plan.ended_at or 'not there'}, but the status is {plan.status}"
    if bool(plan.model_endpoints) and plan.model_replayed is not None:
        yield "model_endpoints", "told, though the model was replayed"
    if bool(plan.model_kinds) != bool(plan.model_endpoints or plan.model_replayed):
        yield "model_kinds", "models without a place that answers for them, or such a place without models"
    if (plan.budget is not None) != bool(plan.model_endpoints):
        yield "budget", "a budget without a model's endpoint, or such an endpoint without a budget"


def _of_record(plan: RunPlan, record: PackRecord | None) -> Iterator[tuple[str, str]]:
    if record is None:
        return
    for member in _RECORDED:
        if getattr(plan.manifest, member) != getattr(record, member):
            yield f"manifest/{member}", "not what pack.json recorded of the pack"
    if plan.pack_tasks is not None and plan.pack_tasks != len(record.tasks):
        yield "pack_tasks", f"{plan.pack_tasks}, but pack.json recorded {len(record.tasks)}"


def _of_pack(plan: RunPlan, card: JsonValue, pack: Pack | None) -> Iterator[tuple[str, str]]:
    if pack is None:
        return
    for member in _QUOTED:
        if getattr(plan.manifest, member) != getattr(pack.manifest, member):
            yield f"manifest/{member}", "not what the pack's manifest says"
    planned = {task.task_id: task for task in plan.tasks}
    try:
        for task in pack.tasks():
            told = planned.get(task.task_id)
            if told is not None and told.cluster_id != task.cluster_id:
                yield "tasks", f"{task.task_id} is in cluster {told.cluster_id}, but the pack says {task.cluster_id}"
            if told is not None and told.split != (_split(card, task.task_id) or task.split):
                yield "tasks", f"{task.task_id} is {told.split or 'in no split'}, which neither card nor pack says"
    except ScoresheetError:  # told by the pack
        return


def same_version(plan: RunPlan) -> bool:
    """True when this version of scoresheet made the run: another may tell the same in other words."""
    return plan.versions.get("scoresheet") == __version__


def _count(card: JsonValue, control: str) -> int | None:
    controls = card.get("controls") if isinstance(card, dict) else None
    value = controls.get(control) if isinstance(controls, dict) else None
    return value if type(value) is int and value > 0 else None


def _split(card: JsonValue, task_id: str) -> str | None:
    split = card.get("dataset_split") if isinstance(card, dict) else None
    for name in ("holdout", "train_like"):
        ids = split.get(name) if isinstance(split, dict) else None
        if isinstance(ids, list) and task_id in ids:
            return name
    return None


def _some(text: str | None) -> tuple[str, ...]:
    return () if text is None else (text,)
