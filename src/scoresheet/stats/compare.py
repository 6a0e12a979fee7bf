"""Two agents on one pack: the paired interval of their difference, and the exact sign-flip test. Pure."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from scoresheet.stats import resample
from scoresheet.stats.interval import Interval, expanded, t_ends
from scoresheet.stats.sample import Sample

FEWEST_DIFFERENT = 6
"""Tasks that must differ for the percentile: with fewer the exact test can't go below .05 (2/2⁵ is .0625)."""


def difference(sample: Sample, start: bytes, resamples: int = resample.RESAMPLES) -> Interval:
    """The 95 % interval of the mean paired difference (values in [-1, 1], one sample of differences per task).

    Expanded percentile when 6 tasks differ, else plus-2 clustered t (Bonett & Price 2012), which is never of zero
    width.
    """
    different = sum(total != 0 for total in sample.totals)
    if different >= FEWEST_DIFFERENT:
        return expanded(sample, start, resamples)
    low, high = t_ends(sample, pseudo=(1, -1))
    label = f"plus-2 clustered t (only {different} tasks differ)"
    return Interval(max(Fraction(-1), low), min(Fraction(1), high), label, boundary=True)


def sign_flip(differences: Sequence[int]) -> Fraction:
    """The exact two-sided p of the sign-flip test; McNemar's exact test with one repeat."""
    counts = Counter({0: 1})
    for size in map(abs, differences):
        flipped: Counter[int] = Counter()
        for total, ways in counts.items():
            flipped[total + size] += ways
            flipped[total - size] += ways
        counts = flipped
    seen = abs(sum(differences))
    return Fraction(sum(ways for total, ways in counts.items() if abs(total) >= seen), 2 ** len(differences))
