"""A turn of a scripted model in the words of each dialect: one JSON body, or the events of a stream. Pure."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scoresheet.canonical import JsonValue
from scoresheet.model.script import Call, Turn
from scoresheet.model.wire import anthropic, openai_chat, openai_responses
from scoresheet.model.wire.parts import Usage

CREATED = 1_700_000_000
PIECE = 16
"""Characters of text or arguments in one event."""


@dataclass(frozen=True, slots=True)
class Saying:
    """One answer: who speaks, what, and how much it cost."""

    turn: Turn
    number: int
    """Of the turn: ids are made of it, so that two runs get the same bytes."""
    model: str
    usage: Usage
    tools: tuple[str, ...] = ()
    """Names that were offered."""

    def name_of(self, call: Call) -> str:
        """The name under which a tool was offered: over MCP, agents put the server's name before it."""
        if call.namespace is not None:
            return f"{call.namespace}__{call.tool}"
        under = [name for name in self.tools if name.endswith(f"__{call.tool}")]
        return under[0] if call.tool not in self.tools and len(under) == 1 else call.tool


def body(dialect: str, saying: Saying) -> JsonValue:
    """The answer in one piece."""
    return _BODIES[dialect](saying)


def stream(dialect: str, saying: Saying, with_usage: bool = True) -> Iterator[bytes]:
    """The answer's events; `with_usage`: chat tells its usage in one more chunk, when it is asked to."""
    if dialect == openai_chat.DIALECT:
        return _chat_events(saying, with_usage)
    return _responses_events(saying) if dialect == openai_responses.DIALECT else _messages_events(saying)


def error(dialect: str, status: int, message: str) -> JsonValue:
    """The body of an error."""
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
    if dialect == anthropic.DIALECT:
        kind = kinds.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_stub"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def error_event(dialect: str, message: str) -> bytes:
    """An error in the middle of a stream."""
    if dialect == openai_responses.DIALECT:
        return _event("error", {"type": "error", "code": "server_error", "message": message, "param": None})
    return _event("error", error(dialect, 529, message))


