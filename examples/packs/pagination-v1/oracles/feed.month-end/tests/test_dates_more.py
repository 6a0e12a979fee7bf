from datetime import date

import pytest
from feed.dates import add_months


@pytest.mark.parametrize(
    ("day", "months", "expected"),
    [
        (date(2026, 11, 30), 1, date(2026, 12, 30)),
        (date(2026, 12, 31), 2, date(2027, 2, 28)),
        (date(2027, 12, 31), 2, date(2028, 2, 29)),
        (date(2026, 3, 31), -1, date(2026, 2, 28)),
        (date(2026, 1, 5), -1, date(2025, 12, 5)),
        (date(2026, 6, 5), 24, date(2028, 6, 5)),
    ],
)
def test_any_month(day, months, expected):
    assert add_months(day, months) == expected
