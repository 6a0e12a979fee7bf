"""What the page of a run shows, as values: nothing on it that its report does not hold. Pure.

The order is the report's: confounds and attendance, the protocol sheet, then figures, then what did not work.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from scoresheet.documents.decisions import ShareOfRuns
from scoresheet.documents.report import Report, TaskResult, metric_name
from scoresheet.documents.run_plan import RunPlan
from scoresheet.publish import block, decisions

Kind = Literal["interval", "bound", "point", "reference"]
Fate = Literal["success", "wrong", "unrecorded", "timeout", "stopped", "error", "pending", "lost"]
FATES: dict[Fate, str] = {
    "success": "success",
    "wrong": "ended by itself, wrong",
    "unrecorded": "a call that was not recorded",
    "timeout": "out of time",
    "stopped": "stopped by another limit",
    "error": "error of the agent or its model",
    "pending": "waits for a human",
    "lost": "no row, or lost by scoresheet",
}
"""How an episode went, as the map shows it → what that means."""
_BY_REASON: dict[str, Fate] = {
    "completed": "wrong",
    "mismatch": "unrecorded",
    "timeout": "timeout",
    "tool_cap": "stopped",
    "model_error": "error",
    "agent_error": "error",
}
_SHEET = 12


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the block, or of a list."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A figure on an axis: a point, with its interval or with the bound beyond which its true rate is not."""

    name: str
    value: float
    text: str
    low: float | None = None
    high: float | None = None
    kind: Kind = "point"
    about: str = ""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task: the fate of every repeat, and its counts."""

    task_id: str
    fates: tuple[Fate, ...]
    successes: int
    planned: int
    told: str
    """The fates in words, repeat by repeat: `success ×4, timeout`."""
    cells: tuple[str, ...]
    """As the table shows them: schema_ok, unauthorized, timeouts, exit reasons, tool calls, tokens."""


@dataclass(frozen=True, slots=True)
class Apart:
    """The train_like tasks beside the holdout."""

    text: str
    marks: tuple[Mark, ...]
    tasks: tuple[TaskRow, ...]


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything that stands on the page of a run, but for its episodes."""

    name: str
    """Of the run's folder."""
    agent: str
    pack: str
    draft: bool
    reasons: tuple[str, ...]
    confounds: tuple[str, ...] | None
    """`None`: there is no log."""
    attended: str
    sheet: tuple[Entry, ...]
    """The twelve keys that are always first, in their order."""
    more: tuple[Entry, ...]
    """The rest of the block's facts."""
    declared: tuple[Entry, ...]
    """The figures that the card asks for, the primary one first."""
    table: tuple[Entry, ...]
    """The decision table, row by row."""
    marks: tuple[Mark, ...]
    curve: tuple[tuple[int, float, float], ...]
    """(k, pass@k, pass^k)."""
    why_no_curve: str | None
    tasks: tuple[TaskRow, ...]
    exits: tuple[tuple[str, int], ...]
    """Every exit reason there is, those that never came, too."""
    planned: int
    apart: Apart | None
    cost: tuple[Entry, ...]
    latency: Mark | None
    """In ms, on an axis of its own."""
    negative: tuple[Entry, ...]
    notes: tuple[str, ...]
    computed: tuple[Entry, ...]
    """What the interval was made from."""
    ran: tuple[Entry, ...]
    """Who ran it, where and when, on the seat's word."""


