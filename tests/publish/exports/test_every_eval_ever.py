import hashlib
import json
import re
from dataclasses import replace

import pytest

from scoresheet.errors import Usage
from scoresheet.publish.exports import every_eval_ever
from tests.publish.exports.subjects import HOSTILE, NAMES, call, files, hostile, subject, validator, without
from tests.publish.runs import A, B, row, rows

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def read(there):
    """The record and its samples."""
    (samples_path, samples), (path, record) = files(every_eval_ever.build(there)).items()
    assert samples_path == f"{path.removesuffix('.json')}_samples.jsonl"
    return json.loads(record), [json.loads(line) for line in samples.splitlines()]


@pytest.mark.parametrize("there", [subject(), hostile(), subject(retries=1), subject(rows(B[:4]), tasks=4)])
def test_the_published_schemas_accept_it(there):
    record, samples = read(there)
    assert [error.message for error in validator("every_eval_ever").iter_errors(record)] == []
    checked = validator("every_eval_ever_sample")
    assert [error.message for sample in samples for error in checked.iter_errors(sample)] == []


def test_the_schemas_refuse_what_is_none():
    record, samples = read(subject())
    assert not validator("every_eval_ever").is_valid(record | {"extra": 1})
    assert not validator("every_eval_ever_sample").is_valid(samples[0] | {"interaction_type": "guess"})


def test_its_files_lie_where_a_datastore_keeps_them():
    samples, record = files(every_eval_ever.build(subject()))
    assert re.fullmatch(rf"data/billing/acme/careful/{UUID}\.json", record)
    assert samples == record.replace(".json", "_samples.jsonl")
    assert list(files(every_eval_ever.build(subject()))) == [samples, record]
    other = subject(names=replace(NAMES, model="acme/other"))
    assert every_eval_ever.uuid(other) != every_eval_ever.uuid(subject())


@pytest.mark.parametrize(
    ("suite", "folder"), [("a/../../b", "a-b"), ("data", "suite-data"), ("…", "suite"), ("con.x", "con-x")]
)
def test_a_suites_name_is_never_a_path(suite, folder):
    assert every_eval_ever.folder(subject(suite=suite)) == f"data/{folder}/acme/careful/"


def test_the_record_quotes_the_digest_of_its_samples():
    written = files(every_eval_ever.build(subject()))
    (samples_path, samples), (_, record) = written.items()
    details = json.loads(record)["detailed_evaluation_results"]
    assert details["checksum"] == hashlib.sha256(samples).hexdigest()
    assert details["file_path"] == samples_path
    assert details["total_rows"] == len(samples.splitlines()) == 60


def test_every_rate_is_there_and_success_has_its_interval():
    record, _ = read(subject())
    found = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
    assert list(found) == [
        "success_mean",
        "schema_ok_rate",
        "unauthorized_rate",
        "timeout_rate",
        "finished_before_limits_rate",
    ]
    details = found["success_mean"]["score_details"]
    assert details["score"] == 0.5333
    assert details["uncertainty"]["confidence_interval"] == {
        "lower": 0.3,
        "upper": 0.75,
        "confidence_level": 0.95,
        "method": "expanded percentile, xof-cluster-boot/1, B=9999, k=107",
    }
    assert (details["uncertainty"]["num_samples"], details["uncertainty"]["num_bootstrap_samples"]) == (12, 9999)
    assert found["unauthorized_rate"]["metric_config"]["lower_is_better"] is True
    (first, *_) = read(subject(rows(A)))[0]["evaluation_results"]
    assert "num_bootstrap_samples" not in first["score_details"]["uncertainty"]


def test_without_an_interval_it_says_so():
    record, _ = read(subject(rows(B[:4]), tasks=4))
    details = record["evaluation_results"][0]["score_details"]
    assert details["details"]["interval"] == "none (4 tasks)"
    assert "uncertainty" not in details


def test_the_sheet_travels_along():
    record, _ = read(subject(confounds=("the fan broke",)))
    sheet = record["eval_library"]["additional_details"]
    assert sheet["confound"] == "the fan broke"
    assert sheet["live_network"] == "denied"
    assert record["retrieved_timestamp"] == "1790071500"


def test_an_episode_is_told_as_task_calls_and_answer():
    told = subject(
        [row("t00", 0, 1, answer={"price": 12}, tokens_in=3, tokens_out=None), *rows(B)[1:]],
        calls=(call(0), call(1, "miss", body={"n": 1}), call(2, "answer")),
        prompt="What is the price?",
    )
    _, (first, second, *_) = read(told)
    assert [(turn["role"], turn["content"]) for turn in first["messages"]] == [
        ("user", "What is the price?"),
        ("assistant", None),
        ("tool", f"recorded response, status 200, sha256:{'1' * 64}"),
        ("assistant", None),
        ("tool", "not answered from the recording (no_match), status 403"),
        ("assistant", '{"price": 12}'),
    ]
    assert first["messages"][3]["tool_calls"][0]["arguments"] == {"request": "GET /items/1", "body": '{"n": 1}'}
    assert first["answer_attribution"][0]["source"] == "messages[5].content"
    assert first["token_usage"] == {"input_tokens": 3, "output_tokens": 0, "total_tokens": 3}
    assert second["answer_attribution"] == []
    assert (first["evaluation"]["is_correct"], first["metadata"]["repeat"]) == (True, "0")


def test_prompts_and_expected_answers_stay_at_home():
    _, (first, *_) = read(subject())
    assert first["input"]["raw"].startswith("task t00 of the pack with manifest sha256 ")
    assert first["input"]["reference"] == []


def test_hostile_text_is_kept_as_data():
    _, (first, second, *_) = read(hostile())
    assert first["input"]["raw"] == HOSTILE
    assert json.loads(first["answer_attribution"][0]["extracted_value"])[HOSTILE][1] == 10**30
    assert second["error"] == f"mismatch: {HOSTILE}"


def test_no_reader_finds_the_end_of_a_line_within_one():
    """Its validator splits text where Unicode ends lines: at U+0085, too."""
    samples, _ = files(every_eval_ever.build(hostile())).values()
    assert len(samples.decode().splitlines()) == 60


@pytest.mark.parametrize("missing", ["organization", "model"])
def test_publisher_and_model_must_be_named(missing):
    with pytest.raises(Usage, match="files a record by its publisher and its model"):
        files(every_eval_ever.build(subject(names=without(missing))))


@pytest.mark.parametrize("model", ["careful", "unknown/careful", "../..", "a/b/c", "acme/", "data/x"])
def test_a_models_name_is_developer_and_name(model):
    with pytest.raises(Usage, match="DEVELOPER/NAME"):
        files(every_eval_ever.build(subject(names=replace(NAMES, model=model))))


def test_a_dataset_on_the_hub_is_named_and_any_other_is_described():
    source = read(subject())[0]["evaluation_results"][0]["source_data"]
    assert (source["source_type"], source["hf_repo"]) == ("hf_dataset", "acme/billing")
    assert len(source["sample_ids"]) == 12
    private = read(subject(names=replace(NAMES, dataset=None, source=None)))[0]
    assert private["evaluation_results"][0]["source_data"]["source_type"] == "other"
    assert "additional_details" not in private["source_metadata"]
