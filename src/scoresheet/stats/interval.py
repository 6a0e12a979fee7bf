"""The interval of one agent's mean, and what it can't say. Tasks are resampled, never rows (docs/statistics).

Two methods and one refusal:

1. under 5 clusters: no interval;
2. a share in [0, 1] with fewer than 8 clusters below 1, or fewer than 8 above 0: plus-4 clustered t, labelled;
3. else the expanded percentile (Hesterberg 2015) of the task bootstrap.

Ends are exact fractions. Pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import isqrt, lcm
from typing import TypeVar

from scoresheet.errors import counted
from scoresheet.stats import resample
from scoresheet.stats.quantile import DIGITS, context, normal_cdf, t_quantile
from scoresheet.stats.sample import Sample

FEWEST_CLUSTERS = 5
"""Below this no interval is honest."""
BOUNDARY = 8
"""Clusters that must be below 1, and above 0, for the percentile's coverage to hold (94.2 % at worst)."""
Value = TypeVar("Value", int, Fraction)
_P975, _P80 = Decimal("0.975"), Decimal("0.8")
_SKEW_CLUSTERS, _SKEW_SHARE = 100, Fraction(1, 5)


@dataclass(frozen=True, slots=True)
class Interval:
    """Two exact ends and the method that gave them."""

    low: Fraction
    high: Fraction
    method: str
    boundary: bool = False
    """True when the plus-4 fallback was taken."""
    order_statistic: int | None = None
    """k of the percentile: the ends are the k-th smallest and the k-th largest replicate."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One metric: its mean, its interval, and the figures that say what the interval is worth."""

    mean: Fraction
    interval: Interval | None
    """`None` under 5 clusters: `warnings` says so."""
    tasks: int
    clusters: int
    repeats: tuple[int, int]
    """The fewest and the most of a task."""
    icc: Fraction | None
    """Share of the variance that lies between tasks (ANOVA); `None` with one repeat, or when nothing varies."""
    n_eff: Fraction | None
    """How many independent episodes would tell as much; `None` for values that are not 0 or 1, or do not vary."""
    mde: Fraction | None
    """Smallest true gap to another agent that 80 % of such runs would show at 5 %, were their tasks uncorrelated."""
    one_sided: Fraction | None
    """With no event (or no failure) at all: 95 % bound of its true rate, by tasks and never by rows."""
    warnings: tuple[str, ...]

    @property
    def deff(self) -> Fraction | None:
        """Design effect: episodes over effective episodes."""
        if self.n_eff is None or self.repeats[0] != self.repeats[1]:
            return None
        return self.tasks * self.repeats[0] / self.n_eff


def estimate(sample: Sample, start: bytes, *, share: bool = True, resamples: int = resample.RESAMPLES) -> Estimate:
    """The mean of `sample` and its 95 % interval; `start` is `resample.prefix(seed, pack digest)`.

    `share` says that values lie in [0, 1], where the boundary is guarded; costs and times do not.
    """
    clusters = len(sample.totals)
    warnings: list[str] = []
    interval: Interval | None = None
    if clusters < FEWEST_CLUSTERS:
        few = counted(clusters, "task" if clusters == sample.tasks else "cluster")
        warnings.append(f"no interval: {few}, and {FEWEST_CLUSTERS} are needed")
    elif share and boundary(sample) < BOUNDARY:
        interval = plus_four(sample)
    else:
        interval = expanded(sample, start, resamples)
    identical = all(len(set(task)) == 1 for task in sample.values)
    fewest, most = sample.repeats
    if most == 1:
        warnings.append("one repeat: no re-run noise, no ICC; only k = 1 for pass^k")
    elif identical:
        warnings.append(f"repeats identical: repeating adds no information; n_eff = {counted(sample.tasks, 'task')}")
    if fewest != most:
        warnings.append(f"repeats differ: {fewest} to {most} a task; every task weighs the same")
    if not share and interval and clusters < _SKEW_CLUSTERS and max(sample.totals) > _SKEW_SHARE * sum(sample.totals):
        warnings.append("SKEW: one task holds over a fifth of the total; true coverage may be 80-92%")
    return Estimate(
        mean=sample.mean,
        interval=interval,
        tasks=sample.tasks,
        clusters=clusters,
        repeats=sample.repeats,
        icc=icc(sample),
        n_eff=Fraction(sample.tasks) if identical and most > 1 and sample.binary else effective(sample),
        mde=detectable(sample, interval),
        one_sided=one_sided(sample) if share else None,
        warnings=tuple(warnings),
    )


