import os

import pytest

from scoresheet.errors import Malformed, Refused, Usage
from scoresheet.run import prices

GOOD = """\
currency: USD
date: 2026-11-30
source: the provider's page
models:
  gpt-x:
    input: 0.25
    cached_input: 0.025
    output: 2
  "claude/y":
    input: 3
    output: "15.000001"
"""


def test_a_table_is_read_with_its_digest_and_is_what_was_written():
    found = prices.parse(GOOD.encode(), "p.yaml")
    assert found.table.currency == "USD"
    assert [f"{each:f}" for each in (found.table.models["gpt-x"].input, found.table.models["claude/y"].output)] == [
        "0.25",
        "15.000001",
    ]
    assert found.data == GOOD.encode()


def test_json_says_the_same():
    text = '{"currency": "EUR", "date": "2026-01-01", "models": {"m": {"input": 1e-3, "output": 0}}}'
    for name in ("p.json", "p.yaml"):
        assert f"{prices.parse(text.encode(), name).table.models['m'].input:f}" == "0.001"


@pytest.mark.parametrize(
    ("change", "place", "says"),
    [
        (("0.25", "-1"), "6:12", "a price is 0 or more"),
        (("0.25", "free"), "6:12", "a price is 0 or more"),
        (("0.25", "0.0000001"), "6:12", "at most 6 decimal places"),
        (("0.25", "true"), "6:12", "a price is a number"),
        (("0.25", "null"), "6:12", "a price is a number"),
        (("0.25", "0.12345678901234567"), "6:12", "more than 15 digits"),
        (("0.25", "[1]"), "6:12", "a price is a number"),
        (("0.25", "1e12"), "6:12", "under a thousand million"),
        (("USD", "dollars"), "1:11", "pattern"),
        (("2026-11-30", "yesterday"), "2:7", "pattern"),
        (("2026-11-30", "2026-02-31"), "2:7", "2026-02-31 is no day"),
        (("    output: 2\n", ""), "6:5", "this member is missing"),
        (("cached_input", "cached"), "7:13", "this member is not known"),
        (('    input: 3\n    output: "15.000001"', "    {}"), "10:5", "this member is missing"),
    ],
)
def test_a_fault_is_told_with_line_and_column(change, place, says):
    text = GOOD.replace(*change)
    assert text != GOOD
    with pytest.raises(Refused) as caught:
        prices.parse(text.encode(), "p.yaml")
    told = [f"{finding.where}: {finding.what}".lower() for finding in caught.value.findings]
    assert any(each.startswith(f"p.yaml:{place}: ") and says in each for each in told), told


def test_a_name_that_is_there_twice_is_refused_where_it_stands():
    with pytest.raises(Malformed, match=r"p\.yaml:12:3"):
        prices.parse(GOOD.encode() + b"  gpt-x: {input: 1, output: 1}\n", "p.yaml")


def test_a_file_that_is_none_is_no_table(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Usage, match="not a regular file"):
        prices.read(tmp_path / "pipe")
    with pytest.raises(Usage, match="can't be read"):
        prices.read(tmp_path / "absent")
    assert prices.kept(tmp_path) is None
