"""pass@k and pass^k of one task, as exact fractions; a pack's value is the mean over its tasks. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence
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
    return _mean(at_least_one, tasks, k)


def mean_all_of(tasks: Sequence[tuple[int, int]], k: int) -> Fraction:
    """The mean of pass^k over tasks, each given as (runs, passed)."""
    return _mean(all_of, tasks, k)


def _mean(of_task: Callable[[int, int, int], Fraction], tasks: Sequence[tuple[int, int]], k: int) -> Fraction:
    counts = Counter(tasks)  # many tasks have the same counts, and adding fractions is slow
    return sum((of_task(*task, k) * count for task, count in counts.items()), Fraction(0)) / len(tasks)


def _check(runs: int, passed: int, k: int) -> None:
    if not 0 <= passed <= runs:
        raise ValueError(f"{passed} of {runs} runs can't have passed")
    if not 1 <= k <= runs:
        raise ValueError(f"k = {k} needs as many runs of every task; there are {runs}")
