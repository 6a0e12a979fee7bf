import json
from typing import Any

import pytest

from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.run_plan import AgentIdentity
from scoresheet.documents.task import Task
from scoresheet.documents.tool import Tool
from scoresheet.model.entry import Entry
from scoresheet.pack import fingerprint
from scoresheet.replay.session import Tape
from scoresheet.run import trajectory
from scoresheet.run.plan import Episode
from tests.run import atif

MANIFEST = "ab" * 32
SHOP = fingerprint.v1("GET", "/items/1", None)
TOOL = {
    "name": "get_item",
    "description": "One item.",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    "http": {"upstream": "SHOP", "method": "GET", "path": "/items/{n}"},
}


def recorded(*bodies: Any, **more: Any) -> list[dict[str, Any]]:
    return [
        {"request_fingerprint": SHOP, "response_status": 200, "latency_ms_recorded": 40.0} | body | more
        for body in ({"response_bytes": each} if isinstance(each, str) else each for each in bodies)
    ]


def made(calls=(), spoken=(), models=None, protocol: Any = "tool-replay-v2", recordings=None, tool: Any = TOOL) -> Any:
    """The trajectory of an episode with these calls and model calls, when Harbor would take it."""
    return atif.read(written(calls, spoken, models, protocol, recordings, tool))


def written(calls=(), spoken=(), models=None, protocol: Any = "tool-replay-v2", recordings=None, tool=TOOL) -> bytes:
    entries = recorded('{"price": 12}', '{"price": 13}') if recordings is None else recordings
    references = [{"name": "get_item", "schema_sha256": "sha256:" + "0" * 64}]
    task = Task.from_value({"task_id": "t", "prompt": "what costs it?", "tools": references, "calls": entries}, "t")
    identity = AgentIdentity(kind="command", spec="python3 agent.py", sha256="cd" * 32)
    about = trajectory.About(
        MANIFEST, Episode("t", 1, 2, 3), task, identity, bool(spoken) if models is None else models
    )
    tape = Tape.of(task, {"get_item": Tool.from_value(tool, "t")}, protocol)
    pairs = [(entry, exchange) for entry in spoken if (exchange := entry.exchange()) is not None]
    return b"".join(trajectory.written(about, tape, calls, pairs))


def call(seq: int, at_s: float, outcome: str = "hit", **more: Any) -> CallRecord:
    values = {
        "seq": seq, "at_s": at_s, "via": "http", "upstream": "SHOP", "method": "GET", "path": "/items/1",
        "fingerprint": SHOP, "outcome": outcome, "status": 200, "tool": "get_item",
        "latency_ms_recorded": 40.0 if outcome == "hit" else 0.0,
    }  # fmt: skip
    return CallRecord.from_value(values | more, "calls.jsonl")


def chat(started_s: float, messages: Any, message: Any, status: int | None = 200, **more: Any) -> Entry:
    request = {"model": "m", "temperature": 0, "seed": 3, "messages": messages}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 40}}
    answer = {"id": "a", "model": "m-2026-01-01", "choices": [{"message": message, "finish_reason": "stop"}]}
    values: dict[str, Any] = {
        "kind": "openai", "method": "POST", "path": "/v1/chat/completions", "request_headers": (),
        "request": json.dumps(request).encode(), "status": status,
        "response_headers": (("content-type", "application/json"),),
        "response": json.dumps(answer | {"usage": usage}).encode(),
        "started_s": started_s, "first_byte_s": None, "ended_s": started_s + 0.5,
    }  # fmt: skip
    return Entry(**(values | more))


