"""Cost per success: the whole bill, failures included, over the successes it bought. Pure.

Never the mean cost of passing runs, which forgets what the failures cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from scoresheet.stats import resample
from scoresheet.stats.interval import FEWEST_CLUSTERS, percentile_ends, root
from scoresheet.stats.quantile import t_quantile

FEWEST_PASSING = 5
"""Tasks with a success below which the upper end is not bounded by the data."""


@dataclass(frozen=True, slots=True)
class CostPerSuccess:
    """Sum of costs over sum of successes, and its interval."""

    ratio: Fraction | None
    """`None` is undefined: nothing passed."""
    low: Fraction | None
    """`None` under 5 tasks, or when nothing passed."""
    high: Fraction | None
    """`None` is unbounded (or no interval, when `low` is `None` too)."""

    def __str__(self) -> str:
        if self.ratio is None:
            return "undefined (0 passing)"
        if self.low is None:
            return "no interval"
        return (
            f">= {float(self.low):.6g}, upper unbounded"
            if self.high is None
            else (f"[{float(self.low):.6g}, {float(self.high):.6g}]")
        )


def cost_per_success(
    costs: Sequence[int], successes: Sequence[int], start: bytes, resamples: int = resample.RESAMPLES
) -> CostPerSuccess:
    """The ratio of totals and its expanded percentile interval, for per-task totals in order of task_id's bytes.

    A resample without a success costs infinitely much. The upper end is unbounded when Fieller's is, when under 5
    tasks have a success, or when that resample is reached.
    """
    tasks = len(costs)
    if not sum(successes):
        return CostPerSuccess(None, None, None)
    ratio = Fraction(sum(costs), sum(successes))
    if tasks < FEWEST_CLUSTERS:
        return CostPerSuccess(ratio, None, None)
    spent, won = resample.sums(start, [costs, successes], resamples)
    worst = Fraction(sum(costs) * tasks + 1)  # above every finite ratio: stands for infinity
    ratios = [Fraction(cost, count) if count else worst for cost, count in zip(spent, won, strict=True)]
    low, high, _ = percentile_ends(ratios, tasks, resamples)
    passing = sum(count > 0 for count in successes)
    bounded = high < worst and passing >= FEWEST_PASSING and fieller(costs, successes) is not None
    return CostPerSuccess(ratio, low, high if bounded else None)


def fieller(costs: Sequence[int], successes: Sequence[int]) -> tuple[Fraction, Fraction] | None:
    """Fieller's t interval of the ratio of totals (Fieller 1954); `None` when it is unbounded."""
    tasks = len(costs)
    x, y = Fraction(sum(costs), tasks), Fraction(sum(successes), tasks)
    square = Fraction(t_quantile(Decimal("0.975"), tasks - 1)) ** 2 / tasks
    a = y * y - square * _covariance(successes, successes)
    b = x * y - square * _covariance(costs, successes)
    c = x * x - square * _covariance(costs, costs)
    if a <= 0:
        return None
    half = root(b * b - a * c)
    return (b - half) / a, (b + half) / a


def _covariance(a: Sequence[int], b: Sequence[int]) -> Fraction:
    count = len(a)
    crossed = sum(left * right for left, right in zip(a, b, strict=True))
    return Fraction(count * crossed - sum(a) * sum(b), count * (count - 1))
