import json
from dataclasses import replace

import pytest

from scoresheet.model import spoken
from scoresheet.model.script import Call, Turn
from scoresheet.model.wire import anthropic, openai_chat, openai_responses
from scoresheet.model.wire.parts import Usage

DIALECTS = [openai_chat, openai_responses, anthropic]
USAGE = Usage(1000, 50, 100, 0, 0)
TURN = Turn("Looking both of them up.", (Call("lookup", {"id": "é" * 40}), Call("drop", {})))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.DIALECT)
@pytest.mark.parametrize("turn", [TURN, Turn("done"), Turn(None, TURN.calls)], ids=["both", "text", "calls"])
def test_a_stream_says_what_the_whole_answer_says(dialect, turn):
    saying = spoken.Saying(turn, 3, "m-2026-01-01", USAGE)
    whole = dialect.answered(200, (), json.loads(json.dumps(spoken.body(dialect.DIALECT, saying))))
    streamed = dialect.streamed(200, (), b"".join(spoken.stream(dialect.DIALECT, saying)))
    assert replace(streamed, calls=()) == replace(whole, calls=())
    spelt = [[(call.id, call.name, json.loads(call.arguments)) for call in each.calls] for each in (streamed, whole)]
    assert spelt[0] == spelt[1]  # Anthropic's whole answers hold arguments as an object, its streams as text
    assert (whole.model, whole.usage, whole.complete, whole.failure) == ("m-2026-01-01", USAGE, True, None)
    calls = [(call.name, json.loads(call.arguments)) for call in whole.calls]
    assert calls == [(call.tool, call.arguments) for call in turn.calls]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.DIALECT)
def test_a_tool_over_mcp_is_called_by_the_name_it_was_offered_under(dialect):
    saying = spoken.Saying(Turn(None, (Call("lookup"),)), 0, "m", USAGE, ("Bash", "mcp__replay__lookup"))
    found = dialect.answered(200, (), spoken.body(dialect.DIALECT, saying))
    assert [call.name for call in found.calls] == ["mcp__replay__lookup"]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.DIALECT)
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 529])
def test_an_error_is_read_back_as_one(dialect, status):
    found = dialect.answered(status, (), spoken.error(dialect.DIALECT, status, "told"))
    assert found.failure.message == "told"
    streamed = dialect.streamed(200, (), spoken.error_event(dialect.DIALECT, "told"))
    assert (streamed.failure.message, streamed.complete) == ("told", False)


def test_a_custom_tool_is_called_with_text():
    saying = spoken.Saying(Turn(None, (Call("apply_patch", "*** Begin", custom=True),)), 0, "m", USAGE)
    for dialect in (openai_chat, openai_responses):
        found = dialect.streamed(200, (), b"".join(spoken.stream(dialect.DIALECT, saying)))
        assert [(call.name, call.arguments) for call in found.calls] == [("apply_patch", "*** Begin")]