def calls(*ids: str, name: str = "get_item", arguments: str = '{"n": 1}') -> dict[str, Any]:
    made = [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


USER = {"role": "user", "content": "what costs it?"}
SYSTEM = {"role": "system", "content": "be brief"}
ASKED = calls("c1")
TOLD = {"role": "tool", "tool_call_id": "c1", "content": '{"price": 12}'}
FINAL = {"role": "assistant", "content": "12", "reasoning_content": "easy"}


def test_without_a_model_every_call_is_a_step_and_nothing_is_said_of_models():
    found = made([call(0, 0.1), call(1, 0.2, repeat=True)])
    prompt, first, second = found["steps"]
    assert (prompt["source"], prompt["message"]) == ("user", "what costs it?")
    assert "llm_call_count" not in first
    (told,) = first["tool_calls"]
    assert (told["function_name"], told["arguments"]) == ("get_item", {"n": 1})
    assert (told["extra"]["fingerprint"], told["extra"]["path"]) == (SHOP, "/items/1")
    (result,) = first["observation"]["results"]
    assert result["source_call_id"] == told["tool_call_id"]
    assert result["content"] == '{"price": 12}'
    assert (result["extra"]["status"], result["extra"]["recorded_latency_ms"]) == (200, 40.0)
    (again,) = second["observation"]["results"]
    assert (again["content"], again["extra"]["repeated"]) == ('{"price": 13}', True)
    assert "No model's door was open" in found["notes"]
    assert found["extra"]["observed"] == ["tool calls"]
    assert found["final_metrics"] == {"total_steps": 3, "extra": {"tool_calls": 2}}
    assert found["agent"]["tool_definitions"] == [
        {
            "type": "function",
            "function": {"name": "get_item", "description": "One item.", "parameters": TOOL["inputSchema"]},
        }
    ]


def test_an_episode_without_calls_has_its_prompt():
    found = made()
    assert [step["source"] for step in found["steps"]] == ["user"]
    assert (found["session_id"], found["trajectory_id"]) == ("t/1.2", f"{MANIFEST}/t/1.2")


def test_the_same_calls_give_the_same_bytes_whenever_they_were_made():
    assert written([call(0, 0.1)]) == written([call(0, 7.5)])
    early = [chat(0.1, [USER], ASKED), chat(1.0, [USER, ASKED, TOLD], FINAL)]
    late = [chat(5.1, [USER], ASKED), chat(9.0, [USER, ASKED, TOLD], FINAL)]
    assert written([call(0, 0.5)], early) == written([call(0, 8.5)], late)


def test_a_models_tool_call_meets_what_the_replay_answered():
    spoken = [chat(0.1, [SYSTEM, USER], ASKED), chat(1.0, [SYSTEM, USER, ASKED, TOLD], FINAL)]
    found = made([call(0, 0.7)], spoken)
    prompt, system, first, last = found["steps"]
    assert (prompt["source"], system["source"], system["message"]) == ("user", "system", "be brief")
    assert (first["llm_call_count"], first["model_name"]) == (1, "m-2026-01-01")
    (told,) = first["tool_calls"]
    assert (told["tool_call_id"], told["extra"]["fingerprint"]) == ("c1", SHOP)
    (result,) = first["observation"]["results"]
    assert (result["source_call_id"], result["extra"]["recorded_latency_ms"]) == ("c1", 40.0)
    assert first["metrics"] == {"prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 40}
    assert (first["extra"]["temperature"], first["extra"]["seed"]) == (0.0, 3)
    assert (last["message"], last["reasoning_content"]) == ("12", "easy")
    assert found["final_metrics"]["total_prompt_tokens"] == 200
    assert found["final_metrics"]["extra"] == {"tool_calls": 1, "model_calls": 2}
    assert found["agent"]["model_name"] == "m-2026-01-01"


def test_a_tool_that_the_agent_runs_itself_has_what_it_told_the_model():
    bash = calls("c1", name="bash", arguments='{"command": "curl items"}')
    told = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "12"}]}
    found = made([call(0, 0.7)], [chat(0.1, [USER], bash), chat(1.0, [USER, bash, told], FINAL)])
    _, first, replayed, _ = found["steps"]
    (result,) = first["observation"]["results"]
    assert (result["content"], result["extra"]["source"]) == ("12", "as the agent told the model")
    assert replayed["llm_call_count"] == 0
    assert replayed["observation"]["results"][0]["extra"]["status"] == 200


