"""HTTP/2 in front of the same recordings: streams in, whole requests to who answers, whole answers out.

The wire is the library h2's (the extra `https`); what is answered is decided where it is for HTTP/1.1.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from scoresheet.replay.wire import Fields

_PROTOCOL_ERROR, _CANCEL = 1, 8
_WINDOW = 1 << 20


@dataclass(slots=True, eq=False)
class Asked:
    """One stream's request, as far as it came."""

    method: str
    target: str
    authority: str
    headers: tuple[tuple[str, str], ...]
    body: list[bytes] = field(default_factory=list)
    size: int = 0


class Answering(Protocol):
    """Who decides."""

    def opened(self, connection: "Http2") -> bool:
        """False when no more connections are taken."""

    def lost(self, connection: "Http2") -> None:
        """The connection has ended."""

    def room(self, more: int, size: int) -> bool:
        """Counts bytes of bodies under way (negative when they are gone); false when a body is too long."""

    def answer(self, asked: Asked) -> Fields:
        """The answer to a whole request; it is in the journal then."""

    def too_long(self, asked: Asked) -> Fields:
        """The answer to a request whose body is longer than is taken; it is in the journal then."""


class Http2(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, answering: Answering) -> None:
        from h2.config import H2Configuration
        from h2.connection import H2Connection

        self._answering = answering
        self._h2: Any = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self._asked: dict[int, Asked] = {}
        self._unsent: dict[int, tuple[memoryview, Fields]] = {}
        self._paused = self._ended = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not self._answering.opened(self):
            self._ended = True
            self._transport.abort()
            return
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        for asked in self._asked.values():
            self._answering.room(-asked.size, 0)
        self._asked.clear()
        self._unsent.clear()
        self._answering.lost(self)

    def abort(self) -> None:
        self._ended = True
        self._transport.abort()

    def pause_writing(self) -> None:
        self._paused = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._paused = False
        self._pump()
        if not self._paused and not self._ended:
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        from h2 import events
        from h2.exceptions import ProtocolError

        if self._ended:
            return
        try:
            happened = self._h2.receive_data(data)
            for event in happened:
                match event:
                    case events.RequestReceived():
                        self._begin(event.stream_id, event.headers)
                    case events.DataReceived():
                        self._more(event.stream_id, event.data, event.flow_controlled_length)
                    case events.StreamEnded():
                        self._answer(event.stream_id)
                    case events.StreamReset():
                        self._forget(event.stream_id)
                        self._unsent.pop(event.stream_id, None)
                    case events.ConnectionTerminated():
                        self._ended = True
                if self._ended:
                    break
        except ProtocolError:
            self._flush()  # h2 has written why
            self._ended = True
        if self._ended:
            self._transport.close()
            return
        self._pump()

    # -- one stream

    def _begin(self, stream: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        pseudo: dict[bytes, bytes] = {}
        plain: list[tuple[str, str]] = []
        cookies: list[str] = []
        for name, value in headers:
            if name.startswith(b":"):
                pseudo[name] = value
            elif name == b"cookie":  # may come in pieces (RFC 9113 §8.2.3)
                cookies.append(_text(value))
            else:
                plain.append((_text(name), _text(value)))
        if cookies:
            plain.append(("cookie", "; ".join(cookies)))
        authority = pseudo.get(b":authority", b"")
        host = next((value for name, value in plain if name == "host"), "")
        self._asked[stream] = Asked(
            _text(pseudo.get(b":method", b"")),
            _text(pseudo.get(b":path", b"")) or _text(authority),
            _text(authority) or host,
            tuple(plain),
        )
        if ("expect", "100-continue") in plain:
            self._h2.send_headers(stream, [(b":status", b"100")])

    def _more(self, stream: int, data: bytes, counted: int) -> None:
        self._h2.acknowledge_received_data(counted, stream)
        asked = self._asked.get(stream)
        if asked is None:
            return
        asked.size += len(data)
        asked.body.append(data)
        if not self._answering.room(len(data), asked.size):
            self._forget(stream)
            self._send(stream, self._answering.too_long(asked))  # what still comes is read and dropped

    def _forget(self, stream: int) -> Asked | None:
        asked = self._asked.pop(stream, None)
        if asked is not None:
            self._answering.room(-asked.size, 0)
        return asked

    def _answer(self, stream: int) -> None:
        asked = self._forget(stream)
        if asked is None:
            return
        self._send(stream, self._answering.answer(asked))

    def _send(self, stream: int, fields: Fields) -> None:
        match fields.then:
            case "reset":
                self.abort()
            case "close" if fields.hold_s:
                asyncio.get_running_loop().call_later(fields.hold_s, self._cancel, stream)
            case _:
                head = [(b":status", b"%03d" % fields.status), *fields.headers]
                whole = not fields.body and fields.then == "keep"
                self._h2.send_headers(stream, head, end_stream=whole)
                if not whole:
                    self._unsent[stream] = memoryview(fields.body), fields

    def _cancel(self, stream: int) -> None:
        from h2.exceptions import ProtocolError

        if not self._ended:
            try:
                self._h2.reset_stream(stream, _CANCEL)
            except ProtocolError:
                return  # the client was quicker
            self._flush()

    def _pump(self) -> None:
        """Send what the client's windows let through."""
        for stream in tuple(self._unsent):
            body, fields = self._unsent[stream]
            while body and not self._paused and not self._ended:
                size = min(len(body), self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
                if size <= 0:
                    break
                last = size == len(body) and fields.then == "keep"
                self._h2.send_data(stream, body[:size].tobytes(), end_stream=last)
                body = body[size:]
                if len(body) % (1 << 18) < size:
                    self._flush()
            if body:
                self._unsent[stream] = body, fields
                continue
            del self._unsent[stream]
            if fields.then != "keep":  # recorded as cut off
                self._h2.reset_stream(stream, _PROTOCOL_ERROR)
        self._flush()

    def _flush(self) -> None:
        if not self._ended and (data := self._h2.data_to_send()):
            self._transport.write(data)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
