"""Asking a live service: one request, its answer told while it comes, and what is recorded of it."""

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Container
from typing import Literal

import httptools

from scoresheet.documents.tool import Response
from scoresheet.errors import Finding
from scoresheet.record.relay import CHUNK, Answer, Message, Receiver
from scoresheet.record.upstream import Upstream

Report = Callable[[Finding], None]


class Service:
    """The way to live services. Any number of threads may ask at once."""

    def __init__(
        self,
        timeout_s: float,
        tls: ssl.SSLContext | None,
        report: Report,
        streaming: Container[str] = (),
        own: Container[Upstream] = (),
    ) -> None:
        """`tls`: whom to trust, by default whom the system does. `streaming`: names of services whose answers may stay
        open and silent. `own`: services that clients reach through us also under their own address.
        """
        self._timeout_s = timeout_s
        self._tls = tls
        self._report = report
        self._streaming = streaming
        self._own = own

    def ask(self, message: Message, upstream: Upstream, receiver: Receiver) -> tuple[Response, bool]:
        """The answer as it is recorded, and whether the receiver went away meanwhile."""
        started = time.monotonic()
        answer = Answer(receiver, message.method)
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
                    if answer.started and upstream.name in self._streaming:
                        server.settimeout(None)
        except TimeoutError:
            fault = "truncated" if answer.started else "timeout"
        except ssl.SSLCertVerificationError as error:
            what = f"the certificate of {upstream.authority} was refused: {error.verify_message}"
            mend = "let SSL_CERT_FILE name the certificate of its authority"
            self._report(Finding("record-tls", upstream.name, what, mend))
            fault = "connection_reset"
        except (OSError, httptools.HttpParserError) as error:
            fault = "truncated" if answer.started else "connection_reset"
            self._report(Finding("record-fault", upstream.name, f"the service failed: {error}", severity="warning"))
        else:
            if not answer.complete:
                fault = "truncated" if answer.started else "connection_reset"
        latency_ms = round((time.monotonic() - started) * 1000, 3)
        if answer.client_gone:
            what = "the command closed its connection before the whole answer had come; the whole one is recorded"
            self._report(Finding("record-client-gone", upstream.name, what, severity="warning"))
        response = answer.response(latency_ms, fault)
        self._note_addresses(response, upstream)
        return response, answer.client_gone

    def _connect(self, upstream: Upstream) -> socket.socket:
        server = socket.create_connection((upstream.host, upstream.port), timeout=self._timeout_s)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not upstream.tls:
            return server
        if self._tls is None:
            self._tls = ssl.create_default_context()
        try:
            return self._tls.wrap_socket(server, server_hostname=upstream.host)
        except BaseException:
            server.close()
            raise

    def _note_addresses(self, response: Response, upstream: Upstream) -> None:
        address = f"//{upstream.authority}"
        if upstream in self._own:
            return  # who follows it comes to us
        if any(address in value for _, value in response.headers) or address.encode() in response.body:
            what = (
                f"answers of {upstream.authority} hold its own address: a client that follows it leaves the recording"
            )
            self._report(Finding("record-absolute-url", upstream.name, what, severity="warning"))