def test_a_tool_over_mcp_counts_under_its_own_name():
    found = made(
        [call(0, 0.7, via="mcp", method="CALL", path="get_item", upstream="", body='{"n":1}')],
        [chat(0.1, [USER], calls("c1", name="mcp__replay__get_item"))],
    )
    assert [step["source"] for step in found["steps"]] == ["user", "agent"]
    assert found["steps"][1]["observation"]["results"][0]["content"] == '{"price": 12}'


def test_of_two_calls_of_one_tool_the_arguments_decide():
    other = fingerprint.v1("GET", "/items/2", None)
    both = calls("c1", arguments='{"n": 2}')
    both["tool_calls"] += calls("c2")["tool_calls"]
    two = recorded('{"price": 12}') + recorded('{"price": 22}', request_fingerprint=other)
    answered = [call(0, 0.7), call(1, 0.8, path="/items/2", fingerprint=other)]
    found = made(answered, [chat(0.1, [USER], both)], recordings=two)
    results = found["steps"][1]["observation"]["results"]
    assert [(each["source_call_id"], each["content"]) for each in results] == [
        ("c1", '{"price": 22}'),
        ("c2", '{"price": 12}'),
    ]


def test_a_tool_call_that_nobody_answered_has_no_result():
    found = made([], [chat(0.1, [USER], ASKED)])
    assert "observation" not in found["steps"][1]


def test_a_hidden_retry_is_a_step_of_its_own_that_tells_nothing_new():
    error: Any = {"status": 500, "response": b'{"error":{"message":"no","type":"server_error"}}'}
    found = made([], [chat(0.1, [SYSTEM, USER], FINAL, **error), chat(1.0, [SYSTEM, USER], FINAL)])
    assert [step["source"] for step in found["steps"]] == ["user", "system", "agent", "agent"]
    failed, last = found["steps"][2:]
    assert failed["extra"]["failure"] == {"kind": "server_error", "message": "no"}
    assert (failed["extra"]["status"], last["message"]) == (500, "12")


def test_a_request_that_the_door_refused_reached_no_model():
    found = made([], [chat(0.1, [USER], FINAL, None, refused="tools outside the card's allowlist: bash")])
    step = found["steps"][-1]
    assert (step["llm_call_count"], step["extra"]["refused"]) == (0, "tools outside the card's allowlist: bash")


def test_an_answer_that_never_came_is_told():
    found = made([], [chat(0.1, [USER], FINAL, None, fault="unreachable")])
    assert found["steps"][-1]["extra"]["fault"] == "unreachable"
    assert found["steps"][-1]["extra"]["answered"] is False


def test_a_dialect_that_is_not_known_is_told_as_unobserved():
    found = made([], [chat(0.1, [USER], FINAL, path="/v1/completions")])
    assert found["steps"][-1]["extra"]["unobserved"] == "a dialect that is not known"


def test_calls_without_an_answer_say_why():
    asked = [
        call(0, 0.1, "miss", kind="no_match", status=403),
        call(1, 0.2, "capped", status=403),
        call(2, 0.3, "malformed", body="two lengths", tool=None),
        call(3, 0.4, "answer", via="call", method="CALL", path="submit_answer", tool=None, body='{"price": 12}'),
    ]
    found = made(asked)
    _, missed, capped, submitted = found["steps"]
    assert missed["observation"]["results"][0]["extra"] == {"outcome": "miss", "status": 403, "kind": "no_match"}
    assert capped["observation"]["results"][0]["extra"]["outcome"] == "capped"
    (answer,) = submitted["tool_calls"]
    assert (answer["function_name"], answer["arguments"]) == ("submit_answer", {"price": 12})
    assert found["final_metrics"]["extra"] == {"tool_calls": 1, "malformed_requests": 1}


