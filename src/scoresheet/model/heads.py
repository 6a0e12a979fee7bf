"""Heads of HTTP/1.1 messages, read strictly: what two programs could read differently is refused. Pure (RFC 9112)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_HEAD = 32 * 1024
MAX_BODY = 64 << 20
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect"}
)
_NOT_SENT = HOP_BY_HOP | {
    *("host", "content-length", "content-encoding", "accept-encoding", "cookie", "authorization", "x-api-key"),
    *("api-key", "via", "x-goog-api-key", "forwarded", "x-http-method-override", "x-original-url", "x-rewrite-url"),
    "http2-settings",
}
"""Credentials are the door's to add; the rest could lead elsewhere."""
CODINGS = ("gzip", "x-gzip", "deflate", "zstd")
"""Content codings of a request that can be undone."""
_REQUEST = re.compile(r"([A-Z]+) (\S+) HTTP/1\.1")
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_LENGTH = re.compile(r"0|[1-9][0-9]{0,11}")
_OURS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?")

Pairs = tuple[tuple[str, str], ...]


class Bad(Exception):
    """A message that is not passed on, and the status that says so."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What a client asks for, before its body."""

    method: str
    target: str
    headers: Pairs
    length: int | None
    """Of the body; `None`: it comes in chunks."""
    close: bool
    waits: bool
    """For a `100 Continue`."""
    coding: str = "identity"
    """What the body is packed with."""
    upgrade: bool = False
    """It asks for another protocol, such as websockets."""

    def sent(self) -> Iterator[tuple[str, str]]:
        """The headers that go to the model."""
        named = {
            option.strip().lower()
            for name, value in self.headers
            if name.lower() == "connection"
            for option in value.split(",")
        }
        for name, value in self.headers:
            plain = name.lower()
            if plain not in _NOT_SENT and plain not in named and not plain.startswith(("proxy-", "x-forwarded-")):
                yield name, value


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What a model's server says before its body."""

    status: int
    headers: Pairs
    length: int | None
    """`None`: in chunks, or until the connection closes."""
    chunked: bool
    close: bool

    def passed(self) -> Iterator[tuple[str, str]]:
        """The headers that go to the client. The body's framing stays what it is."""
        for name, value in self.headers:
            plain = name.lower()
            if plain == "transfer-encoding" or (plain not in HOP_BY_HOP and plain != "alt-svc"):
                yield name, value


def request_head(raw: bytes) -> RequestHead:
    """The head of a request, without the empty line that ends it. Raises `Bad`."""
    first, headers = _lines(raw)
    match = _REQUEST.fullmatch(first.decode("latin-1"))
    if match is None:
        raise Bad(400, "not a request line of HTTP/1.1")
    method, target = match[1], match[2]
    if method == "CONNECT":
        raise Bad(403, "CONNECT: there is nothing to connect to")
    if not target.startswith("/") or not target.isascii():
        raise Bad(403, "a target that is no path")
    hosts = _all(headers, "host")
    if len(hosts) != 1:
        raise Bad(400, "not one Host")
    if not _OURS.fullmatch(hosts[0].lower()):
        raise Bad(421, f"the host {hosts[0]!r} is not here")
    codings, lengths = _all(headers, "transfer-encoding"), _all(headers, "content-length")
    if codings and (lengths or codings != ["chunked"]):
        raise Bad(400, "a body whose end can be read in two ways")
    if len(lengths) > 1 or (lengths and not _LENGTH.fullmatch(lengths[0])):
        raise Bad(400, "a length that can be read in two ways")
    length = None if codings else int(lengths[0]) if lengths else 0
    if length is not None and length > MAX_BODY:
        raise Bad(413, f"a body of more than {MAX_BODY} bytes")
    coding = ",".join(_all(headers, "content-encoding")).strip().lower() or "identity"
    if coding not in ("identity", *CODINGS):
        raise Bad(415, f"a body packed with {coding!r}, which can't be observed: it can be {', '.join(CODINGS)}")
    options = ",".join(_all(headers, "connection")).lower()
    expects = _all(headers, "expect")
    if expects and [each.lower() for each in expects] != ["100-continue"]:
        raise Bad(417, "an expectation that is not known")
    upgrade = bool(_all(headers, "upgrade"))
    return RequestHead(method, target, headers, length, "close" in options, bool(expects), coding, upgrade)


def response_head(raw: bytes, method: str = "POST") -> ResponseHead:
    """The head of an answer, without the empty line that ends it. Raises `Bad`."""
    first, headers = _lines(raw)
    match = _STATUS.fullmatch(first)
    if match is None:
        raise Bad(502, "the model's server does not speak HTTP/1.1")
    status = int(match[1])
    codings, lengths = _all(headers, "transfer-encoding"), set(_all(headers, "content-length"))
    if (codings and codings != ["chunked"]) or (codings and lengths) or len(lengths) > 1:
        raise Bad(502, "an answer whose end can be read in two ways")
    told = next(iter(lengths), None)
    if told is not None and not _LENGTH.fullmatch(told):
        raise Bad(502, "an answer whose length can't be read")
    none = method == "HEAD" or status in (204, 304) or status < 200
    length = 0 if none else None if told is None else int(told)
    chunked = bool(codings) and not none
    options = ",".join(_all(headers, "connection")).lower()
    close = "close" in options or (length is None and not chunked) or first.startswith(b"HTTP/1.0")
    return ResponseHead(status, headers, length, chunked, close)


def _lines(raw: bytes) -> tuple[bytes, Pairs]:
    first, *lines = raw.split(b"\r\n")
    pairs = []
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise Bad(400, "a header line that is none")
        pairs.append((match[1].decode("ascii"), match[2].rstrip(b" \t").decode("latin-1")))
    return first, tuple(pairs)


def _all(headers: Pairs, name: str) -> list[str]:
    return [value for key, value in headers if key.lower() == name]


class Chunks:
    """A body in chunks, as it comes: `feed` gives the data in it; `done` says that its end has come."""

    def __init__(self) -> None:
        self.done = False
        self.rest = b""
        """What came after the end."""
        self._buffer = b""
        self._left = 0
        self._trailers = False

    def feed(self, data: bytes) -> bytes:
        """The data in these bytes. Raises `Bad`."""
        found = []
        self._buffer += data
        while self._buffer and not self.done:
            if self._left > 2:
                piece = self._buffer[: self._left - 2]
                found.append(piece)
                self._buffer = self._buffer[len(piece) :]
                self._left -= len(piece)
                continue
            if self._left:
                if len(self._buffer) < 2:
                    break
                if self._buffer[:2] != b"\r\n":
                    raise Bad(400, "a chunk that does not end where it should")
                self._buffer, self._left = self._buffer[2:], 0
                continue
            line, mark, rest = self._buffer.partition(b"\r\n")
            if not mark:
                if len(line) > 4096:
                    raise Bad(400, "a chunk's size without an end")
                break
            self._buffer = rest
            if self._trailers:
                self.done = not line
                continue
            size = line.split(b";", 1)[0].rstrip(b" \t")
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
                raise Bad(400, "a chunk without a size")
            self._left = int(size, 16) + 2
            if self._left == 2:
                self._left, self._trailers = 0, True
        if self.done:
            self.rest, self._buffer = self._buffer, b""
        return b"".join(found)
