"""Every file format has a JSON Schema by its name, and the schema takes what the model takes."""

import importlib
import json

import jsonschema_rs
import pytest

from scoresheet.cli.schema import FORMATS
from scoresheet.documents.model import Document
from tests.pack.packs import reference, tool, v1_task, v2_call, v2_task


def schema_of(name):
    module, model = FORMATS[name]
    document = getattr(importlib.import_module(f"scoresheet.documents.{module}"), model)
    assert issubclass(document, Document)
    return document.model_json_schema(by_alias=True)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_has_a_sound_json_schema(name):
    jsonschema_rs.Draft202012Validator(schema_of(name))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("task", v1_task("t")),
        ("task", v2_task("t", v2_call(), tools=[reference("s", b"x")], limits={"wall_clock_s": 3})),
        ("tool", tool("s", http={"upstream": "A", "method": "GET", "path": "/"}, ignore=["/json/a"])),
        ("manifest", b'{"protocol":"tool-replay-v1","retries":0,"seed":1,"tasks":{},"timeout_s":30}'),
    ],
)
def test_a_good_document_is_valid_by_its_schema(name, data):
    module, model = FORMATS[name]
    validator = jsonschema_rs.Draft202012Validator(schema_of(name))
    assert validator.is_valid(json.loads(data))
    getattr(importlib.import_module(f"scoresheet.documents.{module}"), model).from_bytes(data, name)
    assert not validator.is_valid([])


def test_a_schema_says_what_stands_under_the_fields_of_every_model_in_it():
    schema = schema_of("task")
    of_tools, of_calls = schema["$defs"]["ToolReference"], schema["$defs"]["Call"]
    assert of_tools["properties"]["schema_sha256"]["description"].startswith("`sha256:` and the digest")
    assert of_calls["properties"]["response_bytes"]["description"].startswith("The literal text of the body;")
    assert "description" not in of_calls["properties"]["fault"]
    assert schema_of("tool")["properties"]["inputSchema"]["description"].startswith("JSON Schema 2020-12")
