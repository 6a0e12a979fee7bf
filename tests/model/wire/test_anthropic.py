import json

import pytest

from scoresheet.model.wire import anthropic
from tests.model.wire import exchanges

NAMES = exchanges.of("anthropic_messages")


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_exchange_is_read_as_its_golden_file_says(name):
    assert exchanges.as_json(exchanges.read(name)) == exchanges.golden("anthropic_messages")[name]


@pytest.mark.parametrize("name", NAMES)
def test_token_figures_are_those_of_the_provider(name):
    exchange = exchanges.recorded(name)
    told = {}
    for line in exchanges.answer(exchange).decode().splitlines():
        if line.startswith("data: {"):
            event = json.loads(line[6:])
            told |= event.get("usage") or event.get("message", {}).get("usage") or {}
    told = told or exchange["response"].get("body", {}).get("usage")
    usage = exchanges.read(name).answered.usage
    assert (usage is None) == (not told)
    if told:
        assert usage.input - usage.cached - usage.cache_write == told["input_tokens"]
        assert usage.output == told["output_tokens"]
        assert usage.cached == told.get("cache_read_input_tokens", 0)
        assert usage.cache_write == told.get("cache_creation_input_tokens", 0)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        ({"tools": [{"type": "bash_20250124x", "name": "bash"}]}, "bash_20250124x"),
        ({"mcp_servers": [{"url": "https://a.example"}]}, "mcp_servers"),
        ({"container": "c"}, "container"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://a"}}]}
                ]
            },
            "remote_url",
        ),
    ],
)
def test_what_the_provider_would_do_by_itself_is_named(more, named):
    assert anthropic.asked({"model": "m", "messages": [], **more}).server_tools == (named,)


def test_tools_that_the_client_runs_are_no_second_network():
    tools = [
        {"name": "f", "input_schema": {}},
        {"type": "custom", "name": "g", "input_schema": {}},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "edit"},
    ]
    used = {"type": "tool_use", "name": "f", "id": "1", "input": {"type": "url", "url": "https://a.example"}}
    asked = anthropic.asked({"model": "m", "messages": [{"role": "assistant", "content": [used]}], "tools": tools})
    assert asked.server_tools == ()
    assert [tool.name for tool in asked.tools] == ["f", "g", "bash", "edit"]


def test_an_error_inside_a_stream_is_a_failure():
    body = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    found = anthropic.streamed(200, (), body)
    assert (found.failure.kind, found.complete) == ("overloaded_error", False)
