"""HTTP/1.1 between a client and a service, byte by byte: requests read whole, answers passed on while they come."""

import re
import socket
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import httptools

from scoresheet.documents.tool import HeaderPairs, Request, Response
from scoresheet.pack import target
from scoresheet.record.upstream import Upstream

CHUNK = 1 << 16
HOP_BY_HOP = frozenset({"connection", "keep-alive", "proxy-connection", "te", "upgrade", "expect", "trailer"})
_AUTHORITY = re.compile(rb"(?i)(https?)://([^/?]*)")
_BODYLESS = frozenset({204, 304})
_STREAMS = frozenset(
    {
        b"text/event-stream",
        b"application/x-ndjson",
        b"application/ndjson",
        b"application/jsonl",
        b"application/x-jsonlines",
        b"application/json-seq",
        b"application/stream+json",
    }
)
"""Bodies that are read while they come, event by event or line by line."""
_SEARCHABLE = frozenset({"gzip", "x-gzip", "deflate", "identity"})
"""Codings that can always be undone when a recording is searched for credentials."""


class NotHttp(Exception):
    """What a client sent is no HTTP/1 request, or asks for another protocol."""


class Message:
    """A request that is being read."""

    def __init__(self) -> None:
        self.method = ""
        self.url = b""
        self.named = ("", "")
        """Scheme and authority of a URL in absolute form, which clients send to a proxy; the URL is without them."""
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = bytearray()
        self.version = "1.1"
        self.keep_alive = True

    @classmethod
    def of(cls, request: Request) -> "Message":
        """The message that carries a request, its body by its length."""
        made = cls()
        made.method, made.url = request.method, _raw(request.target)
        made.headers = [
            (_raw(key), _raw(value))
            for key, value in request.headers
            if key.lower() not in ("content-length", "transfer-encoding")
        ]
        if request.body or request.header("content-length"):
            made.headers.append((b"Content-Length", str(len(request.body)).encode()))
        made.body += request.body
        return made

    def has(self, name: bytes, value: bytes = b"") -> bool:
        return any(key.lower() == name and value in text.lower() for key, text in self.headers)

    def request(self, upstream: str) -> Request:
        """The request as the client sent it."""
        return Request(
            upstream,
            self.method,
            _text(self.url),
            _pairs(self.headers),
            bytes(self.body),
        )

    def without_upgrade(self) -> bytes:
        """The head again, without the offer of another protocol."""
        lines = [f"{self.method} ".encode() + self.url + f" HTTP/{self.version}".encode()]
        lines += [
            key + b": " + value
            for key, value in self.headers
            if key.lower() not in (b"upgrade", b"http2-settings", b"connection")
        ]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def wire(self, upstream: Upstream) -> bytes:
        """The bytes that go to the service."""
        lines = [f"{self.method} {upstream.base}".encode() + self.url + b" HTTP/1.1"]
        dropped = HOP_BY_HOP | {
            option.strip().lower()
            for key, value in _pairs(self.headers)
            if key.lower() == "connection"
            for option in value.split(",")
        }
        for key, value in self.headers:
            match key.lower().decode("latin-1"):
                case "host":
                    lines.append(key + b": " + upstream.authority.encode())
                case "accept-encoding":
                    lines.append(key + b": " + _searchable(value))
                case name if name not in dropped:
                    lines.append(key + b": " + value)
        if not self.has(b"host"):
            lines.insert(1, b"Host: " + upstream.authority.encode())
        lines.append(b"Connection: close")
        body = bytes(self.body)
        if self.has(b"transfer-encoding", b"chunked"):
            body = (f"{len(body):x}\r\n".encode() + body + b"\r\n" if body else b"") + b"0\r\n\r\n"
        return b"\r\n".join(lines) + b"\r\n\r\n" + body


