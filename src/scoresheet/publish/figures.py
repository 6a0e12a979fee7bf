"""From outcomes to figures: exact fractions, and the digest on which two honest hosts agree. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Literal

from scoresheet import canonical, digest
from scoresheet.canonical import JsonValue
from scoresheet.documents.decisions import PassK
from scoresheet.documents.run_plan import RunPlan
from scoresheet.publish.outcomes import Outcome, Outcomes
from scoresheet.stats import resample, rows_v1
from scoresheet.stats.cost import CostPerSuccess, cost_per_success
from scoresheet.stats.interval import FEWEST_CLUSTERS, Estimate, Interval, estimate, one_sided
from scoresheet.stats.rounding import downward, nearest, upward
from scoresheet.stats.sample import Sample, sample

Method = Literal["cluster", "rows-v1"]


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """One task: how many of its planned repeats went how."""

    task_id: str
    repeats: tuple[Outcome, ...]

    @property
    def successes(self) -> int:
        """Repeats that succeeded."""
        return sum(outcome.success for outcome in self.repeats)


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of the planned episodes, printed without an interval."""

    mean: Fraction
    one_sided: Fraction | None
    """95 % bound of the true rate, when it was never (or always) seen; `None` also under 5 clusters."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that a report prints as a number."""

    tasks: tuple[TaskFigures, ...]
    success: Estimate
    success_interval: Interval | None
    """That of `success`, or the published row bootstrap when it was asked for."""
    unauthorized: Rate
    timeout: Rate
    schema_ok: Rate
    recorded_latency_ms: Estimate | None
    """Per episode, of episodes that have a row; never part of success."""
    elapsed_s: Fraction | None
    """Mean of episodes that have a row, each at most the time limit."""
    tokens_per_success: CostPerSuccess | None
    """`None` when an episode counts no tokens."""
    index_sha256: str | None
    """Digest of the resampled indexes; `None` when nothing was resampled."""

    @property
    def planned(self) -> int:
        """Planned episodes."""
        return sum(len(task.repeats) for task in self.tasks)


def figures(plan: RunPlan, outcomes: Outcomes, method: Method) -> Figures:
    """The figures of a run whose plan has a task."""
    tasks = tuple(
        TaskFigures(task_id, tuple(episodes))
        for task_id, episodes in groupby(outcomes.episodes, key=lambda outcome: outcome.task_id)
    )
    start = resample.prefix(plan.seed, plan.manifest_sha256)
    cluster_of = {task.task_id: task.cluster_id for task in plan.tasks if task.cluster_id is not None}

    def share(value: Callable[[Outcome], int]) -> Sample:
        return sample({task.task_id: [value(outcome) for outcome in task.repeats] for task in tasks}, cluster_of)

    def rate(value: Callable[[Outcome], int]) -> Rate:
        shares = share(value)
        few = len(shares.totals) < FEWEST_CLUSTERS
        return Rate(shares.mean, None if few else one_sided(shares))

    success = estimate(share(lambda outcome: outcome.success), start)
    chosen = success.interval
    if method == "rows-v1" and chosen is not None:
        ends = rows_v1.interval([outcome.success for outcome in outcomes.episodes], plan.seed)
        chosen = Interval(*ends, rows_v1.LABEL)
    resampled = success.interval is not None and success.interval.order_statistic is not None and method == "cluster"
    there = [outcome for outcome in outcomes.episodes if outcome.state != "missing"]
    limit = round(plan.limits.wall_clock_s * 1_000_000)
    return Figures(
        tasks=tasks,
        success=success,
        success_interval=chosen,
        unauthorized=rate(lambda outcome: outcome.unauthorized),
        timeout=rate(lambda outcome: outcome.timeout),
        schema_ok=rate(lambda outcome: outcome.schema_ok),
        recorded_latency_ms=_latency(tasks, cluster_of, start),
        elapsed_s=Fraction(sum(min(o.elapsed_us, limit) for o in there), 1_000_000 * len(there)) if there else None,
        tokens_per_success=_tokens(tasks, start),
        index_sha256=resample.stream_sha256(start, success.clusters) if resampled else None,
    )


