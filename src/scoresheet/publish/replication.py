"""Whether a second host got what the first one got: the same pack, the same card, the same outcomes. Pure.

The digest of the pack is asked first: where it differs nothing else is looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from scoresheet.documents.report import Report
from scoresheet.documents.run_plan import RunPlan
from scoresheet.publish.outcomes import Outcomes
from scoresheet.stats.compare import sign_flip
from scoresheet.stats.rounding import nearest, upward

Verdict = Literal["replicated", "not replicated", "not comparable"]
LEVEL = Fraction(1, 20)
"""Of the sign-flip test: below it the outcomes of two hosts are not those of one agent."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of two runs."""

    name: str
    plan: RunPlan
    report: Report
    outcomes: Outcomes
    faults: tuple[str, ...] = ()
    """Why it is not what it says; a replication of such a run means nothing."""


@dataclass(frozen=True, slots=True)
class Replication:
    """What two runs have in common."""

    verdict: Verdict
    reasons: tuple[str, ...]
    """Why it is not replicated, or not comparable; empty when it is replicated."""
    figures: tuple[tuple[str, str], ...] = ()
    """(key, value) of what was compared, in order."""
    tasks: tuple[tuple[str, str, str], ...] = ()
    """(task, outcomes of A, outcomes of B), one digit a repeat: `1` success, `0` none, `-` not scored."""
    notes: tuple[str, ...] = ()
    """What differs and decides nothing."""


def replicate(a: Side, b: Side) -> Replication:
    """The verdict on B as a replication of A."""
    if a.plan.manifest_sha256 != b.plan.manifest_sha256:
        what = f"another pack: {a.name} is of {a.plan.manifest_sha256}, {b.name} of {b.plan.manifest_sha256}"
        return Replication("not comparable", (f"{what}; nothing else was looked at",))
    reasons = tuple(_unlike(a, b))
    if reasons:
        return Replication("not comparable", reasons, notes=tuple(_notes(a, b)))
    tasks = tuple(_vectors(a, b))
    same = sum(left == right for _, left, right in tasks)
    pairs = [pair for _, left, right in tasks for pair in zip(left, right, strict=True)]
    agreeing = sum(left == right for left, right in pairs)
    p = sign_flip([left.count("1") - right.count("1") for _, left, right in tasks])
    overlap = _overlap(a.report, b.report)
    identical = a.report.figures_sha256 == b.report.figures_sha256
    figures = (
        ("manifest_sha256", a.plan.manifest_sha256),
        ("figures_sha256", a.report.figures_sha256 if identical else "differs"),
        ("success_mean", f"{a.report.success_mean:.4f} and {b.report.success_mean:.4f}"),
        ("success_ci95", f"{_ends(a.report)} and {_ends(b.report)}"),
        ("intervals", {True: "overlap", False: "do not overlap", None: "none"}[overlap]),
        ("tasks_identical", f"{same} of {len(tasks)}"),
        ("episodes_identical", f"{agreeing} of {len(pairs)}"),
        ("sign_flip_p", str(nearest(p)) if p >= LEVEL else str(upward(p))),
    )
    against = []
    if p < LEVEL:
        against.append(f"the outcomes differ by task (exact sign-flip p {upward(p)} < {float(LEVEL):g})")
    if overlap is False:
        against.append("the intervals of success do not overlap")
    elif overlap:  # with few tasks intervals are wide: two that share an end say little
        against += [*_outside(a, b), *_outside(b, a)]
    verdict: Verdict = "not replicated" if against else "replicated"
    if overlap is None and not identical and not against:
        what = f"{a.report.success_ci95}: without an interval only identical outcomes replicate"
        verdict, against = "not comparable", [what]
    return Replication(verdict, tuple(against), figures, tasks, tuple(_notes(a, b)))


