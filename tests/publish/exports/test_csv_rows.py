import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.publish.exports import csv_rows
from scoresheet.publish.exports.csv_rows import COLUMNS, cell
from tests.publish.exports.subjects import HOSTILE, hostile, subject, text
from tests.publish.runs import B, row, rows


def read(written: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(written, newline=""), strict=True))


def test_every_attempt_is_a_line_and_those_that_count_are_marked():
    lost = row("t00", 0, 0, attempt=0, exit_reason="harness_error")
    again = row("t00", 0, 1, attempt=1)
    found = read(text(csv_rows.build(subject([lost, again, *rows(B)[1:]]))))
    assert len(found) == 61
    assert [(one["attempt"], one["counted"], one["exit_reason"]) for one in found[:2]] == [
        ("0", "0", "harness_error"),
        ("1", "1", "completed"),
    ]
    assert sum(int(one["success"]) for one in found if one["counted"] == "1") == sum(B)
    assert {one["manifest_sha256"] for one in found} == {lost.manifest_sha256}


def test_it_is_rfc_4180():
    written = text(csv_rows.build(hostile()))
    assert written.splitlines(keepends=True)[0] == ",".join(COLUMNS) + "\r\n"
    lines = written.split("\r\n")
    assert lines.pop() == ""
    assert not any("\n" in line or "\r" in line for line in lines)
    parsed = list(csv.reader(lines, strict=True))
    assert {len(line) for line in parsed} == {len(COLUMNS)}


def test_no_cell_is_a_formula_and_none_steers_a_terminal():
    for one in read(text(csv_rows.build(hostile()))):
        for value in one.values():
            assert value.isprintable()
            assert not value.lstrip().startswith(("=", "+", "@"))
            assert not value.startswith("-") or float(value) < 0


def test_what_an_agent_answered_can_be_read_back():
    first = read(text(csv_rows.build(hostile())))[0]
    assert json.loads(first["answer"]) == {HOSTILE: [HOSTILE, 10**30, -0.5, True, None]}
    assert first["answer"].isascii()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "true"),
        (-9, "-9"),
        (0.25, "0.25"),
        ("=1+1", "'=1+1"),
        ("  @SUM(A1)", "'  @SUM(A1)"),
        ("＝1+1", "'＝1+1"),
        ("-9", "'-9"),
        ("\t=1", "\\u0009=1"),
        ("a,b", "a,b"),
        (["é", 1], '["\\u00e9", 1]'),
    ],
)
def test_a_value_becomes_a_cell(value, shown):
    assert cell(value) == shown


@given(st.text())
def test_no_text_is_a_formula(value):
    shown = cell(value)
    assert shown.isprintable()
    assert not shown.lstrip().startswith(("=", "+", "-", "@"))
