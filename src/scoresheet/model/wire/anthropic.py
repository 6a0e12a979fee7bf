"""Anthropic's messages. Pure.

https://docs.anthropic.com/en/api/messages
"""

import re
from collections.abc import Iterator

from scoresheet.canonical import JsonValue
from scoresheet.model.wire import parts
from scoresheet.model.wire.events import events
from scoresheet.model.wire.parts import Answered, Asked, Failure, Headers, ToolCall, ToolOffered, Usage

DIALECT = "anthropic_messages"
_RUN_BY_CLIENT = re.compile(r"custom|(bash|text_editor|computer|memory)_[0-9]{8}")
_BY_ITSELF = ("mcp_servers", "container")
_CALLS = {"tool_use": False, "server_tool_use": True, "mcp_tool_use": True}


def asked(body: dict[str, JsonValue]) -> Asked:
    """What a request asks for. Thinking with a budget is told as `budget N`."""
    model = parts.text(body.get("model"))
    choice = parts.obj(body.get("tool_choice"))
    alone = parts.flag(choice.get("disable_parallel_tool_use"))
    return Asked(
        dialect=DIALECT,
        model=model,
        input_sha256=parts.sha256([DIALECT, model, body.get("system"), body.get("messages")]),
        stream=body.get("stream") is True,
        temperature=parts.number(body.get("temperature")),
        top_p=parts.number(body.get("top_p")),
        seed=parts.whole(body.get("seed")),
        max_tokens=parts.whole(body.get("max_tokens")),
        effort=_effort(body),
        tools=tuple(_offered(body)),
        tool_choice=parts.text(choice.get("name")) or parts.text(choice.get("type")),
        parallel=None if alone is None else not alone,
    )


def answered(status: int, headers: Headers, body: JsonValue) -> Answered:
    """What an answer in one piece says."""
    found = parts.obj(body)
    failed = status >= 400 or found.get("type") == "error" or not found
    calls = [
        ToolCall(parts.text(block.get("name")) or "", parts.text(block.get("id")) or "", _arguments(block), server)
        for block in parts.items(found.get("content"))
        if (server := _CALLS.get(parts.text(block.get("type")) or "")) is not None
    ]
    return parts.answer(
        status,
        headers,
        found,
        finish=parts.text(found.get("stop_reason")),
        calls=calls,
        usage=_usage(parts.obj(found.get("usage"))),
        failure=parts.failure(body, status) if failed else None,
        complete=bool(found) and (status >= 400 or found.get("type") in ("message", "error")),
        request=parts.text(found.get("request_id")),
    )


def streamed(status: int, headers: Headers, body: bytes) -> Answered:
    """What the events of a stream say, put together; the last word on usage is that of the last event."""
    found: dict[str, JsonValue] = {}
    usage: dict[str, JsonValue] = {}
    finish: str | None = None
    failure: Failure | None = None
    complete = False
    blocks: dict[int, dict[str, JsonValue]] = {}
    pieces: dict[int, list[str]] = {}
    for event in events(body):
        data = parts.obj(parts.parsed(event.data))
        index = parts.whole(data.get("index")) or 0
        match parts.text(data.get("type")) or event.name:
            case "message_start":
                found = parts.obj(data.get("message"))
                usage = {**usage, **_said(found.get("usage"))}
            case "content_block_start":
                blocks[index] = parts.obj(data.get("content_block"))
            case "content_block_delta":
                piece = parts.text(parts.obj(data.get("delta")).get("partial_json"))
                pieces.setdefault(index, []).append(piece or "")
            case "message_delta":
                usage = {**usage, **_said(data.get("usage"))}
                finish = parts.text(parts.obj(data.get("delta")).get("stop_reason")) or finish
            case "message_stop":
                complete = True
            case "error":
                failure = parts.failure(data)
            case _:
                pass
    calls = [
        ToolCall(
            parts.text(block.get("name")) or "",
            parts.text(block.get("id")) or "",
            "".join(pieces.get(index, ())) or _arguments(block),
            server,
        )
        for index, block in sorted(blocks.items())
        if (server := _CALLS.get(parts.text(block.get("type")) or "")) is not None
    ]
    return parts.answer(
        status,
        headers,
        found,
        finish=finish,
        calls=calls,
        usage=_usage(usage),
        failure=failure,
        complete=complete and failure is None,
        request=parts.text(found.get("request_id")),
    )


def _arguments(block: dict[str, JsonValue]) -> str:
    return parts.told(block.get("input")) or ""


def _effort(body: dict[str, JsonValue]) -> str | None:
    effort = parts.text(parts.obj(body.get("output_config")).get("effort"))
    thinking = parts.obj(body.get("thinking"))
    budget = parts.whole(thinking.get("budget_tokens"))
    return effort or (f"budget {budget}" if budget is not None else parts.text(thinking.get("type")))


def _said(usage: JsonValue) -> dict[str, JsonValue]:
    return {name: value for name, value in parts.obj(usage).items() if value is not None}


def _usage(value: dict[str, JsonValue]) -> Usage | None:
    if value.get("output_tokens") is None:
        return None
    cached = parts.count(value.get("cache_read_input_tokens"))
    written = parts.count(value.get("cache_creation_input_tokens"))
    return Usage(
        input=parts.count(value.get("input_tokens")) + cached + written,  # Anthropic counts them apart
        output=parts.count(value.get("output_tokens")),
        cached=cached,
        cache_write=written,
        reasoning=parts.count(parts.obj(value.get("output_tokens_details")).get("thinking_tokens")),
    )


def _offered(body: dict[str, JsonValue]) -> Iterator[ToolOffered]:
    for tool in parts.items(body.get("tools")):
        kind = parts.text(tool.get("type")) or "custom"
        if _RUN_BY_CLIENT.fullmatch(kind):
            schema = tool.get("input_schema")
            name = parts.text(tool.get("name")) or ""
            yield ToolOffered(name, None if schema is None else parts.sha256(schema))
        else:
            yield ToolOffered(kind, None, server=True)
    for member in _BY_ITSELF:
        if body.get(member) not in (None, [], {}):
            yield ToolOffered(member, None, server=True)
    if _fetches(body.get("messages")) or _fetches(body.get("system")):
        yield ToolOffered("remote_url", None, server=True)


def _fetches(value: JsonValue) -> bool:
    """True when a block's source is a web address."""
    waiting: list[JsonValue] = [value]
    while waiting:
        match waiting.pop():
            case {"type": "url", "url": _}:
                return True
            case dict() as found:
                # what a tool was called with is the model's own data, not a block
                waiting += [member for name, member in found.items() if name != "input"]
            case list() as several:
                waiting += several
            case _:
                pass
    return False
