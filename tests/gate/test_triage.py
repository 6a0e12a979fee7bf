"""Triage against the published leaves and receipts."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scoresheet.documents.task_card import TaskCard
from scoresheet.errors import Malformed, Refused
from scoresheet.gate import triage

VECTORS = Path(__file__).parents[1] / "vectors"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
FRESH = {
    "oracle_kind": "pytest",
    "leak_flag": False,
    "mutation_scope": "read_only",
    "fixture_sha256": "ab" * 32,
    "age_hours": 1,
    "stale_after_hours": 24,
}


def card(**members: object) -> TaskCard:
    return TaskCard.from_value({**FRESH, **members}, "card")


def test_all_published_leaves():
    table = json.loads((VECTORS / "leaves.json").read_text())
    assert len(table["rows"]) == 1800

    for row in table["rows"]:
        *facts, leaf = row
        made = TaskCard.from_value(dict(zip(table["columns"][:-1], facts, strict=True)), "card")
        assert triage.decide(made).leaf == leaf, row


def test_all_published_receipts():
    for case in json.loads((VECTORS / "receipts.json").read_text()):
        receipt = triage.receipt(TaskCard.from_value(case["card"], "card"), case["seat"])
        assert receipt.model_dump() == case["receipt"]
        assert list(receipt.model_dump()) == [
            "leaf",
            "oracle_kind",
            "mutation_scope",
            "fixture_sha256",
            "runner_seat",
        ]


@pytest.mark.parametrize(
    ("members", "leaf"),
    [
        ({}, "score"),
        ({"oracle_kind": "match"}, "score"),
        ({"mutation_scope": None}, "quarantine"),
        ({"leak_flag": None}, "quarantine"),
        ({"leak_flag": "unknown"}, "quarantine"),
        ({"age_hours": float("nan")}, "refresh"),
        ({"age_hours": -1}, "refresh"),
        ({"age_hours": float("inf")}, "refresh"),
        ({"stale_after_hours": None}, "refresh"),
        ({"age_hours": 24}, "score"),
        ({"oracle_kind": None, "mutation_scope": "secrets"}, "refuse"),
    ],
)
def test_what_is_missing_is_a_result(members, leaf):
    assert triage.decide(card(**members)).leaf == leaf


@pytest.mark.parametrize(
    "members", [{"oracle_kind": "vibes"}, {"mutation_scope": "cloud"}, {"leak_flag": "no"}, {"gaol": ""}]
)
def test_what_is_unknown_is_an_error_and_no_leaf(members):
    with pytest.raises(Refused):
        card(**members)


def test_the_age_is_taken_from_the_time_of_freezing():
    aged = triage.with_age(card(age_hours=None, frozen_at="2026-11-29T11:00:00Z"), NOW)

    assert aged.age_hours == 25
    assert triage.decide(aged).leaf == "refresh"


def test_a_stated_age_is_kept():
    assert triage.with_age(card(frozen_at="2026-11-29T11:00:00Z"), NOW).age_hours == 1


def test_a_time_in_the_future_is_no_age():
    assert triage.with_age(card(age_hours=None, frozen_at="2026-12-01T00:00:00Z"), NOW).age_hours is None


@pytest.mark.parametrize("text", ["yesterday", "2026-11-29T11:00:00"])
def test_a_time_that_is_no_rfc_3339_is_refused(text):
    with pytest.raises(Malformed):
        triage.with_age(card(age_hours=None, frozen_at=text), NOW)


def test_every_leaf_has_its_published_next_action():
    assert triage.decide(card()).next_action == "Bind a runner seat, then run"
    assert set(triage.NEXT_ACTION) == {"refuse", "quarantine", "refresh", "score"}
