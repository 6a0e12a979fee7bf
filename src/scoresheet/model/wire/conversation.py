"""What an exchange adds to a conversation: what the model was newly told, and what it said. Pure.

Requests repeat the whole conversation; what stands behind the model's last words in it is new.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from scoresheet.canonical import JsonValue
from scoresheet.model.wire import anthropic, openai_chat, openai_responses, parts, reading
from scoresheet.model.wire.events import events
from scoresheet.model.wire.parts import Headers


@dataclass(frozen=True, slots=True)
class Message:
    """What the model was told."""

    role: Literal["system", "user"]
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """A request's part of a conversation."""

    fresh: tuple[Message, ...] = ()
    """Behind the model's last words; at the beginning of a conversation, everything."""
    results: tuple[tuple[str, JsonValue], ...] = ()
    """Id of a tool call → what the agent says came of it, of the whole conversation; `text_of` reads it."""


@dataclass(frozen=True, slots=True)
class Said:
    """An answer's words; its tool calls are `Answered.calls`."""

    text: str = ""
    reasoning: str | None = None


def told(path: str, body: bytes) -> Told:
    """What a request tells; nothing, where it can't be read."""
    reader = _TOLD.get(reading.dialect_of(path) or "")
    value = parts.parsed(body)
    return Told() if reader is None or not isinstance(value, dict) else reader(value)


def said(path: str, status: int | None, headers: Headers, answer: bytes) -> Said:
    """What an answer says; nothing, where there is none that can be read."""
    dialect = reading.dialect_of(path) or ""
    plain = None if status is None or status >= 400 else reading.decoded(headers, answer)
    if plain is None or dialect not in _SAID:
        return Said()
    whole, streamed = _SAID[dialect]
    if "event-stream" in (parts.header(headers, "content-type") or ""):
        pieces = list(streamed(plain))
    else:
        pieces = list(whole(parts.obj(parts.parsed(plain))))
    thought = "".join(text for kind, text in pieces if kind == "reasoning")
    return Said("".join(text for kind, text in pieces if kind == "text"), thought or None)


def text_of(content: JsonValue) -> str:
    """The text of a message's content; what is no text as `[its type]`."""
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "\n".join(text_of(each) for each in content)
        case {"text": str(text)}:
            return text
        case {"type": str(kind)}:
            return f"[{kind}]"
        case _:
            return parts.told(content) or ""


Piece = tuple[Literal["text", "reasoning"], str]


def _piece(kind: Literal["text", "reasoning"], *values: JsonValue) -> Iterator[Piece]:
    found = next((value for value in values if isinstance(value, str) and value), None)
    if found is not None:
        yield kind, found


# chat completions


def _chat_told(body: dict[str, JsonValue]) -> Told:
    messages = list(parts.items(body.get("messages")))
    last = max((place for place, each in enumerate(messages) if each.get("role") == "assistant"), default=-1)
    fresh, results = [], []
    for place, each in enumerate(messages):
        match each.get("role"):
            case "system" | "developer" if place > last:
                fresh.append(Message("system", text_of(each.get("content"))))
            case "user" if place > last:
                fresh.append(Message("user", text_of(each.get("content"))))
            case "tool":
                results.append((parts.text(each.get("tool_call_id")) or "", each.get("content")))
            case _:
                pass
    return Told(tuple(fresh), tuple(results))


def _chat_said(body: dict[str, JsonValue]) -> Iterator[Piece]:
    for choice in parts.items(body.get("choices")):
        yield from _chat_message(parts.obj(choice.get("message")))
        return


def _chat_streamed(answer: bytes) -> Iterator[Piece]:
    for event in events(answer):
        for choice in parts.items(parts.obj(parts.parsed(event.data)).get("choices")):
            if not choice.get("index"):
                yield from _chat_message(parts.obj(choice.get("delta")))


def _chat_message(message: dict[str, JsonValue]) -> Iterator[Piece]:
    yield from _piece("reasoning", message.get("reasoning_content"), message.get("reasoning"))
    content = message.get("content")
    yield from _piece("text", text_of(content) if isinstance(content, list) else content, message.get("refusal"))


