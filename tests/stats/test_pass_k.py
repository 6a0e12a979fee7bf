from fractions import Fraction as F

import pytest

from scoresheet.stats.pass_k import all_of, at_least_one, mean_all_of, mean_at_least_one

PACK = [(5, passed) for passed in (5, 5, 4, 2, 0, 5)]


@pytest.mark.parametrize(
    ("runs", "passed", "any_of", "all_"),
    [
        (5, 0, "0 0 0 0 0", "0 0 0 0 0"),
        (5, 1, "1/5 2/5 3/5 4/5 1", "1/5 0 0 0 0"),
        (5, 2, "2/5 7/10 9/10 1 1", "2/5 1/10 0 0 0"),
        (5, 3, "3/5 9/10 1 1 1", "3/5 3/10 1/10 0 0"),
        (5, 4, "4/5 1 1 1 1", "4/5 3/5 2/5 1/5 0"),
        (5, 5, "1 1 1 1 1", "1 1 1 1 1"),
        (8, 6, "3/4 27/28 1 1 1 1 1 1", "3/4 15/28 5/14 3/14 3/28 1/28 0 0"),
        (10, 3, "3/10 8/15 17/24 5/6 11/12 29/30 119/120 1 1 1", "3/10 1/15 1/120 0 0 0 0 0 0 0"),
    ],
)
def test_a_tasks_values_are_the_enumerated_ones(runs, passed, any_of, all_):
    for k, (least, every) in enumerate(zip(any_of.split(), all_.split(), strict=True), 1):
        assert at_least_one(runs, passed, k) == F(least)
        assert all_of(runs, passed, k) == F(every)


def test_a_packs_value_is_the_mean_over_its_tasks():
    assert [mean_at_least_one(PACK, k) for k in (1, 2, 3, 5)] == [F(7, 10), F(47, 60), F(49, 60), F(5, 6)]
    assert [mean_all_of(PACK, k) for k in (1, 2, 3, 5)] == [F(7, 10), F(37, 60), F(17, 30), F(1, 2)]


@pytest.mark.parametrize(("runs", "passed", "k"), [(5, 3, 6), (5, 3, 0), (5, 6, 1), (5, -1, 1)])
def test_more_than_was_run_is_refused(runs, passed, k):
    with pytest.raises(ValueError, match="runs"):
        all_of(runs, passed, k)
