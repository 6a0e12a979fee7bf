"""What a report says of its models, what trajectories hold, and what verify finds when any of it is edited."""

import shutil
import subprocess
from typing import Any

import pytest

from scoresheet.pack.folder import Pack
from scoresheet.publish import audit, bundle, run_folder
from scoresheet.publish.trajectories import Trajectories
from tests.command import SCORESHEET
from tests.e2e.test_models import TURNS, run
from tests.run import atif

FIRST, SECOND = "stub-model-2026-01-01", "stub-model-2026-02-02"
CHANGING: dict[str, Any] = {"model": FIRST, "turns": [TURNS[0], {"text": '{"price": 12}', "model": SECOND}]}


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evidence")
    prompts = {"warm": "be warm", "shell": "want bash", "stream": "stream it"}
    done, rows, _ = run(folder, prompts, script=CHANGING)
    return folder, done.stdout, rows


@pytest.fixture
def edited(seen, tmp_path):
    shutil.copytree(seen[0] / "run", tmp_path / "run")
    return tmp_path / "run"


def told(report: str, control: str) -> str:
    """The report's confound about a control."""
    (line,) = [line for line in report.splitlines() if line.startswith("confound: ") and f"{control} was" in line]
    return line


def trajectory(folder, task_id):
    return atif.read((folder / "run" / "episodes" / task_id / "0.0" / "trajectory.json").read_bytes())


def verified(path, pack=None):
    words = [SCORESHEET, "verify", str(path), *(() if pack is None else ("--pack", str(pack)))]
    return subprocess.run(words, capture_output=True, text=True, timeout=300)


