"""Hoverfly simulations."""

import json

import pytest

from scoresheet.errors import Malformed
from tests.record.importers.replayed import CORPUS, gathered, imported, replays


def test_real_simulations_freeze_and_answer(tmp_path):
    done = imported("hoverfly", (CORPUS / "hoverfly",), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == len(task.calls) == 4
    assert {finding.rule for finding in done.left_out} == {"import-pattern"}
    assert b"base64 encoded" in [call.response().body for call in task.calls]


def test_older_simulations_and_queries_are_read():
    old = {
        "request": {
            "method": {"exactMatch": "GET"}, "scheme": {"exactMatch": "https"},
            "destination": {"exactMatch": "api.test"},
            "path": {"exactMatch": "/a"}, "query": {"exactMatch": "q=1"}, "body": {"exactMatch": ""},
        },
        "response": {"status": 201, "body": "x", "encodedBody": False, "headers": {"X": ["1", "2"]}},
    }  # fmt: skip
    result = gathered("hoverfly", json.dumps({"data": {"pairs": [old]}}))
    assert result.exchanges[0].request.target == "/a?q=1"
    assert result.exchanges[0].response.headers == (("X", "1"), ("X", "2"))
    real = gathered("hoverfly", (CORPUS / "hoverfly" / "base64-body.json").read_bytes())
    assert real.exchanges[0].request.target == "/pages/keyconcepts/templates.html?query=true"


def test_a_post_for_any_body_is_left_out():
    exact = {name: [{"matcher": "exact", "value": value}] for name, value in
             (("method", "POST"), ("destination", "api.test"), ("path", "/a"))}  # fmt: skip
    pair = {"request": exact, "response": {"status": 200, "body": ""}}
    assert [each.rule for each in gathered("hoverfly", json.dumps({"data": {"pairs": [pair]}})).left_out] == [
        "import-pattern"
    ]


@pytest.mark.parametrize("text", ["", "7", "[1", '"x"', "{}", '{"item": 7, "data": 7, "mappings": 7}', "[" * 100_000])
def test_what_is_of_another_format_is_refused(text):
    with pytest.raises(Malformed):
        gathered("hoverfly", text, "f.json")
