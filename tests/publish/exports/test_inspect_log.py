import json
from dataclasses import replace

import pytest

from scoresheet.publish.exports import inspect_log
from tests.publish.exports.subjects import HOSTILE, NAMES, call, files, hostile, subject, validator
from tests.publish.runs import B, row, rows


def read(there):
    """Path → value of every member."""
    return {path: json.loads(data) for path, data in files(inspect_log.build(there)).items()}


def test_its_members_are_those_of_a_log():
    members = read(subject())
    assert next(iter(members)) == "_journal/start.json"
    assert list(members)[-2:] == ["summaries.json", "header.json"]
    samples = [path for path in members if path.startswith("samples/")]
    assert len(samples) == len(members["summaries.json"]) == 60
    assert samples[0] == "samples/t00_epoch_1.json"


@pytest.mark.parametrize("there", [subject(), hostile(), subject(retries=1), subject(rows(B[:4]), tasks=4)])
def test_the_published_schema_accepts_it(there):
    members = read(there)
    assert [error.message for error in validator("inspect_log", "EvalLog").iter_errors(members["header.json"])] == []
    checked = validator("inspect_log", "EvalSample")
    for path, sample in members.items():
        if path.startswith("samples/"):
            assert [error.message for error in checked.iter_errors(sample)] == []


def test_the_schema_refuses_what_is_none():
    members = read(subject())
    assert not validator("inspect_log", "EvalLog").is_valid(members["header.json"] | {"status": "good"})
    assert not validator("inspect_log", "EvalSample").is_valid(members["samples/t00_epoch_1.json"] | {"epoch": "1"})


def test_figures_are_the_reports_and_the_interval_stands_beside_the_mean():
    (score,) = read(subject())["header.json"]["results"]["scores"]
    assert {name: each["value"] for name, each in score["metrics"].items()} == {
        "success_mean": 0.5333,
        "success_ci95_low": 0.3,
        "success_ci95_high": 0.75,
        "schema_ok_rate": 1.0,
        "unauthorized_rate": 0.0,
        "timeout_rate": 0.0,
    }
    (few,) = read(subject(rows(B[:4]), tasks=4))["header.json"]["results"]["scores"]
    assert [name for name in few["metrics"] if "ci95" in name] == []
    (retried,) = read(subject(retries=2))["header.json"]["results"]["scores"]
    assert "success_after_2_retries_mean" in retried["metrics"]


def test_the_sheet_is_the_logs_metadata():
    metadata = read(subject(confounds=("the fan broke",)))["header.json"]["metadata"]
    assert (metadata["confound"], metadata["live_network"]) == ("the fan broke", "denied")


def test_an_episode_is_a_sample_with_its_calls():
    told = subject(
        [row("t00", 0, 1, answer={"price": 12}, tokens_in=3, tokens_out=4), *rows(B)[1:]],
        calls=(call(0), call(1, "miss", tool=None, body="n=1"), call(2, "answer")),
        prompt="What is the price?",
    )
    sample = read(told)["samples/t00_epoch_1.json"]
    assert [each["role"] for each in sample["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert sample["messages"][4]["error"]["type"] == "permission"
    assert sample["events"][0]["timestamp"] == "2026-09-22T10:00:01.010000+00:00"
    assert [each["function"] for each in sample["events"]] == ["get_item", "GET"]
    assert sample["events"][1]["arguments"] == {"request": "GET /items/1", "body": "n=1"}
    assert sample["output"]["completion"] == '{"price": 12}'
    assert sample["model_usage"] == {"acme/careful": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}}
    assert sample["scores"]["success"]["value"] == 1
    assert sample["target"] == ""


def test_limits_are_told():
    late = row("t00", 0, 0, exit_reason="timeout", timeout=1)
    capped = row("t00", 1, 0, exit_reason="tool_cap")
    members = read(subject([late, capped, *rows(B)[2:]]))
    assert members["samples/t00_epoch_1.json"]["limit"] == {"type": "time", "limit": 30.0}
    assert members["samples/t00_epoch_2.json"]["limit"] == {"type": "custom", "limit": 0.0}
    assert members["summaries.json"][0]["limit"] == "time"


def test_the_model_is_the_named_one_or_the_one_that_was_seen():
    nameless = subject(names=replace(NAMES, model=None))
    assert read(nameless)["header.json"]["eval"]["model"] == "none"
    seen = subject([row("t00", 0, 1, models=("gpt-x",)), *rows(B)[1:]], names=replace(NAMES, model=None))
    assert read(seen)["header.json"]["eval"]["model"] == "gpt-x"


def test_hostile_text_is_kept_as_data_and_names_no_member():
    members = read(hostile())
    assert not [path for path in members if ".." in path or path.startswith("/") or not path.isprintable()]
    assert members["samples/t00_epoch_1.json"]["input"] == HOSTILE
    assert members["samples/t00_epoch_1.json"]["output"]["completion"].startswith('{"</failure><script>')
    assert members["header.json"]["metadata"]["confound"].isprintable()
