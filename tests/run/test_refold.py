import hashlib
import json
from typing import Any

import pytest

from scoresheet.documents.evidence import Evidence
from scoresheet.run.refold import Refold
from tests.run.test_fold import call, seen

EVIDENCE = json.dumps(Evidence(backend="none", state="not_isolated").as_json()).encode()


def told(row, *calls, journal=True, evidence=EVIDENCE) -> list[str]:
    """What is found of a row whose folder holds these calls."""
    lines = [json.dumps(each.model_dump(mode="json", exclude_none=True)).encode() + b"\n" for each in calls]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    row = row.model_copy(update={"calls_sha256": digest, "isolation": "not_isolated"})
    refold = Refold(row, "rows.jsonl:1", "episodes/t/1.2", "tool-replay-v2", "stop")
    if journal:
        refold.journal()
    for line in lines:
        refold.call(line)
    if evidence is not None:
        refold.evidence(evidence)
    return [f"{finding.rule}: {finding.what}" for finding in refold.findings()]


def test_a_row_that_follows_from_its_folder_has_no_fault():
    calls = [call(latency_ms_recorded=10.5), call(seq=1, latency_ms_recorded=1.5)]
    assert told(seen(*calls), *calls) == []


@pytest.mark.parametrize(
    "change", [{"tool_calls": 2}, {"unauthorized": 1}, {"schema_ok": 0}, {"recorded_latency_ms": 9.0}, {"timeout": 1}]
)
def test_a_figure_that_was_changed_is_found(change: dict[str, Any]):
    row = seen(call()).model_copy(update=change)
    assert any(next(iter(change)) in finding for finding in told(row, call()))


def test_a_journal_or_evidence_that_is_gone_is_found():
    assert any(finding.startswith("row-journal") for finding in told(seen(), journal=False))
    assert any(finding.startswith("row-evidence") for finding in told(seen(), evidence=None))


def test_a_call_out_of_order_is_found():
    assert any(finding.startswith("journal-order") for finding in told(seen(call()), call(seq=7)))


@pytest.mark.parametrize(
    ("reason", "control"), [("mismatch", "controls.tool_allowlist"), ("tool_cap", "controls.max_tool_calls")]
)
def test_an_ending_that_the_journal_does_not_show_must_be_the_models(reason, control):
    row = seen(exit_code=None, stopped=reason).model_copy(update={"exit_reason": reason})
    assert any(f"exit_reason {reason} does not follow" in finding for finding in told(row))
    assert told(row.model_copy(update={"controls": {control: "verified"}})) != []
    assert told(row.model_copy(update={"controls": {control: "violated"}})) == []
