"""WireMock mappings that stand for one request each."""

import json

import pytest

from scoresheet.errors import Malformed, Usage
from scoresheet.record.importers.hosts import Host
from tests.record.importers.replayed import CORPUS, gathered, imported, replays

HOST = (Host("API", "api.test"),)


def rules(result):
    return [finding.rule for finding in result.left_out]


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


def test_a_recording_of_wiremocks_own_freezes_and_answers(tmp_path):
    folder = CORPUS / "wiremock-recorded"
    done = imported("wiremock", (folder / "mappings",), tmp_path / "pack", hosts=(Host("API", "library.test"),))
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert [finding.rule for finding in done.left_out] == ["import-pattern"]  # its recorder keeps no multipart body
    assert done.calls == 25
    assert {call.request.query for call in task.calls if call.request.path == "/books"} == {
        f"page={page}&sort=title&q=Der%20Proze%C3%9F" for page in (1, 2)
    }
    loans = [call.request.as_request() for call in task.calls if call.request.path == "/loans"]
    assert [json.loads(each.body)["who"] for each in loans] == ["Zoë", "Zoë"]
    assert [each.header("content-type") for each in loans] == ["application/json"] * 2
    assert any("more members" in what for what, _ in done.changed)
    search = next(call for call in task.calls if call.request.path == "/search")
    assert search.request.as_request().header("content-type") == "application/x-www-form-urlencoded"
    put = next(call for call in task.calls if call.request.method == "PUT")
    assert put.request.as_request().body == bytes(range(256))


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


def test_a_scenario_becomes_one_of_the_task_and_is_played_by_its_states(tmp_path):
    todo = {"scenarioName": "To do list", "requiredScenarioState": "Started"}
    added = {"scenarioName": "To do list", "requiredScenarioState": "Item added!"}
    mappings = [
        mapping({"url": "/todo"}, {"body": "milk, paper"}, **added),
        mapping({"url": "/todo"}, {"body": "milk"}, **todo),
        mapping(
            {"method": "POST", "url": "/todo", "bodyPatterns": [{"equalTo": "paper"}]},
            {"status": 201},
            newScenarioState="Item added!",
            **todo,
        ),
        mapping({"url": "/help"}, {"body": "help"}),
    ]
    (tmp_path / "todo.json").write_text(json.dumps({"mappings": mappings}))
    done = imported("wiremock", (tmp_path / "todo.json",), tmp_path / "pack", hosts=HOST)
    assert done.scenarios == {"To-do-list": ["Started", "Item-added"]}
    assert [warning.rule for warning in done.warnings] == []
    task = replays(tmp_path / "pack", tmp_path / "run")
    told = [(call.request.method, call.request.path, call.state and call.state.as_json()) for call in task.calls]
    first, then = {"requires": "Started"}, {"requires": "Item-added"}
    name = {"scenario": "To-do-list"}
    assert told == [
        ("GET", "/todo", name | first),
        ("POST", "/todo", name | first | {"sets": "Item-added"}),
        ("GET", "/help", None),
        ("GET", "/todo", name | then),
    ]


def test_a_scenario_whose_write_was_left_out_is_an_order_of_answers_and_says_so(tmp_path):
    real = CORPUS / "wiremock" / "several-mappings-scenario.json"
    mappings = json.loads(real.read_text())["mappings"]
    mappings[2]["response"] = {"body": "later"}
    (tmp_path / "todo.json").write_text(json.dumps({"mappings": mappings}))
    done = imported("wiremock", (tmp_path / "todo.json",), tmp_path / "pack", hosts=HOST)
    assert rules(done) == ["import-pattern"]
    assert [warning.rule for warning in done.warnings] == ["import-states"]
    assert "no call leads to the state 'Cancel-newspaper-item-added' from 'Started'" in done.warnings[0].what
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert (task.scenarios, [call.response_bytes for call in task.calls][-1]) == ({}, "later")


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
    "a body in any order": mapping({"method": "POST", "bodyPatterns": [{"equalToJson": [], "ignoreArrayOrder": True}]}),
    "a query that has more": mapping({"queryParameters": {"q": {"includes": [{"equalTo": "x"}]}}}),
    "an exact query of patterns": mapping({"queryParameters": {"q": {"hasExactly": [{"matches": "x"}]}}}),
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


@pytest.mark.parametrize("text", ["", "7", "[1", '"x"', "{}", '{"item": 7, "data": 7, "mappings": 7}', "[" * 100_000])
def test_what_is_of_another_format_is_refused(text):
    with pytest.raises(Malformed):
        gathered("wiremock", text, "f.json", HOST)
