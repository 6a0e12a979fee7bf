import hashlib
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from scoresheet.documents.evidence import Evidence
from scoresheet.documents.protocol_card import Controls
from scoresheet.documents.task import Task
from scoresheet.run.model_calls import Reading, pinned
from scoresheet.run.refold import Recorded, Refold
from tests.run.test_fold import call, seen
from tests.run.test_model_calls import CONTROLS as CARD
from tests.run.test_trajectory import ASKED, FINAL, USER, chat

EVIDENCE = json.dumps(Evidence(backend="none", state="not_isolated").as_json()).encode()


def told(row, *calls, journal=True, evidence=EVIDENCE, kind=None, patch=False, **more: Any) -> list[str]:
    """What is found of a row whose folder holds these calls."""
    lines = [json.dumps(each.model_dump(mode="json", exclude_none=True)).encode() + b"\n" for each in calls]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    row = row.model_copy(update={"calls_sha256": digest, "isolation": "not_isolated"})
    recorded = None if kind is None else Recorded(Task(task_id="t", prompt="p", kind=kind), {})
    refold = Refold(row, "rows.jsonl:1", "episodes/t/1.2", "tool-replay-v2", "stop", recorded, **more)
    if patch:
        refold.patch()
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
    limit = "tool_calls" if reason == "tool_cap" else None
    row = seen(exit_code=None, stopped=reason).model_copy(update={"exit_reason": reason, "limit": limit})
    assert any(f"exit_reason {reason} does not follow" in finding for finding in told(row))
    door: dict[str, Any] = {"models": True, "logs": False}
    assert told(row.model_copy(update={"controls": {control: "verified"}}), **door) != []
    assert told(row.model_copy(update={"controls": {control: "violated"}}), **door) == []
    assert told(row.model_copy(update={"controls": {control: "violated"}})) != []  # where no model had a door


CONTROLS = Controls.from_value(CARD | {"max_tool_calls": 1}, "card.yaml")
ENTRIES = [chat(0.1, [USER], ASKED), chat(1.0, [USER, ASKED], FINAL)]


def of_models(*entries, row=None, cap: int | None = None, log: bytes | None = None, task: Any = None, **more: Any):
    """What is found of a row (by default the right one) beside these model calls."""
    data = b"".join(entry.line() for entry in entries) if log is None else log
    if row is None:
        row = right_row(*entries, cap=cap)
    row = row.model_copy(update={"calls_sha256": hashlib.sha256(b"").hexdigest(), "isolation": "not_isolated"} | more)
    recorded = None if task is None else Recorded(Task.from_value(task, "t"), {})
    refold = Refold(row, "rows.jsonl:1", "episodes/t/1.2", "tool-replay-v2", "stop", recorded, models=True)
    refold.journal()
    refold.evidence(EVIDENCE)
    refold.model(io.BytesIO(data), CONTROLS, cap)
    return [f"{finding.rule}: {finding.what}" for finding in refold.findings()]


def right_row(*entries, cap: int | None = None, **ended: Any):
    data = b"".join(entry.line() for entry in entries)
    reading = Reading(io.BytesIO(data), pinned(CONTROLS, 3, cap))
    for _ in reading.exchanges():
        pass
    passed = reading.seen()
    return seen(models=passed.observation, model_sha256=passed.sha256, **ended)


def test_a_row_that_follows_from_its_model_calls_has_no_fault():
    assert of_models(*ENTRIES) == []
    assert of_models(chat(0.1, [USER], FINAL, 500), row=right_row(chat(0.1, [USER], FINAL, 500), exit_code=1)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"tokens_in": 201}, {"tokens_out": None}, {"model_calls": 1}, {"model_retries": 1}, {"models": ("other",)},
        {"model_door_retries": 1}, {"model_usage": ()}, {"model_untold": 1},
        {"controls": {}}, {"violations": ("controls.seed: violated",)}, {"model_unrecorded": ("a call",)},
    ],
)  # fmt: skip
def test_a_figure_of_models_that_was_changed_is_found(change: dict[str, Any]):
    name = next(iter(change))
    assert any(name in each or "controls.temperature" in each for each in of_models(*ENTRIES, **change))


def test_an_exchange_that_was_edited_is_found():
    row = right_row(*ENTRIES)
    edited = replace(ENTRIES[1], response=ENTRIES[1].response.replace(b"12", b"13"))
    assert of_models(ENTRIES[0], edited, row=row) == [
        "row-model: t 1.2: episodes/t/1.2/model.jsonl is not what the row was folded from"
    ]
    dearer = replace(ENTRIES[1], response=ENTRIES[1].response.replace(b'"prompt_tokens": 100', b'"prompt_tokens": 90'))
    found = of_models(ENTRIES[0], dearer, row=row)
    assert any("tokens_in does not follow" in each and "row 200, the log 190" in each for each in found)


