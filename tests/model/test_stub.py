import json
import os
import signal
import subprocess
import sys

import httpx
import openai
import pytest

from scoresheet.model.heads import CODINGS
from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from tests.model.doors import packed

TOOL = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}
TURNS = [{"tool": "lookup", "arguments": {"id": 7}}, {"text": "It was refunded."}]


def client(stub, retries=0):
    return openai.OpenAI(base_url=f"{stub.address}/v1", api_key="stub", max_retries=retries, timeout=300)


def ask(stub, retries=0, **more):
    messages = [{"role": "user", "content": "Was it refunded?"}]
    with client(stub, retries) as openai_client:
        return openai_client.chat.completions.create(model="m", messages=messages, tools=[TOOL], **more)


def test_openais_own_client_goes_through_a_script_with_tools():
    with ModelStub(Script.of({"turns": TURNS})) as stub, client(stub) as asking:
        messages = [{"role": "user", "content": "Was it refunded?"}]
        first = asking.chat.completions.create(model="m", messages=messages, tools=[TOOL]).choices[0].message
        assert json.loads(first.tool_calls[0].function.arguments) == {"id": 7}
        result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "yes"}
        messages += [first.model_dump(exclude_none=True), result]
        with asking.chat.completions.create(model="m", messages=messages, tools=[TOOL], stream=True) as stream:
            said = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert said == "It was refunded."


def test_openais_own_client_reads_responses_streamed():
    with ModelStub(Script.of({"turns": [{"text": "done"}]})) as stub, client(stub) as asking:
        assert asking.responses.create(model="m", input="a").output_text == "done"
        with asking.responses.create(model="m", input="a", stream=True) as stream:
            events = list(stream)
    assert events[-1].response.output_text == "done"
    assert events[-1].response.usage.input_tokens == 1000


def test_messages_are_spoken_streamed_and_not():
    with ModelStub(Script.of({"turns": TURNS, "model": "m-1"})) as stub:
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}]}
        whole = httpx.post(f"{stub.address}/v1/messages?beta=true", json=body).json()
        assert (whole["model"], whole["content"][0]["input"]) == ("m-1", {"id": 7})
        streamed = httpx.post(f"{stub.address}/v1/messages", json={**body, "stream": True}).text
        assert streamed.startswith("event: message_start\n")
        assert streamed.endswith('event: message_stop\ndata: {"type":"message_stop"}\n\n')
        counted = httpx.post(f"{stub.address}/v1/messages/count_tokens", json=body)
        assert counted.json()["input_tokens"] > 0


def test_a_fault_happens_as_often_as_it_should_and_the_turn_is_answered_then():
    faults = [{"status": 500, "times": 2}]
    heard = []
    with ModelStub(Script.of({"turns": TURNS, "faults": faults}), on_request=heard.append) as stub:
        answer = ask(stub, retries=2)
    assert answer.choices[0].message.tool_calls
    assert [each["answer"] for each in heard] == ["status", "status", "200"]
    assert [each["turn"] for each in heard] == [0, 0, 0]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"status": 429, "headers": {"retry-after": "1"}}, openai.RateLimitError),
        ({"status": 401}, openai.AuthenticationError),
        ({"kind": "drop"}, openai.APIConnectionError),
    ],
)
def test_a_client_sees_the_fault(fault, error):
    with ModelStub(Script.of({"turns": TURNS, "faults": [fault]})) as stub, pytest.raises(error):
        ask(stub)


def test_a_cut_stream_ends_without_its_end():
    with ModelStub(Script.of({"turns": TURNS, "faults": [{"kind": "cut"}]})) as stub:
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(f"{stub.address}/v1/chat/completions", json={"model": "m", "messages": [], "stream": True})


def test_a_hang_hangs():
    with ModelStub(Script.of({"turns": TURNS, "faults": [{"kind": "hang", "seconds": 5}]})) as stub:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{stub.address}/v1/responses", json={"model": "m", "input": ""}, timeout=0.3)


@pytest.mark.parametrize("name", CODINGS)
def test_packed_requests_are_read(name):
    body = packed(name, json.dumps({"model": "m", "input": ""}).encode())
    headers = {"content-type": "application/json", "content-encoding": name}
    with ModelStub(Script.of({"turns": [{"text": "done"}]})) as stub:
        answer = httpx.post(f"{stub.address}/v1/responses", content=body, headers=headers)
        assert answer.json()["output"][0]["content"][0]["text"] == "done"
        assert httpx.post(f"{stub.address}/v1/responses", content=b"no", headers=headers).status_code == 400


def test_what_agents_try_first_is_answered():
    websocket = {"connection": "upgrade", "upgrade": "websocket"}
    with ModelStub(Script.of({"turns": TURNS})) as stub:
        assert httpx.get(f"{stub.address}/v1/responses", headers=websocket).status_code == 426
        assert httpx.head(f"{stub.address}/api/hello").status_code == 200


def test_what_is_no_dialect_is_not_found():
    with ModelStub(Script.of({"turns": TURNS})) as stub:
        assert httpx.post(f"{stub.address}/v1/embeddings", json={}).status_code == 404
        assert httpx.post(f"{stub.address}/v1/responses", content=b"no").status_code == 400
        assert httpx.get(f"{stub.address}/v1/models").json()["data"][0]["id"] == "stub-model"


def test_the_command_serves_until_it_is_interrupted(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("turns:\n- text: done\n", encoding="utf-8")
    command = [sys.executable, "-m", "scoresheet", "model-stub", str(script)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as run:
        address = run.stdout.readline().strip().partition("=")[2]
        answer = httpx.post(f"{address}/responses", json={"model": "m", "input": "a"}).json()
        told = ""
        while "turn 0 -> 200" not in told:
            told += (line := run.stdout.readline())
            assert line, told
        run.send_signal(signal.SIGINT)
        told += run.stdout.read()
    assert answer["output"][0]["content"][0]["text"] == "done"
    assert "export ANTHROPIC_BASE_URL=http://127.0.0.1:" in told
    assert "turn 0 -> 200" in told
    assert run.returncode == 0


def test_a_script_that_is_none_is_refused_with_its_file(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("turns: []\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "scoresheet", "model-stub", str(script)], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "script.yaml" in done.stderr
