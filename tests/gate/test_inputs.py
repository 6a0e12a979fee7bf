"""The facts of a task in a pack: derived from what is there, and never younger, cleaner or narrower than that."""

from datetime import UTC, datetime, timedelta

import pytest

from scoresheet.documents.pack_record import PackRecord
from scoresheet.errors import Refused
from scoresheet.gate import inputs, triage
from scoresheet.gate.inputs import CardSays, said_by, task_card

PACK = "ab" * 32
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SCAN = {
    "leak_flag": False,
    "files": 3,
    "size_bytes": 9,
    "leaks": 0,
    "allowed": 0,
    "unknown": 0,
    "rules": 9,
    "ruleset_sha256": PACK,
}
DAY = CardSays(24)


def record(task=None, **members):
    value = {
        "manifest_sha256": PACK,
        "intact": True,
        "fixture_sha256": PACK,
        "frozen_at": "2026-11-30T06:00:00Z",
        "timeout_s": 30,
        "seed": 1,
        "retries": 0,
        "tools": [],
        "scan": SCAN,
        "tasks": {"t": {"oracle_kind": "match", **(task or {})}},
    }
    return PackRecord.from_value(value | members, "pack.json")


def leaf(found=None, said=DAY, now=NOW):
    return triage.decide(task_card("t", found or record(), said, now)).leaf


def test_a_pack_with_a_window_needs_nothing_more():
    card = task_card("t", record(), said_by({"controls": {"stale_after_hours": 24}}), NOW)
    assert triage.decide(card).leaf == "score"
    facts = (card.oracle_kind, card.mutation_scope, card.fixture_sha256, card.age_hours, card.leak_flag)
    assert facts == ("match", "read_only", PACK, 6, False)


@pytest.mark.parametrize(
    ("task", "members", "said", "expected"),
    [
        ({"oracle_kind": None}, {}, DAY, "refuse"),
        ({}, {"scan": SCAN | {"leak_flag": True}}, DAY, "refuse"),
        ({}, {"scan": SCAN | {"leak_flag": "unknown"}}, DAY, "quarantine"),
        ({}, {"scan": None}, DAY, "quarantine"),
        ({"card": {"leak_flag": True}}, {}, DAY, "refuse"),
        ({"card": {"leak_flag": False}}, {"scan": SCAN | {"leak_flag": True}}, DAY, "refuse"),
        ({"card": {"leak_flag": "unknown"}}, {}, DAY, "quarantine"),
        ({"card": {"leak_flag": "unknown"}}, {"scan": SCAN | {"leak_flag": True}}, DAY, "refuse"),
        ({"card": {"mutation_scope": "network"}}, {}, DAY, "quarantine"),
        ({}, {}, CardSays(24, {"mutation_scope": "secrets"}), "quarantine"),
        ({"card": {"mutation_scope": "read_only"}}, {}, CardSays(24, {"mutation_scope": "secrets"}), "score"),
        ({"kind": "workspace"}, {}, DAY, "score"),
        ({"kind": "drill"}, {}, DAY, "quarantine"),
        ({}, {"intact": False}, DAY, "refresh"),
        ({}, {"frozen_at": None}, DAY, "refresh"),
        ({}, {"frozen_at": "2026-12-30T06:00:00Z"}, DAY, "refresh"),
        ({}, {"frozen_at": "2026-11-29T11:00:00Z"}, DAY, "refresh"),
        ({}, {"frozen_at": "2026-11-29T12:00:00Z"}, DAY, "score"),
        ({}, {}, CardSays(), "refresh"),
        ({}, {}, CardSays(True), "refresh"),
        ({}, {}, CardSays("24"), "refresh"),
        ({}, {}, CardSays(float("nan")), "refresh"),
        ({}, {}, CardSays(24, {"stale_after_hours": 5}), "refresh"),
        ({"card": {"stale_after_hours": 7}}, {}, CardSays(1), "score"),
        ({}, {}, CardSays(24, {"age_hours": 30}), "refresh"),
        ({}, {}, CardSays(24, {"age_hours": 0}), "score"),
        ({}, {}, CardSays(24, {"frozen_at": "2026-11-20T00:00:00Z"}), "refresh"),
        ({}, {}, CardSays(24, {"fixture_sha256": "cd" * 32}), "refresh"),
        ({}, {}, CardSays(24, {"fixture_sha256": f"sha256:{PACK}"}), "score"),
        ({}, {"barred": {"t": "leak"}}, DAY, "refuse"),
        ({}, {"barred": {"t": "secrets"}}, DAY, "quarantine"),
        ({}, {"barred": {"other": "leak"}}, DAY, "score"),
    ],
)
def test_each_fact_comes_from_what_is_there(task, members, said, expected):
    assert leaf(record(task, **members), said) == expected


def test_a_younger_time_on_the_card_makes_nothing_younger():
    card = task_card("t", record(), CardSays(24, {"frozen_at": "2026-11-30T11:00:00Z", "age_hours": 1}), NOW)
    assert (card.frozen_at, card.age_hours) == ("2026-11-30T06:00:00Z", 6)


def test_a_workspace_task_writes_to_work_unless_its_card_says_otherwise():
    card = task_card("t", record({"kind": "workspace"}), DAY, NOW)
    assert (card.mutation_scope, card.writable_root) == ("workspace", "/work")
    card = task_card("t", record({"kind": "workspace", "card": {"mutation_scope": "read_only"}}), DAY, NOW)
    assert card.mutation_scope == "read_only"


@pytest.mark.parametrize("name", inputs.DERIVED)
def test_what_is_derived_may_not_be_stated_by_a_task(name):
    with pytest.raises(Refused) as refused:
        leaf(record({"card": {name: "x"}}))
    assert [finding.rule for finding in refused.value.findings] == ["task-card-derived"]


@pytest.mark.parametrize(
    "card", [{"mutation_scope": "cloud"}, {"oracle_kind": "vibes"}, {"leak_flag": "no"}, {"gaol": 1}]
)
def test_what_is_unknown_is_an_error_and_no_leaf(card):
    with pytest.raises(Refused):
        leaf(record({"card": card}))
    with pytest.raises(Refused):
        leaf(said=CardSays(24, card))


@pytest.mark.parametrize("card", [None, [], "x", {}, {"controls": []}, {"controls": {}, "triage_defaults": 3}])
def test_a_card_that_says_nothing_gives_no_window(card):
    assert said_by(card) == CardSays()


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:30:00+01:00", "2026-01-01T00:30:00+01:00"),
        ("2026-01-01T00:00:00Z", None, "2026-01-01T00:00:00Z"),
        ("yesterday", "2026-01-01T00:00:00", None),
    ],
)
def test_the_earlier_time_holds_whatever_its_offset(first, second, expected):
    assert inputs.earlier(first, second) == inputs.earlier(second, first) == expected


def test_age_is_counted_in_hours():
    assert inputs.age_hours("2026-11-30T12:00:00Z", NOW + timedelta(minutes=90)) == 1.5
    assert inputs.age_hours("2026-11-30T12:00:01Z", NOW) is None
