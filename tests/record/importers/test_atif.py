"""ATIF trajectories."""

import json

import pytest

from scoresheet.errors import Malformed
from tests.record.importers.replayed import CORPUS, gathered, imported, replays


def rules(result):
    return [finding.rule for finding in result.left_out]


def atif(*steps, version="ATIF-v1.5", **agent):
    return json.dumps({"schema_version": version, "agent": agent, "steps": list(steps)})


def step(results, calls=({"tool_call_id": "1", "function_name": "f", "arguments": {"a": 1}},), **more):
    return {"source": "agent", "tool_calls": list(calls), "observation": {"results": results}} | more


def test_a_real_trajectory_freezes_and_answers(tmp_path):
    path = CORPUS / "atif" / "openhands-hello-world.trajectory.json"
    done = imported("atif", (path,), tmp_path / "pack", prompt="")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert task.prompt.startswith("Create a file called hello.txt")
    assert [call.request.path for call in task.calls] == ["str_replace_editor"]
    assert [finding.rule for finding in done.left_out] == ["import-no-answer"]  # finish ends the run


def test_a_trajectory_of_an_episode_of_our_own_freezes_and_answers(tmp_path):
    done = imported("atif", (CORPUS / "atif" / "scoresheet-refund.trajectory.json",), tmp_path / "pack", prompt="")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert (done.calls, done.left_out) == (3, ())
    assert [call.request.path for call in task.calls] == ["get_order", "get_payment", "create_refund"]
    assert task.prompt.startswith("Refund order ord-1001 in full.")
    assert json.loads(task.calls[2].response().body)["refund_id"] == "ref-501"


def test_trajectories_of_agents_that_act_by_words_hold_no_calls():
    words = gathered("atif", (CORPUS / "atif" / "terminus2-continuation.trajectory.json").read_bytes())
    assert not words.exchanges
    assert set(rules(words)) == {"import-no-request"}


def test_a_trajectory_whose_results_name_no_call_is_read_by_its_steps(tmp_path):
    path = CORPUS / "atif" / "terminus2-invalid-json.trajectory.json"
    done = imported("atif", (path,), tmp_path / "pack")
    replays(tmp_path / "pack", tmp_path / "run")
    assert "bash_command" in done.tools
    assert any("names no call" in what for what, _ in done.changed)


def test_results_are_found_by_their_call_or_as_the_only_one():
    named = atif(step([{"source_call_id": "1", "content": "x"}]))
    assert gathered("atif", named).exchanges[0].response.body == b"x"
    unnamed = gathered("atif", atif(step([{"content": "x"}])))
    assert unnamed.exchanges[0].response.body == b"x"
    assert unnamed.changed
    copied = gathered("atif", atif(step([{"source_call_id": "1", "content": "x"}], is_copied_context=True)))
    assert rules(copied) == ["import-copied"]


@pytest.mark.parametrize("text", ["{}", "[]", atif(version="ATIF-v2.0"), '{"schema_version": "ATIF-v1.5"}'])
def test_what_is_no_trajectory_is_refused(text):
    with pytest.raises(Malformed):
        gathered("atif", text, "t")
