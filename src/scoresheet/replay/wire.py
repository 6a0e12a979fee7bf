"""A recorded answer as the bytes that go to the socket. Pure.

Status, headers and body are the recorded ones. Only what belongs to one connection is made anew: hop-by-hop headers
are dropped (RFC 9110 §7.6.1), and the length is the body's own, except where no body is sent.
"""

from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Literal

import orjson

from scoresheet import canonical
from scoresheet.documents.tool import HeaderPairs, Response

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
_CLOSE = b"connection: close\r\n"


@dataclass(frozen=True, slots=True)
class Wire:
    """What is written, and what happens to the connection then."""

    data: bytes
    status: int
    """The status that the client sees; 0 for a fault."""
    then: Literal["keep", "close", "reset"] = "keep"
    hold_s: float = 0.0
    """How long to wait before `then`."""


def of(response: Response, *, head: bool = False, old: bool = False, close: bool = False) -> Wire:
    """The wire form of a recorded answer.

    `head`: the request was HEAD. `old`: it was HTTP/1.0, which knows no chunks. `close`: it asked to close after this.
    """
    match response.fault:
        case "connection_reset":
            return Wire(b"", 0, "reset")
        case "timeout":
            return Wire(b"", 0, "close", response.latency_ms / 1000)
        case "truncated":
            return Wire(_truncated(response, head), 0, "close")
        case None:
            pass
    close = close or old or response.status < 200  # a final 1xx: no client waits for anything after it
    start = _status_line(response.status)
    headers = _headers(response)
    body = response.body
    if head or response.status in (204, 304) or response.status < 200:
        # no body, but the length that the service told stays told (RFC 9110 §8.6)
        lines = _with_length(headers, None if response.headers or not head else len(body))
        body = b""
    elif response.stream and not old:
        lines = [line for name, line in headers if name != "content-length"]
        lines.append(b"transfer-encoding: chunked\r\n")
        body = _chunked(response)
    else:
        lines = _with_length(headers, len(body))
    return Wire(
        b"".join((start, *lines, _CLOSE if close else b"", b"\r\n", body)),
        response.status,
        "close" if close else "keep",
    )


@dataclass(frozen=True, slots=True)
class Fields:
    """An answer in parts, for a protocol that frames by itself (HTTP/2)."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    """Lower-case names."""
    body: bytes
    then: Literal["keep", "close", "reset"] = "keep"
    """`close`: the body ends before its time, or, with `hold_s`, nothing is sent at all."""
    hold_s: float = 0.0
    told: int = 0
    """The status that the client sees; 0 for a fault."""


def fields_of(response: Response, *, head: bool = False) -> Fields:
    """The parts of a recorded answer."""
    match response.fault:
        case "connection_reset":
            return Fields(0, (), b"", "reset")
        case "timeout":
            return Fields(0, (), b"", "close", response.latency_ms / 1000)
        case "truncated" | None:
            pass
    headers = _headers(response)
    body = response.body
    cut = response.fault == "truncated"
    if head or response.status in (204, 304):
        lines = _with_length(headers, None if response.headers or not head else len(body))
        body = b""
    elif cut or response.stream:
        lines = [line for name, line in headers if name != "content-length"]
    else:
        lines = _with_length(headers, len(body))
    pairs = tuple(_pair(line) for line in lines)
    return Fields(response.status, pairs, body, "close" if cut else "keep", told=0 if cut else response.status)


def fields_of_json(status: int, value: Any, *, head: bool = False) -> Fields:
    """The parts of an answer of the door's own."""
    body = orjson.dumps(value)
    headers = (
        (b"content-type", b"application/json"),
        (b"x-should-retry", b"false"),
        (b"content-length", b"%d" % len(body)),
    )
    return Fields(status, headers, b"" if head else body, told=status)