def test_a_call_of_no_known_tool_is_named_by_its_request():
    found = made([call(0, 0.1, "miss", kind="no_match", tool=None, method="POST", path="/pay", body='{"a":1}')])
    (told,) = found["steps"][1]["tool_calls"]
    assert (told["function_name"], told["arguments"]) == ("POST /pay", {"body": '{"a":1}'})


def test_v1_answers_every_time_with_the_first():
    found = made([call(0, 0.1), call(1, 0.2)], protocol="tool-replay-v1", tool={**TOOL, "http": None})
    assert [each["observation"]["results"][0]["content"] for each in found["steps"][1:]] == ['{"price": 12}'] * 2


def test_a_recording_that_can_not_have_answered_is_not_quoted():
    found = made([call(0, 0.1, latency_ms_recorded=41.0)])
    (result,) = found["steps"][1]["observation"]["results"]
    assert "content" not in result
    assert "response_sha256" not in result["extra"]


def test_where_a_task_has_states_the_one_that_was_required_answers():
    states = [{"scenario": "order", "requires": name} for name in ("open", "paid")]
    two = [*recorded('"open"', state=states[0]), *recorded('"paid"', state=states[1])]
    found = made([call(0, 0.1, state=states[1]), call(1, 0.2, state=states[0])], recordings=two)
    assert [each["observation"]["results"][0]["content"] for each in found["steps"][1:]] == ['"paid"', '"open"']


def test_long_and_binary_answers_are_told_by_digest():
    long = "é" * 40000
    found = made([call(0, 0.1), call(1, 0.2)], recordings=recorded(long, {"response_base64": "//8="}))
    (result,) = found["steps"][1]["observation"]["results"]
    assert (len(result["content"].encode()), result["extra"]["bytes"]) == (65536, 80000)
    assert result["extra"]["sha256"] == result["extra"]["response_sha256"]
    (result,) = found["steps"][2]["observation"]["results"]
    assert ("content" in result, result["extra"]["bytes"]) == (False, 2)


def test_ids_that_are_missing_or_doubled_are_made_apart():
    found = made([], [chat(0.1, [USER], calls("", "x", "x"))])
    assert [each["tool_call_id"] for each in found["steps"][1]["tool_calls"]] == ["call_1_0", "x", "call_1_2"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{not json", {"input": "{not json"}),
        ("[1]", {"input": "[1]"}),
        ("", {}),
        ('{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
    ],
)
def test_arguments_are_an_object_whatever_the_model_wrote(arguments, told):
    found = made([], [chat(0.1, [USER], calls("c", arguments=arguments))])
    assert found["steps"][1]["tool_calls"][0]["arguments"] == told


def test_tool_calls_that_stay_open_are_not_held_for_ever():
    spoken = [chat(float(place), [USER, ASKED] * place + [USER], calls(f"c{place}")) for place in range(200)]
    found = made([], spoken)
    assert len([step for step in found["steps"] if step["source"] == "agent"]) == 200


def test_calls_that_the_model_asked_at_once_may_be_answered_late():
    """A second model call that began before the tool's answer came takes nothing from the first."""
    spoken = [chat(0.1, [USER], ASKED), chat(0.2, [{"role": "user", "content": "a title"}], FINAL)]
    found = made([call(0, 0.7)], spoken)
    assert found["steps"][1]["observation"]["results"][0]["content"] == '{"price": 12}'


def test_a_number_of_more_digits_than_python_writes_is_told_as_text():
    digits = "9" * 5000
    calling = call(0, 0.1, "miss", via="call", method="CALL", path="get_item", body=f'{{"n": -{digits}}}')
    (_, step) = made([calling])["steps"]
    assert step["tool_calls"][0]["arguments"] == {"n": f"-{digits}"}
