from fractions import Fraction as F
from itertools import product

import pytest

from scoresheet.stats.cost import cost_per_success, fieller
from tests.stats.test_interval import START, TOKENS_A, TOKENS_B, A, B

G7 = (1200, 3400, 800, 15000, 2100), (5, 3, 4, 0, 2)
G8 = (900, 1500, 1100, 4000, 700, 2500, 1300, 2000), (5, 4, 5, 1, 5, 3, 4, 2)


@pytest.mark.parametrize(
    ("costs", "passed", "ratio", "low", "high"),
    [(TOKENS_A, A, F(25575, 4), 1748.0, 17950.0), (TOKENS_B, B, F(18025, 2), 2688.095238095238, 26738.88888888889)],
)
def test_the_worked_example_has_its_published_cost_per_success(costs, passed, ratio, low, high):
    found = cost_per_success(costs, passed, START)
    assert found.ratio == ratio
    assert found.low is not None
    assert found.high is not None
    assert (float(found.low), float(found.high)) == (low, high)


def test_fiellers_interval_has_its_golden_values():
    assert tuple(map(float, fieller(*G7) or ())) == pytest.approx((-605.0262059881459, 26626.775234981716))
    assert tuple(map(float, fieller(*G8) or ())) == pytest.approx((175.8046511904301, 1104.4700622080766))


def test_enumerating_every_resample_gives_the_golden_ends():
    costs, passed = G7
    every = sorted(
        F(sum(costs[i] for i in drawn), won) if (won := sum(passed[i] for i in drawn)) else F(10**9)
        for drawn in product(range(5), repeat=5)
    )
    assert (every[78], every[3046]) == (F(305), F(23950, 3))
    assert (every[2], every[3122]) == (F(4400, 21), F(31050))
    assert sum(value == 10**9 for value in every) == 1


def test_too_few_passing_tasks_leave_the_upper_end_open():
    found = cost_per_success(*G7, START)
    assert found.ratio == F(11250, 7)
    assert found.low is not None
    assert found.high is None
    assert str(found).endswith("upper unbounded")


def test_a_resample_without_a_success_is_dear_not_free():
    found = cost_per_success((6, 6, 6, 6, 6, 6), (0, 0, 0, 0, 0, 3), START)
    assert found.low is not None
    assert found.low >= 2
    assert found.high is None


def test_enough_passing_tasks_close_it():
    found = cost_per_success(*G8, START)
    assert found.ratio == F(14000, 29)
    assert found.high is not None
    assert str(found).startswith("[")


def test_nothing_passed_is_undefined_not_infinite():
    assert str(cost_per_success((5,) * 6, (0,) * 6, START)) == "undefined (0 passing)"


def test_under_five_tasks_a_ratio_has_no_interval():
    found = cost_per_success((5, 5), (1, 1), START)
    assert (found.ratio, str(found)) == (F(5), "no interval")


def test_nearly_nothing_passed_is_unbounded():
    assert fieller((9, 9, 9, 9, 9, 9), (1, 0, 0, 0, 0, 0)) is None