def _pair(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()


def of_json(status: int, value: Any, *, head: bool = False, close: bool = False) -> Wire:
    """An answer of the door's own, such as a refusal. No SDK takes it for something to try again."""
    body = orjson.dumps(value)
    lines = b"content-type: application/json\r\nx-should-retry: false\r\ncontent-length: %d\r\n" % len(body)
    data = _status_line(status) + lines + (_CLOSE if close else b"") + b"\r\n" + (b"" if head else body)
    return Wire(data, status, "close" if close else "keep")


def of_text(status: int, media: str, body: bytes, *, allow: str = "", head: bool = False, close: bool = False) -> Wire:
    """An answer of the door's own whose body is made already."""
    lines = b"content-length: %d\r\n" % len(body)
    if body:
        lines += b"content-type: %b\r\n" % media.encode()
    if allow:
        lines += b"allow: %b\r\n" % allow.encode()
    data = _status_line(status) + lines + (_CLOSE if close else b"") + b"\r\n" + (b"" if head else body)
    return Wire(data, status, "close" if close else "keep")


def of_stream(first: bytes) -> bytes:
    """The head of an event stream without an end, and its first event."""
    lines = b"content-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
    return _status_line(200) + lines + b"%x\r\n%b\r\n" % (len(first), first)


def _status_line(status: int) -> bytes:
    return b"HTTP/1.1 %03d %b\r\n" % (status, _REASONS.get(status, b""))


def _headers(response: Response) -> tuple[tuple[str, bytes], ...]:
    """Lower-case name and line of each header that is sent; a v1 recording has none and gets its content type."""
    if not response.headers:
        return (("content-type", b"content-type: " + _media_type(response.body) + b"\r\n"),)
    return _kept(response.headers)


@lru_cache(maxsize=256)  # the recordings of one service mostly have the same few
def _kept(headers: HeaderPairs) -> tuple[tuple[str, bytes], ...]:
    dropped = HOP_BY_HOP | {
        token.strip().lower() for name, value in headers if name.lower() == "connection" for token in value.split(",")
    }
    return tuple((name.lower(), _line(name, value)) for name, value in headers if name.lower() not in dropped)


def _line(name: str, value: str) -> bytes:
    line = f"{name}: {value}".replace("\r", " ").replace("\n", " ").replace("\0", " ")
    return line.encode("utf-8", "surrogateescape") + b"\r\n"


def _with_length(headers: tuple[tuple[str, bytes], ...], length: int | None) -> list[bytes]:
    """The lines with the true length where the recorded one stood; `None` leaves the recorded one as it is."""
    if length is None:
        return [line for _, line in headers]
    lines: list[bytes] = []
    told = False
    for name, line in headers:
        if name != "content-length":
            lines.append(line)
        elif not told:
            lines.append(b"%b: %d\r\n" % (line.partition(b":")[0], length))
            told = True
    if not told:
        lines.append(b"content-length: %d\r\n" % length)
    return lines


def _chunked(response: Response) -> bytes:
    return b"".join((*_chunks(response), b"0\r\n\r\n"))


def _chunks(response: Response) -> list[bytes]:
    body = response.body
    ends = sorted({offset for offset in response.stream if 0 < offset < len(body)} | {len(body)})
    starts = (0, *ends)
    pieces = [body[start:end] for start, end in zip(starts, ends, strict=False)]
    return [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]


def _truncated(response: Response, head: bool) -> bytes:
    """The answer as far as it came: the length that was promised, fewer bytes."""
    headers = _headers(response)
    promised = next((line for name, line in headers if name == "content-length"), None)
    if response.stream or (promised is None and response.headers):
        lines = [line for name, line in headers if name != "content-length"]
        lines.append(b"transfer-encoding: chunked\r\n")
        body = b"".join(_chunks(response))  # and no last chunk
    else:
        lines = [line for _, line in headers]
        if promised is None:
            lines.append(b"content-length: %d\r\n" % (len(response.body) + 1))
        body = response.body
    return b"".join((_status_line(response.status), *lines, b"\r\n", b"" if head else body))


def _media_type(body: bytes) -> bytes:
    try:
        canonical.loads(body)
    except canonical.JsonError:
        return b"text/plain; charset=utf-8"
    return b"application/json"
