"""What two agents cost, one over the other, on the same tasks. Pure.

The paired geometric mean is the ratio to compare by: a task that costs a hundred times the others weighs as they do.
The ratio of costs per success is the bill's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from scoresheet.stats import resample
from scoresheet.stats.compare import FEWEST_DIFFERENT, different
from scoresheet.stats.cost import FEWEST_PASSING, fieller
from scoresheet.stats.interval import FEWEST_CLUSTERS, percentile_ends, t_ends
from scoresheet.stats.quantile import DIGITS, context
from scoresheet.stats.sample import sample

UNITS = 10**9
"""Logarithms are whole numbers of 1e-9."""
Cheaper = Literal["less", "more", "unresolved"]


@dataclass(frozen=True, slots=True)
class Ratio:
    """First agent over second."""

    ratio: Fraction
    low: Fraction | None
    """95 %; `None` under 5 tasks (or clusters)."""
    high: Fraction | None
    """`None` beside a low end: unbounded."""
    verdict: Cheaper
    """`less` and `more` when the interval excludes 1."""
    method: str


def geometric(
    first: Mapping[str, int], second: Mapping[str, int], cluster_of: Mapping[str, str] | None = None
) -> Ratio:
    """`exp(mean(log a - log b))` of every task's total cost, with the paired t interval of the logarithms.

    Raises `ValueError` when the tasks are not the same, or a total is not above 0.
    """
    if first.keys() != second.keys():
        raise ValueError("a paired ratio needs the same tasks on both sides")
    logs = sample({task: [ln(first[task]) - ln(second[task])] for task in first}, cluster_of, unit=UNITS)
    clusters = len(logs.totals)
    ratio = _exp(logs.mean)
    if clusters < FEWEST_CLUSTERS:
        return Ratio(ratio, None, None, "unresolved", f"none ({clusters} tasks or clusters)")
    low, high = (_exp(end) for end in t_ends(logs))
    enough = different(logs) >= FEWEST_DIFFERENT
    return Ratio(ratio, low, high, _verdict(low, high, enough=enough), "paired t of logarithms")


@lru_cache(maxsize=4096)
def ln(total: int) -> int:
    """The natural logarithm in units of 1e-9, half to even. Raises `ValueError` when `total` is not above 0."""
    if total < 1:
        raise ValueError("the logarithm needs a total above 0")
    with localcontext(context(DIGITS)):
        return int((Decimal(total).ln() * UNITS).to_integral_value())


def per_success(
    first: tuple[Sequence[int], Sequence[int]],
    second: tuple[Sequence[int], Sequence[int]],
    start: bytes,
    resamples: int = resample.RESAMPLES,
) -> Ratio | None:
    """Cost per success of the first over that of the second, on the same resamples; `None` where one is undefined.

    Each side is (costs, successes) a task, or a cluster, in order of the bytes of their names. An end is open where an
    agent passes too few tasks for its own cost per success to be bounded.
    """
    (cost_a, won_a), (cost_b, won_b) = first, second
    tasks = len(cost_a)
    if not (sum(won_a) and sum(won_b) and sum(cost_b)):
        return None
    ratio = Fraction(sum(cost_a) * sum(won_b), sum(won_a) * sum(cost_b))
    if tasks < FEWEST_CLUSTERS:
        return Ratio(ratio, None, None, "unresolved", f"none ({tasks} tasks or clusters)")
    drawn = resample.sums(start, [cost_a, won_a, cost_b, won_b], resamples)
    worst = Fraction(max(drawn[0]) * max(drawn[3]) + 1)  # above every finite ratio: stands for infinity
    ratios = [Fraction(a * wins, won * b) if won and b else worst for a, won, b, wins in zip(*drawn, strict=True)]
    low, high, k = percentile_ends(ratios, tasks, resamples)
    if not _bounded(cost_b, won_b):
        low = Fraction(0)
    unbounded = high == worst or not _bounded(cost_a, won_a)
    verdict: Cheaper = _verdict(low, None if unbounded else high, enough=tasks >= FEWEST_DIFFERENT)
    method = f"expanded percentile, {resample.ALGORITHM}, B={resamples}, k={k}"
    return Ratio(ratio, low, None if unbounded else high, verdict, method)


def _bounded(costs: Sequence[int], successes: Sequence[int]) -> bool:
    return sum(count > 0 for count in successes) >= FEWEST_PASSING and fieller(costs, successes) is not None


def _verdict(low: Fraction, high: Fraction | None, *, enough: bool) -> Cheaper:
    if enough and low > 1:
        return "more"
    if enough and high is not None and high < 1:
        return "less"
    return "unresolved"


def _exp(value: Fraction) -> Fraction:
    with localcontext(context(DIGITS)):
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).exp())
