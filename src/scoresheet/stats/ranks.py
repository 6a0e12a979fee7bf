"""Several agents on one pack: all their differences at once, and which ranks the data leave open to each. Pure.

From 30 tasks the bootstrap's largest studentized deviation gives the level and Student's t the tail (max-T level
transfer): the deviation itself claims too much on few tasks. Under 30 tasks the level is Bonferroni's, and Holm's steps
decide. An agent's rank is a set; agents whose sets overlap are tied.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from math import lcm

from scoresheet.stats import resample
from scoresheet.stats.compare import Verdict, may_win, pseudo_of, verdict
from scoresheet.stats.interval import (
    FEWEST_CLUSTERS,
    Interval,
    mean_with,
    root,
    t_ends,
    variance_of_mean,
)
from scoresheet.stats.quantile import DIGITS, context, normal_cdf, t_cdf
from scoresheet.stats.sample import Sample

FEWEST_FOR_MAX_T = 30
"""Clusters from which max-T holds its level (5.4 % at 30, 6.5 % at 12)."""
LEVEL = Decimal("0.05")


@dataclass(frozen=True, slots=True)
class Pair:
    """One agent minus another, beside all other pairs."""

    first: int
    second: int
    mean: Fraction
    interval: Interval | None
    """Simultaneous: all pairs' intervals hold their true difference in 95 % of such runs."""
    holm_p: Decimal
    """Of the paired t test, adjusted by Holm's steps for all pairs; 1 where too few tasks differ."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Ranking:
    """Every pair and every agent's rank set."""

    method: str
    level: Decimal | None
    """Of each interval, so that all hold together; `None` without intervals."""
    pairs: tuple[Pair, ...]
    """In order of (first, second)."""
    ranks: tuple[tuple[int, int], ...]
    """Per agent: its best and its worst rank that the data allow, counted from 1; 95 % jointly."""


def rank(
    agents: int,
    differences: Sequence[Sample],
    start: bytes,
    margin: Fraction | None = None,
    resamples: int = resample.RESAMPLES,
) -> Ranking:
    """The ranking of so many `agents`; `differences` holds every pair, first minus second: (0, 1), (0, 2)…"""
    of_pairs = tuple(combinations(range(agents), 2))
    if len(of_pairs) != len(differences) or not of_pairs:
        raise ValueError(f"{agents} agents have {len(of_pairs)} pairs, not {len(differences)}")
    clusters = len(differences[0].totals)
    adjusted = holm([p_of(each) for each in differences])
    level: Decimal | None = None
    if clusters < FEWEST_CLUSTERS:
        method = f"none ({clusters} tasks or clusters, {FEWEST_CLUSTERS} are needed)"
    elif clusters < FEWEST_FOR_MAX_T:
        with localcontext(context(DIGITS)):
            level = LEVEL / len(of_pairs)
        method = "Bonferroni-t intervals, Holm-t decisions"
    else:
        columns = [each.totals for each in differences]
        *drawn, weights = resample.sums(start, [*columns, differences[0].weights], resamples)
        level = transferred(furthest(differences, drawn, weights), clusters, len(of_pairs))
        method = f"max-T level transfer to t, {resample.ALGORITHM}, B={resamples}"
    pairs = []
    for (first, second), each, p in zip(of_pairs, differences, adjusted, strict=True):
        interval = simultaneous(each, level) if level is not None else None
        said = verdict(interval, margin, may_win=may_win(each))
        if interval is not None and clusters < FEWEST_FOR_MAX_T and p <= LEVEL and may_win(each):
            said = "better" if each.mean > 0 else "worse"  # a later step of Holm's needs less than the interval
        pairs.append(Pair(first, second, each.mean, interval, p, said))
    return Ranking(method, level, tuple(pairs), rank_sets(agents, pairs))


def rank_sets(agents: int, pairs: Sequence[Pair]) -> tuple[tuple[int, int], ...]:
    """Per agent `(1 + those above it, agents - those below it)`, by the verdicts (Mogstad et al. 2024)."""
    above, below = [0] * agents, [0] * agents
    for pair in pairs:
        if pair.verdict in ("better", "worse"):
            winner, loser = (pair.first, pair.second) if pair.verdict == "better" else (pair.second, pair.first)
            above[loser] += 1
            below[winner] += 1
    return tuple((1 + over, agents - under) for over, under in zip(above, below, strict=True))


