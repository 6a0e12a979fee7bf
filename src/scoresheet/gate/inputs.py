"""The triage facts of a task in a pack: derived from the pack, its card and the leak scan, never stated. Pure.

A task's own card says more than the card's `triage_defaults`, and those more than what the task's kind gives; but the
digest is the manifest's, the older age holds, and a leak that anybody knows of is a leak.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from scoresheet.canonical import JsonValue
from scoresheet.documents.pack_record import LeakState, PackRecord
from scoresheet.documents.task_card import TaskCard
from scoresheet.errors import Finding, Refused

DERIVED = ("fixture_sha256", "age_hours", "frozen_at")
"""Facts that no task of a pack may state: they are the manifest's and frozen_at.txt's."""
WORK = "/work"
_SCOPES = {"replay": "read_only", "workspace": "workspace", "drill": "network"}
_PASSED_ON = ("goal", "inputs", "reads", "attachments")


@dataclass(frozen=True, slots=True)
class CardSays:
    """What triage takes from a protocol card, complete or not."""

    stale_after_hours: JsonValue = None
    defaults: Mapping[str, JsonValue] = field(default_factory=dict)


def said_by(card: JsonValue) -> CardSays:
    """What a protocol card says to triage; nothing when it could not be read."""
    if not isinstance(card, dict):
        return CardSays()
    controls, defaults = card.get("controls"), card.get("triage_defaults")
    window = controls.get("stale_after_hours") if isinstance(controls, dict) else None
    return CardSays(window, defaults if isinstance(defaults, dict) else {})


def task_card(task_id: str, record: PackRecord, said: CardSays, now: datetime) -> TaskCard:
    """The facts of one task at the time `now`. Raises `Refused` for facts that no task of a pack may state."""
    task = record.tasks[task_id]
    stated = [name for name in DERIVED if name in task.card]
    if stated:
        what = "inside a pack this is derived from the manifest and frozen_at.txt"
        findings = [Finding("task-card-derived", f"{task_id}#/card/{name}", what, f"remove {name}") for name in stated]
        raise Refused(what, findings, task_id)
    merged = {**said.defaults, **task.card}
    if merged:  # judged as a task card first: an unknown scope or oracle kind is an error, not a leaf
        TaskCard.from_value(merged, f"{task_id}#/card")
    facts: dict[str, JsonValue] = {name: merged[name] for name in _PASSED_ON if name in merged}
    scope = merged.get("mutation_scope") or _SCOPES[task.kind]
    barred = record.barred.get(task_id)
    frozen_at = earlier(record.frozen_at, merged.get("frozen_at"))
    window = merged.get("stale_after_hours")
    facts |= {
        "task_id": task_id,
        "oracle_kind": task.oracle_kind,
        "mutation_scope": "secrets" if barred == "secrets" else scope,
        "writable_root": merged.get("writable_root") or (WORK if task.kind == "workspace" else None),
        "fixture_sha256": _digest(record, merged.get("fixture_sha256")),
        "frozen_at": frozen_at,
        "age_hours": _age(frozen_at, merged.get("age_hours"), now),
        "stale_after_hours": _number(said.stale_after_hours if window is None else window),
        "leak_flag": True if barred == "leak" else _leak(record, merged.get("leak_flag")),
    }
    return TaskCard.from_value({name: value for name, value in facts.items() if value is not None}, task_id)


def moment(text: JsonValue) -> datetime | None:
    """The time that RFC 3339 text names, in UTC; `None` for anything else, and for a time without an offset."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo is not None else None


def earlier(first: JsonValue, second: JsonValue) -> str | None:
    """The earlier of two RFC 3339 times: freezing again never makes the same bytes younger."""
    known = [(found, text) for text in (first, second) if isinstance(text, str) and (found := moment(text))]
    return min(known)[1] if known else None


def age_hours(frozen_at: JsonValue, now: datetime) -> float | None:
    """Hours from `frozen_at` to `now`; `None` when it is no time, or one in the future."""
    frozen = moment(frozen_at)
    if frozen is None:
        return None
    seconds = (now - frozen).total_seconds()
    if seconds <= -1:  # times of issue are whole seconds: what was frozen within one is not in the future
        return None
    return round(max(0.0, seconds) / 3600, 6)


def _digest(record: PackRecord, stated: JsonValue) -> str | None:
    if not record.intact or (stated and str(stated).removeprefix("sha256:") != record.manifest_sha256):
        return None
    return record.manifest_sha256


def _age(frozen_at: str | None, stated: JsonValue, now: datetime) -> float | None:
    found = age_hours(frozen_at, now)
    if stated is None or found is None:
        return found if frozen_at is not None else _number(stated)
    other = _number(stated)
    return max(found, other) if other is not None else None


def _leak(record: PackRecord, stated: JsonValue) -> LeakState | None:
    """The worst of what the scan found and the card says."""
    scanned = record.scan.leak_flag if record.scan is not None else None
    if scanned is True or stated is True:
        return True
    return "unknown" if stated == "unknown" else scanned


def _number(value: JsonValue) -> float | int | None:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return value if real and math.isfinite(value) else None
