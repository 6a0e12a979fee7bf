"""The task bootstrap with infinitely many resamples, exactly: the oracle of the resampling tests."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction


def resampled_sums(totals: Sequence[int]) -> list[tuple[int, Fraction]]:
    """(sum, probability) of drawing as many totals as there are, with replacement; in order of the sum."""
    one = Counter(totals)
    ways = Counter({0: 1})
    for _ in totals:
        step: Counter[int] = Counter()
        for total, count in ways.items():
            for value, times in one.items():
                step[total + value] += count * times
        ways = step
    return [(total, Fraction(ways[total], len(totals) ** len(totals))) for total in sorted(ways)]


def quantile(distribution: Sequence[tuple[int, Fraction]], level: Fraction) -> int:
    """The smallest sum whose cumulated probability reaches `level`."""
    reached = Fraction(0)
    for total, probability in distribution:
        reached += probability
        if reached >= level:
            return total
    raise AssertionError("probabilities sum to 1")


def ends(totals: Sequence[int], level: Fraction) -> tuple[int, int]:
    """The lower and the upper end of the percentile interval at `level` a side."""
    distribution = resampled_sums(totals)
    mirrored = [(-total, probability) for total, probability in reversed(distribution)]
    return quantile(distribution, level), -quantile(mirrored, level)