class RequestReader:
    """The requests on one client connection, one after the other."""

    def __init__(self, client: socket.socket, first: bytes = b"") -> None:
        """`first`: what has been read of the connection already."""
        self._client = client
        self._first = first
        self._parser = httptools.HttpRequestParser(self)
        self._message = Message()
        self._complete: list[Message] = []
        self._continue = False

    def next(self) -> Message | None:
        """The next request, whole; `None` when the client has closed. Raises `NotHttp`."""
        while not self._complete:
            data, self._first = self._first or self._client.recv(CHUNK), b""
            if not data:
                return None
            self._feed(data)
            if self._continue and not self._complete:
                self._client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._continue = False
        return self._complete.pop(0)

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as error:
            if self._message.method == "CONNECT" or self._message.has(b"upgrade", b"websocket"):
                raise NotHttp("a request to switch protocols (CONNECT or WebSocket)") from error
            rest = data[error.args[0] :]
            self._parser = httptools.HttpRequestParser(self)  # the offer is declined: the body follows as it is
            self._feed(self._message.without_upgrade() + rest)
        except httptools.HttpParserError as error:
            raise NotHttp(str(error)) from error

    def on_message_begin(self) -> None:
        self._message = Message()

    def on_url(self, url: bytes) -> None:
        self._message.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._message.method:  # a trailer otherwise
            self._message.headers.append((name, value))

    def on_headers_complete(self) -> None:
        message = self._message
        message.method = self._parser.get_method().decode()
        message.version = self._parser.get_http_version()
        message.keep_alive = self._parser.should_keep_alive()
        self._continue = message.has(b"expect", b"100-continue")
        if named := _AUTHORITY.match(message.url):  # the absolute form of a client that takes us for a proxy
            message.named = named[1].decode().lower(), named[2].decode("latin-1")
            rest = message.url[named.end() :]
            message.url = rest if rest.startswith(b"/") else b"/" + rest

    def on_body(self, data: bytes) -> None:
        self._message.body += data

    def on_message_complete(self) -> None:
        if not self._parser.should_upgrade():
            self._complete.append(self._message)


Framing = Literal["none", "length", "chunked", "close"]
"""How the end of an answer's body is told: there is none, a length, chunks, or the end of the connection."""


class Receiver(Protocol):
    """Who is told an answer while it comes. Each method raises `OSError` when nobody is there any more."""

    def begin(self, status: int, reason: bytes, headers: Sequence[tuple[bytes, bytes]], framing: Framing) -> None:
        """Status and headers, those of the service's own connection left out."""

    def body(self, data: bytes) -> None:
        """The next bytes of the body."""

    def end(self) -> None:
        """The body has ended as it should."""


class Nobody:
    """An answer that is only kept."""

    def begin(self, status: int, reason: bytes, headers: Sequence[tuple[bytes, bytes]], framing: Framing) -> None:
        """Nothing."""

    def body(self, data: bytes) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class Http1Client:
    """A client that asked over HTTP/1."""

    def __init__(self, client: socket.socket, message: Message) -> None:
        self._client = client
        self._old = message.version == "1.0"
        self._keep_alive = message.keep_alive
        self._chunked = False
        self.framed = False
        """Whether the client sees the end of the body without the connection's end."""

    def begin(self, status: int, reason: bytes, headers: Sequence[tuple[bytes, bytes]], framing: Framing) -> None:
        """Send the head."""
        self._chunked = framing == "chunked" and not self._old
        self.framed = self._chunked or framing in ("none", "length")
        lines = [f"HTTP/1.1 {status} ".encode() + reason]
        for key, value in headers:
            if key.lower() != b"transfer-encoding" or not self._old:
                lines.append(key + b": " + value)
        if not (self.framed and self._keep_alive):
            lines.append(b"Connection: close")
        self._client.sendall(b"\r\n".join(lines) + b"\r\n\r\n")

    def body(self, data: bytes) -> None:
        """Send a piece of the body, as a chunk where the service sent chunks."""
        self._client.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n" if self._chunked else data)

    def end(self) -> None:
        """Send the last chunk."""
        if self._chunked:
            self._client.sendall(b"0\r\n\r\n")


