from decimal import Decimal
from fractions import Fraction as F

from hypothesis import given
from hypothesis import strategies as st

from scoresheet.stats.rounding import downward, nearest, upward


def test_ends_are_rounded_outward_and_means_half_to_even():
    assert (str(downward(F(1, 3))), str(upward(F(1, 3))), str(nearest(F(1, 3)))) == ("0.3333", "0.3334", "0.3333")
    assert (str(downward(F(-1, 3))), str(upward(F(-1, 3)))) == ("-0.3334", "-0.3333")
    assert (str(nearest(F(5, 100_000))), str(nearest(F(15, 100_000)))) == ("0.0000", "0.0002")
    assert (str(upward(1)), str(downward(0))) == ("1.0000", "0.0000")


@given(st.fractions())
def test_a_value_lies_between_its_roundings_at_most_one_unit_apart(value):
    low, high = F(downward(value)), F(upward(value))
    assert low <= value <= high
    assert high - low <= F(1, 10_000)
    assert F(nearest(value)) in (low, high)


def test_large_values_keep_every_digit():
    assert nearest(10**40) == Decimal(10**40)
