"""A recording reverse proxy: one loopback port for each live service, every byte as it was sent.

Paths and queries are forwarded raw; headers keep their order, case and repetitions; bodies are never decoded, and
answers are passed on while they arrive. Redirects are not followed and cookies are not kept: that is the client's
business. What failed is recorded as the fault that the client saw.

Changed on the way to the service: `Host`, hop-by-hop headers, and in `Accept-Encoding` the codings that can't be
searched for credentials afterwards (docs/recording).

One thread a connection, blocking sockets: nothing here is asynchronous, so that a recording needs no more than a run.
"""

import contextlib
import itertools
import logging
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Self

from scoresheet.documents.tool import Response, Tool
from scoresheet.errors import Finding
from scoresheet.record import tunnel
from scoresheet.record.calls import Forward, Reply, Route, ToolCalls
from scoresheet.record.exchange import Exchange
from scoresheet.record.relay import Http1Client, Message, NotHttp, RequestReader
from scoresheet.record.service import Service
from scoresheet.record.upstream import Upstream

if TYPE_CHECKING:
    from scoresheet.record.http2 import Stream

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S = 30.0
_NOT_IMPLEMENTED = b"HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_RESET = struct.pack("ii", 1, 0)


class RecordingProxy:
    """A proxy that records while it is entered."""

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        timeout_s: float = DEFAULT_TIMEOUT_S,
        tools: Sequence[Tool] = (),
        tls: ssl.SSLContext | None = None,
        streaming: Sequence[str] = (),
        tunnels: tunnel.Tunnels | None = None,
    ) -> None:
        """`timeout_s`: how long a service may stay silent; `tools`: what can be called by name; `tls`: whom to trust,
        by default whom the system does; `streaming`: services whose answers may stay open and silent, so that nothing
        waits for their end; `tunnels`: also be a proxy for the services' own addresses.
        """
        self._tunnels = tunnels
        self._tunnel_listener: socket.socket | None = None
        self._upstreams = tuple(upstreams)
        self._timeout_s = timeout_s
        self._streaming = frozenset(streaming)
        self._service = Service(timeout_s, tls, self._report, self._streaming, upstreams if tunnels else ())
        self._outside = Service(timeout_s, None, lambda _: None)
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._busy = 0
        self._sequence = itertools.count()
        self._recorded: dict[int, Exchange] = {}
        self._problems: dict[tuple[str, str], Finding] = {}
        self._listeners: list[socket.socket] = []
        self._clients: set[socket.socket] = set()
        self._calls = ToolCalls(tools, self._upstreams)
        self._answer: bytes | None = None

    def __enter__(self) -> Self:
        try:
            for name, route in self._doors():
                listener = socket.create_server(("127.0.0.1", 0), backlog=128)
                self._listeners.append(listener)
                threading.Thread(target=self._accept, args=(listener, name, route), daemon=True).start()
            if self._tunnels is not None:
                listener = self._tunnel_listener = socket.create_server(("127.0.0.1", 0), backlog=128)
                threading.Thread(target=self._accept_tunnels, args=(listener, self._tunnels), daemon=True).start()
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
        return {upstream.name: self._address(place) for place, upstream in enumerate(self._upstreams)}

    @property
    def call_address(self) -> str:
        """Where tools are called by name: `POST /<tool>`."""
        return self._address(-1)

    @property
    def proxy_address(self) -> str:
        """The proxy for the services' own addresses; empty without `tunnels`."""
        listener = self._tunnel_listener
        return "" if listener is None else f"http://127.0.0.1:{listener.getsockname()[1]}"

    @property
    def submitted(self) -> bytes | None:
        """The last answer that was submitted as a tool call."""
        with self._lock:
            return self._answer

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

    def _address(self, place: int) -> str:
        return f"http://127.0.0.1:{self._listeners[place].getsockname()[1]}"

    def _doors(self) -> Iterator[tuple[str, Callable[[Message], Route]]]:
        for upstream in self._upstreams:
            yield upstream.name, partial(Forward, upstream)
        yield "SCORESHEET_CALL_URL", self._calls.route

    def _close(self) -> None:
        for listener in (*self._listeners, *filter(None, (self._tunnel_listener,))):
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts; close alone does not
            listener.close()
        with self._lock:
            clients = tuple(self._clients)
        for client in clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket, name: str, route: Callable[[Message], Route]) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client, name, route), daemon=True).start()

    def _accept_tunnels(self, listener: socket.socket, tunnels: tunnel.Tunnels) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_tunnel, args=(client, tunnels), daemon=True).start()

    def _serve_tunnel(self, client: socket.socket, tunnels: tunnel.Tunnels) -> None:
        """One connection to the proxy: what goes to a service is recorded, all else passed on."""
        host = ""
        with self._lock:
            self._clients.add(client)
        try:
            match tunnel.asked(client):
                case None:
                    return
                case tunnel.Plain(data):
                    self._serve(client, "the proxy", tunnels.plain, data)
                case tunnel.Connect(host, port):
                    known = tunnels.known(host, port)
                    server = None if known else socket.create_connection((host, port), timeout=self._timeout_s)
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    if server is None:
                        self._serve_secure(tunnels.secure(client), known)
                        return
                    self._elsewhere(host)
                    with server:
                        server.settimeout(None)
                        tunnel.pass_on(client, server)
        except NotHttp as error:
            self._report(Finding("record-not-http", "the proxy", f"the command sent what can't be recorded: {error}"))
            with contextlib.suppress(OSError):
                client.sendall(_NOT_IMPLEMENTED)
        except ssl.SSLError as error:
            what = f"the command does not trust the recorder's certificate for {host}: {error.reason or error}"
            self._report(Finding("record-untrusted", host, what, "let its client read SSL_CERT_FILE"))
        except OSError as error:
            log.debug("a tunnel to %s failed: %s", host, error)
        finally:
            with self._lock:
                self._clients.discard(client)
            client.close()

    def _serve_secure(self, client: ssl.SSLSocket, known: Sequence[Upstream]) -> None:
        """The inside of a tunnel to a service, in the protocol that was agreed on."""
        route = partial(tunnel.route, known)
        if client.selected_alpn_protocol() != "h2":
            self._serve(client, known[0].name, route)
            return
        from scoresheet.record.http2 import Http2

        with self._client(client, known[0].name):
            Http2(client, partial(self._take, known[0].name, route)).serve()

    def _take(self, name: str, route: Callable[[Message], Forward], message: Message, stream: "Stream") -> None:
        """One request of an HTTP/2 connection."""
        with self._taken(name) as place:
            try:
                forward = route(message)
            except NotHttp as error:
                self._report(Finding("record-not-http", name, f"the command sent what can't be recorded: {error}"))
                stream.begin(501, b"", [(b"content-length", b"0")], "none")
                return
            response, _ = self._service.ask(forward.message, forward.upstream, stream)
            self._keep(place, forward, response)
            if response.fault is not None:
                stream.abort()

    def _serve(self, client: socket.socket, name: str, route: Callable[[Message], Route], first: bytes = b"") -> None:
        with self._client(client, name):
            try:
                reader = RequestReader(client, first)
                while (message := reader.next()) is not None:
                    with self._taken(name) as place:
                        match route(message):
                            case Forward() as forward:
                                response, usable = self._forward(forward, client)
                                self._keep(place, forward, response)
                            case Reply() as reply:
                                usable = self._reply(reply, message, client)
                    if not usable:
                        return
            except NotHttp as error:
                self._report(Finding("record-not-http", name, f"the command sent what can't be recorded: {error}"))
                client.sendall(_NOT_IMPLEMENTED)

    @contextlib.contextmanager
    def _client(self, client: socket.socket, name: str) -> Iterator[None]:
        """A connection, closed at the end; one that breaks before is nobody's fault."""
        with self._lock:
            self._clients.add(client)
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield
        except OSError:
            log.debug("a client of %s went away", name)
        finally:
            with self._lock:
                self._clients.discard(client)
            client.close()

    @contextlib.contextmanager
    def _taken(self, name: str) -> Iterator[int]:
        """A request under way; its place among all."""
        with self._lock:
            place = next(self._sequence)
            self._busy += name not in self._streaming
        try:
            yield place
        finally:
            with self._idle:
                self._busy -= name not in self._streaming
                self._idle.notify_all()

    def _keep(self, place: int, forward: Forward, response: Response) -> None:
        if not forward.recorded:
            self._elsewhere(forward.upstream.host)
            return
        with self._lock:
            self._recorded[place] = Exchange(forward.message.request(forward.upstream.name), response)

    def _elsewhere(self, host: str) -> None:
        what = f"the command also called {host}: it is no --upstream, and was passed on unrecorded"
        self._report(Finding("record-elsewhere", host, what, severity="warning"))

    def _reply(self, reply: Reply, message: Message, client: socket.socket) -> bool:
        """Answer for ourselves; whether the connection can carry another request."""
        if reply.problem:
            mend = "name it with --openapi"
            self._report(Finding("record-unknown-tool", "SCORESHEET_CALL_URL", reply.problem, mend))
        if reply.answer is not None:
            with self._lock:
                self._answer = reply.answer
        head = f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\nContent-Type: application/json\r\n"
        close = "" if message.keep_alive else "Connection: close\r\n"
        client.sendall(f"{head}{close}Content-Length: {len(reply.body)}\r\n\r\n".encode() + reply.body)
        return message.keep_alive

    def _forward(self, forward: Forward, client: socket.socket) -> tuple[Response, bool]:
        """The answer as it is recorded, and whether the client's connection can carry another request."""
        message = forward.message
        receiver = Http1Client(client, message)
        service = self._service if forward.recorded else self._outside
        response, gone = service.ask(message, forward.upstream, receiver)
        if response.fault == "connection_reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        return response, response.fault is None and receiver.framed and message.keep_alive and not gone

    def _report(self, problem: Finding) -> None:
        with self._lock:
            self._problems.setdefault((problem.rule, problem.where), problem)
