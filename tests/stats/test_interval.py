"""Golden values of the statistics study: exact rationals by enumeration, or mpmath to 12 digits."""

import hashlib
from fractions import Fraction as F

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoresheet.errors import counted
from scoresheet.stats import resample
from scoresheet.stats.interval import (
    boundary,
    effective,
    estimate,
    expanded,
    one_sided,
    order_statistic,
    plus_four,
    t_ends,
    variance_of_mean,
)
from scoresheet.stats.sample import Sample, sample
from tests.stats import convolution

START = resample.prefix(20260922, hashlib.sha256(b"demo-pack").hexdigest())
A = (5, 5, 4, 2, 0, 5, 5, 3, 5, 1, 5, 4)
B = (4, 5, 2, 2, 0, 3, 5, 1, 4, 0, 4, 2)
TOKENS_A = (6000, 17000, 4000, 75000, 10500, 4950, 6550, 20400, 3800, 110750, 9375, 13000)
TOKENS_B = (7000, 16000, 5200, 71000, 14000, 7100, 6400, 30100, 4100, 99000, 11000, 17500)
K = """4:1 5:9 6:24 7:41 8:57 9:72 10:85 11:97 12:107 13:116 14:124 15:132 16:138 17:144 18:149 19:154 20:158 21:162
22:166 23:169 24:172 25:175 26:178 27:180 28:183 29:185 30:187 31:189 32:191 33:192 34:194 35:196 36:197 37:198 38:200
39:201 40:202 41:203 42:204 43:205 44:206 45:207 46:208 47:209 48:210 49:211 50:211 51:212 52:213 53:213 54:214 55:215
56:215 57:216 58:216 59:217 60:218 75:224 80:225 100:230 120:233 150:237 200:240 250:242 300:243 400:245 500:246 750:247
1000:248 2000:249 5000:249 10000:249"""


def outcomes(passed: tuple[int, ...], runs: int) -> Sample:
    """One task for each count: so many of its runs passed."""
    return sample({f"t{i:03}": [1] * count + [0] * (runs - count) for i, count in enumerate(passed)})


def amounts(totals: tuple[int, ...]) -> Sample:
    return sample({f"t{i:03}": [total] for i, total in enumerate(totals)})


@pytest.mark.parametrize("entry", K.split())
def test_the_order_statistic_of_the_expanded_percentile_is_the_published_one(entry):
    clusters, k = map(int, entry.split(":"))
    assert order_statistic(clusters, 9999) == k


def test_three_clusters_leave_no_tail():
    assert order_statistic(3, 9999) == 0
    with pytest.raises(ValueError, match="no tail"):
        expanded(outcomes((1, 1, 0), 1), START)


@pytest.mark.parametrize(
    ("name", "values", "mean", "ends"),
    [
        ("A", outcomes(A, 5), F(44, 60), (F(29, 60), F(14, 15))),
        ("B", outcomes(B, 5), F(32, 60), (F(3, 10), F(3, 4))),
        ("tokens a run of A", amounts(TOKENS_A), F(281325, 12), (5 * F(4595, 3), 5 * F(29035, 3))),
        ("tokens a run of B", amounts(TOKENS_B), F(288400, 12), (F(5 * 1825), 5 * F(27635, 3))),
    ],
)
def test_the_worked_example_has_its_published_percentile_ends(name, values, mean, ends):
    found = expanded(values, START)
    assert values.mean == mean, name
    assert (found.low, found.high) == ends, name
    assert found.order_statistic == 107


@pytest.mark.parametrize(
    ("values", "clustered", "plus4", "n_eff"),
    [
        (
            outcomes((5, 5, 4, 2, 0, 5), 5),
            (0.264768787984, 1.13523121202),
            (0.286507597336, 0.953492402664),
            7.32558139535,
        ),
        (outcomes(A, 5), (0.507745233185, 0.958921433482), (0.4552952097, 0.8947047903), 18.6153846154),
        (outcomes((5,) * 12, 5), (1, 1), (0.692992845388, 1), None),
        (outcomes((1,) * 5, 1), (1, 1), (0.438827029776, 1), None),
        (outcomes((1, 1, 0, 1, 0), 1), (-0.0800873806583, 1.28008738066), (0.150431924388, 0.960679186723), 4.0),
        (outcomes((0,) * 12, 5), (0, 0), (0, 0.307007154612), None),
        (outcomes((1,) + (0,) * 11, 5), (-0.0200164193349, 0.0533497526682), (0, 0.318855964136), 59.0),
    ],
)
def test_the_t_intervals_have_the_values_that_mpmath_gives(values, clustered, plus4, n_eff):
    assert tuple(map(float, t_ends(values))) == pytest.approx(clustered, abs=1e-11)
    found = plus_four(values)
    assert (float(found.low), float(found.high)) == pytest.approx(plus4, abs=1e-11)
    assert effective(values) == (None if n_eff is None else pytest.approx(n_eff, abs=1e-10))


