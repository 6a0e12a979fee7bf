"""What a claimed comparison says that its runs do not give, line by line and member by member."""

import json

import pytest

from scoresheet.publish import comparison, comparison_text, quotes
from scoresheet.publish.claimed_comparison import contradictions
from tests.publish.compared import PRICES, entrant, entrants
from tests.publish.runs import A, B
from tests.stats.test_interval import TOKENS_A, TOKENS_B

BOTH = entrants(entrant(A), entrant(B, "hasty"))
SAID = comparison.build(BOTH, ["timeout"])
HEAD = comparison_text.text(SAID)
JSON = SAID.text()


def told(text):
    (claim,) = quotes.claims(text.encode())
    assert claim.is_comparison
    return [*contradictions(claim, BOTH)]


@pytest.mark.parametrize("text", [HEAD, comparison_text.markdown(SAID), JSON, f"> {HEAD}".replace("\n", "\n> ")])
def test_what_compare_prints_is_what_it_claims(text):
    assert told(text) == []


@pytest.mark.parametrize("number", range(HEAD.partition("\n\n")[0].count("\n") + 1))
def test_no_line_can_be_edited_or_left_out(number):
    lines = HEAD.splitlines(keepends=True)
    if lines[number].startswith(("protocol", "manifest_sha256", "alike", "rows_sha256")):
        return  # without these it is another claim, or names other runs
    edited = lines[number].replace("0.", "1.").replace("better", "worse")
    if edited != lines[number] and not lines[number].startswith(("DRAFT", "draft")):
        assert told("".join((*lines[:number], edited, *lines[number + 1 :])))
    if not lines[number].startswith(("DRAFT", "draft")):
        assert told("".join((*lines[:number], *lines[number + 1 :])))


@pytest.mark.parametrize("key", json.loads(JSON))
def test_no_member_can_be_edited(key):
    if key in ("format", "comparable", "runs"):
        return  # without these it is no comparison, or names no rows
    assert f"{key} is not what the runs give" in told(json.dumps(json.loads(JSON) | {key: "something else"}))


def test_a_cheaper_bill_than_the_runs_have_is_found_in_text_and_in_json():
    priced = entrants(entrant(A, tokens=TOKENS_A, prices=PRICES), entrant(B, "hasty", tokens=TOKENS_B, prices=PRICES))
    gives = comparison.build(priced)
    text = comparison_text.text(gives)
    line = next(line for line in text.splitlines() if line.startswith("cost A / B: "))
    cheaper = line.replace("0.8653", "0.5000", 1)
    value = json.loads(gives.text())
    value["cost"]["pairs"][0]["geometric"]["ratio"] = 0.5
    for said, wrong in (
        (text, []),
        (text.replace(line, cheaper), [f"no such line comes from the runs: {cheaper}", f"it lacks the line {line}"]),
        (json.dumps(value), ["cost is not what the runs give"]),
    ):
        (claim,) = quotes.claims(said.encode())
        assert [*contradictions(claim, priced)] == wrong


def test_a_row_of_its_table_is_held_against_the_runs_too():
    table = comparison_text.markdown(SAID)
    row = next(line for line in table.splitlines() if line.startswith("| A - B |"))
    assert told(table.replace(row, row.replace("+0.2000", "+0.9000"))) == [
        f"no such line comes from the runs: {row.replace('+0.2000', '+0.9000')}"
    ]


def test_runs_that_are_not_alike_are_told_by_field():
    (claim,) = quotes.claims(HEAD.encode())
    assert [*contradictions(claim, entrants(entrant(A), entrant(B, "hasty", seed=7)))] == [
        "seed is 20260922 in A, and 7 in B"
    ]


def test_a_run_beside_a_baseline_alone_ranks_nobody():
    (claim,) = quotes.claims(HEAD.encode())
    null = entrant((0,) * 12, "null", agent=BOTH[1].plan.agent.model_copy(update={"kind": "null"}))
    assert [*contradictions(claim, entrants(entrant(A), null))] == [
        "a comparison of one run with baselines ranks nobody"
    ]


def test_the_digests_of_its_rows_are_what_it_rests_on():
    for text in (HEAD, JSON):
        (claim,) = quotes.claims(text.encode())
        assert claim.runs == tuple((each.label, each.rows_sha256) for each in BOTH)
        assert {each.rows_sha256 for each in BOTH} <= claim.digests
