"""How often agents that are equal are called better or worse: at most 7 % of comparisons, the rate that 5 % promises.

Data sets are of three families: agents alike on every task, good at different tasks, and near the ceiling.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from random import Random

import pytest

from scoresheet.stats import compare, ranks, resample
from scoresheet.stats.interval import Interval, percentile_ends
from scoresheet.stats.sample import Sample
from tests.stats.test_interval import START

REPEATS, MOST = 5, 0.07
FAMILIES = ("alike", "different tasks", "ceiling")


def agents(random: Random, family: str, tasks: int, count: int) -> list[dict[str, list[int]]]:
    """So many agents with the same expected success, task -> outcomes."""
    mean, spread = (0.97, 2.0) if family == "ceiling" else (0.7, 2.3)  # spread 2.3: an ICC of .3

    def rates() -> list[float]:
        return [random.betavariate(mean * spread, (1 - mean) * spread) for _ in range(tasks)]

    shared = rates()
    return [
        {
            f"t{task:03}": [int(random.random() < rate) for _ in range(REPEATS)]
            for task, rate in enumerate(rates() if family == "different tasks" else shared)
        }
        for _ in range(count)
    ]


def pair(random: Random, family: str, tasks: int) -> Sample:
    """The differences of two equal agents."""
    first, second = agents(random, family, tasks, 2)
    return compare.paired(first, second)


def claims(differences: Sequence[Sample]) -> int:
    """Of so many pairs of equal agents, those that are not called a tie; all on one pass over the resamples."""
    drawn = resample.sums(START, [each.totals for each in differences])
    found = 0
    for each, sums in zip(differences, drawn, strict=True):
        tasks, whole = len(each.totals), each.scale * each.tasks
        if compare.pseudo_of(each):
            interval = compare.difference(each, START)  # no resample is read
        else:
            low, high, _ = percentile_ends(sums, tasks)
            interval = Interval(Fraction(low, whole), Fraction(high, whole), "expanded percentile")
        said = compare.verdict(interval, None, may_win=compare.may_win(each))
        found += said not in compare.TIES
    return found


@pytest.mark.parametrize("tasks", [12, 30])
def test_equal_agents_are_seldom_told_apart(tasks):
    """The quick share of the thousand data sets."""
    random = Random(20260922)
    sets = [pair(random, family, tasks) for family in FAMILIES for _ in range(60)]
    assert claims(sets) <= MOST * len(sets)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tasks", [12, 30])
def test_a_thousand_pairs_of_equal_agents_are_seldom_told_apart(tasks, family):
    random = Random(f"{family} {tasks}")
    sets = [pair(random, family, tasks) for _ in range(1000)]
    found = claims(sets)
    print(f"{family}, {tasks} tasks: {found} of 1000")
    assert found <= MOST * 1000
    for each in sets[:20]:  # the whole way says the same as the shared pass
        assert claims([each]) == (compare.compare(each, START).verdict not in compare.TIES)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tasks", [12, 30])
def test_five_equal_agents_are_seldom_ranked(tasks, family, monkeypatch):
    monkeypatch.setattr(resample, "_WORTH_NUMPY", 0)  # faster here, and never different
    random = Random(f"{family} {tasks} 5")
    wrong = 0
    for _ in range(1000):
        pairs = [compare.paired(a, b) for a, b in combinations(agents(random, family, tasks, 5), 2)]
        wrong += any(ends != (1, 5) for ends in ranks.rank(5, pairs, START).ranks)
    print(f"{family}, {tasks} tasks, 5 agents: {wrong} of 1000")
    assert wrong <= MOST * 1000
