"""Months, as bills count them."""

import calendar
import datetime


def add_months(day, months):
    """The same day some months later, or the last of that month when it has no such day."""
    month = day.month - 1 + months
    year, month = day.year + month // 12, month % 12 + 1
    last = calendar.monthrange(year, month)[1]
    return datetime.date(year, month, min(day.day, last))
