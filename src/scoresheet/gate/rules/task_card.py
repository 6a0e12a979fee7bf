"""Rules of a task card: a missing fact is a leaf, not a fault; a misspelt or unknown one is a fault."""

import difflib
import re
from collections.abc import Callable
from datetime import datetime
from typing import get_args

from scoresheet.canonical import JsonValue
from scoresheet.documents.task_card import MutationScope, OracleKind, TaskCard
from scoresheet.gate.facts import CardFacts, Findings
from scoresheet.gate.rules.card import kind_text, nearest

ORACLES: tuple[str, ...] = get_args(OracleKind)
SCOPES: tuple[str, ...] = get_args(MutationScope)
MEMBERS: tuple[str, ...] = tuple(TaskCard.model_fields)

_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_TEXTS = ("goal", "writable_root", "fixture_sha256", "frozen_at")
_LISTS = ("inputs", "reads")
_NUMBERS = ("age_hours", "stale_after_hours")


def task_card_is_mapping(facts: CardFacts) -> Findings:
    """The card is a mapping."""
    if not isinstance(facts.located.value, dict):
        what = f"the task card is {kind_text(facts.located.value)}, but must be a mapping"
        yield facts.finding("task-card-type", "", what, "write `name: value` lines")


def task_card_unknown(facts: CardFacts) -> Findings:
    """No member that the format does not know."""
    yield from unknown(facts, "", facts.located.value)


def task_card_kinds(facts: CardFacts) -> Findings:
    """The oracle kind and the mutation scope are known ones, when they are given."""
    yield from kinds(facts, "", facts.located.value)


def task_card_types(facts: CardFacts) -> Findings:
    """Every member that is given is of its type."""
    yield from types(facts, "", facts.located.value)


def card_triage_defaults(facts: CardFacts) -> Findings:
    """A protocol card's `triage_defaults` are members of a task card."""
    for rule in (unknown, kinds, types):
        yield from rule(facts, "triage_defaults.", facts.get("triage_defaults"))


def unknown(facts: CardFacts, prefix: str, card: JsonValue) -> Findings:
    """Members that a task card does not know, in a card or in the defaults of a protocol card."""
    for name in card if isinstance(card, dict) else ():
        if name not in MEMBERS:
            what = f"{prefix}{name} is not a member of a task card"
            yield facts.finding("task-card-unknown", f"{prefix}{name}", what, nearest(name, MEMBERS, len(card)))


def kinds(facts: CardFacts, prefix: str, card: JsonValue) -> Findings:
    """Oracle kinds and scopes that nobody knows: an error, never a leaf."""
    if not isinstance(card, dict):
        return
    for name, known, rule in (
        ("oracle_kind", ORACLES, "task-card-oracle"),
        ("mutation_scope", SCOPES, "task-card-scope"),
    ):
        value = card.get(name)
        if value is None or value == "" or (isinstance(value, str) and value in known):
            continue
        near = difflib.get_close_matches(value, known, n=1) if isinstance(value, str) else []
        mend = f"did you mean {near[0]}?" if near else f"write one of {', '.join(known)}, or remove the line"
        what = f"{prefix}{name} is {kind_text(value)}, which is none of {', '.join(known)}"
        yield facts.finding(rule, f"{prefix}{name}", what, mend)


def types(facts: CardFacts, prefix: str, card: JsonValue) -> Findings:
    """Members of the wrong type."""
    if not isinstance(card, dict):
        return
    checks: dict[str, tuple[Callable[[JsonValue], bool], str]] = {
        "task_id": (_task_id, "an id of letters, digits, `.`, `_` and `-`, at most 128"),
        **dict.fromkeys(_TEXTS, (_text, "text")),
        **dict.fromkeys(_LISTS, (_texts, "a list of text")),
        **dict.fromkeys(_NUMBERS, (_number, "a number of hours")),
        "leak_flag": (_flag, "true, false or unknown"),
        "attachments": (_mapping, "a mapping"),
    }
    for name, (holds, must) in checks.items():
        value = card.get(name)
        if value is not None and not holds(value):
            what = f"{prefix}{name} is {kind_text(value)}, but must be {must}"
            yield facts.finding("task-card-type", f"{prefix}{name}", what, f"write {must}, or remove the line")
    frozen_at = card.get("frozen_at")
    if isinstance(frozen_at, str) and not _time(frozen_at):
        what = f"{prefix}frozen_at {frozen_at!r} is not an RFC 3339 time with an offset"
        yield facts.finding("task-card-type", f"{prefix}frozen_at", what, "write 2026-11-30T12:00:00Z")


def _task_id(value: JsonValue) -> bool:
    return isinstance(value, str) and _TASK_ID.fullmatch(value) is not None


def _text(value: JsonValue) -> bool:
    return isinstance(value, str)


def _texts(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flag(value: JsonValue) -> bool:
    return isinstance(value, bool) or value == "unknown"


def _mapping(value: JsonValue) -> bool:
    return isinstance(value, dict)


def _time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
