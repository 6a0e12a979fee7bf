from collections import Counter
from collections.abc import Sequence
from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.stats.compare import compare, difference, sign_flip, verdict
from scoresheet.stats.compare import paired as paired_values
from scoresheet.stats.interval import Interval
from scoresheet.stats.sample import Sample, sample
from tests.stats import convolution
from tests.stats.test_interval import START, A, B
from tests.stats.there import there

G4 = (2, 1, 0, 3, -1, 1)
G5 = (1, 0, 1, 0, 1, 1, -1, 0)


def paired(differences: tuple[int, ...], runs: int) -> Sample:
    return sample({f"t{i:02}": [value] for i, value in enumerate(differences)}, unit=runs)


def test_the_worked_example_finds_a_better_than_b():
    found = difference(paired(tuple(a - b for a, b in zip(A, B, strict=True)), 5), START)
    assert (found.low, found.high, found.order_statistic) == (F(1, 10), F(3, 10), 107)
    assert sign_flip([a - b for a, b in zip(A, B, strict=True)]) == F(2, 256)


@pytest.mark.parametrize(
    ("differences", "runs", "low", "high"),
    [
        (G4, 5, -0.345605000299, 0.645605000299),
        (G5, 1, -0.288933741586, 0.888933741586),
        ((0,) * 12, 5, -0.22646817043, 0.22646817043),
    ],
)
def test_few_tasks_that_differ_get_the_plus_two_interval(differences, runs, low, high):
    found = difference(paired(differences, runs), START)
    assert (float(found.low), float(found.high)) == pytest.approx((low, high), abs=1e-11)
    assert found.boundary
    assert "plus-2" in found.method


@pytest.mark.parametrize(
    ("differences", "level", "ends"),
    [(G4, F(1, 40), (0, 12)), (G4, F(24318, 10**7), (-3, 15)), (G5, F(1, 40), (-1, 7)), (G5, F(57375, 10**7), (-2, 7))],
)
def test_the_oracle_has_the_enumerated_ends_of_differences(differences, level, ends):
    assert convolution.ends(differences, level) == ends


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        (G4, F(1, 4)),
        (G5, F(3, 8)),
        ((1,) * 5, F(1, 16)),
        ((1,) * 6, F(1, 32)),
        ((1, 1, 1, 1, 1, -1), F(7, 32)),
        ((1,) * 7 + (-1, 0, 0, 0, 0), F(9, 128)),
    ],
)
def test_the_sign_flip_test_has_its_enumerated_p(differences, p):
    assert sign_flip(differences) == p


def repeats(passed: Sequence[int], runs: int) -> dict[str, list[int]]:
    """Task -> outcomes: so many of its runs passed."""
    return {f"t{i:03}": [1] * count + [0] * (runs - count) for i, count in enumerate(passed)}


def test_the_worked_example_is_better_although_the_rows_intervals_overlap():
    found = compare(paired_values(repeats(A, 5), repeats(B, 5)), START, F(1, 20))
    assert (found.mean, found.verdict, found.p) == (F(1, 5), "better", F(1, 128))
    assert found.interval == Interval(F(1, 10), F(3, 10), there(found.interval).method, order_statistic=107)
    assert (found.clusters, found.different) == (12, 8)
    assert float(there(found.mde)) == pytest.approx((2.2009851601 + 0.8755299143) * 0.0492367, abs=2e-4)


def test_the_other_way_round_it_is_worse_by_as_much():
    first, back = (compare(paired_values(repeats(x, 5), repeats(y, 5)), START) for x, y in ((A, B), (B, A)))
    assert back.verdict == "worse"
    ends, mirrored = there(first.interval), there(back.interval)
    assert (mirrored.low, mirrored.high) == (-ends.high, -ends.low)


@pytest.mark.parametrize(("tasks", "interval"), [(4, False), (5, True)])
def test_under_six_tasks_nobody_wins_and_under_five_there_is_no_interval(tasks, interval):
    found = compare(paired_values(repeats((5,) * tasks, 5), repeats((0,) * tasks, 5)), START, F(1, 20))
    assert (found.verdict, found.interval is not None) == ("unresolved", interval)
    assert (found.mde is not None) == interval


def test_five_tasks_that_differ_are_no_win_however_many_agree():
    found = compare(paired_values(repeats((5,) * 5 + (3,) * 95, 5), repeats((0,) * 5 + (3,) * 95, 5)), START)
    assert (found.different, found.verdict) == (5, "unresolved")
    assert there(found.interval).method == "plus-2 clustered t (only 5 tasks differ)"


def test_two_agents_that_never_differ_are_equivalent_only_where_the_interval_says_so():
    few, many = (compare(paired_values(repeats((3,) * n, 5), repeats((3,) * n, 5)), START, F(1, 20)) for n in (12, 200))
    assert (few.verdict, few.p, few.mean) == ("unresolved", F(1), F(0))
    assert there(few.interval).low < -F(1, 20)
    assert (many.verdict, there(many.interval).method) == ("equivalent", "plus-2 clustered t (no tasks differ)")
    assert compare(paired_values(repeats((3,) * 200, 5), repeats((3,) * 200, 5)), START).verdict == "unresolved"


def test_a_gap_that_is_the_same_in_every_task_still_has_an_interval_with_a_width():
    found = compare(paired_values(repeats((5,) * 6, 5), repeats((0,) * 6, 5)), START)
    ends = there(found.interval)
    assert (found.verdict, ends.method) == ("better", "plus-2 clustered t (all tasks differ alike)")
    assert 0 < ends.low < F(1, 5)
    assert ends.high == 1
    assert there(found.mde) > F(1, 2)


@pytest.mark.parametrize(
    ("low", "high", "margin", "said"),
    [
        (F(0), F(1, 2), None, "unresolved"),
        (F(-1, 2), F(0), None, "unresolved"),
        (F(1, 999), F(1, 2), None, "better"),
        (F(-1, 2), F(-1, 999), None, "worse"),
        (F(-1, 20), F(1, 20), F(1, 20), "equivalent"),
        (F(-1, 19), F(1, 20), F(1, 20), "unresolved"),
        (F(-1, 20), F(1, 19), F(1, 20), "unresolved"),
        (F(1, 100), F(1, 50), F(1, 20), "better"),
    ],
)
def test_an_end_that_touches_0_decides_nothing(low, high, margin, said):
    assert verdict(Interval(low, high, ""), margin, may_win=True) == said
    assert verdict(Interval(low, high, ""), None, may_win=False) == "unresolved"


def test_tasks_of_one_cluster_differ_together():
    cluster_of = {f"t{i:03}": f"repo-{i % 5}" for i in range(12)}
    found = compare(paired_values(repeats(A, 5), repeats(B, 5), cluster_of), START)
    assert (found.clusters, found.verdict) == (5, "unresolved")
    assert found.mean == F(1, 5)


def test_differences_need_the_same_tasks():
    with pytest.raises(ValueError, match="same tasks"):
        paired_values({"a": [1]}, {"b": [1]})


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=11))
def test_the_sign_flip_test_counts_every_choice_of_signs(differences):
    counts = Counter({0: 1})
    for size in differences:
        step: Counter[int] = Counter()
        for total, ways in counts.items():
            step[total + size] += ways
            step[total - size] += ways
        counts = step
    far = sum(ways for total, ways in counts.items() if abs(total) >= abs(sum(differences)))
    assert sign_flip(differences) == F(far, 2 ** len(differences))


def test_a_thousand_tasks_are_flipped_exactly():
    assert sign_flip([5] * 1000) == F(2, 2**1000)
    assert sign_flip([1, -1] * 500) == 1