def boundary(sample: Sample) -> int:
    """g: the fewer of the clusters whose value is below 1 and of those whose value is above 0."""
    pairs = list(zip(sample.totals, sample.weights, strict=True))
    return min(sum(total < weight * sample.scale for total, weight in pairs), sum(total > 0 for total, _ in pairs))


@lru_cache(maxsize=256)
def order_statistic(clusters: int, resamples: int = resample.RESAMPLES) -> int:
    """k = floor((B + 1) · Phi(-sqrt(T / (T - 1)) · t_{.975, T-1})): 107 for 12 clusters (Hesterberg 2015, §4.1)."""
    with localcontext(context(DIGITS + 10)):
        widened = (Decimal(clusters) / (clusters - 1)).sqrt() * t_quantile(_P975, clusters - 1)
        return int((resamples + 1) * normal_cdf(-widened))


def expanded(sample: Sample, start: bytes, resamples: int = resample.RESAMPLES) -> Interval:
    """The expanded percentile interval: order statistics k and B + 1 - k of the resampled means.

    Raises `ValueError` when k is 0: too few clusters, or resamples, for the tail.
    """
    clusters = len(sample.totals)
    if len(set(sample.weights)) == 1:
        (drawn,) = resample.sums(start, [sample.totals], resamples)
        low, high, k = percentile_ends(drawn, clusters, resamples)
        whole = sample.scale * sample.tasks
        ends = (Fraction(low, whole), Fraction(high, whole))
    else:
        totals, weights = resample.sums(start, [sample.totals, sample.weights], resamples)
        ratios = [Fraction(total, weight * sample.scale) for total, weight in zip(totals, weights, strict=True)]
        worst, best, k = percentile_ends(ratios, clusters, resamples)
        ends = (worst, best)
    return Interval(*ends, f"expanded percentile, {resample.ALGORITHM}, B={resamples}, k={k}", order_statistic=k)


def percentile_ends(
    drawn: Sequence[Value], clusters: int, resamples: int = resample.RESAMPLES
) -> tuple[Value, Value, int]:
    """The k-th smallest and the k-th largest of `drawn`, and k. Raises `ValueError` when k is 0."""
    k = order_statistic(clusters, resamples)
    if k < 1:
        raise ValueError(f"{clusters} clusters and {resamples} resamples leave no tail to read")
    ordered = sorted(drawn, key=_whole(drawn))
    return ordered[k - 1], ordered[resamples - k], k


def _whole(values: Sequence[Value]) -> Callable[[Value], int] | None:
    """A key by which fractions sort as they do by themselves, in whole numbers: many times faster.

    Two fractions that differ do so by at least 1 over the product of their denominators, so the floors of both times
    the square of the largest differ too.
    """
    largest = max(value.denominator for value in values)
    if largest == 1:
        return None
    shift = 2 * largest.bit_length()
    return lambda value: (value.numerator << shift) // value.denominator


def plus_four(sample: Sample) -> Interval:
    """The plus-4 clustered t interval, clipped to [0, 1]: two clusters of ones and two of zeros are added.

    With one repeat it is Agresti & Coull 1998 with t; it is never of zero width.
    """
    low, high = t_ends(sample, pseudo=(1, 1, 0, 0))
    count = boundary(sample)
    what = "tasks" if len(sample.totals) == sample.tasks else "clusters"
    label = f"plus-4 clustered t (boundary: only {count} of {len(sample.totals)} {what} off the edge)"
    return Interval(max(Fraction(0), low), min(Fraction(1), high), label, boundary=True)


def t_ends(sample: Sample, pseudo: Sequence[int] = (), p: Decimal = _P975) -> tuple[Fraction, Fraction]:
    """Ends of the clustered t interval after adding `pseudo` clusters of average weight; 40 digits, not clipped.

    `p` is the quantile of the upper end: .975 for 95 %.
    """
    centre, square = _moments(sample, pseudo)
    clusters = len(sample.totals) + len(pseudo)
    half = root(square / clusters) * Fraction(t_quantile(p, clusters - 1))
    return centre - half, centre + half


