import re
from dataclasses import replace

import pytest
import yaml

from scoresheet.errors import Refused, Usage
from scoresheet.publish.exports import hugging_face
from tests.publish.exports.subjects import NAMES, hostile, subject, text, without
from tests.publish.runs import B, rows


def read(there):
    (entry,) = yaml.safe_load(text(hugging_face.build(there)))
    return entry


def test_the_number_goes_with_its_interval_its_rates_and_its_digests():
    entry = read(subject())
    assert {name: entry[name] for name in ("dataset", "value", "date", "source")} == {
        "dataset": {"id": "acme/billing", "task_id": "refunds"},
        "value": 0.5333,
        "date": "2026-09-22T10:05:00Z",
        "source": {"url": "https://example.org/careful.tar", "name": "scoresheet bundle"},
    }
    assert entry["notes"].startswith("success_mean: 0.5333; success_ci95: [0.3000, 0.7500]; confounds: 0; planned: 60;")
    for key in (
        "unauthorized_rate: 0.0000",
        "timeout_rate: 0.0000",
        "live_network: denied",
        f"rows_sha256: {'f' * 64}",
    ):
        assert key in entry["notes"]
    assert re.search(r"manifest_sha256: [0-9a-f]{64}", entry["notes"])
    assert re.search(r"figures_sha256: [0-9a-f]{64}", entry["notes"])


def test_the_date_stays_a_text():
    assert "date: '2026-09-22T10:05:00Z'" in text(hugging_face.build(subject()))


def test_retries_are_in_the_metrics_name():
    notes = read(subject(retries=2))["notes"]
    assert notes.startswith("success_after_2_retries_mean: ")
    assert "success_mean" not in notes


def test_what_others_wrote_stays_a_text():
    notes = read(hostile())["notes"]
    assert isinstance(notes, str)
    assert notes.isprintable()
    assert set(read(hostile())) == {"dataset", "value", "date", "source", "notes"}


def test_a_source_is_left_out_when_there_is_none():
    assert "source" not in read(subject(names=replace(NAMES, source=None)))


@pytest.mark.parametrize("missing", ["dataset", "task"])
def test_dataset_and_task_must_be_named(missing):
    with pytest.raises(Usage, match="task of a dataset") as raised:
        text(hugging_face.build(subject(names=without(missing))))
    assert raised.value.mend.startswith("name the suite's dataset on the Hub")


@pytest.mark.parametrize(
    ("name", "value"), [("dataset", "billing"), ("dataset", "a/b/c"), ("dataset", "a/b\nc: d"), ("task", "a b")]
)
def test_names_are_names_of_the_hub(name, value):
    with pytest.raises(Usage, match="is no name on the Hub"):
        text(
            hugging_face.build(
                subject(names=replace(NAMES, dataset=value) if name == "dataset" else replace(NAMES, task=value))
            )
        )


def test_one_number_without_an_interval_is_refused():
    few = subject(rows(B[:4]), tasks=4)
    with pytest.raises(Refused) as raised:
        text(hugging_face.build(few))
    assert raised.value.findings[0].rule == "export-interval"
    assert raised.value.findings[0].what.startswith("success_ci95 is none (4 tasks): one number")
