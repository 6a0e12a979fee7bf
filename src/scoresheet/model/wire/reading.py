"""Which dialect an exchange speaks, and what it said: `Read`, or `Unobserved` with the reason. Pure."""

import zlib
from dataclasses import dataclass
from types import ModuleType

from scoresheet.model.wire import anthropic, openai_chat, openai_responses, parts
from scoresheet.model.wire.parts import Answered, Asked, Headers

MAX_DECODED = 64 << 20
_DIALECTS: dict[str, ModuleType] = {
    "/chat/completions": openai_chat,
    "/responses": openai_responses,
    "/messages": anthropic,
}


@dataclass(frozen=True, slots=True)
class Read:
    """An exchange in a dialect that is known."""

    asked: Asked
    answered: Answered | None
    """`None` when no answer came, or none that can be read."""


@dataclass(frozen=True, slots=True)
class Unobserved:
    """An exchange that says nothing to us."""

    reason: str


def dialect_of(path: str) -> str | None:
    """The dialect that is spoken at a path, query or not; `None` for one that is not known."""
    module = _module(path)
    return None if module is None else module.DIALECT


def ask(path: str, body: bytes) -> Asked | Unobserved:
    """What a request asks for."""
    module = _module(path)
    if module is None:
        return Unobserved("a dialect that is not known")
    value = parts.parsed(body)
    if not isinstance(value, dict):
        return Unobserved("a request that is no JSON object, or one that two parsers read differently")
    asked: Asked = module.asked(value)
    return asked


def read(path: str, body: bytes, status: int | None, headers: Headers, answer: bytes) -> Read | Unobserved:
    """What a whole exchange said; `status` is `None` when no answer came."""
    asked = ask(path, body)
    module = _module(path)
    if isinstance(asked, Unobserved) or module is None:
        return asked if isinstance(asked, Unobserved) else Unobserved("a dialect that is not known")
    plain = None if status is None else decoded(headers, answer)
    if status is None or plain is None:
        return Read(asked, None)
    answered: Answered
    if "event-stream" in (parts.header(headers, "content-type") or ""):
        answered = module.streamed(status, headers, plain)
    else:
        answered = module.answered(status, headers, parts.parsed(plain))
    return Read(asked, answered)


def decoded(headers: Headers, body: bytes) -> bytes | None:
    """The body without its content coding; `None` when that is not known or it would be too large."""
    coding = (parts.header(headers, "content-encoding") or "identity").strip().lower()
    if coding == "identity":
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        return None
    try:
        unpacking = zlib.decompressobj(47)
        plain = unpacking.decompress(body, MAX_DECODED)
    except zlib.error:
        return None
    return None if unpacking.unconsumed_tail else plain


def _module(path: str) -> ModuleType | None:
    plain = path.split("?", 1)[0]
    return next((module for end, module in _DIALECTS.items() if plain.endswith(end)), None)
