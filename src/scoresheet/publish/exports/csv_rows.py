"""Rows as CSV (RFC 4180): one line per attempt, every attempt there was. Pure.

A text that a spreadsheet would take for a formula gets a `'` before it. Structured members are JSON, in ASCII.
"""

import csv
import io
from collections.abc import Iterator

from scoresheet.canonical import JsonValue
from scoresheet.documents.row import Row
from scoresheet.publish.block import one_line
from scoresheet.publish.exports.subject import Attempt, Member, Subject, json_text

COLUMNS = ("counted", *Row.model_fields)
"""`counted` is 1 for the attempts that enter the figures; the others are the row's own members."""
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def build(subject: Subject) -> Iterator[Member]:
    """The one file."""
    yield Member("", _lines(subject))


def _lines(subject: Subject) -> Iterator[bytes]:
    yield line(COLUMNS)
    for attempt in subject.attempts():
        yield line(cells(attempt))


def cells(attempt: Attempt) -> tuple[str, ...]:
    """One attempt, in the order of `COLUMNS`."""
    row = attempt.row.model_dump(mode="json")
    return (str(int(attempt.counted)), *(cell(row[name]) for name in COLUMNS[1:]))


def cell(value: JsonValue) -> str:
    """A value as a spreadsheet may hold it: nothing in it is a formula, ends a line or steers a terminal."""
    match value:
        case None:
            return ""
        case bool() | list() | dict():
            return one_line(json_text(value, ascii_only=True))
        case int() | float():
            return json_text(value)
    plain = one_line(value)
    return f"'{plain}" if plain.lstrip().startswith(_FORMULA) else plain


def line(values: tuple[str, ...]) -> bytes:
    """One line with its CRLF."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(values)
    return out.getvalue().encode()