def variance_of_mean(sample: Sample, pseudo: Sequence[int] = ()) -> Fraction:
    """The squared clustered standard error, s² / T (CR1 with equal weights), `pseudo` clusters added. Needs two."""
    return _moments(sample, pseudo)[1] / (len(sample.totals) + len(pseudo))


def mean_with(sample: Sample, pseudo: Sequence[int]) -> Fraction:
    """The mean after adding `pseudo` clusters of average weight."""
    return _moments(sample, pseudo)[0]


def _moments(sample: Sample, pseudo: Sequence[int]) -> tuple[Fraction, Fraction]:
    """The mean and the variance of cluster values, weighted by tasks, `pseudo` clusters of average weight included."""
    tasks, clusters = sample.tasks, len(sample.totals)
    size = Fraction(tasks, clusters)
    total = Fraction(sum(sample.totals), sample.scale)
    centre = (total + size * sum(pseudo)) / (tasks + size * len(pseudo))
    squares = Fraction(sum(value * value for value in sample.totals), sample.scale**2)
    crossed = Fraction(sum(t * w for t, w in zip(sample.totals, sample.weights, strict=True)), sample.scale)
    weights = sum(weight * weight for weight in sample.weights)
    spread = (squares - 2 * centre * crossed + centre**2 * weights) / size**2
    spread += sum(((value - centre) ** 2 for value in pseudo), Fraction(0))
    return centre, spread / (clusters + len(pseudo) - 1)


def icc(sample: Sample) -> Fraction | None:
    """The intraclass correlation of repeats, by analysis of variance (Donner 1986 for unequal repeats)."""
    counts = [len(task) for task in sample.values]
    rows, tasks = sum(counts), len(counts)
    if tasks < 2 or rows == tasks:
        return None
    # sums of squares by whole numbers: a fraction per task would cost more than all else here
    common = lcm(*counts)
    total = sum(map(sum, sample.values))
    squares = sum(value * value for task in sample.values for value in task)
    of_tasks = Fraction(sum(sum(task) ** 2 * (common // len(task)) for task in sample.values), common)
    between = (of_tasks - Fraction(total * total, rows)) / (tasks - 1)
    within = (squares - of_tasks) / (rows - tasks)
    size = (rows - Fraction(sum(n * n for n in counts), rows)) / (tasks - 1)
    whole = between + (size - 1) * within
    return (between - within) / whole if whole else None


def effective(sample: Sample) -> Fraction | None:
    """Effective episodes: p(1 - p) over the clustered variance of the mean; `None` where one of them is 0."""
    if not sample.binary or len(sample.totals) < 2:
        return None
    variance = variance_of_mean(sample)
    return sample.mean * (1 - sample.mean) / variance if variance else None


def detectable(sample: Sample, interval: Interval | None) -> Fraction | None:
    """The smallest detectable gap (power 80 %, level 5 %) to an agent of equal spread, tasks uncorrelated.

    Real pairs share their tasks and see smaller gaps; `None` when there is no interval. At the boundary the spread is
    that of the plus-4 interval, for a spread of 0 would promise to see everything.
    """
    if interval is None:
        return None
    pseudo = (1, 1, 0, 0) if interval.boundary else ()
    return detectable_with(2 * variance_of_mean(sample, pseudo), len(sample.totals) + len(pseudo))


def detectable_with(variance: Fraction, clusters: int) -> Fraction:
    """The smallest detectable gap when the gap's squared standard error is `variance`."""
    return (Fraction(t_quantile(_P975, clusters - 1)) + Fraction(t_quantile(_P80, clusters - 1))) * root(variance)


def one_sided(sample: Sample) -> Fraction | None:
    """1 - .05^(1/T), when no value is above 0 (or none below 1): the rate that T clusters can't rule out."""
    total, full = sum(sample.totals), sample.scale * sample.tasks
    if total not in (0, full):
        return None
    with localcontext(context(DIGITS)):
        return Fraction(1 - (Decimal("0.05").ln() / len(sample.totals)).exp())


def root(value: Fraction) -> Fraction:
    """The square root to 40 places, by whole numbers."""
    scale = 10**DIGITS
    return Fraction(isqrt(value.numerator * scale**2 // value.denominator), scale)