def test_agent_a_is_at_the_boundary_and_agent_b_is_not():
    a, b = estimate(outcomes(A, 5), START), estimate(outcomes(B, 5), START)
    assert a.interval
    assert a.interval.boundary
    assert "boundary: only 6 of 12 tasks" in a.interval.method
    assert b.interval
    assert not b.interval.boundary
    assert b.interval.method == "expanded percentile, xof-cluster-boot/1, B=9999, k=107"
    assert float(a.icc or 0) == pytest.approx(0.5147, abs=5e-5)
    assert float(a.deff or 0) == pytest.approx(3.223, abs=5e-4)


@pytest.mark.parametrize(("tasks", "bound"), [(5, 0.450719728347), (12, 0.220922191946), (500, 0.00597355151635)])
def test_no_event_at_all_still_bounds_the_rate_by_tasks(tasks, bound):
    for passed in (0, 5):
        assert float(one_sided(outcomes((passed,) * tasks, 5)) or 0) == pytest.approx(bound, abs=1e-12)
    assert one_sided(outcomes((1,) + (0,) * tasks, 5)) is None


@pytest.mark.parametrize(
    ("totals", "mean", "variance", "percentile", "widened"),
    [
        ((1, 1, 0, 1, 0), F(3, 5), F(6, 125), (F(1, 5), F(1)), (F(0), F(1))),
        ((2, 1, 0, 2, 1), F(6, 5), F(28, 250), (F(6, 10), F(18, 10)), (F(2, 10), F(2))),
        ((5, 5, 4, 2, 0, 5), F(7, 2), F(25 * 43, 1800), (F(11, 6), F(29, 6)), (F(7, 6), F(5))),
        ((1200, 3400, 800, 15000, 2100), F(4500), F(5672000), (F(1220), F(9840)), (F(880), F(12680))),
    ],
)
def test_the_oracle_of_infinitely_many_resamples_has_its_enumerated_values(totals, mean, variance, percentile, widened):
    count = len(totals)
    exact = convolution.resampled_sums(totals)
    assert sum(total * p for total, p in exact) / count == mean
    assert sum((F(total, count) - mean) ** 2 * p for total, p in exact) == variance
    assert variance_of_mean(amounts(totals)) * F(count - 1, count) == variance
    assert tuple(F(end, count) for end in convolution.ends(totals, F(1, 40))) == percentile
    level = F(9541, 10**7) if count == 5 else F(24318, 10**7)
    assert tuple(F(end, count) for end in convolution.ends(totals, level)) == widened


@pytest.mark.parametrize("passed", [B, (5, 4, 3, 1, 0, 2, 5, 1, 4, 2, 3, 0, 1, 2, 5)])
def test_the_percentile_ends_lie_within_an_atom_of_the_exact_ones(passed):
    found = expanded(outcomes(passed, 5), START)
    low, high = convolution.ends(passed, F(order_statistic(len(passed)), 10_000))
    scale = 5 * len(passed)
    assert abs(found.low * scale - low) <= 1
    assert abs(found.high * scale - high) <= 1


@pytest.mark.parametrize("tasks", [1, 4])
def test_under_five_tasks_there_is_no_interval(tasks):
    found = estimate(outcomes((3,) * tasks, 5), START)
    assert found.interval is None
    assert found.mde is None
    assert f"no interval: {counted(tasks, 'task')}, and 5 are needed" in found.warnings[0]


def test_five_tasks_of_four_clusters_have_no_interval_either():
    values = {f"t{i}": [i % 2] for i in range(5)}
    found = estimate(sample(values, {"t0": "repo", "t1": "repo"}), START)
    assert found.interval is None
    assert "4 clusters" in found.warnings[0]


def test_tasks_of_one_cluster_are_resampled_together():
    passed = (5, 5, 5, 5, 0, 0, 0, 0) * 6
    alone = estimate(outcomes(passed, 5), START)
    pairs = {f"t{i:03}": f"repo-{i // 2}" for i in range(48)}
    values = {f"t{i:03}": [1] * count + [0] * (5 - count) for i, count in enumerate(passed)}
    together = estimate(sample(values, pairs), START)
    assert together.clusters == 24
    assert together.mean == alone.mean
    assert alone.interval
    assert together.interval
    assert together.interval.high - together.interval.low > F(13, 10) * (alone.interval.high - alone.interval.low)


def test_clusters_of_one_task_each_are_the_tasks():
    values = {f"t{i:03}": [1] * count + [0] * (5 - count) for i, count in enumerate(B)}
    named = sample(values, {task: task for task in values})
    assert expanded(named, START) == expanded(sample(values), START)


