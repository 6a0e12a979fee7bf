"""A plain loop over chat completions, standard library only; its prompt says how it misbehaves."""

import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any

task = json.load(sys.stdin)
prompt = task["prompt"]
base = os.environ["OPENAI_BASE_URL"]
tool = {"type": "function", "function": {"name": "bash" if "bash" in prompt else "get_item", "parameters": {}}}
body: dict = {
    "model": "stub-model",
    "temperature": 0.7 if "warm" in prompt else 0,
    "seed": int(os.environ["SCORESHEET_SEED"]),
    "messages": [{"role": "user", "content": prompt}],
    "tools": [tool],
}
if "leak" in prompt:  # everything that the sandbox shows of the environment
    with open("/proc/self/environ") as own:
        print(dict(os.environ), own.read())


if "stream" in prompt:
    body |= {"stream": True, "stream_options": {"include_usage": True}}


def streamed(answer):
    """The message that the events of a stream add up to."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for line in answer:
        if not line.startswith(b"data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            message["content"] += choice["delta"].get("content") or ""
            for piece in choice["delta"].get("tool_calls") or ():
                calls = message.setdefault("tool_calls", [])
                if piece["index"] == len(calls):
                    calls.append({"id": piece["id"], "type": "function", "function": {"name": "", "arguments": ""}})
                for name, text in piece["function"].items():
                    calls[-1]["function"][name] += text
    return {"choices": [{"message": message}]}


def ask(tries):
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(base + "/chat/completions", json.dumps(body).encode(), headers)
    try:
        answer = urllib.request.urlopen(request, timeout=300)
        return streamed(answer) if body.get("stream") else json.load(answer)
    except urllib.error.HTTPError:
        if tries == 0:
            raise
        return ask(tries - 1)


while True:
    message = ask(1 if "stubborn" in prompt else 0)["choices"][0]["message"]
    body["messages"].append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        number = json.loads(call["function"]["arguments"])["n"]
        url = f"{os.environ['SCORESHEET_TOOLS_URL']}/items/{number}"
        result = urllib.request.urlopen(url, timeout=300).read().decode()
        body["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": result})
with open(os.environ["SCORESHEET_ANSWER"], "w") as file:
    file.write(message["content"])
