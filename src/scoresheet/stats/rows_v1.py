"""The published row bootstrap, digit for digit (vectors/row_bootstrap_v1.json).

It resamples rows: with repeats of one task it understates the noise, and every report that prints it says so. It is
the one place that uses `random`: the published figures come from `random.Random(seed).choice`. Pure, for its seed.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random

LABEL = "rows-v1 (published row bootstrap: understates the noise of repeated tasks)"
RESAMPLES = 1000


def bootstrap_mean(values: Sequence[float], seed: int, resamples: int = RESAMPLES) -> tuple[float, float, float]:
    """(mean, low, high) of `values` in their order: replicate int(.025 n) and int(.975 n), counted from 0.

    Raises `ValueError` without values.
    """
    if not values:
        raise ValueError("no values to resample")
    count, draw = len(values), _choice(seed, len(values))
    # fsum is correctly rounded: the built-in sum changed its digits in Python 3.12
    means = sorted(math.fsum([values[draw()] for _ in range(count)]) / count for _ in range(resamples))
    return math.fsum(values) / count, means[int(0.025 * resamples)], means[int(0.975 * resamples)]


def interval(outcomes: Sequence[int], seed: int, resamples: int = RESAMPLES) -> tuple[Fraction, Fraction]:
    """The ends of `bootstrap_mean` as exact fractions, for whole numbers in order of (task, repeat)."""
    count, draw = len(outcomes), _choice(seed, len(outcomes))
    totals = sorted(sum([outcomes[draw()] for _ in range(count)]) for _ in range(resamples))
    return Fraction(totals[int(0.025 * resamples)], count), Fraction(totals[int(0.975 * resamples)], count)


def _choice(seed: int, count: int) -> Callable[[], int]:
    """The index that `random.Random(seed).choice` would take next, without its overhead."""
    bits, width = Random(seed).getrandbits, count.bit_length()

    def draw() -> int:
        index = bits(width)
        while index >= count:
            index = bits(width)
        return index

    return draw
