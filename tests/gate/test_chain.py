"""Chains of receipts: edited by none, and what they remember."""

import hashlib
import json
import os
import time

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from scoresheet import canonical
from scoresheet.documents.receipt import ChainedReceipt
from scoresheet.documents.task_card import TaskCard
from scoresheet.gate import chain, inputs
from scoresheet.gate.chain import Head
from tests.strategies import json_values

PACK = "ab" * 32
AT = "2026-11-30T12:00:00Z"
LONG_S = float(os.environ.get("SCORESHEET_FUZZ_S", "600")) / 3
FRESH = {
    "oracle_kind": "match",
    "mutation_scope": "read_only",
    "fixture_sha256": PACK,
    "frozen_at": "2026-11-30T06:00:00Z",
    "age_hours": 6,
    "stale_after_hours": 24,
    "leak_flag": False,
}


def card(task_id="t", **members):
    return TaskCard.from_value({"task_id": task_id, **FRESH, **members}, "card")


def issued(*cards, pack=PACK, seat="laptop-a", at=AT):
    return tuple(chain.issue(cards, pack, seat, at))


cards = st.builds(
    card,
    st.sampled_from(["a", "b", "c"]),
    oracle_kind=st.sampled_from([None, "match", "pytest"]),
    mutation_scope=st.sampled_from(["read_only", "workspace", "network", "secrets", None]),
    stale_after_hours=st.sampled_from([None, 0, 5, 24]),
    leak_flag=st.sampled_from([True, False, "unknown", None]),
)


def aged(found):
    """A receipt a second, each with the age that its time gives."""
    batch = []
    for number, each in enumerate(found):
        at = f"2026-11-30T12:00:{number:02}Z"
        moment = inputs.moment(at)
        assert moment is not None
        batch += issued(each.model_copy(update={"age_hours": inputs.age_hours(each.frozen_at, moment)}), at=at)
    return tuple(batch)


batches = st.lists(cards, min_size=1, max_size=6).map(aged)


@given(batches)
def test_what_was_written_is_read_back_without_a_finding(batch):
    data, head = chain.chained(batch)
    found = chain.read(data)
    assert found.head == head
    assert head.count == len(batch)
    assert found.findings == ()
    assert [each.receipt.task_id for each in found.placed] == [each.task_id for each in batch]


