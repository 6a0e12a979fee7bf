"""From outcomes to figures: exact fractions, and the digest on which two honest hosts agree. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from scoresheet import canonical, digest
from scoresheet.canonical import JsonValue
from scoresheet.documents.decisions import PassK
from scoresheet.documents.run_plan import RunPlan
from scoresheet.publish.outcome import Episodes, Field, Outcome
from scoresheet.publish.outcomes import Outcomes
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
    repeats: Episodes

    @property
    def successes(self) -> int:
        """Repeats that succeeded."""
        return sum(self.repeats.each("success"))


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
    episodes: Episodes
    """The same, one after another."""
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
        return len(self.episodes)


def figures(plan: RunPlan, outcomes: Outcomes, method: Method) -> Figures:
    """The figures of a run whose plan has a task."""
    tasks = tuple(TaskFigures(*task) for task in outcomes.episodes.tasks())
    start = resample.prefix(plan.seed, plan.manifest_sha256)
    cluster_of = {task.task_id: task.cluster_id for task in plan.tasks if task.cluster_id is not None}

    def share(bit: Field) -> Sample:
        return sample({task.task_id: [*task.repeats.each(bit)] for task in tasks}, cluster_of)

    def rate(bit: Field) -> Rate:
        shares = share(bit)
        few = len(shares.totals) < FEWEST_CLUSTERS
        return Rate(shares.mean, None if few else one_sided(shares))

    success = estimate(share("success"), start)
    chosen = success.interval
    if method == "rows-v1" and chosen is not None:
        ends = rows_v1.interval([*outcomes.episodes.each("success")], plan.seed)
        chosen = Interval(*ends, rows_v1.LABEL)
    resampled = success.interval is not None and success.interval.order_statistic is not None and method == "cluster"
    episodes = outcomes.episodes
    return Figures(
        tasks=tasks,
        episodes=episodes,
        success=success,
        success_interval=chosen,
        unauthorized=rate("unauthorized"),
        timeout=rate("timeout"),
        schema_ok=rate("schema_ok"),
        recorded_latency_ms=_latency(tasks, cluster_of, start),
        elapsed_s=_elapsed(episodes, plan.limits.wall_clock_s),
        tokens_per_success=_tokens(tasks, start),
        index_sha256=resample.stream_sha256(start, success.clusters) if resampled else None,
    )


def cluster_totals(
    tasks: Sequence[TaskFigures], cluster_of: Mapping[str, str], cost: Field
) -> tuple[list[int], list[int]]:
    """Costs and successes of what is resampled: a task, or the tasks of one cluster; in order of the names' bytes.

    A cost of `None` counts as 0.
    """
    totals: dict[tuple[str, str], list[int]] = {}
    for task in tasks:
        key = ("cluster", cluster_of[task.task_id]) if task.task_id in cluster_of else ("task", task.task_id)
        both = totals.setdefault(key, [0, 0])
        both[0] += sum(value or 0 for value in task.repeats.each(cost))
        both[1] += task.successes
    order = sorted(totals, key=lambda key: (key[1].encode(), key[0]))
    return [totals[key][0] for key in order], [totals[key][1] for key in order]


def _elapsed(episodes: Episodes, limit_s: float) -> Fraction | None:
    limit = round(limit_s * 1_000_000)
    count = spent = 0
    for state, elapsed_us in zip(episodes.each("state"), episodes.each("elapsed_us"), strict=True):
        if state != "missing":
            count, spent = count + 1, spent + min(elapsed_us, limit)
    return Fraction(spent, 1_000_000 * count) if count else None


def _latency(tasks: tuple[TaskFigures, ...], cluster_of: dict[str, str], start: bytes) -> Estimate | None:
    there = {
        task.task_id: [
            latency_us
            for state, latency_us in zip(
                task.repeats.each("state"), task.repeats.each("recorded_latency_us"), strict=True
            )
            if state != "missing"
        ]
        for task in tasks
    }
    there = {task_id: values for task_id, values in there.items() if values}
    return estimate(sample(there, cluster_of, unit=1000), start, share=False) if there else None


def _tokens(tasks: tuple[TaskFigures, ...], start: bytes) -> CostPerSuccess | None:
    spent = [[*task.repeats.each("tokens")] for task in tasks]
    if any(tokens is None for repeats in spent for tokens in repeats):
        return None
    costs = [sum(tokens or 0 for tokens in repeats) for repeats in spent]
    return cost_per_success(costs, [task.successes for task in tasks], start)


def figures_sha256(plan: RunPlan, outcomes: Outcomes, found: Figures, of_k: PassK) -> digest.Digest:
    """The digest of the figures and of every task's outcomes: no clocks, no host, no paths, no agent.

    What is derived from these alone, such as shares of the decision table, needs no place of its own in it. The text is
    hashed task by task: of many episodes it is long.
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
        "tasks": [],
    }
    before, there, after = canonical.jcs_fast(value).partition(_TASKS)
    assert there  # no other member can hold these bytes: in a string its quotes would be escaped
    hashed = hashlib.sha256(before + _TASKS[:-1])
    for number, task in enumerate(found.tasks):
        hashed.update((b"," if number else b"") + canonical.jcs_fast(_task(task)))
    hashed.update(_TASKS[-1:] + after)
    return digest.Digest(hashed.hexdigest())


_TASKS = b'"tasks":[]'


def _task(task: TaskFigures) -> JsonValue:
    return {
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