def furthest(differences: Sequence[Sample], drawn: Sequence[Sequence[int]], weights: Sequence[int]) -> Fraction:
    """q²: the square of the 95 % quantile of the largest |resampled - seen| / standard error over all pairs.

    `drawn` holds the resampled totals of each pair, `weights` the tasks of each resample. Exact.
    """
    variances = [variance_of_mean(each) for each in differences]
    kept = [index for index, variance in enumerate(variances) if variance]
    if not kept:
        return Fraction(0)
    tasks = differences[0].tasks
    gains = [1 / (variances[index] * (differences[index].scale * tasks) ** 2) for index in kept]
    common = lcm(*(gain.denominator for gain in gains))
    reached: list[dict[tuple[int, int], Fraction]] = []
    for index, gain in zip(kept, gains, strict=True):
        seen, factor = sum(differences[index].totals), gain.numerator * (common // gain.denominator)
        distinct = set(zip(drawn[index], weights, strict=True))
        reached.append({(sums, of): Fraction(factor * (sums * tasks - seen * of) ** 2, of**2) for sums, of in distinct})
    # few values recur in thousands of resamples: those are ordered once, and then only places are compared
    ordered = sorted({value for values in reached for value in values.values()})
    place = {value: number for number, value in enumerate(ordered)}
    columns = []
    for index, values in zip(kept, reached, strict=True):
        places = {key: place[value] for key, value in values.items()}
        columns.append([places[key] for key in zip(drawn[index], weights, strict=True)])
    largest: list[int] = sorted(max(each) for each in zip(*columns, strict=True))
    return ordered[largest[_rank95(len(largest))]] / common


def transferred(square: Fraction, clusters: int, pairs: int) -> Decimal:
    """The level of each interval: `max(2 Phi(-q'), .05 / pairs)`, q' the quantile widened by sqrt(T / (T - 1))."""
    widened = square * clusters / (clusters - 1)
    with localcontext(context(DIGITS)):
        q = _decimal(root(widened))
        return max(2 * normal_cdf(-q), LEVEL / pairs) if q else LEVEL / pairs


def simultaneous(differences: Sample, level: Decimal) -> Interval:
    """The t interval of one pair at `level`: plus-2 where under 6 tasks differ, or all differ alike."""
    with localcontext(context(DIGITS)):
        p = 1 - level / 2
    pseudo = pseudo_of(differences)
    low, high = t_ends(differences, pseudo, p)
    label = f"{'plus-2 clustered t' if pseudo else 'clustered t'} at level {level:.6f}"
    return Interval(max(Fraction(-1), low), min(Fraction(1), high), label, boundary=bool(pseudo))


def p_of(differences: Sample) -> Decimal:
    """The two-sided p of the paired t test; 1 where too few tasks differ for anybody to win."""
    if not may_win(differences):
        return Decimal(1)
    pseudo = pseudo_of(differences)
    error = root(variance_of_mean(differences, pseudo))
    with localcontext(context(DIGITS)):
        t = _decimal(abs(mean_with(differences, pseudo)) / error)
        return 2 * (1 - t_cdf(t, len(differences.totals) + len(pseudo) - 1))


def holm(ps: Sequence[Decimal]) -> tuple[Decimal, ...]:
    """Holm's adjusted p of every test, in their order (Holm 1979)."""
    adjusted = [Decimal(1)] * len(ps)
    reached = Decimal(0)
    with localcontext(context(DIGITS)):
        for step, index in enumerate(sorted(range(len(ps)), key=lambda index: (ps[index], index))):
            reached = max(reached, min(Decimal(1), (len(ps) - step) * ps[index]))
            adjusted[index] = reached
    return tuple(adjusted)


def _rank95(count: int) -> int:
    """Index of the smallest value that 95 % of so many do not exceed."""
    return -(-19 * count // 20) - 1


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