def test_clusters_of_unequal_size_keep_the_mean_of_the_task_means():
    values = {f"t{i:03}": [int(i % 3 > 0)] for i in range(40)}
    found = estimate(sample(values, {f"t{i:03}": "big" for i in range(8)}), START)
    assert found.mean == F(sum(value for (value,) in values.values()), 40)
    assert found.clusters == 33
    assert found.interval
    assert found.interval.low < found.mean < found.interval.high


def test_repeats_that_never_differ_say_that_they_add_nothing():
    found = estimate(outcomes((5, 0) * 10, 5), START)
    assert found.warnings == ("repeats identical: repeating adds no information; n_eff = 20 tasks",)
    assert (found.n_eff, found.deff) == (F(20), F(5))
    assert found.icc == 1


def test_one_repeat_says_what_it_can_not_tell():
    found = estimate(outcomes((1, 0) * 10, 1), START)
    assert found.icc is None
    assert "one repeat" in found.warnings[0]


def test_a_heavy_tail_is_called_skewed():
    found = estimate(amounts((1200, 3400, 800, 15000, 2100)), START, share=False)
    assert any(line.startswith("SKEW") for line in found.warnings)
    assert not estimate(amounts((10,) * 12), START, share=False).warnings[1:]


def test_unequal_repeats_weigh_every_task_the_same():
    values = sample({"a": [1, 1, 1, 1], "b": [0]})
    assert values.mean == F(1, 2)
    found = estimate(sample({f"t{i}": [1, 0] if i % 2 else [1] for i in range(8)}), START)
    assert any("repeats differ: 1 to 2" in line for line in found.warnings)


def test_the_detectable_gap_shrinks_with_tasks_and_is_never_zero():
    few, many = (estimate(outcomes((4, 2) * half, 5), START).mde or 0 for half in (6, 60))
    assert few > many > 0
    assert (estimate(outcomes((5,) * 12, 5), START).mde or 0) > 0


def test_a_unit_other_than_one_scales_to_shares():
    tenths = sample({f"t{i:02}": [value] for i, value in enumerate((0, 3, 10, 7) * 5)}, unit=10)
    assert tenths.mean == F(1, 2)
    found = estimate(tenths, START)
    assert found.interval
    assert 0 <= found.interval.low < found.interval.high <= 1


passes = st.lists(st.integers(0, 5), min_size=5, max_size=24)


@settings(max_examples=40, deadline=None)
@given(passes, st.randoms(use_true_random=False))
def test_the_order_of_tasks_and_repeats_changes_no_digit(passed, random):
    values = {f"t{i}": [1] * count + [0] * (5 - count) for i, count in enumerate(passed)}
    shuffled = list(values.items())
    random.shuffle(shuffled)
    other = {task: random.sample(runs, len(runs)) for task, runs in shuffled}
    assert estimate(sample(values), START, resamples=1999) == estimate(sample(other), START, resamples=1999)


@settings(max_examples=40, deadline=None)
@given(passes)
def test_the_interval_lies_in_the_unit_range_and_holds_the_mean_of_the_resamples(passed):
    found = estimate(outcomes(tuple(passed), 5), START, resamples=1999)
    assert found.interval is not None
    assert 0 <= found.interval.low <= found.interval.high <= 1
    assert found.interval.low <= found.mean <= found.interval.high


@settings(max_examples=40, deadline=None)
@given(passes, st.data())
def test_one_more_pass_never_lowers_an_end_of_the_percentile(passed, data):
    place = data.draw(st.integers(0, len(passed) - 1))
    if passed[place] == 5:
        return
    more = tuple(count + (i == place) for i, count in enumerate(passed))
    before, after = (expanded(outcomes(counts, 5), START, 1999) for counts in (tuple(passed), more))
    assert before.low <= after.low
    assert before.high <= after.high


def test_one_more_pass_of_the_best_task_may_lower_an_end_of_plus_four_for_it_spreads_them_more():
    before, after = (plus_four(outcomes((0, best, 0, 1, 1), 5)) for best in (4, 5))
    assert after.low < before.low < before.high < after.high


@settings(max_examples=30, deadline=None)
@given(passes)
def test_the_expanded_percentile_is_never_narrower_than_the_plain_one(passed):
    found = expanded(outcomes(tuple(passed), 5), START, 1999)
    (drawn,) = resample.sums(START, [passed], 1999)
    ordered, scale = sorted(drawn), 5 * len(passed)
    assert found.low <= F(ordered[49], scale)
    assert found.high >= F(ordered[1949], scale)


def test_the_guard_counts_the_clusters_off_each_edge():
    assert boundary(outcomes(A, 5)) == 6
    assert boundary(outcomes(B, 5)) == 10
    assert boundary(outcomes((0,) * 9, 5)) == 0
