"""OpenAI's chat completions, as OpenAI and the many servers that speak like it send them. Pure.

https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Iterator

from scoresheet.canonical import JsonValue
from scoresheet.model.wire import parts
from scoresheet.model.wire.events import events
from scoresheet.model.wire.parts import Answered, Asked, Failure, Headers, ToolCall, ToolOffered, Usage

DIALECT = "openai_chat"
_RUN_BY_CLIENT = frozenset({"function", "custom"})
_SEARCHES = ("web_search_options", "search_parameters", "plugins", "data_sources", "enable_search", "web_search")
"""Members by which OpenAI, xAI, OpenRouter, Azure, Qwen and others search or fetch on the server."""
_FETCHED = frozenset({"url", "file_url", "image_url", "video_url", "audio_url"})


def asked(body: dict[str, JsonValue]) -> Asked:
    """What a request asks for."""
    model = parts.text(body.get("model"))
    return Asked(
        dialect=DIALECT,
        model=model,
        input_sha256=parts.sha256([DIALECT, model, body.get("messages")]),
        stream=body.get("stream") is True,
        temperature=parts.number(body.get("temperature")),
        top_p=parts.number(body.get("top_p")),
        seed=parts.whole(body.get("seed", body.get("random_seed"))),  # Mistral's name for it
        max_tokens=parts.whole(body.get("max_completion_tokens", body.get("max_tokens"))),
        effort=parts.text(body.get("reasoning_effort", parts.obj(body.get("reasoning")).get("effort"))),
        tools=(*_tools(body), *_by_itself(body, model or "")),
        tool_choice=parts.told(body.get("tool_choice", body.get("function_call"))),
        parallel=parts.flag(body.get("parallel_tool_calls")),
    )


def answered(status: int, headers: Headers, body: JsonValue) -> Answered:
    """What an answer in one piece says."""
    found = parts.obj(body)
    calls = [call for choice in parts.items(found.get("choices")) for call in _calls(parts.obj(choice.get("message")))]
    failed = status >= 400 or found.get("error") is not None or not found
    return parts.answer(
        status,
        headers,
        found,
        finish=_finish(found),
        calls=calls,
        usage=_usage(found.get("usage")),
        failure=parts.failure(body, status) if failed else None,
        complete=bool(found) and (status >= 400 or "choices" in found or found.get("error") is not None),
    )


def streamed(status: int, headers: Headers, body: bytes) -> Answered:
    """What the events of a stream say, put together."""
    first: dict[str, JsonValue] = {}
    finish: str | None = None
    usage: Usage | None = None
    failure: Failure | None = None
    done = False
    building: dict[tuple[int, int], list[str]] = {}
    for event in events(body):
        if event.data == "[DONE]":
            done = True
            continue
        chunk = parts.obj(parts.parsed(event.data))
        if chunk.get("error") is not None or event.name == "error":
            failure = parts.failure(chunk)
            usage = _usage(chunk.get("usage")) or usage
            continue
        if not first.get("model"):
            first = chunk
        finish = _finish(chunk) or finish
        usage = _usage(chunk.get("usage")) or _usage(parts.obj(chunk.get("x_groq")).get("usage")) or usage
        for choice in parts.items(chunk.get("choices")):
            _build(building, parts.whole(choice.get("index")) or 0, parts.obj(choice.get("delta")))
    return parts.answer(
        status,
        headers,
        first,
        finish=finish,
        calls=[ToolCall(name, id, arguments) for id, name, arguments in building.values()],
        usage=usage,
        failure=failure,
        complete=(done or finish is not None) and failure is None,  # some servers never say [DONE]
    )


def _build(building: dict[tuple[int, int], list[str]], choice: int, delta: dict[str, JsonValue]) -> None:
    for position, piece in enumerate(parts.items(delta.get("tool_calls"))):
        index = parts.whole(piece.get("index"))
        place = (choice, position if index is None else index)
        function = parts.obj(piece.get("function") or piece.get("custom"))
        id, name = parts.text(piece.get("id")) or "", parts.text(function.get("name")) or ""
        more = parts.text(function.get("arguments", function.get("input"))) or ""
        if place in building and id and building[place][0] and building[place][0] != id:
            place = (choice, 1 + max(number for _, number in building))  # two calls under one index: Gemini's server
        known = building.setdefault(place, ["", "", ""])
        known[0] = known[0] or id
        known[1] = known[1] or name
        known[2] += more
    legacy = parts.obj(delta.get("function_call"))
    if legacy:
        known = building.setdefault((choice, -1), ["", "", ""])
        known[1] = known[1] or parts.text(legacy.get("name")) or ""
        known[2] += parts.text(legacy.get("arguments")) or ""


def _calls(message: dict[str, JsonValue]) -> Iterator[ToolCall]:
    for call in parts.items(message.get("tool_calls")):
        function = parts.obj(call.get("function") or call.get("custom"))
        arguments = parts.told(function.get("arguments", function.get("input"))) or ""
        yield ToolCall(parts.text(function.get("name")) or "", parts.text(call.get("id")) or "", arguments)
    legacy = parts.obj(message.get("function_call"))
    if legacy:
        yield ToolCall(parts.text(legacy.get("name")) or "", "", parts.told(legacy.get("arguments")) or "")


def _finish(found: dict[str, JsonValue]) -> str | None:
    reasons = (parts.text(choice.get("finish_reason")) for choice in parts.items(found.get("choices")))
    return next((reason for reason in reasons if reason), None)


def _usage(value: JsonValue) -> Usage | None:
    if not isinstance(value, dict) or value.get("prompt_tokens") is None:
        return None
    read = parts.obj(value.get("prompt_tokens_details"))
    written = parts.obj(value.get("completion_tokens_details"))
    return Usage(
        input=parts.count(value.get("prompt_tokens")),
        output=parts.count(value.get("completion_tokens")),
        cached=parts.count(read.get("cached_tokens", value.get("prompt_cache_hit_tokens"))),
        cache_write=parts.count(read.get("cache_write_tokens")),
        reasoning=parts.count(written.get("reasoning_tokens")),
    )


def _tools(body: dict[str, JsonValue]) -> Iterator[ToolOffered]:
    for tool in parts.items(body.get("tools")):
        kind = parts.text(tool.get("type")) or "function"
        if kind not in _RUN_BY_CLIENT:
            yield ToolOffered(kind, None, server=True)
            continue
        inner = parts.obj(tool.get(kind))
        schema = inner.get("parameters", inner.get("format"))
        yield ToolOffered(parts.text(inner.get("name")) or "", None if schema is None else parts.sha256(schema))
    for function in parts.items(body.get("functions")):
        schema = function.get("parameters")
        yield ToolOffered(parts.text(function.get("name")) or "", None if schema is None else parts.sha256(schema))


def _by_itself(body: dict[str, JsonValue], model: str) -> Iterator[ToolOffered]:
    """What the server would do without any tool being named."""
    for member in _SEARCHES:
        if body.get(member) not in (None, False, [], ""):
            yield ToolOffered(member, None, server=True)
    if "-search-preview" in model or "-search-api" in model or model.endswith(":online"):
        yield ToolOffered("search_model", None, server=True)
    if parts.remote(body.get("messages"), _FETCHED):
        yield ToolOffered("remote_url", None, server=True)
