from datetime import date

from feed.dates import add_months


def test_within_a_year():
    assert add_months(date(2026, 1, 15), 2) == date(2026, 3, 15)


def test_the_end_of_a_month():
    assert add_months(date(2026, 1, 31), 1) == date(2026, 2, 28)