# responses


def _responses_told(body: dict[str, JsonValue]) -> Told:
    given = body.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    items = list(parts.items(given))
    last = max((place for place, each in enumerate(items) if _is_models(each)), default=-1)
    begins = last < 0 and body.get("previous_response_id") is None and body.get("conversation") is None
    fresh, results = [], []
    if begins and body.get("instructions"):
        fresh.append(Message("system", text_of(body.get("instructions"))))
    for place, each in enumerate(items):
        if (parts.text(each.get("type")) or "").endswith("_output"):
            results.append((parts.text(each.get("call_id")) or "", each.get("output")))
        elif place > last and each.get("role") in ("system", "developer"):
            fresh.append(Message("system", text_of(each.get("content"))))
        elif place > last and each.get("role") == "user":
            fresh.append(Message("user", text_of(each.get("content"))))
    return Told(tuple(fresh), tuple(results))


def _is_models(item: dict[str, JsonValue]) -> bool:
    """True for what the model itself once said: a message, a thought, a call."""
    kind = parts.text(item.get("type")) or "message"
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def _responses_said(body: dict[str, JsonValue]) -> Iterator[Piece]:
    yield from _responses_items(body.get("output"))


def _responses_streamed(answer: bytes) -> Iterator[Piece]:
    done: list[JsonValue] = []
    for event in events(answer):
        data = parts.obj(parts.parsed(event.data))
        if (parts.text(data.get("type")) or event.name) == "response.output_item.done":
            done.append(data.get("item"))
    yield from _responses_items(done)


def _responses_items(output: JsonValue) -> Iterator[Piece]:
    for item in parts.items(output):
        if item.get("type") == "reasoning":
            yield from _piece("reasoning", text_of(item.get("summary") or item.get("content")))
        elif item.get("type") == "message":
            for part in parts.items(item.get("content")):
                yield from _piece("text", part.get("text"), part.get("refusal"))


# messages


def _messages_told(body: dict[str, JsonValue]) -> Told:
    messages = list(parts.items(body.get("messages")))
    last = max((place for place, each in enumerate(messages) if each.get("role") == "assistant"), default=-1)
    fresh, results = [], []
    if last < 0 and body.get("system"):
        fresh.append(Message("system", text_of(body.get("system"))))
    for place, each in enumerate(messages):
        content = each.get("content")
        blocks = list(parts.items(content))
        for block in blocks:
            if block.get("type") == "tool_result":
                results.append((parts.text(block.get("tool_use_id")) or "", block.get("content")))
        rest = [block for block in blocks if block.get("type") != "tool_result"]
        if place > last and each.get("role") == "user" and (rest or isinstance(content, str)):
            fresh.append(Message("user", text_of(content if isinstance(content, str) else rest)))
    return Told(tuple(fresh), tuple(results))


def _messages_said(body: dict[str, JsonValue]) -> Iterator[Piece]:
    for block in parts.items(body.get("content")):
        yield from _piece("reasoning", block.get("thinking"))
        yield from _piece("text", block.get("text"))


def _messages_streamed(answer: bytes) -> Iterator[Piece]:
    for event in events(answer):
        data = parts.obj(parts.parsed(event.data))
        # a block begins with its first words, then come the others
        for part in (parts.obj(data.get("content_block")), parts.obj(data.get("delta"))):
            yield from _piece("reasoning", part.get("thinking"))
            yield from _piece("text", part.get("text"))


_TOLD: dict[str, Callable[[dict[str, JsonValue]], Told]] = {
    openai_chat.DIALECT: _chat_told,
    openai_responses.DIALECT: _responses_told,
    anthropic.DIALECT: _messages_told,
}
_SAID: dict[str, tuple[Callable[[dict[str, JsonValue]], Iterator[Piece]], Callable[[bytes], Iterator[Piece]]]] = {
    openai_chat.DIALECT: (_chat_said, _chat_streamed),
    openai_responses.DIALECT: (_responses_said, _responses_streamed),
    anthropic.DIALECT: (_messages_said, _messages_streamed),
}
