"""`openai-tools`: a plain loop over chat completions with the `openai` package, and the tools of the pack as functions.

This one file is the agent. Inside the sandbox it is loaded without scoresheet: nothing of it is imported here.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from scoresheet.sandbox.inside.ready_host import Given

NAME = "openai-tools"
KIND = "openai"
PROGRAM = None
"""scoresheet's own interpreter."""
PACKAGE = "openai"
INSTALL = "pip install 'scoresheet[openai]'"
OFFERS = ()
OFFERS_WITH_MCP = ()
OWN = ()
TOGETHER = ()
OPTIONS = ("model", "effort")
_LAST = "last.txt"


def start(given: Given) -> tuple[list[str], dict[str, str]]:
    """The command line and environment of the loop."""
    words = [*given.program, "-I", "-B", __file__, given.model, given.prompt, f"{given.home}/{_LAST}"]
    return [*words, given.options.get("effort", "")], given.environment


def final(given: Given, printed: bytes) -> tuple[str | None, str | None]:
    """What the model said last, and what went wrong."""
    with open(f"{given.home}/{_LAST}", encoding="utf-8") as file:
        return file.read(), None


def loop(model: str, prompt: str, last: str, effort: str = "") -> None:
    """Ask, call what is to be called, until the model calls nothing more; what it said then goes to the file `last`.

    Nothing is tried again: the door would see it.
    """
    from openai import OpenAI

    with open(os.environ["SCORESHEET_TASK"], encoding="utf-8") as file:
        task = json.load(file)
    client = OpenAI(max_retries=0, timeout=600)
    asked: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    asked["seed"] = int(os.environ["SCORESHEET_SEED"])
    if "SCORESHEET_TEMPERATURE" in os.environ:
        asked["temperature"] = float(os.environ["SCORESHEET_TEMPERATURE"])
    if effort:
        asked["reasoning_effort"] = effort
    if task["tools"]:
        asked["tools"] = [{"type": "function", "function": _function(tool)} for tool in task["tools"]]
    while True:
        message = client.chat.completions.create(**asked).choices[0].message
        asked["messages"].append(message.model_dump(exclude_none=True))
        shown = {"content": message.content, "calls": [_shown(call) for call in message.tool_calls or ()]}
        sys.stdout.write(json.dumps(shown) + "\n")
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            name, arguments = _shown(call)
            result = _call(name, arguments)
            asked["messages"].append({"role": "tool", "tool_call_id": call.id, "content": result})
    with open(last, "w", encoding="utf-8") as file:
        file.write(message.content or "")


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    schema = tool.get("inputSchema", {"type": "object"})
    return {"name": tool["name"], "description": tool.get("description", ""), "parameters": schema}


def _shown(call: Any) -> tuple[str, str]:
    return (call.function.name, call.function.arguments) if call.type == "function" else (call.custom.name, "{}")


def _call(name: str, arguments: str) -> str:
    """What the tool answered; a status that is an error is put before it."""
    connection = http.client.HTTPConnection(os.environ["SCORESHEET_CALL_URL"].removeprefix("http://").strip("/"))
    try:
        body = (arguments or "{}").encode()
        connection.request("POST", "/" + quote(name, safe=""), body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        return text if answer.status < 400 else f"status {answer.status}\n{text}"
    finally:
        connection.close()


if __name__ == "__main__":
    loop(*sys.argv[1:])
