import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.publish import block, quotes
from tests.publish import scored

BLOCK, JSON = scored.report()[0].partition("\n\n")[0] + "\n", scored.report()[1]
ROWS_SHA256 = json.loads(JSON)["rows_sha256"]
ROW = b'{"manifest_sha256":"a","task_id":"t","repeat":0,"success":1,"episode_seed":3}\n'


def only(text: str | bytes, **options) -> quotes.Claim:
    (claim,) = quotes.claims(text.encode() if isinstance(text, str) else text, **options)
    return claim


@pytest.mark.parametrize(
    "dress",
    [
        lambda text: text,
        lambda text: f"# Title\n\n```text\n{text}```\n",
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
        lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
        lambda text: "".join(f"- {line}\n" for line in text.splitlines()),
        lambda text: "".join(f"| {line.replace(': ', ' | ', 1)} |\n" for line in text.splitlines()),
        lambda text: "".join(f"* **{line.replace(': ', '**: ', 1)}\n" for line in text.splitlines()),
        lambda text: "".join(f"# {line}\n" for line in text.splitlines()),
        lambda text: "\ufeff" + text,
    ],
    ids=["plain", "fence", "crlf", "quotation", "indented", "list", "table", "bold", "remark", "bom"],
)
def test_a_block_is_found_however_it_is_quoted(dress):
    claim = only(dress(BLOCK))
    assert claim.fault == ""
    assert claim.get("success_mean") == "0.7500"
    assert claim.get("rows_sha256") == ROWS_SHA256
    assert claim.pairs == only(BLOCK).pairs


def test_a_block_in_utf16_is_found():
    assert only(BLOCK.encode("utf-16")).pairs == only(BLOCK).pairs


def test_its_line_is_where_it_begins():
    assert only(f"one\n\n```\n{BLOCK}```\n").line == 4
    assert only(f"one\n\n```json\n{JSON}```\n").line == 4


def test_two_blocks_are_two_claims():
    assert [claim.line for claim in quotes.claims(f"{BLOCK}\n{BLOCK}".encode())] == [1, BLOCK.count("\n") + 2]


def test_a_cut_block_says_what_it_lacks():
    text = "\n".join(line for line in BLOCK.splitlines() if not line.startswith(("excluded", "rows_sha256")))
    assert only(text).fault == "the block is cut: it has no excluded, rows_sha256"


def test_the_retried_names_are_known():
    text = BLOCK.replace("success_mean", "success_after_2_retries_mean")
    assert "success_after_2_retries_ci95" in only(text).fault
    assert only(text.replace("success_ci95", "success_after_2_retries_ci95")).fault == ""


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_draft_keeps_both_of_its_lines(lacking):
    lines = [block.BANNER, "draft: true"]
    assert only("\n".join([*lines, BLOCK])).draft
    del lines[lacking]
    claim = only("\n".join([*lines, BLOCK]))
    assert (claim.draft, claim.rule) == (False, "claim-draft")


def test_lines_may_be_left_out_visibly_but_not_those_that_are_always_there():
    head, _, rest = BLOCK.partition("protocol: ")
    assert only(f"{block.BANNER}\ndraft: true\n…\nprotocol: {rest}").draft
    text = f"{head}…\nprotocol: {rest}".replace(f"schema_ok_rate: {only(BLOCK).get('schema_ok_rate')}", "…")
    assert only(text).fault == ""
    assert "seed" in only(text.replace("seed: 20260922", "...")).fault


def test_a_draft_hidden_from_the_reader_is_none():
    assert not only(f"<!--\n{block.BANNER}\ndraft: true\n-->\n{BLOCK}").draft
    assert not only(f"{BLOCK}{block.BANNER}\ndraft: true\n").draft


@pytest.mark.parametrize(
    "dress",
    [
        lambda text: text,
        lambda text: json.dumps(json.loads(text)),
        lambda text: json.dumps({"runs": [[json.loads(text)]]}),
        lambda text: f"It said\n\n```json\n{text}```\n",
        lambda text: json.dumps(dict(sorted(json.loads(text).items()))),
        lambda text: json.dumps({"name": 1}) + "\n" + json.dumps(json.loads(text)) + "\n",
    ],
    ids=["printed", "compact", "nested", "fence", "sorted", "lines"],
)
def test_a_report_in_json_is_found_however_it_is_laid_out(dress):
    claim = only(dress(JSON))
    assert claim.value == json.loads(JSON)
    assert claim.fault == ""
    assert claim.digest == only(JSON).digest


