"""Admitted runs as values, small; and one whose agent wrote whatever could hurt a reader."""

import json
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.protocol_card import ProtocolCard
from scoresheet.documents.report import Report
from scoresheet.documents.row import Mismatch, Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.publish.admissible import Evidence
from scoresheet.publish.exports.subject import Attempt, Member, Names, Subject
from scoresheet.publish.outcomes import fold
from scoresheet.publish.report import build
from tests import cards
from tests.publish.runs import B, baselines, line, plan, row, rows

SCHEMAS = Path(__file__).parents[2] / "vectors" / "exports"
NAMES = Names(
    organization="Acme",
    model="acme/careful",
    dataset="acme/billing",
    task="refunds",
    source="https://example.org/careful.tar",
)
HOSTILE = (
    "</failure><script>alert(1)</script>]]>&amp;\x1b[2J\x00\x07\x85\u202e\ufffe\U0001f600 ../../etc/passwd\r\n"
    "=cmd|' /C calc'!A0\n\t@SUM(1+1)"
)


def call(seq: int = 0, outcome: str = "hit", **more: Any) -> CallRecord:
    """A call at the door."""
    fields: dict[str, Any] = {
        "seq": seq,
        "at_s": 0.01 * (seq + 1),
        "via": "http",
        "upstream": "SHOP",
        "method": "GET",
        "path": f"/items/{seq}",
        "fingerprint": "sha256:" + "1" * 64,
        "outcome": outcome,
        "kind": "no_match" if outcome == "miss" else None,
        "status": 200 if outcome == "hit" else 403,
        "tool": "get_item",
    }
    return CallRecord(**(fields | more))


def card(name: str = "billing") -> ProtocolCard:
    """A complete card of twelve tasks."""
    ids = [f"t{number:02}" for number in range(12)]
    value = cards.card(ids, "6" * 64, seed=1)
    value["suite"] |= {"name": name, "git_sha": "5" * 40, "contamination_note": "none known"}
    value["suite"]["taxonomy"] = {"refund": len(ids)}
    del value["suite"]["origins"]
    value["metrics"] = {
        "primary": "share of runs",
        "secondary": ["success_mean"],
        "headline_scalar_allowed": False,
    }
    value["environment"] = {"os": "linux"}
    return ProtocolCard.from_value(value, "card.yaml")


def subject(
    the_rows: list[Row] | None = None,
    names: Names = NAMES,
    confounds: tuple[str, ...] = (),
    calls: Iterable[CallRecord] = (call(0), call(1)),
    prompt: str | None = None,
    suite: str = "billing",
    retries: int = 0,
    **more: Any,
) -> Subject:
    """A run of the worked example's second agent, or of other rows."""
    the_plan = plan(retries=retries, manifest={"retries": retries}, ended_at="2026-09-22T10:05:00Z", **more)
    found = rows(B) if the_rows is None else the_rows
    report = _report(the_plan.text(), tuple(map(line, found)), confounds)
    found = sorted(found, key=lambda one: (one.task_id, one.repeat, one.attempt))
    last = {(one.task_id, one.repeat): one.attempt for one in found}
    attempts = [
        Attempt(one, last[one.task_id, one.repeat] == one.attempt, "match", tuple(calls), prompt) for one in found
    ]
    return Subject(the_plan, report, card(suite), names, lambda: iter(attempts))


@cache
def _report(the_plan: bytes, the_rows: tuple[bytes, ...], confounds: tuple[str, ...]) -> Report:
    plan_ = RunPlan.from_bytes(the_plan, "run.json")
    outcomes = fold(plan_, [Row.from_bytes(one, "rows.jsonl:1") for one in the_rows])
    return build(plan_, outcomes, Evidence(confounds=confounds, baselines=baselines()), "f" * 64)


def hostile() -> Subject:
    """A run in which agent, host, suite and confounds write what could hurt."""
    miss = Mismatch(method="GET", path="/items/" + HOSTILE, fingerprint="sha256:" + "2" * 64)
    answer = {HOSTILE: [HOSTILE, 10**30, -0.5, True, None]}
    first = row("t00", 0, 0, answer=answer, detail=HOSTILE, host=HOSTILE, mismatches=(miss,), schema_errors=(HOSTILE,))
    refused = row("t00", 1, 0, answer=HOSTILE, exit_reason="mismatch", unauthorized=1, detail=HOSTILE)
    calls = (call(0, path="/" + HOSTILE, body=HOSTILE), call(1, "miss", tool=None, body={"base64": "AA=="}))
    return subject(
        [first, refused, *rows(B)[2:]],
        calls=calls,
        confounds=(HOSTILE,),
        prompt=HOSTILE,
        suite=HOSTILE,
        host=plan().host.model_copy(update={"label": HOSTILE}),
    )


def without(name: str) -> Names:
    """The names but one."""
    return Names(**({field.name: getattr(NAMES, field.name) for field in fields(NAMES)} | {name: None}))


def text(members: Iterable[Member]) -> str:
    """The one file."""
    (found,) = [b"".join(member.chunks) for member in members]
    return found.decode()


def files(members: Iterable[Member]) -> dict[str, bytes]:
    """Path → content, each read before the next one is asked for."""
    return {member.path: b"".join(member.chunks) for member in members}


def validator(name: str, part: str | None = None) -> jsonschema_rs.Draft7Validator | jsonschema_rs.Draft202012Validator:
    """A validator of a vendored schema, or of one of its parts."""
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    if part is None:
        return jsonschema_rs.Draft7Validator(schema)
    return jsonschema_rs.Draft202012Validator(schema | {"$ref": f"#/components/schemas/{part}"})
