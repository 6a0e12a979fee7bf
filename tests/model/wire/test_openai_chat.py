import json

import pytest

from scoresheet.model.wire import openai_chat
from tests.model.wire import exchanges

NAMES = exchanges.of("openai_chat")


def sse(*chunks, done=True):
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + (["data: [DONE]\n\n"] if done else [])
    return "".join(lines).encode()


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_exchange_is_read_as_its_golden_file_says(name):
    assert exchanges.as_json(exchanges.read(name)) == exchanges.golden("openai_chat")[name]


@pytest.mark.parametrize("name", NAMES)
def test_token_figures_are_those_of_the_provider(name):
    exchange = exchanges.recorded(name)
    data = exchanges.answer(exchange).decode()
    chunks = [json.loads(line[6:]) for line in data.splitlines() if line.startswith("data: {")]
    chunks = chunks or [exchange["response"].get("body", {})]
    told = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    usage = exchanges.read(name).answered.usage
    assert (usage is None) == (not told)
    if told:
        assert (usage.input, usage.output) == (told[-1]["prompt_tokens"], told[-1]["completion_tokens"])
        assert usage.cached == (told[-1].get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        assert usage.reasoning == (told[-1].get("completion_tokens_details") or {}).get("reasoning_tokens", 0)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"tools": [{"type": "web_search"}]}, "web_search"),
        ({"tools": [{"type": "openrouter:web_search"}]}, "openrouter:web_search"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"plugins": [{"id": "web"}]}, "plugins"),
        ({"model": "gpt-4o-search-preview"}, "search_model"),
        ({"model": "openai/gpt-4o:online"}, "search_model"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example"}}]}
                ]
            },
            "remote_url",
        ),
    ],
)
def test_what_the_provider_would_do_by_itself_is_named(more, named):
    assert openai_chat.asked({"model": "m", "messages": [], **more}).server_tools == (named,)


def test_functions_and_inline_images_are_no_second_network():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": [image]}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "web_search_options": None,
    }
    assert openai_chat.asked(body).server_tools == ()


def test_arguments_in_pieces_are_put_together_call_by_call():
    def chunk(*calls):
        return {"model": "m-1", "choices": [{"index": 0, "delta": {"tool_calls": list(calls)}}]}

    body = sse(
        chunk({"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}}),
        chunk({"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}}),
        chunk({"index": 0, "function": {"arguments": ":1}"}}, {"index": 1, "function": {"arguments": "{}"}}),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    )
    found = openai_chat.streamed(200, (), body)
    assert [(call.id, call.name, call.arguments) for call in found.calls] == [("a", "f", '{"x":1}'), ("b", "g", "{}")]
    assert found.complete


def test_two_calls_under_one_index_stay_two():
    piece = {"index": 0, "function": {"name": "f", "arguments": "{}"}}
    chunk = {
        "model": "m",
        "choices": [{"index": 0, "delta": {"tool_calls": [{**piece, "id": "a"}, {**piece, "id": "b"}]}}],
    }
    assert [call.id for call in openai_chat.streamed(200, (), sse(chunk)).calls] == ["a", "b"]


def test_a_cut_stream_is_not_complete():
    chunk = {"model": "m", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]}
    assert not openai_chat.streamed(200, (), sse(chunk, done=False)).complete
