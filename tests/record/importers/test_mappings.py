"""Files that stand for recordings: WireMock, Hoverfly, Postman, OpenAPI examples; and Betamax, which are recordings."""

import json
import zlib

import pytest

from scoresheet.documents.tool import Tool
from scoresheet.errors import Malformed, Usage
from scoresheet.record.importers.hosts import Host
from tests.record.importers.replayed import CORPUS, gathered, imported, replays

HOST = (Host("API", "api.test"),)


def rules(result):
    return [finding.rule for finding in result.left_out]


# WireMock


def mapping(request=None, response=None, **more):
    return {
        "request": {"method": "GET", "url": "/a"} | (request or {}),
        "response": {"status": 200} | (response or {}),
    } | more


def wire(*mappings):
    return gathered("wiremock", json.dumps({"mappings": list(mappings)}), hosts=HOST)


def test_real_mappings_freeze_and_answer_with_their_files(tmp_path):
    done = imported("wiremock", (CORPUS / "wiremock",), tmp_path / "pack", hosts=HOST)
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert {call.request.path for call in task.calls} == {"/testjsonmapping", "/todo/items", "/api/mytest"}
    assert sorted(finding.rule for finding in done.left_out) == ["import-body-missing", "import-pattern"]
    mytest = next(call for call in task.calls if call.request.path == "/api/mytest")
    assert mytest.response().body == (CORPUS / "wiremock" / "with-files" / "__files" / "mytest.json").read_bytes()


def test_a_lone_mapping_keeps_its_json_as_it_was_written():
    text = (CORPUS / "wiremock" / "json-body-numbers.json").read_text()
    body = gathered("wiremock", text, hosts=HOST).exchanges[0].response.body
    assert body.decode() in text
    assert b"2.0" in body


def test_states_of_a_scenario_are_answered_in_their_order():
    late = mapping(response={"body": "two"}, scenarioName="s", requiredScenarioState="next")
    early = mapping(
        response={"body": "one"}, scenarioName="s", requiredScenarioState="Started", newScenarioState="next"
    )
    assert [each.response.body for each in wire(late, early).exchanges] == [b"one", b"two"]


def test_of_two_mappings_for_one_request_the_first_by_priority_and_the_newest_answers():
    result = wire(mapping(response={"body": "old"}), mapping(response={"body": "new"}), mapping(priority=9))
    assert [each.response.body for each in result.exchanges] == [b"new"]
    assert rules(result) == ["import-shadowed"] * 2


def test_exact_matchers_make_a_request():
    result = wire(
        mapping({
            "method": "POST", "url": None, "urlPath": "/b",
            "queryParameters": {"q": {"equalTo": "a b&c"}},
            "headers": {"Accept": {"equalTo": "text/plain"}, "X-Id": {"matches": ".*"}},
            "bodyPatterns": [{"equalToJson": {"n": 1}}],
        } | {"url": "/b?x=1"})
    )  # fmt: skip
    request = result.exchanges[0].request
    assert request.target == "/b?x=1&q=a%20b%26c"
    assert request.body == b'{"n":1}'
    assert request.header("accept") == "text/plain"
    assert result.changed == (("a pattern of a header does not count", 1),)


def test_faults_are_faults():
    result = wire(mapping(response={"fault": "CONNECTION_RESET_BY_PEER", "fixedDelayMilliseconds": 5}))
    assert result.exchanges[0].response.fault == "connection_reset"
    assert rules(wire(mapping(response={"fault": "RANDOM_DATA_THEN_CLOSE"}))) == ["import-fault"]


PATTERNS = {
    "any method": mapping({"method": "ANY"}),
    "a pattern of a path": {"request": {"method": "GET", "urlPattern": "/a/[0-9]+"}, "response": {}},
    "any path": {"request": {"method": "GET"}, "response": {}},
    "any body": mapping({"method": "POST"}),
    "a part of a body": mapping({"method": "POST", "bodyPatterns": [{"contains": "x"}]}),
    "a loose body": mapping({"method": "POST", "bodyPatterns": [{"equalToJson": "{}", "ignoreExtraElements": True}]}),
    "a pattern of a query": mapping({"queryParameters": {"q": {"matches": "x"}}}),
    "a matcher of another kind": mapping({"cookies": {}}),
}


@pytest.mark.parametrize("value", PATTERNS.values(), ids=PATTERNS)
def test_a_mapping_that_no_one_request_matches_is_left_out(value):
    assert rules(wire(value)) == ["import-pattern"]


def test_files_outside_of_their_folder_are_never_read():
    assert rules(wire(mapping(response={"bodyFileName": "../../etc/passwd"}))) == ["import-body-missing"]


def test_templates_and_proxies_hold_no_answer():
    template = mapping(response={"body": "{{now}}", "transformers": ["response-template"]})
    proxy = mapping(response={"proxyBaseUrl": "http://x"})
    assert rules(wire(template, mapping({"url": "/b"}, proxy["response"]))) == ["import-template", "import-no-answer"]


def test_mappings_need_a_host():
    with pytest.raises(Usage, match="which host"):
        gathered("wiremock", json.dumps(mapping()))


# Hoverfly


def test_real_simulations_freeze_and_answer(tmp_path):
    done = imported("hoverfly", (CORPUS / "hoverfly",), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == len(task.calls) == 4
    assert {finding.rule for finding in done.left_out} == {"import-pattern"}
    assert b"base64 encoded" in [call.response().body for call in task.calls]


# Betamax, Ruby VCR


def test_real_betamax_cassettes_freeze_and_answer(tmp_path):
    done = imported("betamax", (CORPUS / "betamax",), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == 9
    assert not done.left_out
    org = next(call.response() for call in task.calls if call.request.path.startswith("/orgs/"))
    assert json.loads(zlib.decompress(org.body, wbits=31))["login"]


def test_real_cassettes_of_ruby_freeze_and_answer(tmp_path):
    done = imported("betamax", (CORPUS / "ruby-vcr",), tmp_path / "pack")
    replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == 2


def test_a_betamax_body_that_is_missing_is_never_empty():
    entry = {
        "request": {"method": "GET", "uri": "https://api.test/", "body": "", "headers": {}},
        "response": {
            "status": {"code": 200},
            "headers": {"Content-Length": ["3"]},
            "body": {"string": "", "encoding": None},
        },
    }
    assert rules(gathered("betamax", json.dumps({"http_interactions": [entry]}))) == ["import-body-missing"]


# Postman


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


# OpenAPI


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


@pytest.mark.parametrize("kind", ["wiremock", "hoverfly", "postman", "openapi", "betamax"])
@pytest.mark.parametrize("text", ["", "7", "[1", '"x"', "{}", '{"item": 7, "data": 7, "mappings": 7}', "[" * 100_000])
def test_what_is_of_no_such_format_is_refused(kind, text):
    with pytest.raises(Malformed):
        gathered(kind, text, "f.json", HOST)
