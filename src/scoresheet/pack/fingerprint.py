"""Which two requests are the same: the digest that stands for a request, under either protocol. Pure.

`tool-replay-v1` hashes method, path and body as Python writes them; `tool-replay-v2` hashes RFC 8785 text of
`{"v", "upstream", "method", "path", "query", "vary", "body"}` (docs/formats; vectors/fingerprint_v2.json).
A change here is a new protocol version, never a silent one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from scoresheet import json_pointer
from scoresheet.canonical import JsonError, JsonValue, jcs, jcs_of, loads, v1_text
from scoresheet.documents.tool import CALL, Request
from scoresheet.pack import body, target

_CACHED_TARGET = 512
"""Characters: longer targets are not worth the memory of remembering them."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """A request as it is hashed."""

    text: bytes
    """RFC 8785 text of the request."""
    removed: tuple[str, ...] = ()
    """The ignore rules that removed something: each weakens the test, so each use is counted."""

    @property
    def fingerprint(self) -> str:
        """`sha256:` and the digest of the text."""
        return "sha256:" + hashlib.sha256(self.text).hexdigest()


def v1(method: str, path: str, body: JsonValue) -> str:
    """The `tool-replay-v1` fingerprint: `sha256:…` (vectors/fingerprint_v1.json).

    `path` holds the query string too. Raises `JsonError` when `body` is not JSON.
    """
    text = v1_text({"method": method, "path": path, "body": body})
    return "sha256:" + hashlib.sha256(text).hexdigest()


def v1_of(request: Request) -> tuple[str, ...]:
    """The v1 fingerprints to look up for a request at the door, in order; none when its body is not strict JSON."""
    if not request.body:
        return v1(request.method, request.target, None), v1(request.method, request.target, {})
    try:
        value = loads(request.body)
    except JsonError:
        return ()
    return (v1(request.method, request.target, value),)


def v2(request: Request, vary: Sequence[str] = (), ignore: Sequence[str] = ()) -> str:
    """The `tool-replay-v2` fingerprint: `sha256:…`. Every request has one."""
    return "sha256:" + hashlib.sha256(_hashed(request, vary, ignore)[0]).hexdigest()


def canonical(request: Request, vary: Sequence[str] = (), ignore: Sequence[str] = ()) -> Canonical:
    """The request as v2 hashes it; `vary` and `ignore` are the tool's."""
    return Canonical(*_hashed(request, vary, ignore))


def form(request: Request, vary: Sequence[str] = (), ignore: Sequence[str] = ()) -> dict[str, JsonValue]:
    """The request as a value: what is hashed, for people and for differences."""
    return _form(request, vary, ignore)[0]


def _hashed(request: Request, vary: Sequence[str], ignore: Sequence[str]) -> tuple[bytes, tuple[str, ...]]:
    """The hashed text, and the ignore rules that removed something.

    Plain JSON requests, most of all traffic, go from bytes to text without a detour through values of our own.
    """
    if not ignore and not vary and request.body:
        text = _quick(request)
        if text is not None:
            return text, ()
    value, removed = _form(request, vary, ignore)
    return jcs(value), removed


def _quick(request: Request) -> bytes | None:
    media = ""
    for name, value in request.headers:
        if len(name) in (12, 16):
            match name.lower():
                case "content-type":
                    if media:
                        return None
                    media = value
                case "content-encoding":
                    return None
    if media != "application/json" and not body.is_json(body.media_type(media)):
        return None
    if (request.method == CALL and not request.upstream) or len(request.target) > _CACHED_TARGET:
        return None
    try:
        text = jcs_of(request.body)
    except JsonError:
        return None
    return b'{"body":["json",' + text + _rest(request.upstream, request.method, request.target)


@lru_cache(maxsize=4096)
def _rest(upstream: str, method: str, sent: str) -> bytes:
    path, query = target.split(sent)
    members = {"method": method.upper(), "path": path, "query": query, "upstream": target.text(upstream), "v": 2}
    return b"]," + jcs(members | {"vary": []})[1:]


def _form(request: Request, vary: Sequence[str], ignore: Sequence[str]) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    path: str
    query: list[JsonValue]
    if request.method == CALL and not request.upstream:
        path, query, content = target.text(request.target), [], _arguments(request)
    else:
        path, query = target.split(request.target)
        content = body.tagged(request)
    removed = tuple(rule for rule in ignore if _removes(rule, query, content))
    value: dict[str, JsonValue] = {
        "v": 2,
        "upstream": target.text(request.upstream),
        "method": request.method.upper(),
        "path": path,
        "query": query,
        "vary": [
            [target.text(name), target.text(request.header(name))] for name in sorted({name.lower() for name in vary})
        ],
        "body": content,
    }
    return value, removed


def _arguments(request: Request) -> list[JsonValue]:
    if not request.body:
        return ["json", {}]
    try:
        return ["json", loads(request.body)]
    except JsonError:
        return body.as_bytes("", request.body)


def _removes(rule: str, query: list[JsonValue], content: list[JsonValue]) -> bool:
    kind, _, pointer = rule.removeprefix("/").partition("/")
    match kind:
        case "query":
            return _remove_pairs(query, json_pointer.name(pointer))
        case "form" if content[0] == "form":
            return _remove_pairs(content[1], json_pointer.name(pointer))
        case "json" if content[0] == "json" and pointer:
            return _remove_member(content[1], [json_pointer.name(part) for part in pointer.split("/")])
    return False


def _remove_pairs(pairs: list[JsonValue], name: str) -> bool:
    kept = [pair for pair in pairs if pair[0] != name]
    removed = len(kept) < len(pairs)
    pairs[:] = kept
    return removed


def _remove_member(value: JsonValue, pointer: list[str]) -> bool:
    *road, last = pointer
    for part in road:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    if isinstance(value, dict) and last in value:
        del value[last]
        return True
    return False
