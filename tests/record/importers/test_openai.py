"""Transcripts of OpenAI's APIs: calls made, answered, told again."""

import json

import pytest

from scoresheet.errors import Malformed
from tests.record.importers.replayed import CORPUS, gathered, imported, replays


def call(number, name="f", arguments='{"a": 1}'):
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls):
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def tool(number, content="done"):
    return {"role": "tool", "tool_call_id": number, "content": content}


def chat(*messages, **more):
    return json.dumps({"messages": list(messages)} | more)


def rules(result):
    return [finding.rule for finding in result.left_out]


REAL = sorted((CORPUS / "openai").iterdir())


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_requests_with_results_freeze_and_answer_or_say_what_is_missing(path, tmp_path):
    result = gathered("openai", path.read_bytes(), path.name)
    if path.name == "responses-previous-id.json":  # the call went before, in another request
        assert rules(result) == ["import-no-request"]
        return
    assert not result.left_out
    imported("openai", (path,), tmp_path / "pack")
    assert len(replays(tmp_path / "pack", tmp_path / "run").calls) == 1


def test_a_chat_becomes_a_task_with_its_tools_and_its_question(tmp_path):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    offered = [{"type": "function", "function": {"name": "f", "description": "Does.", "parameters": schema}}]
    path = tmp_path / "chat.json"
    talk = chat(
        {"role": "user", "content": "Do it."},
        assistant(call("1"), call("2")),
        tool("2", "[1, 2]"),
        tool("1"),
        tools=offered,
    )
    path.write_text(talk)
    imported("openai", (path,), tmp_path / "pack", prompt="")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert task.prompt == "Do it."
    assert [each.response().body for each in task.calls] == [b"done", b"[1, 2]"]
    assert [dict(each.response().headers)["Content-Type"] for each in task.calls] == [
        "text/plain; charset=utf-8", "application/json",
    ]  # fmt: skip
    written = json.loads((tmp_path / "pack" / "tools" / "f.json").read_text())
    assert written == {"name": "f", "description": "Does.", "inputSchema": schema}


def test_tools_that_nobody_described_are_known_by_their_calls(tmp_path):
    path = tmp_path / "chat.json"
    path.write_text(chat(assistant(call("1"), call("2", arguments='{"a": "x", "b": true}')), tool("1"), tool("2")))
    imported("openai", (path,), tmp_path / "pack")
    schema = json.loads((tmp_path / "pack" / "tools" / "f.json").read_text())["inputSchema"]
    assert schema["properties"]["a"] == {"type": ["integer", "string"]}
    assert schema["required"] == ["a"]
    replays(tmp_path / "pack", tmp_path / "run")


def test_longer_transcripts_of_one_talk_tell_their_calls_again():
    start = [{"role": "user", "content": "Hi"}, assistant(call("1")), tool("1")]
    text = chat(*start) + "\n" + chat(*start, assistant(call("2", arguments="{}")), tool("2"))
    result = gathered("openai", text)
    assert len(result.exchanges) == 2
    assert result.changed == (("a call that the file tells again counts once", 1),)


def test_an_id_that_is_used_again_for_another_call_is_another_call():
    result = gathered("openai", chat(assistant(call("1")), tool("1", "x"), assistant(call("1", "g")), tool("1", "y")))
    assert [(each.request.target, each.response.body) for each in result.exchanges] == [("f", b"x"), ("g", b"y")]


def test_messages_one_a_line_and_the_ways_of_older_and_newer_apis_are_read():
    assert len(gathered("openai", "\n".join(map(json.dumps, (assistant(call("1")), tool("1"))))).exchanges) == 1
    old = [
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "x"},
    ]
    assert len(gathered("openai", json.dumps(old)).exchanges) == 1
    items = [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]},
    ]
    assert gathered("openai", json.dumps({"input": items})).exchanges[0].response.body == b"x"


LEFT_OUT = {
    "no result": (chat(assistant(call("1"))), ["import-no-answer"]),
    "no call": (chat(tool("1")), ["import-no-request"]),
    "arguments that are no JSON": (
        chat(assistant(call("1", arguments='{"a": ')), tool("1")), ["import-arguments", "import-no-request"],
    ),
    "a picture": (chat(assistant(call("1")), tool("1", [{"type": "image_url"}])), ["import-not-text"]),
    "a name that is a path": (chat(assistant(call("1", "../x")), tool("1")), ["import-tool-name"]),
    "a custom tool": (chat(assistant({"id": "1", "type": "custom", "custom": {}})), ["import-tool"]),
    "a tool of the host": (chat(tools=[{"type": "web_search"}]), ["import-tool"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_cant_be_carried_over_is_named(text, expected):
    result = gathered("openai", text)
    assert not result.exchanges
    assert rules(result) == expected


@pytest.mark.parametrize("text", ["", "{}", "7", '{"messages": 7}', "[" * 99999, '{"a": 1}\n{"b": 2}'])
def test_what_is_no_transcript_is_refused(text):
    with pytest.raises(Malformed):
        gathered("openai", text, "chat")
