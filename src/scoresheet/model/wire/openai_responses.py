"""OpenAI's responses. Pure.

https://platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Iterator
from dataclasses import replace

from scoresheet.canonical import JsonValue
from scoresheet.model.wire import parts
from scoresheet.model.wire.events import events
from scoresheet.model.wire.parts import Answered, Asked, Failure, Headers, ToolCall, ToolOffered, Usage

DIALECT = "openai_responses"
_RUN_BY_CLIENT = frozenset({"function", "custom", "local_shell", "apply_patch", "computer_use_preview", "computer"})
_CALLS_OF_CLIENT = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}
_BY_ITSELF = ("prompt", "container", "mcp_servers")
"""A stored prompt brings tools of its own, which nobody sees here."""
_FETCHED = frozenset({"image_url", "file_url"})
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


def asked(body: dict[str, JsonValue]) -> Asked:
    """What a request asks for."""
    model = parts.text(body.get("model"))
    question = [body.get(name) for name in ("instructions", "input", "previous_response_id", "conversation")]
    return Asked(
        dialect=DIALECT,
        model=model,
        input_sha256=parts.sha256([DIALECT, model, *question]),
        stream=body.get("stream") is True,
        temperature=parts.number(body.get("temperature")),
        top_p=parts.number(body.get("top_p")),
        seed=parts.whole(body.get("seed")),
        max_tokens=parts.whole(body.get("max_output_tokens")),
        effort=parts.text(parts.obj(body.get("reasoning")).get("effort")),
        tools=tuple(_offered(body)),
        tool_choice=parts.told(body.get("tool_choice")),
        parallel=parts.flag(body.get("parallel_tool_calls")),
    )


def answered(status: int, headers: Headers, body: JsonValue) -> Answered:
    """What an answer in one piece says."""
    found = parts.obj(body)
    failed = status >= 400 or found.get("error") is not None or not found
    failure = parts.failure(body, status) if failed else None
    complete = bool(found) and (status >= 400 or found.get("status") != "in_progress")
    return _answer(status, headers, found, found.get("output"), failure, complete)


def streamed(status: int, headers: Headers, body: bytes) -> Answered:
    """What the events of a stream say, put together."""
    found: dict[str, JsonValue] = {}
    done: list[JsonValue] = []
    failure: Failure | None = None
    complete = False
    for event in events(body):
        data = parts.obj(parts.parsed(event.data))
        kind = parts.text(data.get("type")) or event.name
        if kind == "error":
            failure = parts.failure(data)
        elif kind == "response.output_item.done":
            done.append(data.get("item"))
        elif isinstance(data.get("response"), dict):
            found = data["response"]
            complete = kind in _LAST
            if found.get("error") is not None:
                failure = parts.failure(found)
    output = found.get("output") if complete and found.get("output") else done
    return _answer(status, headers, found, output, failure, complete and failure is None)


def _answer(
    status: int,
    headers: Headers,
    found: dict[str, JsonValue],
    output: JsonValue,
    failure: Failure | None,
    complete: bool,
) -> Answered:
    why = parts.text(parts.obj(found.get("incomplete_details")).get("reason"))
    said = parts.answer(
        status,
        headers,
        found,
        finish=why or parts.text(found.get("status")),
        calls=_calls(output),
        usage=_usage(found.get("usage")),
        failure=failure,
        complete=complete,
    )
    return replace(said, temperature=parts.number(found.get("temperature")), top_p=parts.number(found.get("top_p")))


def _calls(output: JsonValue) -> Iterator[ToolCall]:
    for item in parts.items(output):
        kind = parts.text(item.get("type")) or ""
        if kind == "tool_search_call" and item.get("execution") == "client":
            yield ToolCall(
                "tool_search", parts.text(item.get("call_id")) or "", parts.told(item.get("arguments")) or ""
            )
        elif kind in _CALLS_OF_CLIENT:
            name = parts.text(item.get("name")) or kind.removesuffix("_call")
            space = parts.text(item.get("namespace"))
            arguments = parts.told(item.get(_CALLS_OF_CLIENT[kind])) or ""
            id = parts.text(item.get("call_id")) or parts.text(item.get("id")) or ""
            yield ToolCall(f"{space}__{name}" if space else name, id, arguments)
        elif kind.endswith("_call"):
            name = parts.text(item.get("name")) or kind.removesuffix("_call")
            arguments = parts.told(item.get("arguments", item.get("action", item.get("code")))) or ""
            yield ToolCall(name, parts.text(item.get("id")) or "", arguments, server=True)


def _usage(value: JsonValue) -> Usage | None:
    if not isinstance(value, dict) or value.get("input_tokens") is None:
        return None
    read = parts.obj(value.get("input_tokens_details"))
    return Usage(
        input=parts.count(value.get("input_tokens")),
        output=parts.count(value.get("output_tokens")),
        cached=parts.count(read.get("cached_tokens")),
        cache_write=parts.count(read.get("cache_write_tokens")),
        reasoning=parts.count(parts.obj(value.get("output_tokens_details")).get("reasoning_tokens")),
    )


def _offered(body: dict[str, JsonValue]) -> Iterator[ToolOffered]:
    yield from _tools(body.get("tools"), "")
    for item in parts.items(body.get("input")):
        if item.get("type") in ("additional_tools", "tool_search_output"):
            yield from _tools(item.get("tools"), "")
    for member in _BY_ITSELF:
        if body.get(member) not in (None, [], {}):
            yield ToolOffered(member, None, server=True)
    if parts.remote(body.get("input"), _FETCHED):
        yield ToolOffered("remote_url", None, server=True)


def _tools(value: JsonValue, space: str) -> Iterator[ToolOffered]:
    waiting = [(tool, space) for tool in parts.items(value)]
    while waiting:
        tool, space = waiting.pop(0)
        kind = parts.text(tool.get("type")) or "function"
        name = parts.text(tool.get("name")) or kind
        name = f"{space}__{name}" if space else name
        if kind == "namespace":
            waiting += [(inner, name) for inner in parts.items(tool.get("tools"))]
        elif kind in _RUN_BY_CLIENT or _by_client(kind, tool):
            schema = tool.get("parameters", tool.get("format"))
            yield ToolOffered(name, None if schema is None else parts.sha256(schema))
        else:
            yield ToolOffered(kind, None, server=True)


def _by_client(kind: str, tool: dict[str, JsonValue]) -> bool:
    """Whether the client runs a tool that the provider could run as well."""
    if kind == "shell":
        return parts.obj(tool.get("environment")).get("type") == "local"
    return kind == "tool_search" and tool.get("execution") == "client"