def page(report: Report, name: str, plan: RunPlan) -> RunPage:
    """The page of a report; `name` is that of the run's folder, `plan` its run.json."""
    entries = [Entry(key, value) for key, value in block.entries(report)]
    known = {entry.key: entry.value for entry in entries}
    negative = tuple(Entry(key.replace("_", " "), value) for key, value in block.negative(report))
    told = {"primary", "secondary", "decision", "pass_at_k", "pass_hat_k", "calibration", "note", *_COST, *_BILL}
    told |= {key for key, _ in block.negative(report)}
    return RunPage(
        name=name,
        agent=report.agent.partition(" sha256:")[0],
        pack=plan.pack,
        draft=report.draft,
        reasons=report.reasons,
        confounds=None if report.confounds is None else report.confound_entries,
        attended=_ATTENDED[report.attended],
        sheet=tuple(entries[:_SHEET]),
        more=tuple(entry for entry in entries[_SHEET:] if entry.key not in told),
        declared=tuple(_declared(report)),
        table=tuple(Entry(key, value) for key, value in decisions.texts(report.decisions).items()),
        marks=tuple(_marks(report)),
        curve=tuple((each.k, each.pass_at_k, each.pass_hat_k) for each in report.pass_k.of),
        why_no_curve=report.pass_k.why_not,
        tasks=tuple(map(_task, report.per_task)),
        exits=tuple(report.negative_results.exit_reasons.items()),
        planned=report.planned,
        apart=_apart(report),
        cost=tuple(_cost(report, known)),
        latency=_latency(report),
        negative=negative,
        notes=report.notes,
        computed=tuple(_computed(report)),
        ran=tuple(_ran(plan)),
    )


_COST = ("recorded_latency_ms_mean", "recorded_latency_ms_ci95", "elapsed_s_mean", "tokens_per_success", "tool_calls")
_BILL = ("model_calls", "budget", "cost_total", "cost_per_success")
"""Of runs with a model, or with prices."""
_ATTENDED = {
    True: "true: people may have intervened, and the log says how",
    False: "false",
    None: "not known: no complete card says",
}


def _ran(plan: RunPlan) -> Iterator[Entry]:
    host = plan.host
    yield Entry("seat", plan.seat or "none")
    where = (host.os, host.system, f"Python {host.python}", f"{host.cores} cores")
    yield Entry("host", f"{host.label}: {', '.join(each for each in where if each)}")
    yield Entry("started", plan.started_at)
    for moment in plan.resumed_at:
        yield Entry("resumed", moment)
    yield Entry("ended", plan.ended_at or "not told")
    yield Entry("with", ", ".join(f"{name} {version}" for name, version in plan.versions.items()))


def _declared(report: Report) -> Iterator[Entry]:
    if report.primary is None:
        yield Entry("primary", "none: no complete protocol card declares one")
    else:
        yield Entry(f"primary: {report.primary.name}", report.primary.text)
    for each in report.secondary:
        yield Entry(f"secondary: {each.name}", each.text)


def _marks(report: Report) -> Iterator[Mark]:
    """Every share that the report prints, the success first, and the baselines that it stands between."""
    name = metric_name(report.retries)
    ends = report.success_ci95
    bounds = report.statistics.one_sided95
    yield _mark(name, report.success_mean, ends, "mean of the task means")
    shares = (
        ("holdout pass@1", report.decisions.land_a_fix.pass_at_1, "of tasks that frozen tests judge"),
        ("finished under the budget", report.decisions.under_budget.finished, "before the clock and every other limit"),
        ("tests left byte-identical", report.decisions.leaves_tests_alone.byte_identical, "of runs"),
    )
    for title, share, about in shares:
        if share is not None:
            yield _share(title, share, about)
    yield _rate("schema_ok_rate", report.schema_ok_rate, None, "every call to an offered tool, with valid arguments")
    yield _rate("unauthorized_rate", report.unauthorized_rate, bounds.get("unauthorized"), "a call was not recorded")
    yield _rate("timeout_rate", report.timeout_rate, bounds.get("timeout"), "ran out of time")
    for gap in report.negative_results.gaps:
        mean = min(1.0, max(0.0, round(report.success_mean - gap.gap, 4)))
        yield Mark(gap.to, mean, f"{mean:.4f}", kind="reference", about=f"{name} of a built-in agent, on this pack")


def _mark(name: str, value: float, ends: tuple[float, float] | str, about: str) -> Mark:
    if isinstance(ends, str):
        return Mark(name, value, f"{value:.4f} {ends}", about=f"{about}; no interval")
    low, high = ends
    return Mark(name, value, f"{value:.4f} [{low:.4f}, {high:.4f}]", low, high, "interval", f"{about}; 95 % interval")


def _share(name: str, share: ShareOfRuns, about: str) -> Mark:
    return _mark(name, share.share, share.ci95, about)


