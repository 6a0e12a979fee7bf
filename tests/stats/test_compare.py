from fractions import Fraction as F

import pytest

from scoresheet.stats.compare import difference, sign_flip
from scoresheet.stats.sample import Sample, sample
from tests.stats import convolution
from tests.stats.test_interval import START, A, B

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
