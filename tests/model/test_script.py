import re
from pathlib import Path

import pytest

from scoresheet import yaml12
from scoresheet.errors import Malformed
from scoresheet.model.script import Script, turn_of


def test_the_turn_is_read_from_the_request_in_every_dialect():
    user, spoken = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    assert turn_of("openai_chat", {"messages": [user, spoken, user]}) == 1
    assert turn_of("anthropic_messages", {"messages": [user, spoken, user, spoken, user]}) == 2
    call, result = {"type": "function_call"}, {"type": "function_call_output"}
    items = [user, {"type": "reasoning"}, call, call, result, result, {"type": "message", "role": "assistant"}, user]
    assert turn_of("openai_responses", {"input": items}) == 2
    assert turn_of("openai_responses", {"input": [result], "previous_response_id": "resp_stub_3"}) == 4
    assert turn_of("openai_responses", {"input": "text"}) == 0


def test_a_choice_is_the_same_for_the_same_seed_and_spreads_by_weight():
    script = Script.of({"turns": [{"choose": [{"weight": 3, "text": "a"}, {"text": "b"}]}]})
    body = {"messages": []}
    said = [script.says("openai_chat", body, seed).text for seed in range(400)]
    assert said == [script.says("openai_chat", body, seed).text for seed in range(400)]
    assert 260 < said.count("a") < 340


def test_the_requests_own_seed_decides_too():
    script = Script.of({"turns": [{"choose": [{"text": "a"}, {"text": "b"}]}]})
    assert len({script.says("openai_chat", {"seed": seed}, 0).text for seed in range(20)}) == 2


def test_the_last_turn_is_said_for_ever_and_a_side_request_gets_its_own():
    script = Script.of({"turns": [{"text": "a"}, {"text": "b"}], "side": "title"})
    spoken = {"role": "assistant"}
    assert script.says("openai_chat", {"messages": [spoken] * 9, "tools": [{}]}, 0).text == "b"
    assert script.says("openai_chat", {"messages": [spoken] * 9}, 0).text == "title"


def test_a_turn_may_be_answered_by_another_model():
    script = Script.of({"model": "a-1", "turns": [{"text": "a"}, {"text": "b", "model": "a-2"}]})
    spoken = {"role": "assistant"}
    assert script.says("openai_chat", {"messages": []}, 0).model is None
    assert script.says("openai_chat", {"messages": [spoken]}, 0).model == "a-2"


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ([], "#"),
        ({}, "#/turns"),
        ({"turns": []}, "#/turns"),
        ({"turns": [{}]}, "#/turns/0"),
        ({"turns": [{"txet": "a"}]}, "#/turns/0"),
        ({"turns": [{"text": "a", "model": 7}]}, "#/turns/0/model"),
        ({"turns": [{"choose": []}]}, "#/turns/0/choose"),
        ({"turns": [{"choose": [{"text": "a", "weight": 0}]}]}, "#/turns/0/choose"),
        ({"turns": [{"tool": 7}]}, "#/turns/0/tool"),
        ({"turns": [{"tool": "a", "arguments": 7}]}, "#/turns/0/arguments"),
        ({"turns": [{"text": "a"}], "faults": [{"kind": "explode"}]}, "#/faults/0/kind"),
        ({"turns": [{"text": "a"}], "faults": [{"status": 200}]}, "#/faults/0/status"),
        ({"turns": [{"text": "a"}], "faults": [{"headers": {"a": "b\r\nc"}}]}, "#/faults/0/headers"),
        ({"turns": [{"text": "a"}], "usage": {"input": -1}}, "#/usage/input"),
    ],
)
def test_a_script_that_is_none_is_refused_with_its_place(document, where):
    with pytest.raises(Malformed) as refused:
        Script.of(document)
    assert (refused.value.where or "#") == where


def test_the_script_in_the_docs_is_one():
    page = (Path(__file__).parents[2] / "docs" / "model.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page.partition("## A scripted model")[2], re.DOTALL)
    script = Script.of(yaml12.load(text.encode()).value)
    assert (len(script.turns), len(script.faults), script.delay_ms) == (4, 2, 20.0)


@pytest.mark.parametrize("headers", [{"é": "a"}, {"": "a"}, {"a": "☃"}])
def test_a_header_that_can_not_be_sent_is_refused(headers):
    with pytest.raises(Malformed, match="can't be sent"):
        Script.of({"turns": [{"text": "a"}], "faults": [{"headers": headers}]})
