"""Responses saved in Postman collections."""

import json

import pytest

from scoresheet.errors import Malformed
from scoresheet.record.importers.hosts import Host
from tests.record.importers.replayed import CORPUS, gathered, imported, replays

HOST = (Host("API", "api.test"),)


def rules(result):
    return [finding.rule for finding in result.left_out]


def test_real_collections_freeze_and_answer(tmp_path):
    one = CORPUS / "postman" / "petstore.postman_collection.json"
    assert imported("postman", (one,), tmp_path / "pack").calls == 3
    replays(tmp_path / "pack", tmp_path / "run")
    two = CORPUS / "postman" / "weather-forecast.postman_collection.json"
    done = imported("postman", (two,), tmp_path / "weather", hosts=HOST)
    task = replays(tmp_path / "weather", tmp_path / "run2")
    assert done.calls == 5
    assert {call.request.path for call in task.calls} >= {"/forecast/east", "/forecast/north"}


def test_a_request_with_an_unknown_variable_is_left_out():
    result = gathered("postman", (CORPUS / "postman" / "films-graphql.postman_collection.json").read_bytes())
    assert "import-variable" in rules(result)


def test_variables_are_filled_from_the_collection():
    item = {
        "name": "x",
        "request": {
            "method": "POST", "url": {"raw": "{{base}}/a/:id?q={{q}}", "variable": [{"key": "id", "value": "7"}]},
            "body": {"mode": "urlencoded", "urlencoded": [{"key": "a", "value": "{{q}} c"}]},
        },
        "response": [
            {"code": 200, "body": "{}", "_postman_previewlanguage": "json", "header": []},
            {"code": 200, "body": None},
        ],
    }  # fmt: skip
    variables = [{"key": "base", "value": "https://api.test/v1"}, {"key": "q", "value": "b"}]
    result = gathered("postman", json.dumps({"item": [{"item": [item]}], "variable": variables}))
    request = result.exchanges[0].request
    assert (request.target, request.body) == ("/v1/a/7?q=b", b"a=b+c")
    assert result.exchanges[0].response.headers == (("Content-Type", "application/json"),)
    assert rules(result) == ["import-body-missing"]


@pytest.mark.parametrize("text", ["", "7", "[1", '"x"', "{}", '{"item": 7, "data": 7, "mappings": 7}', "[" * 100_000])
def test_what_is_of_another_format_is_refused(text):
    with pytest.raises(Malformed):
        gathered("postman", text, "f.json")
