import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from scoresheet.stats import rows_v1

VECTORS = Path(__file__).parents[1] / "vectors"
CASES = json.loads((VECTORS / "row_bootstrap_v1.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_the_published_row_bootstrap_is_reproduced_exactly(case):
    found = rows_v1.bootstrap_mean(case["values"], case["seed"], case["resamples"])
    assert found == (case["mean"], case["low"], case["high"])


def test_the_published_summary_is_reproduced_exactly():
    document = json.loads((VECTORS / "summary_v1.json").read_text())
    rows, summary = document["rows"], document["summary"]
    mean, low, high = rows_v1.bootstrap_mean([row["success"] for row in rows], 20260922)
    assert (mean, [low, high]) == (summary["success_mean"], summary["success_ci95"])
    assert sum(row["unauthorized"] for row in rows) / summary["n"] == summary["unauthorized_rate"]
    assert sum(row["timeout"] for row in rows) / summary["n"] == summary["timeout_rate"]


def test_the_draws_are_those_of_random_choice():
    for count in (1, 2, 5, 8, 100):
        random, draw = Random(7), rows_v1._choice(7, count)
        assert [draw() for _ in range(200)] == [random.choice(range(count)) for _ in range(200)]


def test_the_seeds_sums_have_their_published_counts():
    draw, values = rows_v1._choice(20260922, 5), (1, 1, 0, 1, 0)
    counts = Counter(sum(values[draw()] for _ in range(5)) for _ in range(1000))
    assert [counts[total] for total in range(6)] == [12, 83, 224, 342, 252, 87]


def test_exact_ends_agree_with_the_floating_ones():
    assert rows_v1.interval([1, 1, 0, 1, 0], 20260922) == (Fraction(1, 5), Fraction(1))


@pytest.mark.parametrize(
    ("passed", "ends"),
    [
        ((5, 5, 4, 2, 0, 5, 5, 3, 5, 1, 5, 4), (Fraction(37, 60), Fraction(17, 20))),
        ((4, 5, 2, 2, 0, 3, 5, 1, 4, 0, 4, 2), (Fraction(2, 5), Fraction(2, 3))),
    ],
)
def test_the_worked_examples_row_intervals_overlap_where_the_paired_one_decides(passed, ends):
    flat = [int(repeat < count) for count in passed for repeat in range(5)]
    assert rows_v1.interval(flat, 20260922, 9999) == ends


def test_no_values_are_an_error():
    with pytest.raises(ValueError, match="no values"):
        rows_v1.bootstrap_mean([], 1)


def test_the_label_says_that_it_understates():
    assert "understates the noise" in rows_v1.LABEL
