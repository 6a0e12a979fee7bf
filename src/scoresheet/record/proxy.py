"""A recording reverse proxy: one loopback port for each live service, every byte as it was sent.

Paths and queries are forwarded raw; headers keep their order, case and repetitions; bodies are never decoded, and
answers are passed on while they arrive. Redirects are not followed and cookies are not kept: that is the client's
business. What failed is recorded as the fault that the client saw.

Changed on the way to the service: `Host`, hop-by-hop headers, and in `Accept-Encoding` the codings that can't be
searched for credentials afterwards (docs/formats, Recording).

One thread a connection, blocking sockets: nothing here is asynchronous, so that a recording needs no more than a run.
"""

import contextlib
import itertools
import logging
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit

import httptools

from scoresheet.documents.tool import HeaderPairs, Request, Response
from scoresheet.errors import Finding, Usage
from scoresheet.pack import target
from scoresheet.record.exchange import Exchange

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S = 30.0
_CHUNK = 1 << 16
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "proxy-connection", "te", "upgrade", "expect", "trailer"})
_BODYLESS = frozenset({204, 304})
_SEARCHABLE = frozenset({"gzip", "x-gzip", "deflate", "identity"})
"""Codings that can always be undone when a recording is searched for credentials."""
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Upstream:
    """A live service: `NAME=URL`."""

    name: str
    """The environment variable that holds the proxy's address for the recorded command."""
    tls: bool
    host: str
    port: int
    base: str
    """Path of the URL, put before every path that is sent; it is no part of the recording."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The service that `NAME=URL` names. Raises `Usage`."""
        name, _, url = text.partition("=")
        mend = "write --upstream API=https://api.example.com"
        if not _ENVIRONMENT_NAME.fullmatch(name):
            raise Usage(f"{name!r} can't name an environment variable", "--upstream", mend)
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise Usage(f"the address can't be read: {error}", f"--upstream {name}", mend) from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise Usage("the address is not http(s)://host[:port][/path]", f"--upstream {name}", mend)
        if parts.username or parts.password:
            mend = "leave it out here; the recorded command sends its own credentials"
            raise Usage("the address holds a credential", f"--upstream {name}", mend)
        tls = parts.scheme == "https"
        return cls(name, tls, parts.hostname, port or (443 if tls else 80), parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """`host` or `host:port`, as it stands in a `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


class RecordingProxy:
    """A proxy that records while it is entered."""

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        timeout_s: float = DEFAULT_TIMEOUT_S,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`timeout_s`: how long a service may stay silent; `tls`: whom to trust, by default whom the system does."""
        self._upstreams = tuple(upstreams)
        self._timeout_s = timeout_s
        self._tls = tls
        if tls is None and any(upstream.tls for upstream in upstreams):
            self._tls = ssl.create_default_context()
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._busy = 0
        self._sequence = itertools.count()
        self._recorded: dict[int, Exchange] = {}
        self._problems: dict[tuple[str, str], Finding] = {}
        self._listeners: list[socket.socket] = []
        self._clients: set[socket.socket] = set()

    def __enter__(self) -> Self:
        try:
            for upstream in self._upstreams:
                listener = socket.create_server(("127.0.0.1", 0), backlog=128)
                self._listeners.append(listener)
                threading.Thread(target=self._accept, args=(listener, upstream), daemon=True).start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.settle()
        self._close()

    @property
    def addresses(self) -> Mapping[str, str]:
        """Name of the service → `http://127.0.0.1:port`."""
        ports = (listener.getsockname()[1] for listener in self._listeners)
        return {
            upstream.name: f"http://127.0.0.1:{port}" for upstream, port in zip(self._upstreams, ports, strict=True)
        }

    def settle(self) -> None:
        """Wait until every request that arrived has been answered or has failed."""
        with self._idle:
            self._idle.wait_for(lambda: self._busy == 0, timeout=2 * self._timeout_s)

    def exchanges(self) -> tuple[Exchange, ...]:
        """What was recorded so far, in the order in which the requests arrived."""
        with self._lock:
            return tuple(self._recorded[place] for place in sorted(self._recorded))

    def problems(self) -> tuple[Finding, ...]:
        """What a person should know of the traffic; errors mean that the recording is not what the agent needs."""
        with self._lock:
            return tuple(self._problems.values())

    def _close(self) -> None:
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts; close alone does not
            listener.close()
        with self._lock:
            clients = tuple(self._clients)
        for client in clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket, upstream: Upstream) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client, upstream), daemon=True).start()

    def _serve(self, client: socket.socket, upstream: Upstream) -> None:
        with self._lock:
            self._clients.add(client)
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            reader = _RequestReader(client)
            while (message := reader.next()) is not None:
                with self._lock:
                    place = next(self._sequence)
                    self._busy += 1
                try:
                    response, usable = self._forward(message, upstream, client)
                    exchange = Exchange(message.request(upstream.name), response)
                    with self._lock:
                        self._recorded[place] = exchange
                finally:
                    with self._idle:
                        self._busy -= 1
                        self._idle.notify_all()
                if not usable:
                    return
        except _NotHttp as error:
            self._report("record-not-http", upstream.name, f"the command sent what can't be recorded: {error}")
            with contextlib.suppress(OSError):
                client.sendall(b"HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        except OSError:
            log.debug("a client of %s went away", upstream.name)
        finally:
            with self._lock:
                self._clients.discard(client)
            client.close()

    def _forward(self, message: "_Message", upstream: Upstream, client: socket.socket) -> tuple[Response, bool]:
        """The answer as it is recorded, and whether the client's connection can carry another request."""
        started = time.monotonic()
        answer = _Answer(client, message)
        fault: Literal["connection_reset", "timeout", "truncated"] | None = None
        try:
            with self._connect(upstream) as server:
                started = time.monotonic()  # the service's own time: a client that keeps its connection sees no more
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    server.sendall(message.wire(upstream))  # a service may answer before it has read everything
                while not answer.complete:
                    data = server.recv(_CHUNK)
                    if not data:
                        answer.end()
                        break
                    answer.feed(data)
        except TimeoutError:
            fault = "truncated" if answer.started else "timeout"
        except ssl.SSLCertVerificationError as error:
            what = f"the certificate of {upstream.authority} was refused: {error.verify_message}"
            self._report("record-tls", upstream.name, what)
            fault = "connection_reset"
        except (OSError, httptools.HttpParserError) as error:
            fault = "truncated" if answer.started else "connection_reset"
            self._report("record-fault", upstream.name, f"the service failed: {error}", severity="warning")
        else:
            if not answer.complete:
                fault = "truncated" if answer.started else "connection_reset"
        latency_ms = round((time.monotonic() - started) * 1000, 3)
        if answer.client_gone:
            what = "the command closed its connection before the whole answer had come; the whole one is recorded"
            self._report("record-client-gone", upstream.name, what, severity="warning")
        response = answer.response(latency_ms, fault)
        self._note_addresses(response, upstream)
        if fault == "connection_reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        return response, fault is None and answer.reusable

    def _connect(self, upstream: Upstream) -> socket.socket:
        server = socket.create_connection((upstream.host, upstream.port), timeout=self._timeout_s)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not upstream.tls or self._tls is None:
            return server
        try:
            return self._tls.wrap_socket(server, server_hostname=upstream.host)
        except BaseException:
            server.close()
            raise

    def _note_addresses(self, response: Response, upstream: Upstream) -> None:
        address = f"//{upstream.authority}"
        if any(address in value for _, value in response.headers) or address.encode() in response.body:
            what = (
                f"answers of {upstream.authority} hold its own address: a client that follows it leaves the recording"
            )
            self._report("record-absolute-url", upstream.name, what, severity="warning")

    def _report(self, rule: str, where: str, what: str, severity: Literal["error", "warning"] = "error") -> None:
        with self._lock:
            self._problems.setdefault((rule, where), Finding(rule, where, what, severity=severity))


class _NotHttp(Exception):
    """What a client sent is no HTTP/1 request, or asks for another protocol."""


class _Message:
    """A request that is being read."""

    def __init__(self) -> None:
        self.method = ""
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = bytearray()
        self.version = "1.1"
        self.keep_alive = True

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

    def wire(self, upstream: Upstream) -> bytes:
        """The bytes that go to the service."""
        lines = [f"{self.method} {upstream.base}".encode() + self.url + b" HTTP/1.1"]
        dropped = _HOP_BY_HOP | {
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


class _RequestReader:
    """The requests on one client connection, one after the other."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._parser = httptools.HttpRequestParser(self)
        self._message = _Message()
        self._complete: list[_Message] = []
        self._continue = False

    def next(self) -> _Message | None:
        """The next request, whole; `None` when the client has closed. Raises `_NotHttp`."""
        while not self._complete:
            data = self._client.recv(_CHUNK)
            if not data:
                return None
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as error:
                raise _NotHttp("a request to switch protocols (CONNECT or Upgrade)") from error
            except httptools.HttpParserError as error:
                raise _NotHttp(str(error)) from error
            if self._continue and not self._complete:
                self._client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._continue = False
        return self._complete.pop(0)

    def on_message_begin(self) -> None:
        self._message = _Message()

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
        if not message.url.startswith(b"/") and message.url != b"*":
            raise _NotHttp("a request that names another host; it is to be sent to the given address")

    def on_body(self, data: bytes) -> None:
        self._message.body += data

    def on_message_complete(self) -> None:
        self._complete.append(self._message)


class _Answer:
    """An answer that is read from the service, passed to the client piece by piece, and kept."""

    def __init__(self, client: socket.socket, message: _Message) -> None:
        self._client = client
        self._message = message
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
        if self._streamed and not self._chunked and len(self._body) > before:
            self._boundaries.append(len(self._body))

    def end(self) -> None:
        """The service has closed: that is the end of a body that had no other."""
        if self.started and not self._chunked and not self._length:
            self.complete = True
        if self.complete or self.started:
            self._finish()

    @property
    def reusable(self) -> bool:
        """Whether the client's connection is at the start of another request."""
        return self._framed and self._message.keep_alive and not self.client_gone

    def response(
        self, latency_ms: float, fault: Literal["connection_reset", "timeout", "truncated"] | None
    ) -> Response:
        """The answer as it is kept."""
        if not self.started:
            return Response(0, (), b"", latency_ms, fault)
        kept = tuple(
            (key, value)
            for key, value in _pairs(self._headers)
            if key.lower() not in _HOP_BY_HOP and key.lower() != "transfer-encoding"
        )
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
        self._send(self._head())
        if self._bodyless:
            self.complete = True

    def on_body(self, data: bytes) -> None:
        if self._bodyless or not self.started:
            return
        self._body += data
        chunked = self._chunked and self._message.version != "1.0"
        self._send(f"{len(data):x}\r\n".encode() + data + b"\r\n" if chunked else data)

    def on_chunk_complete(self) -> None:
        if len(self._body) > (self._boundaries[-1] if self._boundaries else 0):
            self._boundaries.append(len(self._body))

    def on_message_complete(self) -> None:
        if not self.started:  # 100 Continue, 103 Early Hints: the answer is still to come
            self._headers, self._reason = [], b""
            return
        if not self.complete:
            self.complete = True
            self._finish()

    @property
    def _bodyless(self) -> bool:
        return self._message.method == "HEAD" or self._status in _BODYLESS

    @property
    def _framed(self) -> bool:
        """Whether the client sees the end of the body without the connection's end."""
        return self._bodyless or self._length or (self._chunked and self._message.version != "1.0")

    @property
    def _streamed(self) -> bool:
        return any(
            key.lower() == b"content-type" and value.lower().startswith(b"text/event-stream")
            for key, value in self._headers
        )

    def _head(self) -> bytes:
        lines = [f"HTTP/1.1 {self._status} ".encode() + self._reason]
        for key, value in self._headers:
            name = key.lower().decode("latin-1")
            if name in _HOP_BY_HOP or (name == "transfer-encoding" and self._message.version == "1.0"):
                continue
            lines.append(key + b": " + value)
        if not (self._framed and self._message.keep_alive):
            lines.append(b"Connection: close")
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _finish(self) -> None:
        if self.complete and self._chunked and not self._bodyless and self._message.version != "1.0":
            self._send(b"0\r\n\r\n")

    def _send(self, data: bytes) -> None:
        if self.client_gone:
            return
        try:
            self._client.sendall(data)
        except OSError:
            self.client_gone = True


def _pairs(headers: Sequence[tuple[bytes, bytes]]) -> HeaderPairs:
    return tuple((_text(key), _text(value)) for key, value in headers)


def _text(raw: bytes) -> str:
    return target.text(raw.decode("utf-8", "surrogateescape"))  # bytes that are not UTF-8 become %XX


def _searchable(value: bytes) -> bytes:
    """`Accept-Encoding` without the codings that can't be undone when the recording is searched for credentials."""
    codings = [
        coding.strip()
        for coding in value.decode("latin-1").split(",")
        if coding.split(";")[0].strip().lower() in _SEARCHABLE
    ]
    return ", ".join(codings or ["identity"]).encode("latin-1")
