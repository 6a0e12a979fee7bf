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
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Literal, Self

import httptools

from scoresheet.documents.tool import Response
from scoresheet.errors import Finding
from scoresheet.record.exchange import Exchange
from scoresheet.record.relay import CHUNK, Answer, Message, NotHttp, RequestReader
from scoresheet.record.upstream import Upstream

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S = 30.0
_RESET = struct.pack("ii", 1, 0)


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
            reader = RequestReader(client)
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
        except NotHttp as error:
            self._report("record-not-http", upstream.name, f"the command sent what can't be recorded: {error}")
            with contextlib.suppress(OSError):
                client.sendall(b"HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        except OSError:
            log.debug("a client of %s went away", upstream.name)
        finally:
            with self._lock:
                self._clients.discard(client)
            client.close()

    def _forward(self, message: "Message", upstream: Upstream, client: socket.socket) -> tuple[Response, bool]:
        """The answer as it is recorded, and whether the client's connection can carry another request."""
        started = time.monotonic()
        answer = Answer(client, message)
        fault: Literal["connection_reset", "timeout", "truncated"] | None = None
        try:
            with self._connect(upstream) as server:
                started = time.monotonic()  # the service's own time: a client that keeps its connection sees no more
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    server.sendall(message.wire(upstream))  # a service may answer before it has read everything
                while not answer.complete:
                    data = server.recv(CHUNK)
                    if not data:
                        answer.end()
                        break
                    answer.feed(data)
        except TimeoutError:
            fault = "truncated" if answer.started else "timeout"
        except ssl.SSLCertVerificationError as error:
            what = f"the certificate of {upstream.authority} was refused: {error.verify_message}"
            self._report("record-tls", upstream.name, what, "let SSL_CERT_FILE name the certificate of its authority")
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

    def _report(
        self, rule: str, where: str, what: str, mend: str = "", severity: Literal["error", "warning"] = "error"
    ) -> None:
        with self._lock:
            self._problems.setdefault((rule, where), Finding(rule, where, what, mend, severity))