def test_model_calls_that_are_gone_or_no_log_are_found():
    row = right_row(*ENTRIES)
    lost = row.model_copy(update={"calls_sha256": hashlib.sha256(b"").hexdigest(), "isolation": "not_isolated"})
    refold = Refold(lost, "rows.jsonl:1", "episodes/t/1.2", "tool-replay-v2", "stop", models=True)
    refold.journal()
    refold.evidence(EVIDENCE)
    assert [finding.rule for finding in refold.findings()] == ["row-model"]
    refold.logs = False
    assert list(refold.findings()) == []
    refold.models = False
    assert {finding.rule for finding in refold.findings()} == {"row-follows"}
    (found,) = of_models(row=row, log=b"{}\n")
    assert found == "row-model: no line of a model log"


def test_an_ending_is_the_one_that_the_model_calls_show():
    two = [chat(0.1, [USER], ASKED), chat(1.0, [USER, ASKED], ASKED)]
    capped = right_row(*two, exit_code=None, stopped="tool_cap")
    assert (capped.exit_reason, of_models(*two, row=capped)) == ("tool_cap", [])
    row = capped.model_copy(update={"exit_reason": "completed", "limit": None, "agent_exit": 0})
    assert any("shows tool_cap" in each for each in of_models(*two, row=row))
    ended = right_row(*ENTRIES).model_copy(update={"exit_reason": "mismatch", "success": 0})
    assert any("exit_reason mismatch does not follow" in each for each in of_models(*ENTRIES, row=ended))
    failed = right_row(chat(0.1, [USER], FINAL, 500), exit_code=1).model_copy(update={"exit_reason": "agent_error"})
    assert any("last model call failed" in each for each in of_models(chat(0.1, [USER], FINAL, 500), row=failed))


def test_a_cap_that_a_task_lowered_is_compared_when_the_pack_is_at_hand():
    task = {"task_id": "t", "prompt": "p", "limits": {"max_tool_calls": 0}}
    row = right_row(ENTRIES[0], cap=0, exit_code=None, stopped="tool_cap")
    assert row.exit_reason == "tool_cap"
    assert of_models(ENTRIES[0], row=row) == []
    assert of_models(ENTRIES[0], row=row, task=task) == []
    freed = row.model_copy(update={"controls": {**row.controls, "controls.max_tool_calls": "verified"}})
    assert any("controls.max_tool_calls does not" in each for each in of_models(ENTRIES[0], row=freed, task=task))


@pytest.mark.parametrize(
    "change",
    [
        {"model_calls": 0},
        {"tokens_in": 5},
        {"tokens_out": 0},
        {"models": ("m",)},
        {"cost": "3"},
        {"model_sha256": "a" * 64},
    ],
    ids=lambda change: next(iter(change)),
)
def test_nothing_is_told_of_models_where_the_run_had_no_door_for_them(change: dict[str, Any]):
    name = next(iter(change))
    expected = f"row-follows: {seen().task_id}"
    found = told(seen().model_copy(update=change))
    assert len(found) == 1
    assert found[0].startswith(expected)
    assert found[0].endswith(f"{name} is told, though the run had no model's door")


MEASURES: tuple[dict[str, Any], ...] = (
    {"patch_lines": 0},
    {"tests_identical": 1},
    {"test_files_changed": 0},
    {"tests_added": ("tests/test_new.py",)},
    {"grading_surface": ("conftest.py: added",)},
    {"patch_left_out": ("p: a FIFO",)},
)


@pytest.mark.parametrize("change", MEASURES, ids=lambda change: next(iter(change)))
def test_nothing_is_told_of_a_workspace_where_there_was_none(change: dict[str, Any]):
    name = next(iter(change))
    row = seen().model_copy(update=change)
    (found,) = told(row, kind="replay")
    assert found.endswith(f"{name} is told, though the task has no workspace")
    (found,) = told(row)  # the pack is not at hand
    assert found.endswith(f"{name} is told without a patch")


def test_a_patch_that_a_row_names_must_be_there():
    row = seen().model_copy(update={"patch_sha256": "sha256:" + "a" * 64, "patch_lines": 1})
    (found,) = told(row, kind="workspace")
    assert found.startswith("row-patch")
    assert found.endswith("episodes/t/1.2/patch.diff is not there")
    assert told(row, kind="workspace", patch=True) == []


def test_a_share_of_untouched_tests_follows_from_the_tests_that_it_names():
    row = seen().model_copy(
        update={"patch_sha256": "sha256:" + "a" * 64, "patch_lines": 1, "tests_identical": 1, "test_files_changed": 0}
    )
    assert told(row, kind="workspace", patch=True) == []
    found = told(row.model_copy(update={"tests_changed": ("tests/a.py",)}), kind="workspace", patch=True)
    assert [each.rpartition(": ")[2] for each in found] == [
        "tests_identical 1 contradicts tests_changed",
        "test_files_changed 0 contradicts tests_changed",
    ]
