"""Recorded calls and tapes for the replay tests, built by the real fingerprint."""

from collections.abc import Mapping
from typing import Any

from scoresheet.canonical import JsonValue
from scoresheet.documents.task import Call, Task, ToolReference
from scoresheet.documents.tool import RequestCopy, Tool
from scoresheet.pack import fingerprint
from scoresheet.pack.toolbox import Toolbox
from scoresheet.replay.session import OnExhausted, Tape

JSON = (("Content-Type", "application/json"),)
ZERO = "sha256:" + "0" * 64


def call(
    method: str,
    path: str,
    body: JsonValue = None,
    *,
    text: str = "{}",
    status: int = 200,
    upstream: str = "api",
    query: str | None = None,
    request: Mapping[str, Any] | None = None,
    toolbox: Toolbox | None = None,
    **more: Any,
) -> Call:
    """A v2 call; `body` is JSON, `request` overrides members of the readable request."""
    members: dict[str, Any] = {"upstream": upstream, "method": method, "path": path, "query": query}
    if body is not None:
        members |= {"body": body, "headers": JSON}
    copy = RequestCopy(**(members | dict(request or {})))
    asked = copy.as_request()
    _, vary, ignore = toolbox.rules_for(asked) if toolbox else (None, (), ())
    members = {"response_status": status, "latency_ms_recorded": 5.0} | more
    if "response_base64" not in members:
        members["response_bytes"] = text
    return Call(request_fingerprint=fingerprint.v2(asked, vary, ignore), request=copy, **members)


def call_v1(method: str, path: str, body: JsonValue, text: str = "{}", status: int = 200) -> Call:
    return Call(
        request_fingerprint=fingerprint.v1(method, path, body),
        response_status=status,
        response_bytes=text,
        latency_ms_recorded=5.0,
    )


def task(*calls: Call, tools: tuple[str, ...] = ()) -> Task:
    offered = tuple(ToolReference(name=name, schema_sha256=ZERO) for name in tools)
    return Task(task_id="refund", prompt="Refund it.", calls=calls, tools=offered)


def tape(
    *calls: Call,
    tools: tuple[Tool, ...] = (),
    offered: tuple[str, ...] | None = None,
    on_exhausted: OnExhausted = "last",
) -> Tape:
    names = tuple(tool.name for tool in tools) if offered is None else offered
    return Tape.of(task(*calls, tools=names), {tool.name: tool for tool in tools}, "tool-replay-v2", on_exhausted)


def tool(name: str, schema: JsonValue = None, **http: Any) -> Tool:
    members: dict[str, Any] = {"name": name, "inputSchema": schema}
    if http:
        members["http"] = {"upstream": "api"} | http
    return Tool.model_validate(members)
