"""The decision table, computed: every row of it, and in words what a run can't give. Pure.

Planned episodes are the denominators. No figure of one row enters another's.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from scoresheet.documents.decisions import (
    CheaperThanHuman,
    Decisions,
    LandAFix,
    LeavesTestsAlone,
    NamedFigure,
    OfK,
    PassK,
    PatchSizes,
    PerSuccess,
    Replayable,
    ShareOfRuns,
    UnderBudget,
)
from scoresheet.documents.report import metric_name
from scoresheet.documents.run_plan import RunPlan
from scoresheet.gate.decisions import TABLE
from scoresheet.publish.admissible import Card, Evidence
from scoresheet.publish.figures import Figures, TaskFigures, cluster_totals
from scoresheet.publish.outcome import Episodes, Field, Outcome
from scoresheet.stats import pass_k, resample
from scoresheet.stats.cost import CostPerSuccess, cost_per_success
from scoresheet.stats.interval import Estimate, estimate
from scoresheet.stats.rounding import downward, nearest, upward
from scoresheet.stats.sample import sample

NOT_COMPUTED = "not computed: "
_RAN = ("scored", "pending")
_FINISHED = ("completed", "agent_error")
_APART = ("timeout", "tool_cap", "model_error")


@dataclass(frozen=True, slots=True)
class _Run:
    plan: RunPlan
    tasks: tuple[TaskFigures, ...]
    episodes: Episodes

    @property
    def start(self) -> bytes:
        return resample.prefix(self.plan.seed, self.plan.manifest_sha256)

    @property
    def cluster_of(self) -> dict[str, str]:
        return {task.task_id: task.cluster_id for task in self.plan.tasks if task.cluster_id is not None}

    def share(self, tasks: Sequence[TaskFigures], value: Callable[[Outcome], bool]) -> ShareOfRuns:
        counts = {task.task_id: [int(value(outcome)) for outcome in task.repeats] for task in tasks}
        found = estimate(sample(counts, self.cluster_of), self.start)
        return ShareOfRuns(
            count=sum(map(sum, counts.values())),
            planned=sum(map(len, counts.values())),
            share=float(nearest(found.mean)),
            ci95=ends(found),
            interval_method=found.interval.method if found.interval else no_interval(found),
        )

    def per_success(self, cost: Field, unit: int) -> PerSuccess:
        """`unit` is the cost that stands for 1. Tasks of one cluster are resampled together."""
        costs, won = cluster_totals(self.tasks, self.cluster_of, cost)
        return _priced(sum(costs), sum(won), cost_per_success(costs, won, self.start), unit)


def decisions(plan: RunPlan, found: Figures, evidence: Evidence) -> Decisions:
    """The table of a run whose plan and figures hold only the tasks that count."""
    run = _Run(plan, found.tasks, found.episodes)
    return Decisions(
        land_a_fix=_land(run, evidence),
        cheaper_than_human=_cost(run, evidence.card),
        leaves_tests_alone=_tests(run),
        under_budget=_budget(run),
        replayable=_replayable(evidence.card),
    )


def of_k(plan: RunPlan, found: Figures) -> PassK:
    """pass@k and pass^k for every k up to the repeats."""
    identical = all(len(set(task.repeats.each("success"))) == 1 for task in found.tasks)
    if plan.retries:
        return PassK(of=(), identical=identical, why_not=_retried(plan))
    runs = [(len(task.repeats), task.successes) for task in found.tasks]
    return PassK(
        of=tuple(
            OfK(
                k=k,
                pass_at_k=float(nearest(pass_k.mean_at_least_one(runs, k))),
                pass_hat_k=float(nearest(pass_k.mean_all_of(runs, k))),
            )
            for k in range(1, plan.repeats + 1)
        ),
        identical=identical,
        why_not=None,
    )


def texts(found: Decisions) -> Mapping[str, str]:
    """Name in the decision table → what is printed for it."""
    land, cost, tests = found.land_a_fix, found.cheaper_than_human, found.leaves_tests_alone
    minutes = cost.human_minutes_per_task_estimate
    budget, replayable = found.under_budget, found.replayable
    pairs = (
        (share_text(land.pass_at_1, land.why_not), _patch_text(land)),
        (
            f"tokens {_price(cost.tokens, cost.why_no_tokens)}; "
            f"wall clock in s {_price(cost.wall_clock_s, cost.why_no_wall_clock)}",
            f"{NOT_COMPUTED}{cost.why_no_estimate}"
            if minutes is None
            else f"{minutes:g} a task (an estimate of the card's, not measured)",
        ),
        (
            share_text(tests.byte_identical, tests.why_not),
            f"{NOT_COMPUTED}{tests.why_not}"
            if tests.test_file_diffs is None
            else f"{tests.test_file_diffs} frozen test files changed or removed, {tests.test_files_added} added",
        ),
        (share_text(budget.finished), _limits_text(budget)),
        (
            f"{replayable.validator_exit_code}",
            f"{NOT_COMPUTED}{replayable.why_not}"
            if replayable.git_sha is None
            else f"git_sha {replayable.git_sha}, fixture_hash {replayable.fixture_hash}",
        ),
    )
    named: dict[str, str] = {}
    for row, (primary, secondary) in zip(TABLE, pairs, strict=True):
        named |= {row.primary: primary, row.secondary: secondary}
    return named


def declared(
    card: Card | None, plan: RunPlan, found: Figures, table: Decisions
) -> tuple[NamedFigure | None, tuple[NamedFigure, ...]]:
    """The card's primary and its secondaries, each with its value or why it has none."""
    if card is None or card.primary is None:
        return None, ()
    known = {**texts(table), **_rates(plan, found)}

    def named(name: str) -> NamedFigure:
        return NamedFigure(name=name, text=known.get(name, f"{NOT_COMPUTED}a report holds no figure of that name"))

    return named(card.primary), tuple(map(named, card.secondary))


