"""Ratios of cost: the worked example's values, and where nothing bounds them."""

from fractions import Fraction as F

import pytest

from scoresheet.stats import ratio
from tests.stats.test_interval import START, TOKENS_A, TOKENS_B, A, B
from tests.stats.there import there

IDS = [f"t{i:02}" for i in range(12)]


def test_the_worked_example_costs_less_per_success():
    found = there(ratio.per_success((TOKENS_A, A), (TOKENS_B, B), START))
    ends = (float(found.ratio), float(there(found.low)), float(there(found.high)))
    assert ends == pytest.approx((0.70943, 0.47426, 0.89356), abs=5e-6)
    assert found.verdict == "less"


def test_the_geometric_ratio_is_the_mean_of_logarithms():
    found = ratio.geometric(dict(zip(IDS, TOKENS_A, strict=True)), dict(zip(IDS, TOKENS_B, strict=True)))
    product = 1.0
    for a, b in zip(TOKENS_A, TOKENS_B, strict=True):
        product *= a / b
    assert float(found.ratio) == pytest.approx(product ** (1 / 12), abs=1e-8)
    assert there(found.low) < found.ratio < there(found.high) < 1
    assert found.verdict == "less"


def test_logarithms_are_whole_numbers():
    assert [ratio.ln(total) for total in (1, 2, 10, 10**6)] == [0, 693147181, 2302585093, 13815510558]
    with pytest.raises(ValueError, match="above 0"):
        ratio.ln(0)


def test_a_ratio_of_other_tasks_is_refused():
    with pytest.raises(ValueError, match="same tasks"):
        ratio.geometric({"a": 1}, {"b": 1})


@pytest.mark.parametrize(
    ("tasks", "verdict", "bounded"), [(4, "unresolved", False), (5, "unresolved", True), (6, "less", True)]
)
def test_few_tasks_have_no_ratio_that_decides(tasks, verdict, bounded):
    cheap = {f"t{i}": 100 + i for i in range(tasks)}
    dear = {f"t{i}": 1000 + 7 * i for i in range(tasks)}
    found = ratio.geometric(cheap, dear)
    assert (found.verdict, found.low is not None) == (verdict, bounded)
    back = ratio.geometric(dear, cheap)
    assert back.verdict == {"less": "more"}.get(verdict, verdict)
    assert float(back.ratio * found.ratio) == pytest.approx(1)


def test_a_ratio_of_one_and_the_same_bill_is_one():
    same = {f"t{i}": 100 + i for i in range(8)}
    found = ratio.geometric(same, same)
    assert (found.ratio, found.low, found.high, found.verdict) == (F(1), F(1), F(1), "unresolved")


def test_an_agent_that_passes_few_tasks_has_no_bound():
    few = (5, 4, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0)
    assert there(ratio.per_success((TOKENS_A, few), (TOKENS_B, B), START)).high is None
    assert there(ratio.per_success((TOKENS_A, A), (TOKENS_B, few), START)).low == 0
    assert ratio.per_success((TOKENS_A, (0,) * 12), (TOKENS_B, B), START) is None
    assert there(ratio.per_success((TOKENS_A[:4], A[:4]), (TOKENS_B[:4], B[:4]), START)).low is None
    assert there(ratio.per_success((TOKENS_A, A), (TOKENS_B, B), START)).ratio == F(
        sum(TOKENS_A) * 32, 44 * sum(TOKENS_B)
    )


def test_a_bill_that_a_resample_finds_empty_bounds_nothing():
    free = (0,) * 11 + (100,)
    found = there(ratio.per_success((TOKENS_A, A), (free, (5,) * 12), START))
    assert (found.high, found.verdict) == (None, "more")
    assert ratio.per_success((TOKENS_A, A), ((0,) * 12, (5,) * 12), START) is None
