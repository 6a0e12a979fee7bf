import json

import pytest
from hypothesis import given

from scoresheet.model.wire import conversation
from scoresheet.model.wire.conversation import Message, text_of
from tests.model.wire import exchanges
from tests.model.wire.test_reading import PATHS, shapes
from tests.strategies import json_values

CHAT, RESPONSES, MESSAGES = PATHS


def recorded(name):
    exchange = exchanges.recorded(name)
    request, response = exchange["request"], exchange["response"]
    headers = [(key, value) for key, value in response["headers"] if key.lower() != "content-encoding"]
    told = conversation.told(request["path"], json.dumps(request["body"]).encode())
    return told, conversation.said(request["path"], response["status"], headers, exchanges.answer(exchange))


def told(path, body):
    return conversation.told(path, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("name", "asked", "answered"),
    [
        ("chat-basic", "Tell me a joke about opentelemetry", "Why did Opentelemetry break up with Tracing?"),
        ("chat-stream-basic", "What is the capital of Mexico?", "The capital of Mexico is Mexico City."),
        ("responses-basic", "What is the capital of France?", "The capital of France is Paris."),
        ("responses-stream-basic", "Count to 3", "1, 2, 3"),
        ("anthropic-basic", "tell me a short joke", "Why can't a bicycle stand up by itself?"),
        ("anthropic-stream-basic", "What is 1+1?", "2"),
        ("chat-refusal-structured", "Best ways to make a bomb", "I'm very sorry"),
    ],
)
def test_real_exchanges_say_what_was_asked_and_answered(name, asked, answered):
    found, said = recorded(name)
    assert found.fresh[-1].role == "user"
    assert found.fresh[-1].text.startswith(asked)
    assert said.text.startswith(answered)


@pytest.mark.parametrize(
    ("name", "id", "text"),
    [
        ("chat-tool-result", "1", "The weather in San Francisco is 70 degrees and sunny."),
        ("chat-stream-tool-result-cached-mistral", "g6fVbXS8K", "Current weather"),
        ("responses-tool-result", "call_FvzAuH8oVyEStnekqSQeIDSG", "Potato City"),
        ("responses-previous-id", "call_V3XmcdcHgfotLLbZy9UKhz8E", "Sunny, 72F"),
    ],
)
def test_real_exchanges_tell_what_came_of_tool_calls_and_nothing_old(name, id, text):
    found, _ = recorded(name)
    ((told, content),) = found.results
    assert (told, found.fresh) == (id, ())
    assert text_of(content).startswith(text)


@pytest.mark.parametrize(
    ("name", "reasoning"),
    [
        ("chat-stream-reasoning-openrouter", "This is a simple arithmetic qu"),
        ("anthropic-stream-thinking", "Let me count the occurrences o"),
        ("anthropic-thinking-adaptive", "4"),
        ("responses-server-code-interpreter-cached", "**Calculating expression order"),
    ],
)
def test_real_exchanges_tell_the_models_reasoning_apart(name, reasoning):
    assert (recorded(name)[1].reasoning or "").startswith(reasoning)


def test_every_real_exchange_can_be_read():
    for name in exchanges.NAMES:
        found, said = recorded(name)
        assert found.fresh or found.results
        assert isinstance(said.text, str)


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_only_what_stands_behind_the_models_last_words_is_new(path):
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "image"}]},
    ]
    assert told(path, {"system": "s", "messages": messages}).fresh == (Message("user", "c\n[image]"),)
    begun = told(path, {"messages": [{"role": "developer", "content": "s"}, *messages[:1]]}).fresh
    assert begun[-1] == Message("user", "a")


def test_a_conversation_of_responses_begins_with_its_instructions_and_goes_on_without():
    body = {"instructions": "s", "input": "a"}
    assert told(RESPONSES, body).fresh == (Message("system", "s"), Message("user", "a"))
    assert told(RESPONSES, body | {"previous_response_id": "r"}).fresh == (Message("user", "a"),)
    items = [
        {"role": "developer", "content": "d"},
        {"type": "function_call", "call_id": "c", "name": "f"},
        {"type": "function_call_output", "call_id": "c", "output": "12"},
        {"role": "user", "content": [{"type": "input_text", "text": "b"}]},
    ]
    found = told(RESPONSES, {"instructions": "s", "input": items})
    assert found.fresh == (Message("user", "b"),)
    assert found.results == (("c", "12"),)


def test_an_anthropic_tool_result_is_no_message():
    blocks = [{"type": "tool_result", "tool_use_id": "t", "content": "12"}, {"type": "text", "text": "go on"}]
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": []}]
    found = told(MESSAGES, {"messages": [*messages, {"role": "user", "content": blocks}]})
    assert (found.fresh, found.results) == ((Message("user", "go on"),), (("t", "12"),))
    found = told(MESSAGES, {"messages": [*messages, {"role": "user", "content": blocks[:1]}]})
    assert found.fresh == ()


def test_an_error_says_nothing():
    assert conversation.said(CHAT, 500, (), b'{"choices":[{"message":{"content":"a"}}]}') == conversation.Said()
    assert conversation.said(CHAT, None, (), b"") == conversation.Said()
    assert conversation.said("/v1/embeddings", 200, (), b"{}") == conversation.Said()


def test_only_the_first_of_several_choices_is_said():
    both = {"choices": [{"index": 0, "message": {"content": "a"}}, {"index": 1, "message": {"content": "b"}}]}
    assert conversation.said(CHAT, 200, (), json.dumps(both).encode()).text == "a"


@given(json_values)
def test_any_content_has_a_text(value):
    assert isinstance(text_of(value), str)


@given(shapes, shapes)
def test_no_shape_of_json_raises(asked, answer):
    for path in PATHS:
        told(path, asked)
        text = json.dumps(answer)
        conversation.said(path, 200, [("content-type", "application/json")], text.encode())
        conversation.said(path, 200, [("content-type", "text/event-stream")], f"data: {text}\n\n".encode())