def share_text(found: ShareOfRuns | None, why_not: str | None = None) -> str:
    """Mean, interval and count, or why not."""
    if found is None:
        return f"{NOT_COMPUTED}{why_not}"
    between = found.ci95 if isinstance(found.ci95, str) else f"[{found.ci95[0]:.4f}, {found.ci95[1]:.4f}]"
    return f"{found.share:.4f} {between}, {found.count} of {found.planned} planned episodes"


def ends(found: Estimate) -> tuple[float, float] | str:
    """Both ends to 4 places, rounded outward, or that there are none."""
    if found.interval is None:
        return no_interval(found)
    return float(downward(found.interval.low)), float(upward(found.interval.high))


def no_interval(found: Estimate) -> str:
    """`none (N tasks)`, or clusters."""
    return f"none ({found.tasks} tasks)" if found.clusters == found.tasks else f"none ({found.clusters} clusters)"


def _land(run: _Run, evidence: Evidence) -> LandAFix:
    kinds = {task_id: receipt.oracle_kind for task_id, receipt in (evidence.receipts or {}).items()}
    tested = [task for task in run.tasks if kinds.get(task.task_id) == "pytest"]
    why_not = None
    if evidence.receipts is None:
        why_not = "no receipt says which tasks frozen tests judge"
    elif not tested:
        why_not = "no task is judged by frozen tests"
    elif evidence.card is None or not evidence.card.holdout:
        why_not = "no complete card says which tasks are held out"
    elif run.plan.retries:
        why_not = _retried(run.plan)
    measured = [
        (lines, success)
        for lines, success in zip(run.episodes.each("patch_lines"), run.episodes.each("success"), strict=True)
        if lines is not None
    ]
    return LandAFix(
        pass_at_1=None if why_not else run.share(tested, lambda outcome: bool(outcome.success)),
        why_not=why_not,
        tasks=len(tested),
        patch_lines=_sizes(measured) if measured else None,
        why_no_patch_lines=None if measured else "no episode has a workspace",
    )


def _sizes(measured: Sequence[tuple[int, int]]) -> PatchSizes:
    lines = [count for count, _ in measured]
    passing = [count for count, success in measured if success]
    return PatchSizes(
        patches=len(lines),
        median=_median(lines),
        median_of_passing=_median(passing) if passing else None,
        most=max(lines),
        mean=float(nearest(Fraction(sum(lines), len(lines)))),
    )


