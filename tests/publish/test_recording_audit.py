"""A sealed recording that was edited is named, though run.json was made to name it."""

import json

import pytest

from scoresheet import canonical, digest
from scoresheet.publish import audit
from scoresheet.publish.recording_audit import findings
from scoresheet.run import journal
from scoresheet.run.model_recording import RECORDING, seal
from tests.run.test_model_recording import write


@pytest.fixture
def sealed(tmp_path):
    run = tmp_path / "run"
    plan = write(run, (0, "completed"))
    plan = plan.model_copy(update={"model_recording_sha256": seal(run, plan)})
    journal.write_plan(run, plan)
    return run, plan


def told(run, plan):
    return [finding.what for finding in findings(run, plan, journal.read_rows(run / journal.ROWS))]


def test_what_was_sealed_holds(sealed):
    assert told(*sealed) == []


def test_a_recording_that_is_gone_is_named(sealed):
    run, plan = sealed
    (run / RECORDING).unlink()
    assert told(run, plan) == [f"not there, though run.json names {plan.model_recording_sha256[:12]}… as the recording "
                               "of its model calls"]  # fmt: skip


def test_another_recording_is_named(sealed):
    run, plan = sealed
    (run / RECORDING).write_bytes(b"{}")
    first, second = told(run, plan)
    assert first == f"it is {digest.of(b'{}')[:12]}…, run.json names {plan.model_recording_sha256[:12]}…"
    assert second == "not what is sealed from the model.jsonl of the run's episodes"


def test_an_edited_recording_is_named_though_run_json_names_it(sealed):
    run, plan = sealed
    value = json.loads((run / RECORDING).read_bytes())
    value["calls"] += 1
    (run / RECORDING).write_bytes(canonical.pretty(value))
    plan = plan.model_copy(update={"model_recording_sha256": digest.of((run / RECORDING).read_bytes())})
    assert told(run, plan) == ["not what is sealed from the model.jsonl of the run's episodes"]


def test_logs_that_are_gone_are_told_of_their_rows_and_not_here(sealed):
    run, plan = sealed
    (run / "episodes/t00/0.0/model.jsonl").unlink()
    assert told(run, plan) == []


def test_verify_says_which_recording_it_sealed_again_or_that_it_is_not_named(sealed):
    run, plan = sealed
    seen = audit.of_run(run)
    assert not any(finding.rule == "audit-recording" for finding in seen.findings)
    assert any(line.startswith("recording.json: sealed again from") for line in seen.checked)
    journal.write_plan(run, plan.model_copy(update={"model_recording_sha256": None}))
    assert any(line.startswith("recording.json: run.json does not name it") for line in audit.of_run(run).unchecked)
    (run / RECORDING).write_bytes(b"{}")
    journal.write_plan(run, plan)
    assert [f.rule for f in audit.of_run(run).findings if f.rule == "audit-recording"] == ["audit-recording"] * 2