def _unlike(a: Side, b: Side) -> Iterator[str]:
    """Why the two can't be compared, each with both sides."""
    for side in (a, b):
        yield from (f"{side.name} does not hold: {fault}" for fault in side.faults)
        if side.plan.agent.kind in ("null", "oracle"):
            yield f"{side.name} is a run of the {side.plan.agent.kind} agent, which nobody replicates"
        yield from (f"{side.name} is not admissible: {reason}" for reason in side.report.reasons)
    fields: tuple[tuple[str, object, object], ...] = (
        ("card_sha256", a.report.card_sha256, b.report.card_sha256),
        ("interval code", a.report.statistics.algorithm, b.report.statistics.algorithm),
        ("interval method", a.plan.interval, b.plan.interval),
        ("seed", a.plan.seed, b.plan.seed),
        ("retries", a.plan.retries, b.plan.retries),
        ("repeats", a.plan.repeats, b.plan.repeats),
        ("timeout_s", a.report.timeout_s, b.report.timeout_s),
        ("controls", a.report.controls, b.report.controls),
        ("live_network", _reached(a), _reached(b)),
        ("tasks", [task.task_id for task in a.report.per_task], [task.task_id for task in b.report.per_task]),
    )
    for name, left, right in fields:
        if left != right:
            yield f"{name} differs: {a.name} {_short(left)}, {b.name} {_short(right)}"
    if a.plan.seat == b.plan.seat:
        yield f"both ran at the seat {a.plan.seat!r}: a second run of one seat is a repetition, not a replication"
    if a.report.rows_sha256 == b.report.rows_sha256:
        yield "both have the same rows: that is one run, twice"


def _reached(side: Side) -> str:
    """What the episodes could reach; where a model's endpoint is, each seat says for itself."""
    return side.report.live_network.partition("(")[0]


def _notes(a: Side, b: Side) -> Iterator[str]:
    for name, left, right in (
        ("agent", a.report.agent, b.report.agent),
        ("model", a.report.model, b.report.model),
        ("live_network", a.report.live_network, b.report.live_network),
        ("scoresheet", a.plan.versions.get("scoresheet"), b.plan.versions.get("scoresheet")),
        ("python", a.plan.host.python, b.plan.host.python),
        ("system", a.plan.host.system, b.plan.host.system),
        ("os", a.plan.host.os, b.plan.host.os),
        ("confounds", a.report.confounds, b.report.confounds),
    ):
        if left != right:
            yield f"{name}: {left} and {right}"
    if (a.plan.host.system, a.plan.host.os, a.plan.host.memory_bytes) == (
        b.plan.host.system,
        b.plan.host.os,
        b.plan.host.memory_bytes,
    ):
        yield "both hosts look alike (system, memory): that they are two rests on the word of their seats"


def _vectors(a: Side, b: Side) -> Iterator[tuple[str, str, str]]:
    left, right = _by_task(a.outcomes), _by_task(b.outcomes)
    for task in a.report.per_task:
        yield task.task_id, left[task.task_id], right[task.task_id]


def _by_task(outcomes: Outcomes) -> dict[str, str]:
    return {
        task_id: "".join(str(episode.success) if episode.state == "scored" else "-" for episode in repeats)
        for task_id, repeats in outcomes.episodes.tasks()
    }


def _overlap(a: Report, b: Report) -> bool | None:
    """Whether the intervals have a point in common; `None` when there are none."""
    if isinstance(a.success_ci95, str) or isinstance(b.success_ci95, str):
        return None
    return max(a.success_ci95[0], b.success_ci95[0]) <= min(a.success_ci95[1], b.success_ci95[1])


def _outside(one: Side, other: Side) -> Iterator[str]:
    """That the mean of one lies outside the other's interval."""
    ends, mean = other.report.success_ci95, one.report.success_mean
    if not isinstance(ends, str) and not ends[0] <= mean <= ends[1]:
        yield f"the mean of {one.name} ({mean:.4f}) lies outside the interval of {other.name} ({_ends(other.report)})"


def _ends(report: Report) -> str:
    ends = report.success_ci95
    return ends if isinstance(ends, str) else f"[{ends[0]:.4f}, {ends[1]:.4f}]"


def _short(value: object, most: int = 80) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"