def _median(values: Sequence[int]) -> float:
    ordered, count = sorted(values), len(values)
    return (ordered[(count - 1) // 2] + ordered[count // 2]) / 2


def _cost(run: _Run, card: Card | None) -> CheaperThanHuman:
    planned = len(run.episodes)
    uncounted = sum(each is None for each in run.episodes.each("tokens"))
    untimed = sum(each not in _RAN for each in run.episodes.each("state"))
    estimated = card.human_minutes if card is not None else None
    return CheaperThanHuman(
        tokens=None if uncounted else run.per_success("tokens", 1),
        why_no_tokens=f"{uncounted} of {planned} planned episodes count no tokens" if uncounted else None,
        wall_clock_s=None if untimed else run.per_success("billed_us", 1_000_000),
        why_no_wall_clock=f"{untimed} of {planned} planned episodes have no time of the agent's" if untimed else None,
        human_minutes_per_task_estimate=estimated,
        why_no_estimate="the card has no metrics.estimates.human_minutes_per_task" if estimated is None else None,
    )


def _priced(total: int, successes: int, found: CostPerSuccess, unit: int) -> PerSuccess:
    ratio = None if found.ratio is None else nearest(found.ratio / unit)
    low = None if found.low is None else downward(found.low / unit)
    high = None if found.high is None else upward(found.high / unit)
    if ratio is None:
        text = "undefined (0 passing)"
    elif low is None:
        text = f"{ratio}, no interval"
    else:
        text = f"{ratio} " + (f"(>= {low}, upper unbounded)" if high is None else f"[{low}, {high}]")
    return PerSuccess(
        total=total if unit == 1 else float(nearest(Fraction(total, unit))),
        successes=successes,
        per_success=None if ratio is None else float(ratio),
        low=None if low is None else float(low),
        high=None if high is None else float(high),
        text=text,
    )


def _tests(run: _Run) -> LeavesTestsAlone:
    seen = [task for task in run.tasks if any(each is not None for each in task.repeats.each("tests_identical"))]
    added = sum(run.episodes.each("tests_added"))
    if not seen:
        why = "no agent saw frozen tests"
        return LeavesTestsAlone(byte_identical=None, test_file_diffs=None, test_files_added=added, why_not=why)
    return LeavesTestsAlone(
        byte_identical=run.share(seen, lambda outcome: outcome.tests_identical == 1),
        test_file_diffs=sum(each or 0 for each in run.episodes.each("test_files_changed")),
        test_files_added=added,
        why_not=None,
    )


def _budget(run: _Run) -> UnderBudget:
    def finished(outcome: Outcome) -> bool:
        return outcome.state in _RAN and outcome.exit_reason in _FINISHED and outcome.limit is None

    others = Counter(
        f"limit of {outcome.limit}" if outcome.exit_reason in _FINISHED else outcome.exit_reason
        for outcome in run.episodes
        if not finished(outcome)
    )
    apart = {reason: others.pop(reason, 0) for reason in _APART}
    return UnderBudget(
        finished=run.share(run.tasks, finished),
        timeout=apart["timeout"],
        tool_cap=apart["tool_cap"],
        model_error=apart["model_error"],
        other=dict(sorted(others.items())),
    )


def _replayable(card: Card | None) -> Replayable:
    complete = card is not None and not card.faults
    why = None if complete else "the card is not complete" if card is not None else "there is no protocol card"
    return Replayable(
        validator_exit_code=0 if complete else 1,
        git_sha=card.git_sha if card is not None else None,
        fixture_hash=card.fixture_hash if card is not None else None,
        why_not=why if card is None or card.git_sha is None else None,
    )


def _rates(plan: RunPlan, found: Figures) -> dict[str, str]:
    """Names outside the table that a card may ask for."""
    rates = {
        metric_name(plan.retries): found.success.mean,
        "unauthorized_rate": found.unauthorized.mean,
        "timeout_rate": found.timeout.mean,
        "schema_ok_rate": found.schema_ok.mean,
    }
    return {name: str(nearest(mean)) for name, mean in rates.items()}


def _patch_text(found: LandAFix) -> str:
    sizes = found.patch_lines
    if sizes is None:
        return f"{NOT_COMPUTED}{found.why_no_patch_lines}"
    passing = "none passed" if sizes.median_of_passing is None else f"{sizes.median_of_passing:g} of passing ones"
    return f"median {sizes.median:g} ({passing}), at most {sizes.most}, mean {sizes.mean:.4f}, {sizes.patches} patches"


def _price(found: PerSuccess | None, why_not: str | None) -> str:
    return f"{NOT_COMPUTED}{why_not}" if found is None else found.text


def _limits_text(found: UnderBudget) -> str:
    others = "".join(f", {name} {count}" for name, count in found.other.items())
    return f"timeout {found.timeout}, tool_cap {found.tool_cap}, model_error {found.model_error}{others}"


def _retried(plan: RunPlan) -> str:
    return f"with {plan.retries} retries a success is not of one attempt"


__all__ = ["NOT_COMPUTED", "decisions", "declared", "ends", "no_interval", "of_k", "share_text", "texts"]
