"""Exact fractions as decimal text: half-even for a mean, outward for an interval. Pure."""

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

PLACES = 4
"""Decimal places of means and intervals in a report (docs/formats, Report)."""


def nearest(value: Fraction | int, places: int = PLACES) -> Decimal:
    """`value` rounded half to even."""
    return _decimal(round(Fraction(value) * 10**places), places)


def downward(value: Fraction | int, places: int = PLACES) -> Decimal:
    """`value` rounded toward minus infinity: the lower end of an interval."""
    return _decimal(floor(Fraction(value) * 10**places), places)


def upward(value: Fraction | int, places: int = PLACES) -> Decimal:
    """`value` rounded toward plus infinity: the upper end of an interval."""
    return _decimal(ceil(Fraction(value) * 10**places), places)


def _decimal(units: int, places: int) -> Decimal:
    digits = tuple(int(digit) for digit in str(abs(units)))
    return Decimal((int(units < 0), digits, -places))  # exact at any size: no context rounds it