@st.composite
def spoilt(draw):
    """Bytes, or chained receipts with pieces cut, doubled or replaced, or with any JSON value for a member."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=400))
    data, _ = chain.chained(draw(batches))
    if draw(st.booleans()):
        lines = data.splitlines()
        place = draw(st.integers(0, len(lines) - 1))
        receipt = json.loads(lines[place])
        receipt[draw(st.sampled_from([*receipt, "more"]))] = draw(json_values)
        lines[place] = json.dumps(receipt).encode()
        return b"\n".join(lines) + b"\n"
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 60)))
        data = data[:start] + draw(st.one_of(st.binary(max_size=40), st.just(data[start:end] * 2))) + data[end:]
    return data


def judged(data):
    found = chain.read(data)
    findings = [*found.findings, *chain.judge(found, PACK)]
    assert all(finding.what and finding.where for finding in findings)
    chain.history(found)


@given(spoilt())
def test_any_bytes_are_read_as_receipts_or_named(data):
    judged(data)


@pytest.mark.long
def test_any_bytes_are_read_as_receipts_for_minutes():
    ends = time.monotonic() + LONG_S
    rounds = 0
    while time.monotonic() < ends:
        quiet = settings(max_examples=500, deadline=2000, database=None, suppress_health_check=list(HealthCheck))
        seed(rounds)(quiet(given(spoilt())(judged)))()
        rounds += 1
    print(f"{rounds * 500} files of receipts in {LONG_S:.0f} s")


@given(batches, st.data())
def test_no_changed_byte_goes_unnoticed(batch, data):
    text, head = chain.chained(batch)
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != text[place]))
    spoiled = chain.read(text[:place] + bytes([other]) + text[place + 1 :])
    assert [*spoiled.findings, *chain.judge(spoiled, PACK, None, head)]


@given(batches, st.data())
def test_no_line_that_is_cut_moved_or_doubled_goes_unnoticed(batch, data):
    text, head = chain.chained(batch)
    lines = text.splitlines(keepends=True)
    order = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=len(lines) + 2))
    if order == list(range(len(lines))):
        return
    spoiled = chain.read(b"".join(lines[place] for place in order))
    assert [*spoiled.findings, *chain.judge(spoiled, PACK, None, head)]


@given(batches, st.sampled_from(["score", "refresh", "quarantine", "refuse"]), st.data())
def test_no_other_leaf_follows_from_the_same_facts(batch, leaf, data):
    place = data.draw(st.integers(0, len(batch) - 1))
    if batch[place].leaf == leaf:
        return
    text, head = chain.chained(
        each if n != place else each.model_copy(update={"leaf": leaf}) for n, each in enumerate(batch)
    )
    assert "receipt-leaf" in {finding.rule for finding in chain.read(text).findings}
    assert chain.read(text).head == head


def test_the_line_has_the_published_members_first():
    line = chain.chained(issued(card()))[0]
    assert line.startswith(
        b'{"leaf":"score","oracle_kind":"match","mutation_scope":"read_only","fixture_sha256":"' + PACK.encode()
    )
    assert chain.read(line).placed[0].receipt.previous == "0" * 64
    assert chain.read(line).head == Head(hashlib.sha256(line[:-1]).hexdigest(), 1)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"leaf": "refuse"}, "receipt-leaf"),
        ({"fixture_sha256": "cd" * 32}, "receipt-facts"),
        ({"oracle_kind": "pytest"}, "receipt-facts"),
        ({"reason": "because"}, "receipt-facts"),
        ({"card": {**FRESH, "task_id": "t", "age_hours": 1}}, "receipt-facts"),
        ({"issued_at": "2026-11-30T05:00:00Z"}, "receipt-facts"),
        ({"issued_at": "soon"}, "receipt-field"),
        ({"card": {"scope": 1}}, "task-card-field"),
    ],
)
def test_a_receipt_that_contradicts_itself_is_named(change, rule):
    receipt = issued(card())[0].model_copy(update=change)
    assert [finding.rule for finding in chain.own_findings(receipt, "receipts.jsonl:1")] == [rule]


def test_a_seat_on_a_leaf_that_is_not_score_is_named():
    receipt = issued(card(leak_flag=True))[0]
    assert receipt.runner_seat is None
    bound = receipt.model_copy(update={"runner_seat": "laptop-a"})
    assert [finding.rule for finding in chain.own_findings(bound, "x")] == ["receipt-facts"]


def test_facts_that_the_pack_does_not_give_are_named():
    found = chain.read(chain.chained(issued(card()))[0])

    def facts(task_id, now):
        return card(task_id, leak_flag=True)

    assert [finding.rule for finding in chain.judge(found, PACK, facts)] == ["receipt-leaf"]
    assert [f.rule for f in chain.judge(found, PACK, lambda *_: card(stale_after_hours=48))] == ["receipt-facts"]
    assert [f.rule for f in chain.judge(found, PACK, lambda *_: None)] == ["receipt-task"]
    assert list(chain.judge(found, PACK, lambda *_: card())) == []


def test_a_better_leaf_is_remembered_against_its_bytes():
    leaked = chain.read(chain.chained(issued(card(leak_flag=True), card("s", mutation_scope="secrets")))[0])
    known = chain.history(leaked)
    assert (known.bar(PACK, "t"), known.bar(PACK, "s"), known.bar(PACK, "u")) == ("leak", "secrets", None)
    assert known.bar("cd" * 32, "t") is None
    assert known.bar(None, "t") is None


def test_a_card_of_its_own_bars_its_fixture_under_every_name():
    leaked = chain.read(chain.chained(issued(card(leak_flag=True), pack=None))[0])
    assert chain.history(leaked).bar(PACK, "another") == "leak"


def test_the_earliest_time_of_freezing_is_remembered():
    older, younger = "2026-11-01T00:00:00Z", "2026-11-30T06:00:00Z"
    batch = issued(card(frozen_at=younger), card("u", frozen_at=older, age_hours=708))
    assert chain.history(chain.read(chain.chained(batch)[0])).frozen_at == {PACK: older}


def test_only_news_is_news():
    known = chain.read(chain.chained(issued(card("a"), card("b")))[0])
    later = issued(card("a", age_hours=7), card("b", leak_flag=True), card("c"), at="2026-11-30T13:00:00Z", seat=None)
    assert [receipt.task_id for receipt in chain.news(later, known)] == ["b", "c"]


@given(st.binary(max_size=300))
def test_anything_can_be_read_and_only_receipts_are_receipts(data):
    found = chain.read(data)
    assert len(found.placed) + len(found.findings) >= (1 if data.strip(b"\n") else 0)


def test_an_edited_leaf_that_was_chained_anew_still_contradicts_its_facts():
    honest = issued(card("a"), card("b", stale_after_hours=1))
    better = honest[1].model_copy(update={"leaf": "score", "runner_seat": "laptop-a"})
    data, head = chain.chained((honest[0], better))
    found = chain.read(data)
    assert [finding.rule for finding in found.findings] == ["receipt-leaf"]
    _, written = chain.chained(honest)
    assert written != head
    assert [finding.rule for finding in chain.judge(found, PACK, None, written)] == ["receipt-head"]


def test_a_line_with_other_bytes_for_the_same_values_is_another_line():
    data, head = chain.chained(issued(card("a"), card("b")))
    first, second = data.splitlines()
    spaced = canonical.jcs(canonical.loads(first)) + b"\n" + second + b"\n"
    found = chain.read(spaced)
    assert "receipt-chain" in {finding.rule for finding in found.findings}
    assert isinstance(found.placed[0].receipt, ChainedReceipt)
    assert found.head == head
