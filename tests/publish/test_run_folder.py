import hashlib
import os
import re

import pytest

from scoresheet.documents.row import Row
from scoresheet.errors import Refused, Usage
from scoresheet.publish import run_folder
from tests.publish.runs import A, baselines, line, plan, row, rows, write


def test_a_run_is_read_as_it_lies(tmp_path):
    write(
        tmp_path,
        plan(),
        rows(A),
        baselines=baselines().text(),
        confounds=b'{"at": "2026-09-22T10:00:00Z", "by": "person", "kind": "human", "text": "a fan broke"}\n',
    )
    found = run_folder.read(tmp_path)
    assert found.plan == plan()
    assert found.outcomes.complete
    assert found.rows_sha256 == hashlib.sha256((tmp_path / "rows.jsonl").read_bytes()).hexdigest()
    assert found.evidence.baselines == baselines()
    assert found.report().confounds == 1
    assert found.report().baselines == "null 0.0000, oracle 1.0000"


def test_an_empty_confound_log_is_a_log(tmp_path):
    assert run_folder.read(write(tmp_path, plan(), rows(A), confounds=b"")).report().confounds == 0


def test_no_confound_log_is_none(tmp_path):
    assert run_folder.read(write(tmp_path, plan(), rows(A))).report().confounds is None


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_torn_last_line_is_no_row_and_leaves_the_run_incomplete(tmp_path, cut):
    write(tmp_path, plan(), rows(A))
    data = (tmp_path / "rows.jsonl").read_bytes()
    (tmp_path / "rows.jsonl").write_bytes(data[:-cut])
    found = run_folder.read(tmp_path)
    assert found.outcomes.count("missing") == 1
    assert found.outcomes.findings == ()
    torn = [reason for reason in found.unmet if reason.rule == "rows-torn"]
    assert len(torn) == 1
    assert torn[0].incomplete
    assert "--resume" in torn[0].text


def test_a_bad_line_in_the_middle_is_a_finding_with_its_place(tmp_path):
    write(tmp_path, plan(), rows(A))
    lines = (tmp_path / "rows.jsonl").read_bytes().splitlines(keepends=True)
    lines[1], lines[2] = b"{broken\n", b'{"task_id": "t00"}\n'
    (tmp_path / "rows.jsonl").write_bytes(b"".join(lines))
    found = run_folder.read(tmp_path)
    places = [finding.where for finding in found.outcomes.findings]
    assert places[0] == "rows.jsonl:2:1:2"
    assert any(place.startswith("rows.jsonl:3#/") for place in places)
    assert found.outcomes.count("missing") == 2
    assert any("rows.jsonl:2" in str(reason) for reason in found.unmet)


def test_a_doubled_line_is_a_finding(tmp_path):
    write(tmp_path, plan(), [*rows(A), rows(A)[0]])
    assert [finding.rule for finding in run_folder.read(tmp_path).outcomes.findings] == ["rows-duplicate"]


def test_a_run_without_rows_has_every_episode_missing(tmp_path):
    write(tmp_path, plan(), [])
    (tmp_path / "rows.jsonl").unlink()
    assert run_folder.read(tmp_path).outcomes.count("missing") == 60


def test_a_row_of_another_pack_is_a_finding(tmp_path):
    write(tmp_path, plan(), rows(A))
    with (tmp_path / "rows.jsonl").open("ab") as file:
        file.write(line(row(manifest_sha256="b" * 64)))
    assert [finding.rule for finding in run_folder.read(tmp_path).outcomes.findings] == ["rows-pack"]


def test_bad_entries_beside_the_rows_are_findings(tmp_path):
    files = {"confounds": b"{}\nnot json\n", "receipts": b"{}\n", "baselines": b"{}"}
    found = run_folder.read(write(tmp_path, plan(), rows(A), **files))
    assert {finding.rule for finding in found.evidence.findings} == {
        "confounds-field",
        "confounds-json",
        "receipt-field",
        "report-receipts",
        "baselines-field",
    }
    assert len(found.evidence.confounds or ()) == 2
    assert found.report().draft


def test_what_is_no_run_says_which_file_is_lacking(tmp_path):
    with pytest.raises(Usage) as refusal:
        run_folder.read(tmp_path)
    assert "run.json" in refusal.value.what


def test_a_broken_plan_is_refused(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(Refused):
        run_folder.read(tmp_path)


def test_a_plan_without_tasks_is_refused(tmp_path):
    with pytest.raises(Refused, match="no task"):
        run_folder.read(write(tmp_path, plan(tasks=0), []))


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("tool_calls", "1" * 5000),
        ("tool_calls", "-1"),
        ("repeat", "9" * 30),
        ("agent_exit", "-" + "9" * 30),
        ("elapsed_s", "1e308"),
        ("elapsed_s", "-1.0"),
        ("cpu_s", "1e200"),
        ("recorded_latency_ms", "1e300"),
        ("tokens_in", "1" * 5000),
    ],
)
def test_a_figure_that_nothing_can_hold_is_a_finding_of_its_row(member, value):
    text = row().model_dump_json()
    text = re.sub(rf'"{member}":[^,]+', f'"{member}":{value}', text, count=1)
    assert f'"{member}":{value},' in text
    with pytest.raises(Refused) as caught:
        Row.from_bytes(text, "rows.jsonl:1")
    assert [(each.rule, each.where) for each in caught.value.findings] == [("rows-field", f"rows.jsonl:1#/{member}")]


def test_a_plan_of_more_episodes_than_can_be_held_is_refused_at_once(tmp_path):
    (tmp_path / "run.json").write_bytes(plan().model_copy(update={"repeats": 10**12}).text())
    with pytest.raises(Refused, match="more than 2000000 episodes"):
        run_folder.read(tmp_path)


@pytest.mark.parametrize("name", ["run.json", "rows.jsonl", "card.yaml", "receipts.jsonl", "judgments.jsonl"])
def test_no_pipe_among_the_files_of_a_run_is_waited_for(tmp_path, name):
    write(tmp_path, plan(), rows(A))
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(Usage, match="not a regular file"):
        run_folder.read(tmp_path)


def test_no_pipe_is_opened_as_a_file(tmp_path):
    os.mkfifo(tmp_path / "calls.jsonl")
    with pytest.raises(OSError, match="not a regular file"):
        run_folder.opened(tmp_path / "calls.jsonl")
    (tmp_path / "stdout").write_bytes(b"x")
    with run_folder.opened(tmp_path / "stdout") as file:
        assert file.read() == b"x"
