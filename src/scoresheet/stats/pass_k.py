"""pass@k and pass^k of one task, as exact fractions; a pack's value is the mean over its tasks. Pure."""

from collections.abc import Sequence
from fractions import Fraction
from math import comb


def at_least_one(runs: int, passed: int, k: int) -> Fraction:
    """pass@k: the chance that k of the runs, drawn without replacement, hold a pass (Chen et al. 2021, §2.1)."""
    _check(runs, passed, k)
    return 1 - Fraction(comb(runs - passed, k), comb(runs, k))


def all_of(runs: int, passed: int, k: int) -> Fraction:
    """pass^k: the chance that k of the runs, drawn without replacement, all pass (tau-bench, Yao et al. 2024)."""
    _check(runs, passed, k)
    return Fraction(comb(passed, k), comb(runs, k))


def mean_at_least_one(tasks: Sequence[tuple[int, int]], k: int) -> Fraction:
    """The mean of pass@k over tasks, each given as (runs, passed)."""
    return sum((at_least_one(runs, passed, k) for runs, passed in tasks), Fraction(0)) / len(tasks)


def mean_all_of(tasks: Sequence[tuple[int, int]], k: int) -> Fraction:
    """The mean of pass^k over tasks, each given as (runs, passed)."""
    return sum((all_of(runs, passed, k) for runs, passed in tasks), Fraction(0)) / len(tasks)


def _check(runs: int, passed: int, k: int) -> None:
    if not 0 <= passed <= runs:
        raise ValueError(f"{passed} of {runs} runs can't have passed")
    if not 1 <= k <= runs:
        raise ValueError(f"k = {k} needs as many runs of every task; there are {runs}")
