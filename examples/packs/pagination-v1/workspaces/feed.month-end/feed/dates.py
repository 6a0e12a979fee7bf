"""Months, as bills count them."""

import calendar
import datetime


def add_months(day, months):
    """The same day some months later, or the last of that month when it has no such day."""
    month = day.month + months
    year, month = day.year + month // 12, month % 12
    return datetime.date(year, month, day.day)