def _rate(name: str, value: float, bound: float | None, about: str) -> Mark:
    """A rate that is printed without an interval: a gate, never averaged into success."""
    if bound is None:
        return Mark(name, value, f"{value:.4f}", about=f"{about}; a share of planned episodes, without an interval")
    if value:  # it always happened: the bound is of the rest
        text, low, high = f"{value:.4f} (>= {1 - bound:.4f})", round(1 - bound, 4), value
    else:
        text, low, high = f"{value:.4f} (< {bound:.4f})", value, bound
    return Mark(name, value, text, low, high, "bound", f"{about}; one-sided 95 % bound of its true rate")


def _task(task: TaskResult) -> TaskRow:
    vector = task.success or (None,) * len(task.exit_reasons)
    fates = tuple(fate(reason, success) for reason, success in zip(task.exit_reasons, vector, strict=True))
    shares = (task.schema_ok, task.unauthorized, task.timeouts)
    cells = (
        *(f"{count}/{task.planned}" for count in shares),
        ", ".join(f"{each} {task.exit_reasons.count(each)}" for each in dict.fromkeys(task.exit_reasons)),
        " ".join(map(str, task.tool_calls)) or "none",
        " ".join("?" if each is None else str(each) for each in task.tokens) or "not counted",
    )
    runs = ((each, len([*group])) for each, group in groupby(fates))
    told = ", ".join(each if count == 1 else f"{each} ×{count}" for each, count in runs)
    return TaskRow(task.task_id, fates, task.successes, task.planned, told, cells)


def fate(exit_reason: str, success: int | None) -> Fate:
    """How an episode went; `success` is `None` when nothing scored it."""
    if success:
        return "success"
    if success is None and exit_reason not in ("missing", "harness_error"):
        return "pending"
    return _BY_REASON.get(exit_reason, "lost")


def _apart(report: Report) -> Apart | None:
    found = report.calibration
    if found is None:
        return None
    share = found.successes / found.planned if found.planned else 0.0
    count = f"{found.successes} of {found.planned} planned episodes"
    text = f"{count} of {found.tasks} train_like tasks succeeded. They were tuned on, and enter no figure."
    holdout = _mark("holdout", report.success_mean, report.success_ci95, metric_name(report.retries))
    beside = Mark("train_like", share, f"{share:.4f}", about=f"{count}; tuned on, in no figure")
    return Apart(text, (holdout, beside), tuple(map(_task, found.per_task)))


def _cost(report: Report, known: dict[str, str]) -> Iterator[Entry]:
    """What the block says of cost, and the bill of the decision table."""
    for key in _COST:
        yield Entry(key, known.get(key, "not counted" if key == "tokens_per_success" else "none"))
    for key in _BILL:
        if key in known:
            yield Entry(key, known[key])
    bill = report.decisions.cheaper_than_human
    clock = bill.wall_clock_s
    yield Entry("wall clock per success, s", clock.text if clock else f"not computed: {bill.why_no_wall_clock}")
    minutes = bill.human_minutes_per_task_estimate
    yield Entry(
        "human minutes per task, an estimate",
        f"not computed: {bill.why_no_estimate}"
        if minutes is None
        else f"{minutes:g}, of the card's: nobody measured it",
    )


def _latency(report: Report) -> Mark | None:
    mean, ends = report.cost.recorded_latency_ms_mean, report.cost.recorded_latency_ms_ci95
    if mean is None or ends is None:
        return None
    text = f"{mean:.4f} [{ends[0]:.4f}, {ends[1]:.4f}]"
    return Mark("recorded_latency_ms_mean", mean, text, ends[0], ends[1], "interval", "ms an episode; 95 % interval")


def _computed(report: Report) -> Iterator[Entry]:
    found = report.statistics
    yield Entry("algorithm", found.algorithm)
    yield Entry("interval method", report.interval_method)
    yield Entry("resamples", f"{found.resamples} of {found.clusters} clusters, seed {found.seed}")
    yield Entry("order statistic", "none" if found.order_statistic is None else str(found.order_statistic))
    yield Entry("index_sha256", found.index_sha256 or "none: nothing was resampled")


def total(fates: Sequence[TaskRow]) -> dict[Fate, int]:
    """Fate → episodes, every fate there is, in their order."""
    return {each: sum(row.fates.count(each) for row in fates) for each in FATES}
