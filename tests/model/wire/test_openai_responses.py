import json

import pytest

from scoresheet.model.wire import openai_responses
from tests.model.wire import exchanges

NAMES = exchanges.of("openai_responses")


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_exchange_is_read_as_its_golden_file_says(name):
    assert exchanges.as_json(exchanges.read(name)) == exchanges.golden("openai_responses")[name]


@pytest.mark.parametrize("name", NAMES)
def test_token_figures_are_those_of_the_provider(name):
    exchange = exchanges.recorded(name)
    data = exchanges.answer(exchange).decode()
    found = [json.loads(line[6:]).get("response") for line in data.splitlines() if line.startswith("data: {")]
    found = [each for each in found if each] or [exchange["response"].get("body", {})]
    told = found[-1].get("usage")
    usage = exchanges.read(name).answered.usage
    assert (usage is None) == (told is None)
    if told:
        assert (usage.input, usage.output) == (told["input_tokens"], told["output_tokens"])
        assert usage.cached == told["input_tokens_details"]["cached_tokens"]
        assert usage.reasoning == told["output_tokens_details"]["reasoning_tokens"]


def test_tools_in_a_namespace_and_in_an_input_item_are_seen():
    tool = {"type": "function", "name": "lookup", "parameters": {}}
    body = {
        "model": "m",
        "tools": [{"type": "namespace", "name": "mcp__replay", "tools": [tool]}],
        "input": [{"type": "additional_tools", "tools": [{"type": "custom", "name": "exec"}, {"type": "web_search"}]}],
    }
    asked = openai_responses.asked(body)
    assert [tool.name for tool in asked.tools] == ["mcp__replay__lookup", "exec", "web_search"]
    assert asked.server_tools == ("web_search",)


def test_a_search_for_tools_that_the_client_makes_is_its_own_and_what_it_finds_is_offered():
    search = {"type": "tool_search", "execution": "client", "parameters": {}}
    found = {"type": "tool_search_output", "call_id": "c", "tools": [{"type": "function", "name": "lookup"}]}
    asked = openai_responses.asked({"model": "m", "tools": [search], "input": [found]})
    assert [(tool.name, tool.server) for tool in asked.tools] == [("tool_search", False), ("lookup", False)]
    call = {"type": "tool_search_call", "execution": "client", "call_id": "c", "arguments": {"query": "orders"}}
    (made,) = openai_responses.answered(200, (), {"status": "completed", "output": [call]}).calls
    assert (made.name, made.id, made.server) == ("tool_search", "c", False)
    assert openai_responses.asked({"model": "m", "tools": [{"type": "tool_search"}]}).server_tools == ("tool_search",)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"tools": [{"type": "mcp", "server_url": "https://a.example"}]}, "mcp"),
        ({"tools": [{"type": "file_search"}]}, "file_search"),
        ({"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}, "shell"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "code_interpreter"}]}]}, "code_interpreter"),
        ({"tools": [{"type": "not yet invented"}]}, "not yet invented"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "https://a.example"}]}]},
            "remote_url",
        ),
    ],
)
def test_what_the_provider_would_do_by_itself_is_named(more, named):
    assert openai_responses.asked({"model": "m", "input": "", **more}).server_tools == (named,)


def test_a_namespaced_call_has_the_name_under_which_the_tool_was_offered():
    item = {"type": "function_call", "namespace": "mcp__replay", "name": "lookup", "arguments": "{}", "call_id": "c"}
    found = openai_responses.answered(200, (), {"status": "completed", "output": [item]})
    assert [call.name for call in found.calls] == ["mcp__replay__lookup"]


def test_a_stream_without_its_last_event_is_not_complete_but_its_finished_calls_count():
    item = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}
    events = [
        {"type": "response.created", "response": {"model": "m", "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "item": item},
    ]
    body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()
    found = openai_responses.streamed(200, (), body)
    assert (found.complete, [call.name for call in found.calls]) == (False, ["f"])
