"""Triage: from a task card to a leaf, and from a leaf to a receipt. Pure: time is an argument.

The first rule that matches decides (docs/gates, Triage):
1. no oracle kind, or the leak flag is set → refuse
2. scope network or secrets, or workspace without a writable root; scope or leak state unknown → quarantine
3. no fixture digest, no age, no window, or the age is over the window → refresh
4. else → score
"""

import math
from dataclasses import dataclass
from datetime import datetime

from scoresheet.documents.receipt import Leaf, Receipt
from scoresheet.documents.task_card import TaskCard
from scoresheet.errors import Malformed

NEXT_ACTION: dict[Leaf, str] = {
    "refuse": "Do not call a model",
    "quarantine": "Do not upload the bundle",
    "refresh": "Rebuild locally; do not score",
    "score": "Bind a runner seat, then run",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """A leaf, and the one sentence that says why."""

    leaf: Leaf
    reason: str

    @property
    def next_action(self) -> str:
        """What to do now, in the published words."""
        return NEXT_ACTION[self.leaf]


def decide(card: TaskCard) -> Decision:
    """The leaf of a card whose age is known (vectors/leaves.json: 1,800 cases)."""
    if not card.oracle_kind:
        return Decision("refuse", "no oracle kind: nothing could say whether the answer is right")
    if card.leak_flag is True:
        return Decision("refuse", "the leak flag is set")
    if not card.mutation_scope:
        return Decision("quarantine", "the mutation scope is not stated")
    if card.leak_flag is None or card.leak_flag == "unknown":
        return Decision("quarantine", "nobody knows whether the files leak a secret")
    if card.mutation_scope in ("network", "secrets"):
        return Decision("quarantine", f"the mutation scope is {card.mutation_scope}")
    if card.mutation_scope == "workspace" and not card.writable_root:
        return Decision("quarantine", "the scope is workspace, but no writable root is named")
    if not card.fixture_sha256:
        return Decision("refresh", "no fixture digest")
    if not _hours(card.age_hours):
        return Decision("refresh", "the fixture's age is not known")
    if not _hours(card.stale_after_hours):
        return Decision("refresh", "no stale window")
    assert card.age_hours is not None
    assert card.stale_after_hours is not None
    if card.age_hours > card.stale_after_hours:
        return Decision("refresh", f"{card.age_hours:g} hours old, over the window of {card.stale_after_hours:g}")
    return Decision("score", "oracle, scope, digest and age hold")


def receipt(card: TaskCard, seat: str | None) -> Receipt:
    """The receipt of a card: the seat is bound only to a score leaf (vectors/receipts.json)."""
    leaf = decide(card).leaf
    return Receipt(
        leaf=leaf,
        oracle_kind=card.oracle_kind,
        mutation_scope=card.mutation_scope,
        fixture_sha256=card.fixture_sha256,
        runner_seat=seat if leaf == "score" else None,
    )


def with_age(card: TaskCard, now: datetime) -> TaskCard:
    """The card with `age_hours` taken from `frozen_at`, when it has one and states no age itself.

    A time in the future is no age: the card then reads as one whose age is not known. Raises `Malformed` for a
    `frozen_at` that is not RFC 3339 with an offset.
    """
    if card.frozen_at is None or card.age_hours is not None:
        return card
    try:
        frozen = datetime.fromisoformat(card.frozen_at)
    except ValueError as error:
        raise Malformed(
            f"frozen_at {card.frozen_at!r} is not an RFC 3339 time", "", "write 2026-11-30T12:00:00Z"
        ) from error
    if frozen.tzinfo is None:
        raise Malformed(f"frozen_at {card.frozen_at!r} has no offset", "", "end it with Z, or with +hh:mm")
    hours = (now - frozen).total_seconds() / 3600
    return card.model_copy(update={"age_hours": hours if hours >= 0 else None})


def _hours(value: float | int | None) -> bool:
    return value is not None and math.isfinite(value) and value >= 0
