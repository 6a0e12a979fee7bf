import json
from pathlib import Path

import pytest

from scoresheet.documents.report import Report
from scoresheet.errors import Refused
from scoresheet.publish import claims, quotes, run_folder
from scoresheet.publish.quotes import Claim
from tests.publish import scored

BLOCK, JSON = scored.report()[0].partition("\n\n")[0] + "\n", scored.report()[1]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return run_folder.read(scored.laid_run(tmp_path)).report()


def claim(text: str) -> Claim:
    (found,) = quotes.claims(text.encode())
    return found


def test_what_the_report_prints_is_what_it_claims(report):
    assert claims.differences(claim(BLOCK), report) == ()
    assert claims.differences(claim(JSON), report) == ()


@pytest.mark.parametrize("number", range(BLOCK.count("\n")))
def test_every_line_of_a_block_is_compared(report, number):
    lines = BLOCK.splitlines()
    key, _, value = lines[number].partition(": ")
    lines[number] = f"{key}: {value}9"
    (found,) = claims.differences(claim("\n".join(lines)), report)
    assert (found.key, found.says) == (key, f"{value}9")


@pytest.mark.parametrize("key", json.loads(JSON))
def test_every_member_of_a_json_report_is_compared(report, key):
    value = json.loads(JSON)
    del value[key]
    if key != "manifest_sha256":
        assert [each.key for each in claims.differences(claim(json.dumps(value)), report)] == [key]
    value = json.loads(JSON) | {key: "x"}
    found = [each.key for each in claims.differences(claim(json.dumps(value)), report)]
    assert found == [key]


def test_a_line_of_ones_own_is_a_difference(report):
    found = claims.differences(claim(BLOCK + "beats_humans: 1.0000\n"), report)
    assert claims.told(found) == "beats_humans: the report of these rows has no such line (1.0000)"


def test_a_true_line_does_not_hide_a_false_one_of_the_same_key(report):
    assert claims.differences(claim(BLOCK + "success_mean: 1.0000\n"), report)


def test_many_differences_are_told_in_one_line(report):
    text = "".join(f"{line}9\n" for line in BLOCK.splitlines())
    told = claims.told(claims.differences(claim(text), report))
    assert "\n" not in told
    assert told.endswith(" more")


def test_the_interval_is_computed_as_the_claim_says_that_it_was(report):
    assert claims.method_of(claim(BLOCK)) is None
    rows_v1 = BLOCK.replace("interval_method: ", "interval_method: rows-v1 ")
    assert claims.method_of(claim(rows_v1)) == "rows-v1"


def test_an_accept_list_is_digests_and_words_for_people():
    data = b"# old\n\n" + b"a" * 64 + b"\n" + b"b" * 64 + b"  docs/x.md:3\r\n"
    assert claims.accepted(data, "list") == {"a" * 64, "b" * 64}


@pytest.mark.parametrize("line", ["docs/x.md", "a" * 63, "A" * 64, "a" * 65, "x " + "a" * 64, "*"])
def test_a_line_that_names_no_digest_is_refused_with_its_place(line):
    with pytest.raises(Refused) as refusal:
        claims.accepted(f"{'a' * 64}\n{line}\n".encode(), "list")
    assert [(found.rule, found.where) for found in refusal.value.findings] == [("claim-accept", "list:2")]