class Answer:
    """An answer that is read from the service, passed on piece by piece, and kept."""

    def __init__(self, receiver: Receiver, method: str) -> None:
        """`method`: of the request."""
        self._receiver = receiver
        self._method = method
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._reason = b""
        self._status = 0
        self._body = bytearray()
        self._boundaries: list[int] = []
        self._chunked = False
        self._length = False
        self.started = False
        """True when status and headers have come whole."""
        self.complete = False
        self.client_gone = False

    def feed(self, data: bytes) -> None:
        """Take bytes from the service. Raises `httptools.HttpParserError`."""
        before = len(self._body)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if not self.complete:  # what comes after the end is nobody's
                raise
        if self._streamed and not (self._chunked or self._length) and len(self._body) > before:
            self._boundaries.append(len(self._body))

    def end(self) -> None:
        """The service has closed: that is the end of a body that had no other."""
        if self.started and not self.complete and not self._chunked and not self._length:
            self.complete = True
            self._tell(self._receiver.end)

    def response(
        self, latency_ms: float, fault: Literal["connection_reset", "timeout", "truncated"] | None
    ) -> Response:
        """The answer as it is kept."""
        if not self.started:
            return Response(0, (), b"", latency_ms, fault)
        kept = tuple((key, value) for key, value in _pairs(self._own_headers) if key.lower() != "transfer-encoding")
        return Response(self._status, kept, bytes(self._body), latency_ms, fault, tuple(self._boundaries))

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.started:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._status < 200:
            return
        self.started = True
        headers = {key.lower(): value.lower() for key, value in self._headers}
        self._chunked = b"chunked" in headers.get(b"transfer-encoding", b"")
        self._length = b"content-length" in headers
        self._tell(lambda: self._receiver.begin(self._status, self._reason, self._own_headers, self._framing))
        if self._bodyless:
            self.complete = True

    def on_body(self, data: bytes) -> None:
        if self._bodyless or not self.started:
            return
        self._body += data
        self._tell(lambda: self._receiver.body(data))

    def on_chunk_complete(self) -> None:
        if len(self._body) > (self._boundaries[-1] if self._boundaries else 0):
            self._boundaries.append(len(self._body))

    def on_message_complete(self) -> None:
        if not self.started:  # 100 Continue, 103 Early Hints: the answer is still to come
            self._headers, self._reason = [], b""
            return
        if not self.complete:
            self.complete = True
            self._tell(self._receiver.end)

    @property
    def _bodyless(self) -> bool:
        return self._method == "HEAD" or self._status in _BODYLESS

    @property
    def _framing(self) -> Framing:
        if self._bodyless:
            return "none"
        return "chunked" if self._chunked else "length" if self._length else "close"

    @property
    def _own_headers(self) -> list[tuple[bytes, bytes]]:
        return [pair for pair in self._headers if pair[0].lower().decode("latin-1") not in HOP_BY_HOP]

    @property
    def _streamed(self) -> bool:
        """Whether the pieces in which the body comes mean something to who reads it."""
        return any(
            key.lower() == b"content-type" and value.partition(b";")[0].strip().lower() in _STREAMS
            for key, value in self._headers
        )

    def _tell(self, what: Callable[[], None]) -> None:
        if self.client_gone:
            return
        try:
            what()
        except OSError:
            self.client_gone = True


def _pairs(headers: Sequence[tuple[bytes, bytes]]) -> HeaderPairs:
    return tuple((_text(key), _text(value)) for key, value in headers)


def _text(raw: bytes) -> str:
    return target.text(raw.decode("utf-8", "surrogateescape"))  # bytes that are not UTF-8 become %XX


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _searchable(value: bytes) -> bytes:
    """`Accept-Encoding` without the codings that can't be undone when the recording is searched for credentials."""
    codings = [
        coding.strip()
        for coding in value.decode("latin-1").split(",")
        if coding.split(";")[0].strip().lower() in _SEARCHABLE
    ]
    return ", ".join(codings or ["identity"]).encode("latin-1")