def rewrite(path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def test_the_report_says_how_many_calls_had_another_temperature(seen):
    _, report, rows = seen
    assert "the card pins 0, seen 0.7 in 2" in told(report, "controls.temperature")
    assert rows["warm"].controls["controls.temperature"] == "violated"
    assert rows["stream"].controls["controls.temperature"] == "verified"


def test_the_report_names_a_tool_outside_the_allowlist(seen):
    _, report, rows = seen
    assert "the card pins get_item, seen bash in 1" in told(report, "controls.tool_allowlist")
    assert (rows["shell"].exit_reason, rows["shell"].model_calls) == ("mismatch", 0)


def test_the_report_says_that_the_models_name_changed(seen):
    _, report, rows = seen
    line = told(report, "model_snapshot")
    assert f"seen {FIRST} in 1, {SECOND} in 1 (the name that answers changed during the episode)" in line
    assert "violated in 2 episodes" in line
    assert rows["warm"].models == (FIRST, SECOND)
    assert rows["warm"].controls["controls.model"] == "verified"  # both are snapshots of it
    assert f"model: {FIRST}, {SECOND}" in report


def test_the_report_counts_a_hidden_retry_after_a_500(tmp_path):
    heard = []
    script = {"turns": TURNS, "faults": [{"status": 500, "turn": 1}]}
    done, rows, _ = run(tmp_path, {"s": "be stubborn"}, script=script, stub_heard=heard.append)
    row = rows["s"]
    assert (row.success, row.exit_reason, row.model_calls, row.model_retries) == (1, "completed", 3, 1)
    assert len(heard) == 3
    assert "the card pins 0, seen 1 retries in 1" in told(done.stdout, "controls.retries")
    failed = [step for step in trajectory(tmp_path, "s")["steps"] if "failure" in step.get("extra", {})]
    assert [step["extra"]["status"] for step in failed] == [500]


def test_the_41st_tool_call_ends_the_episode_and_stands_in_the_report(tmp_path):
    ten = {"calls": [{"tool": "get_item", "arguments": {"n": 1}}] * 10}
    script = {"turns": [ten, ten, ten, ten, TURNS[0], TURNS[1]]}
    done, rows, _ = run(tmp_path, {"t": "go on"}, script=script)
    row = rows["t"]
    assert (row.exit_reason, row.limit, row.success, row.tool_calls) == ("tool_cap", "tool_calls", 0, 40)
    assert row.model_calls == 5
    assert "the card pins 40, seen 41 tool calls" in told(done.stdout, "controls.max_tool_calls")
    assert "exit_reasons: tool_cap 1" in done.stdout
    assert trajectory(tmp_path, "t")["final_metrics"]["extra"]["model_calls"] == 5


def test_forty_tool_calls_are_within_the_cap(tmp_path):
    twenty = {"calls": [{"tool": "get_item", "arguments": {"n": 1}}] * 20}
    _, rows, _ = run(tmp_path, {"t": "go on"}, script={"turns": [twenty, twenty, TURNS[1]]})
    row = rows["t"]
    assert (row.exit_reason, row.success, row.tool_calls) == ("completed", 1, 40)
    assert row.controls["controls.max_tool_calls"] == "verified"


def test_every_episode_writes_its_trajectory(seen):
    folder, _, rows = seen
    streamed = trajectory(folder, "stream")
    prompt, called, answered = streamed["steps"]
    assert (prompt["source"], prompt["message"]) == ("user", "stream it")
    assert (called["model_name"], answered["model_name"]) == (FIRST, SECOND)
    (call,) = called["tool_calls"]
    (result,) = called["observation"]["results"]
    assert (call["function_name"], call["arguments"]) == ("get_item", {"n": 1})
    assert call["extra"]["fingerprint"].startswith("sha256:")
    assert (result["source_call_id"], result["content"]) == (call["tool_call_id"], '{"price": 12}')
    assert (result["extra"]["status"], result["extra"]["recorded_latency_ms"]) == (200, 40.0)
    assert answered["message"] == '{"price": 12}'
    assert streamed["final_metrics"]["total_prompt_tokens"] == rows["stream"].tokens_in
    refused = trajectory(folder, "shell")["steps"][-1]
    assert refused["llm_call_count"] == 0
    assert "outside the card's allowlist: bash" in refused["extra"]["refused"]


def test_another_run_writes_the_same_trajectory(seen, tmp_path):
    folder, _, _ = seen
    run(tmp_path, {"warm": "be warm", "shell": "want bash", "stream": "stream it"}, script=CHANGING)
    for task_id in ("warm", "stream"):
        place = f"run/episodes/{task_id}/0.0/trajectory.json"
        assert (tmp_path / place).read_bytes() == (folder / place).read_bytes()


def test_verify_folds_model_calls_again(seen):
    folder, _, _ = seen
    done = verified(folder / "run", folder / "pack")
    assert done.returncode == 0, done.stdout
    assert "model calls, tokens and controls: folded again from 3 model.jsonl" in done.stdout
    assert "trajectories: 3 made again, byte for byte" in done.stdout
    assert "trajectories: made again only with the pack" in verified(folder / "run").stdout


def test_an_edited_token_figure_is_named(seen, edited):
    rewrite(edited / "rows.jsonl", b'"tokens_in":2000', b'"tokens_in":1000')
    done = verified(edited)
    assert done.returncode == 1
    assert "tokens_in does not follow from episodes/" in done.stdout
    assert "(row 1000, the log 2000)" in done.stdout


def test_a_violation_that_was_taken_out_is_named(edited):
    rewrite(edited / "rows.jsonl", b'"controls.temperature":"violated"', b'"controls.temperature":"verified"')
    done = verified(edited)
    assert done.returncode == 1
    assert "controls.temperature does not follow from episodes/warm/0.0/model.jsonl" in done.stdout


def test_an_edited_exchange_is_named(edited):
    rewrite(edited / "episodes" / "warm" / "0.0" / "model.jsonl", b"get_item", b"got_item")
    done = verified(edited)
    assert done.returncode == 1
    assert "episodes/warm/0.0/model.jsonl is not what the row was folded from" in done.stdout


def test_an_exchange_that_is_gone_is_named(edited):
    (edited / "episodes" / "warm" / "0.0" / "model.jsonl").unlink()
    assert "its model calls episodes/warm/0.0/model.jsonl are not there" in verified(edited).stdout


def test_an_edited_trajectory_is_named(seen, edited):
    place = "episodes/stream/0.0/trajectory.json"
    rewrite(edited / place, b'"status":200', b'"status":201')
    done = verified(edited, seen[0] / "pack")
    assert done.returncode == 1
    assert f"{place}: stream 0.0: not what its calls and model calls give" in done.stdout
    (edited / place).unlink()
    done = verified(edited, seen[0] / "pack")
    assert done.returncode == 0
    assert "trajectories: not all are there" in done.stdout


def test_trajectories_of_another_version_are_not_compared(seen):
    folder, _, _ = seen
    plan, pack = run_folder.plan_of(folder / "run"), Pack.open(folder / "pack")
    assert Trajectories(folder / "run", plan, pack).comparable
    older = plan.model_copy(update={"versions": {"scoresheet": "0.0.1"}})
    assert not Trajectories(folder / "run", older, pack).comparable


def test_a_bundle_holds_model_calls_and_trajectories_by_digest(seen, tmp_path):
    folder, _, _ = seen
    words = [SCORESHEET, "bundle", str(folder / "run"), "-o", str(tmp_path / "b.tar"), "--pack", str(folder / "pack")]
    subprocess.run(words, check=True, capture_output=True, timeout=300)
    done = verified(tmp_path / "b.tar")
    assert done.returncode == 0, done.stdout
    assert "of 3 model.jsonl only the digests are here" in done.stdout
    names = subprocess.run(["tar", "-tf", tmp_path / "b.tar"], capture_output=True, text=True, check=True).stdout
    assert "model.jsonl" not in names
    assert "trajectory.json" not in names
    listed = subprocess.run(
        ["tar", "-xOf", tmp_path / "b.tar", "outputs.sha256"], capture_output=True, text=True, check=True
    ).stdout
    assert listed.count("/trajectory.json\n") == 3
    assert listed.count("/model.jsonl\n") == 3


def test_a_bundle_of_an_edited_exchange_is_found(edited, tmp_path):
    rewrite(edited / "episodes" / "warm" / "0.0" / "model.jsonl", b"get_item", b"got_item")
    words = [SCORESHEET, "bundle", str(edited), "-o", str(tmp_path / "b.tar")]
    assert subprocess.run(words, capture_output=True, timeout=300).returncode == 1
    read = run_folder.read(edited)
    bundle.write(bundle.Ready(edited, read.plan, read.report()), tmp_path / "c.tar")  # by who asks no audit
    (tmp_path / "scratch").mkdir()
    found = audit.of_bundle(tmp_path / "c.tar", tmp_path / "scratch")
    assert [finding.rule for finding in found.findings] == ["row-model"]
    assert "model.jsonl is not what warm 0.0 was folded from" in found.findings[0].what


def test_a_row_of_models_in_a_bundle_without_their_digest_is_found(edited, tmp_path):
    (edited / "episodes" / "warm" / "0.0" / "model.jsonl").unlink()
    read = run_folder.read(edited)
    bundle.write(bundle.Ready(edited, read.plan, read.report()), tmp_path / "c.tar")
    (tmp_path / "scratch").mkdir()
    (finding,) = audit.of_bundle(tmp_path / "c.tar", tmp_path / "scratch").findings
    assert finding.what == "3 rows were folded from model calls, and the digests of 2 logs are here"
