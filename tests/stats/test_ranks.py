"""The ranking of several agents: the published formula's golden values, and what the guards keep it from saying."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction as F
from itertools import combinations, product

import pytest

from scoresheet.stats import ranks, resample
from scoresheet.stats.compare import paired
from scoresheet.stats.interval import t_ends, variance_of_mean
from scoresheet.stats.quantile import t_quantile
from scoresheet.stats.sample import Sample
from tests.stats.test_interval import START, A, B
from tests.stats.there import there

G9 = ((5, 4, 5, 3, 4), (4, 2, 3, 3, 1), (2, 2, 1, 0, 1))


def differences(agents: Sequence[Sequence[int]], runs: int, cluster_of: dict[str, str] | None = None) -> list[Sample]:
    values = [{f"t{i:03}": [1] * count + [0] * (runs - count) for i, count in enumerate(passed)} for passed in agents]
    return [paired(first, second, cluster_of) for first, second in combinations(values, 2)]


def test_the_max_t_formula_has_its_enumerated_values():
    pairs = differences(G9, 5)
    assert [each.mean for each in pairs] == [F(8, 25), F(3, 5), F(7, 25)]
    assert [variance_of_mean(each) for each in pairs] == [F(13, 1250), F(1, 250), F(9, 625)]
    drawn = [[sum(each.totals[i] for i in index) for index in product(range(5), repeat=5)] for each in pairs]
    square = ranks.furthest(pairs, drawn, [5] * 5**5)
    assert square == F(50, 13)
    level = ranks.transferred(square, 5, 3)
    assert float(level) == pytest.approx(0.02833296, abs=5e-9)
    assert float(t_quantile(1 - level / 2, 4)) == pytest.approx(3.35892967, abs=5e-9)
    ends = [t_ends(each, (), 1 - level / 2) for each in pairs]
    expected = [(-0.022545, 0.662545), (0.387563, 0.812437), (-0.123072, 0.683072)]
    assert [tuple(map(float, each)) for each in ends] == [pytest.approx(each, abs=5e-7) for each in expected]
    said = [
        ranks.Pair(first, second, F(0), None, Decimal(1), "better" if low > 0 else "unresolved")
        for (first, second), (low, _) in zip(combinations(range(3), 2), ends, strict=True)
    ]
    assert ranks.rank_sets(3, said) == ((1, 2), (1, 3), (2, 3))


def test_five_tasks_rank_nobody():
    found = ranks.rank(3, differences(G9, 5), START)
    assert found.ranks == ((1, 3), (1, 3), (1, 3))
    assert {pair.verdict for pair in found.pairs} == {"unresolved"}
    assert all(pair.interval is not None and pair.interval.boundary for pair in found.pairs)


def test_four_tasks_have_no_interval_either():
    found = ranks.rank(2, differences(((5,) * 4, (0,) * 4), 5), START)
    assert (found.level, found.pairs[0].interval, found.ranks) == (None, None, ((1, 2), (1, 2)))
    assert found.method.startswith("none (4 tasks")


def test_twelve_tasks_are_ranked_by_holm_and_thirty_by_max_t():
    none = (0,) * 12
    few = ranks.rank(3, differences((A, B, none), 5), START)
    assert few.method == "Bonferroni-t intervals, Holm-t decisions"
    assert few.ranks == ((1, 1), (2, 2), (3, 3))
    assert [pair.verdict for pair in few.pairs] == ["better"] * 3
    many = ranks.rank(3, differences((A * 3, B * 3, none * 3), 5), START)
    assert many.method == "max-T level transfer to t, xof-cluster-boot/1, B=9999"
    assert many.ranks == ((1, 1), (2, 2), (3, 3))
    assert Decimal("0.05") / 3 <= there(many.level) < Decimal("0.05")


def test_agents_that_can_not_be_told_apart_share_their_ranks():
    nearly = (5, 5, 4, 2, 0, 5, 5, 3, 5, 1, 4, 4)
    found = ranks.rank(3, differences((A, nearly, B), 5), START)
    assert found.pairs[0].verdict == "unresolved"
    assert found.ranks[0][0] == found.ranks[1][0] == 1
    assert found.ranks[0][1] >= 2


def test_a_gap_that_is_the_same_in_every_task_is_not_taken_for_certain():
    found = ranks.rank(2, differences(((4,) * 12, (3,) * 12), 5), START)
    ends = there(found.pairs[0].interval)
    assert ends.boundary
    assert ends.low < F(1, 5) < ends.high


def test_holm_multiplies_by_the_tests_that_are_left():
    assert ranks.holm([Decimal("0.03"), Decimal("0.001"), Decimal("0.02")]) == (
        Decimal("0.04"), Decimal("0.003"), Decimal("0.04"),
    )  # fmt: skip
    assert ranks.holm([Decimal(1), Decimal("0.6")]) == (Decimal(1), Decimal(1))


def test_under_thirty_tasks_a_later_step_of_holm_may_decide_where_the_interval_does_not():
    agents = [tuple(map(int, passed)) for passed in ("333333312222", "222222222222", "010001000000")]
    pair = ranks.rank(3, differences(agents, 5), START).pairs[0]
    assert there(pair.interval).low < 0
    assert Decimal("0.05") / 3 < pair.holm_p < Decimal("0.05")
    assert pair.verdict == "better"


def test_from_thirty_tasks_holm_is_a_cross_check_alone():
    agents = [
        tuple(map(int, passed))
        for passed in (
            "144135253051434115354325015254515024",
            "144124354040324115344335115143505014",
            "032013233030203004211112003020302002",
        )
    ]
    found = ranks.rank(3, differences(agents, 5), START)
    assert found.pairs[0].holm_p < Decimal("0.05")
    assert there(found.pairs[0].interval).low < 0
    assert found.pairs[0].verdict == "unresolved"
    assert found.ranks == ((1, 2), (1, 2), (3, 3))


def test_clusters_of_different_size_are_resampled_as_ratios():
    cluster_of = {f"t{i:03}": f"repo-{i}" for i in range(0, 36, 2)} | {"t001": "repo-0", "t003": "repo-0"}
    pairs = differences((A * 3, B * 3), 5, cluster_of)
    found = ranks.rank(2, pairs, START)
    assert found.method.startswith("max-T")
    assert found.pairs[0].verdict == "better"
    weighed = resample.sums(START, [pairs[0].totals, pairs[0].weights], 99)
    slow = sorted(
        (F(total, weight * pairs[0].scale) - pairs[0].mean) ** 2 / variance_of_mean(pairs[0])
        for total, weight in zip(*weighed, strict=True)
    )
    assert ranks.furthest(pairs, [weighed[0]], weighed[1]) == slow[94]


def test_a_ranking_needs_every_pair():
    with pytest.raises(ValueError, match="3 agents have 3 pairs, not 1"):
        ranks.rank(3, differences((A, B), 5), START)