def _event(name: str | None, data: JsonValue) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _arguments(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


# chat completions


def _chat_base(saying: Saying, kind: str) -> dict[str, JsonValue]:
    return {
        "id": f"chatcmpl-stub-{saying.number}",
        "object": kind,
        "created": CREATED,
        "model": saying.model,
        "system_fingerprint": "fp_stub",
    }


def _chat_call(saying: Saying, call: Call, place: int) -> dict[str, JsonValue]:
    id = f"call_{saying.number}_{place}"
    if call.custom:
        return {"id": id, "type": "custom", "custom": {"name": call.tool, "input": call.arguments}}
    return {"id": id, "type": "function", "function": {"name": saying.name_of(call), "arguments": _arguments(call)}}


def _chat_usage(usage: Usage) -> JsonValue:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _chat(saying: Saying) -> JsonValue:
    message: dict[str, JsonValue] = {"role": "assistant", "content": saying.turn.text, "refusal": None}
    if saying.turn.calls:
        message["tool_calls"] = [_chat_call(saying, call, place) for place, call in enumerate(saying.turn.calls)]
    reason = "tool_calls" if saying.turn.calls else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return {**_chat_base(saying, "chat.completion"), "choices": [choice], "usage": _chat_usage(saying.usage)}


def _chat_events(saying: Saying, with_usage: bool) -> Iterator[bytes]:
    base = _chat_base(saying, "chat.completion.chunk")

    def chunk(delta: JsonValue, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _event(None, {**base, "choices": [choice]})

    yield chunk({"role": "assistant", "content": "" if saying.turn.text is not None else None})
    for piece in _pieces(saying.turn.text or ""):
        yield chunk({"content": piece})
    for place, call in enumerate(saying.turn.calls):
        whole = _chat_call(saying, call, place)
        kind, member = ("custom", "input") if call.custom else ("function", "arguments")
        inner = whole[kind]
        yield chunk({"tool_calls": [{**whole, "index": place, kind: {**inner, member: ""}}]})
        for piece in _pieces(inner[member]):
            yield chunk({"tool_calls": [{"index": place, kind: {member: piece}}]})
    yield chunk({}, "tool_calls" if saying.turn.calls else "stop")
    if with_usage:
        yield _event(None, {**base, "choices": [], "usage": _chat_usage(saying.usage)})
    yield _event(None, "[DONE]")


# responses


def _items(saying: Saying) -> Iterator[dict[str, JsonValue]]:
    if saying.turn.text is not None:
        content = {"type": "output_text", "text": saying.turn.text, "annotations": []}
        id = f"msg_{saying.number}"
        yield {"type": "message", "id": id, "status": "completed", "role": "assistant", "content": [content]}
    for place, call in enumerate(saying.turn.calls):
        place_id = f"{saying.number}_{place}"
        if call.custom:
            made = {"type": "custom_tool_call", "id": f"ctc_{place_id}", "name": call.tool, "input": call.arguments}
        else:
            # a tool that was offered in a namespace is called with the namespace apart
            space, _, name = saying.name_of(call).rpartition("__")
            made = {"type": "function_call", "id": f"fc_{place_id}", "name": name, "arguments": _arguments(call)}
            made |= {"namespace": space} if space else {}
        yield {**made, "call_id": f"call_{place_id}", "status": "completed"}


def _response(saying: Saying, status: str, output: list[JsonValue], usage: Usage | None) -> dict[str, JsonValue]:
    told = (
        None
        if usage is None
        else {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        }
    )
    return {
        "id": f"resp_stub_{saying.number}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "model": saying.model,
        "output": output,
        "usage": told,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "temperature": None,
        "top_p": None,
    }


def _responses(saying: Saying) -> JsonValue:
    return _response(saying, "completed", list(_items(saying)), saying.usage)


def _responses_events(saying: Saying) -> Iterator[bytes]:
    number = -1

    def event(kind: str, **members: JsonValue) -> bytes:
        nonlocal number
        number += 1
        return _event(kind, {"type": kind, "sequence_number": number, **members})

    yield event("response.created", response=_response(saying, "in_progress", [], None))
    output = list(_items(saying))
    for place, item in enumerate(output):
        at: dict[str, JsonValue] = {"item_id": item["id"], "output_index": place}
        begun = {**item, "status": "in_progress"}
        begun |= {"content": []} if item["type"] == "message" else {}
        begun |= {"arguments": ""} if item["type"] == "function_call" else {}
        yield event("response.output_item.added", output_index=place, item=begun)
        if item["type"] == "message":
            part = item["content"][0]
            inside: dict[str, JsonValue] = {**at, "content_index": 0}
            yield event("response.content_part.added", **inside, part={**part, "text": ""})
            for piece in _pieces(part["text"]):
                yield event("response.output_text.delta", **inside, delta=piece, logprobs=[])
            yield event("response.output_text.done", **inside, text=part["text"], logprobs=[])
            yield event("response.content_part.done", **inside, part=part)
        else:
            kind, member = (
                ("function_call_arguments", "arguments")
                if item["type"] == "function_call"
                else ("custom_tool_call_input", "input")
            )
            for piece in _pieces(item[member]):
                yield event(f"response.{kind}.delta", **at, delta=piece)
            yield event(f"response.{kind}.done", **at, name=item["name"], **{member: item[member]})
        yield event("response.output_item.done", output_index=place, item=item)
    yield event("response.completed", response=_response(saying, "completed", list(output), saying.usage))


# messages


def _messages_usage(usage: Usage) -> dict[str, JsonValue]:
    return {
        "input_tokens": usage.input - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    }


def _messages(saying: Saying) -> JsonValue:
    content: list[JsonValue] = []
    if saying.turn.text is not None:
        content.append({"type": "text", "text": saying.turn.text})
    for place, call in enumerate(saying.turn.calls):
        made = call.arguments if isinstance(call.arguments, dict) else {"input": call.arguments}
        id = f"toolu_stub_{saying.number}_{place}"
        content.append({"type": "tool_use", "id": id, "name": saying.name_of(call), "input": made})
    return {
        "id": f"msg_stub_{saying.number}",
        "type": "message",
        "role": "assistant",
        "model": saying.model,
        "content": content,
        "stop_reason": "tool_use" if saying.turn.calls else "end_turn",
        "stop_sequence": None,
        "usage": _messages_usage(saying.usage),
    }


def _messages_events(saying: Saying) -> Iterator[bytes]:
    def event(kind: str, **members: JsonValue) -> bytes:
        return _event(kind, {"type": kind, **members})

    whole = _messages(saying)
    usage = {**whole["usage"], "output_tokens": 1}
    yield event("message_start", message={**whole, "content": [], "stop_reason": None, "usage": usage})
    for place, block in enumerate(whole["content"]):
        if block["type"] == "text":
            yield event("content_block_start", index=place, content_block={"type": "text", "text": ""})
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        else:
            yield event("content_block_start", index=place, content_block={**block, "input": {}})
            pieces = _pieces(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        for delta in deltas:
            yield event("content_block_delta", index=place, delta=delta)
        yield event("content_block_stop", index=place)
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": saying.usage.output})
    yield event("message_stop")


_BODIES: dict[str, Callable[[Saying], JsonValue]] = {
    openai_chat.DIALECT: _chat,
    openai_responses.DIALECT: _responses,
    anthropic.DIALECT: _messages,
}
