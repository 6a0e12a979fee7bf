"""Examples in OpenAPI descriptions."""

import json

import pytest

from scoresheet.documents.tool import Tool
from scoresheet.errors import Malformed
from scoresheet.record.importers.hosts import Host
from tests.record.importers.replayed import CORPUS, gathered, imported, replays

HOST = (Host("API", "api.test"),)


def rules(result):
    return [finding.rule for finding in result.left_out]


@pytest.mark.parametrize(("name", "calls"), [("cars.yaml", 3), ("pastry.yaml", 8)])
def test_examples_of_real_descriptions_freeze_and_answer(name, calls, tmp_path):
    done = imported("openapi", (CORPUS / "openapi" / name,), tmp_path / "pack", hosts=HOST)
    replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == calls
    assert dict(done.changed)["an answer is an example: no service gave it"] == calls


def test_examples_of_one_name_belong_together_and_media_types_are_told_apart(tmp_path):
    imported("openapi", (CORPUS / "openapi" / "pastry.yaml",), tmp_path / "pack", hosts=HOST)
    tool = Tool.from_bytes((tmp_path / "pack" / "tools" / "GetPastryByName.json").read_bytes(), "t")
    assert tool.http.vary == ("accept",)
    task = replays(tmp_path / "pack", tmp_path / "run")
    eclair = [
        call for call in task.calls if call.request.method == "GET" and call.request.path.endswith("Eclair%20Cafe")
    ]
    assert {call.request.as_request().header("accept") for call in eclair} == {"application/json", "text/xml"}


def test_an_example_without_its_parameter_is_left_out():
    parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
    content = {"application/json": {"examples": {"one": {"value": {"a": 1}}, "two": {"externalValue": "x"}}}}
    operation = {"operationId": "get", "parameters": [parameter], "responses": {"200": {"content": content}}}
    document = {"openapi": "3.1.0", "paths": {"/a/{id}": {"get": operation}}}
    assert rules(gathered("openapi", json.dumps(document), "d.json", HOST)) == ["import-body-missing", "import-example"]
    parameter["example"] = 7
    result = gathered("openapi", json.dumps(document), "d.json", HOST)
    assert result.exchanges[0].request.target == "/a/7"


@pytest.mark.parametrize("text", ["", "7", "[1", '"x"', "{}", '{"item": 7, "data": 7, "mappings": 7}', "[" * 100_000])
def test_what_is_of_another_format_is_refused(text):
    with pytest.raises(Malformed):
        gathered("openapi", text, "f.json", HOST)