def cluster_totals(
    tasks: Sequence[TaskFigures], cluster_of: Mapping[str, str], cost: Callable[[Outcome], int]
) -> tuple[list[int], list[int]]:
    """Costs and successes of what is resampled: a task, or the tasks of one cluster; in order of the names' bytes."""
    totals: dict[tuple[str, str], list[int]] = {}
    for task in tasks:
        key = ("cluster", cluster_of[task.task_id]) if task.task_id in cluster_of else ("task", task.task_id)
        both = totals.setdefault(key, [0, 0])
        both[0] += sum(map(cost, task.repeats))
        both[1] += task.successes
    order = sorted(totals, key=lambda key: (key[1].encode(), key[0]))
    return [totals[key][0] for key in order], [totals[key][1] for key in order]


def _latency(tasks: tuple[TaskFigures, ...], cluster_of: dict[str, str], start: bytes) -> Estimate | None:
    there = {
        task.task_id: [outcome.recorded_latency_us for outcome in task.repeats if outcome.state != "missing"]
        for task in tasks
    }
    there = {task_id: values for task_id, values in there.items() if values}
    return estimate(sample(there, cluster_of, unit=1000), start, share=False) if there else None


def _tokens(tasks: tuple[TaskFigures, ...], start: bytes) -> CostPerSuccess | None:
    spent = [[outcome.tokens for outcome in task.repeats] for task in tasks]
    if any(tokens is None for repeats in spent for tokens in repeats):
        return None
    costs = [sum(tokens or 0 for tokens in repeats) for repeats in spent]
    return cost_per_success(costs, [task.successes for task in tasks], start)


def figures_sha256(plan: RunPlan, outcomes: Outcomes, found: Figures, of_k: PassK) -> digest.Digest:
    """The digest of the figures and of every task's outcomes: no clocks, no host, no paths, no agent.

    What is derived from these alone, such as shares of the decision table, needs no place of its own in it.
    """
    value: JsonValue = {
        "manifest_sha256": plan.manifest_sha256,
        "seed": plan.seed,
        "retries": plan.retries,
        "repeats": plan.repeats,
        "success_mean": str(nearest(found.success.mean)),
        "success_ci95": ends_text(found.success_interval),
        "interval_method": found.success_interval.method if found.success_interval else None,
        "index_sha256": found.index_sha256,
        "unauthorized_rate": str(nearest(found.unauthorized.mean)),
        "timeout_rate": str(nearest(found.timeout.mean)),
        "schema_ok_rate": str(nearest(found.schema_ok.mean)),
        "recorded_latency_ms_mean": str(nearest(found.recorded_latency_ms.mean)) if found.recorded_latency_ms else None,
        "exit_reasons": outcomes.exit_reasons,
        "pass_k": [[each.k, f"{each.pass_at_k:.4f}", f"{each.pass_hat_k:.4f}"] for each in of_k.of],
        "tasks": [
            {
                "task_id": task.task_id,
                "repeats": [
                    {
                        "state": outcome.state,
                        "success": outcome.success,
                        "schema_ok": outcome.schema_ok,
                        "unauthorized": outcome.unauthorized,
                        "timeout": outcome.timeout,
                        "exit_reason": outcome.exit_reason,
                        "limit": outcome.limit,
                        **_left(outcome),
                    }
                    for outcome in task.repeats
                ],
            }
            for task in found.tasks
        ],
    }
    return digest.of(canonical.jcs_fast(value))


def _left(outcome: Outcome) -> dict[str, JsonValue]:
    """What lay in the workspace; where the clock cut the episode, that is the clock's doing."""
    if outcome.patch_lines is None or outcome.timeout:
        return {}
    return {
        "patch_lines": outcome.patch_lines,
        "tests_identical": outcome.tests_identical,
        "test_files_changed": outcome.test_files_changed,
    }


def ends_text(ends: Interval | None) -> list[str] | None:
    """Both ends to 4 places, rounded outward."""
    return None if ends is None else [str(downward(ends.low)), str(upward(ends.high))]
