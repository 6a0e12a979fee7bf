"""Two agents on one pack: the paired interval of their difference, its verdict, and the exact sign-flip test.

Never by whether two intervals overlap: that test misses real gaps, and where repeats were taken for tasks it finds
gaps that are not there. Ends and verdicts are decided on whole numbers. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Literal

from scoresheet.stats import resample
from scoresheet.stats import sample as samples
from scoresheet.stats.interval import (
    FEWEST_CLUSTERS,
    Interval,
    detectable_with,
    expanded,
    t_ends,
    variance_of_mean,
)
from scoresheet.stats.sample import Sample

FEWEST_DIFFERENT = 6
"""Tasks that must differ for the percentile: with fewer the exact test can't go below .05 (2/2⁵ is .0625).

So with fewer tasks (or clusters) nobody wins either.
"""
PLUS_TWO = (1, -1)
Verdict = Literal["better", "worse", "equivalent", "unresolved"]
TIES: frozenset[Verdict] = frozenset({"equivalent", "unresolved"})


@dataclass(frozen=True, slots=True)
class Paired:
    """First agent minus second, task by task."""

    mean: Fraction
    interval: Interval | None
    """95 %; `None` under 5 tasks (or clusters)."""
    verdict: Verdict
    p: Fraction
    """Of the exact two-sided sign-flip test: a cross-check, which decides nothing."""
    clusters: int
    different: int
    """Clusters with a difference."""
    mde: Fraction | None
    """Smallest true gap that 80 % of such pairs of runs would show at 5 %; `None` without an interval."""


def paired(
    first: Mapping[str, Sequence[int]],
    second: Mapping[str, Sequence[int]],
    cluster_of: Mapping[str, str] | None = None,
) -> Sample:
    """The differences of the task means, one a task, for two agents' values (task_id -> one a repeat).

    Raises `ValueError` when the tasks are not the same.
    """
    if first.keys() != second.keys():
        raise ValueError("differences need the same tasks on both sides")
    unit = lcm(*(len(values) for side in (first, second) for values in side.values()))

    def mean(values: Sequence[int]) -> int:
        return sum(values) * (unit // len(values))

    return samples.sample({task: [mean(first[task]) - mean(second[task])] for task in first}, cluster_of, unit=unit)


def compare(
    differences: Sample, start: bytes, margin: Fraction | None = None, resamples: int = resample.RESAMPLES
) -> Paired:
    """Interval and verdict of `paired` differences in [-1, 1]; `margin` is the pack's tie margin."""
    clusters, changed = len(differences.totals), different(differences)
    interval = difference(differences, start, resamples) if clusters >= FEWEST_CLUSTERS else None
    pseudo = pseudo_of(differences)
    return Paired(
        mean=differences.mean,
        interval=interval,
        verdict=verdict(interval, margin, may_win=may_win(differences)),
        p=sign_flip(differences.totals),
        clusters=clusters,
        different=changed,
        mde=detectable_with(variance_of_mean(differences, pseudo), clusters + len(pseudo)) if interval else None,
    )


def difference(sample: Sample, start: bytes, resamples: int = resample.RESAMPLES) -> Interval:
    """The 95 % interval of the mean paired difference (values in [-1, 1], one sample of differences per task).

    Expanded percentile when 6 tasks differ, else plus-2 clustered t (Bonett & Price 2012); that one also where all
    differ alike, for no interval may be of zero width.
    """
    pseudo = pseudo_of(sample)
    if not pseudo:
        return expanded(sample, start, resamples)
    low, high = t_ends(sample, pseudo)
    changed = different(sample)
    what = "tasks" if len(sample.totals) == sample.tasks else "clusters"
    if changed >= FEWEST_DIFFERENT:
        why = f"all {what} differ alike"
    else:
        why = f"{f'only {changed}' if changed else 'no'} {what} differ"
    return Interval(max(Fraction(-1), low), min(Fraction(1), high), f"plus-2 clustered t ({why})", boundary=True)


def pseudo_of(differences: Sample) -> tuple[int, ...]:
    """What is added to the differences: a win and a loss where they are too few, or have no spread of their own."""
    few = different(differences) < FEWEST_DIFFERENT
    return PLUS_TWO if few or not variance_of_mean(differences) else ()


def verdict(interval: Interval | None, margin: Fraction | None, *, may_win: bool) -> Verdict:
    """What the interval of a difference says; `equivalent` lies within the margin, and wins nothing either."""
    if interval is None:
        return "unresolved"
    if may_win and interval.low > 0:
        return "better"
    if may_win and interval.high < 0:
        return "worse"
    if margin is not None and -margin <= interval.low and interval.high <= margin:
        return "equivalent"
    return "unresolved"


def may_win(differences: Sample) -> bool:
    """False when so few tasks (or clusters) differ, or there are so few, that no exact test could tell."""
    return different(differences) >= FEWEST_DIFFERENT


def different(differences: Sample) -> int:
    """Clusters with a difference."""
    return sum(total != 0 for total in differences.totals)


def sign_flip(differences: Sequence[int]) -> Fraction:
    """The exact two-sided p of the sign-flip test; McNemar's exact test with one repeat.

    Every choice of signs is counted: the sums of all subsets are one product of `1 + x^size`, its coefficients packed
    into one whole number.
    """
    sizes = [abs(each) for each in differences if each]
    step = gcd(*sizes)
    if not step:
        return Fraction(1)
    total, seen = sum(sizes) // step, abs(sum(differences)) // step
    if not seen:
        return Fraction(1)
    width = len(sizes) + 1  # bits: a coefficient is at most 2 ** len(sizes)
    product = 1
    for size in sizes:
        product += product << (size // step * width)
    # a subset of sum s is a signed total of 2 s - total: the far tail begins where that reaches `seen`
    tail = product >> ((total + seen) // 2 * width)
    ways = tail % ((1 << width) - 1)  # the sum of its coefficients
    return Fraction(2 * ways, 1 << len(sizes))