def test_a_report_that_says_a_member_twice_is_no_report_but_its_figure_is_seen():
    twice = JSON.replace('"success_mean"', '"success_mean": 0.99,\n  "success_mean"', 1)
    assert all(claim.fault for claim in quotes.claims(twice.encode()))
    assert quotes.claims(twice.encode())


def test_what_is_not_admissible_holds_no_figure():
    text = json.dumps({"format": "scoresheet-report/1", "admissible": False, "manifest_sha256": "a" * 64})
    assert quotes.claims(text.encode()) == ()


def test_a_figure_without_its_block_is_a_claim_in_prose_only():
    text = f"manifest_sha256: {'a' * 64}\n\nsuccess_mean: 0.99\n"
    assert only(text).line == 3
    assert quotes.claims(text.encode(), prose=False) == ()
    assert quotes.claims(b"success_mean: 0.99\n") == ()  # of another tool: nothing here names a pack


@pytest.mark.parametrize(
    "text",
    [
        "protocol: we met on Monday\n",
        "    protocol: Protocol\n    manifest_sha256: Sha256\n    retries: int\n",
        "The keys are `protocol` and `manifest_sha256`, then success_mean.\n",
        json.dumps({"protocol": "tool-replay-v1", "tasks": {"a.json": "b" * 64}, "retries": 0}),
        json.dumps({"properties": {"success_mean": {"type": "number"}, "manifest_sha256": {"type": "string"}}}),
        "",
        "{" * 100_000,
        "[" * 100_000 + "success_mean scoresheet-report/",
    ],
)
def test_what_is_no_score_is_none(text):
    assert quotes.claims(text.encode()) == ()


def test_rows_are_known_by_name_or_by_most_of_their_lines():
    assert quotes.is_rows("a/rows.jsonl", b"")
    assert quotes.is_rows("a/b.txt", ROW * 3)
    assert quotes.is_rows("a/b.txt", b"junk\n" + ROW * 3)
    assert not quotes.is_rows("docs/formats.md", b"A row:\n\n" + ROW + b"\nand more\n")
    assert not quotes.is_rows("a/b.txt", b"")


@pytest.mark.parametrize(
    "hostile",
    [
        ('{"success_mean scoresheet-report/": "' + "a" * 300 + "\n") * 20_000,
        '{"success_mean scoresheet-report/":\n' * 20_000,
        '{"success_mean scoresheet-report/": [\n' * 20_000 + '{"a":1,"a":2}',
    ],
    ids=["unended", "deep", "deep with a double"],
)
def test_text_that_makes_every_parse_fail_ends_soon_and_is_never_let_be(hostile):
    assert [claim.fault for claim in quotes.claims(hostile.encode(), prose=False)] == [
        "the JSON from here on is too tangled to be judged"
    ]


def test_blank_lines_and_marks_cost_no_more_than_their_length():
    text = '"success_mean scoresheet-report/ manifest_sha256' + "\n" * 2_000_000 + "#" * 2_000_000
    assert quotes.claims(text.encode()) == ()


@given(st.binary(max_size=400))
def test_no_bytes_are_too_strange(data):
    quotes.claims(data)
    quotes.claims(BLOCK.encode()[:300] + data + JSON.encode())
    quotes.is_rows("x", data)


@given(st.integers(0, len(BLOCK) - 1), st.characters(categories=["L", "N"]))
def test_a_block_that_was_edited_anywhere_has_another_digest_or_reads_the_same(at, character):
    edited = BLOCK[:at] + character + BLOCK[at + 1 :]
    found = quotes.claims(edited.encode())
    assert edited == BLOCK or [each.digest for each in found] != [only(BLOCK).digest]


def test_a_word_of_underscores_costs_no_more_than_its_length():
    text = '"success_mean scoresheet-report/ manifest_sha256\n' + "a" + "_" * 2_000_000
    assert quotes.claims(text.encode()) == ()


def test_the_underscores_of_an_emphasized_key_are_taken_whole():
    for text, key in (("*protocol_*: x", "protocol_"), ("**protocol**: x", "protocol"), ("a__`: x", "a__")):
        match = quotes._LINE.fullmatch(text)
        assert match is not None
        assert match["key"] == key
