"""HTTP/1.1 at a door: httptools reads what a client sends, answers go out as recorded, in order."""

import asyncio
import contextlib
import functools
import socket
import struct
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote_to_bytes

import httptools

from scoresheet.documents.tool import CALL, Request
from scoresheet.replay import journal as journals
from scoresheet.replay import mcp, wire
from scoresheet.replay.door import (
    EPISODE_BODIES,
    MAX_BODY,
    MEMO_REQUEST,
    Asked,
    Door,
    Elsewhere,
    Fault,
    PublicDoor,
    Told,
    missed,
    tail_of,
    tail_of_fault,
)
from scoresheet.replay.session import Answer, Capped, Found, Hit, Looked, Miss, capped

SUBMIT_ANSWER = "submit_answer"
"""The tool by which an agent may answer, at the doors of tools, unless the task has a tool of that name."""
MAX_HEAD = 64 * 1024
MAX_ANSWER = 1 << 20
_WRITE_AT_ONCE = 256 * 1024
_LINGER_S = 2.0
"""How long a closing connection waits for its client to close too."""


@dataclass(frozen=True, slots=True, eq=False)
class _Submitted:
    """An answer, at the call door."""

    body: bytes
    close: bool
    envelope: mcp.Envelope | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Said:
    """What MCP answers by itself: no call."""

    request: Request
    reply: mcp.Reply | mcp.Listen
    head: bool
    close: bool


class Connection(asyncio.Protocol):
    """One client's connection: httptools parses, this decides. Runs on the server's loop alone."""

    __slots__ = (
        "_authority",
        "_begun",
        "_body",
        "_declined",
        "_door",
        "_episode",
        "_expects",
        "_fault",
        "_head_bytes",
        "_headers",
        "_held",
        "_idle",
        "_in_head",
        "_memo",
        "_out",
        "_out_bytes",
        "_over",
        "_parser",
        "_paused",
        "_size",
        "_todo",
        "_transport",
        "_tunnel",
        "_url",
        "_waiting",
        "_whole",
    )

    def __init__(self, door: Door, authority: str = "") -> None:
        """`authority`: the host that is meant where a request names none."""
        self._authority = authority
        self._tunnel: str | None = None
        self._door, self._episode, self._memo = door, door.episode, door.memo.raw
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._todo: deque[Asked | Fault | _Submitted | _Said] = deque()
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._idle = True
        self._over = False
        """What still comes is dropped: the connection is closing, or held by a recorded timeout."""
        self._held = False
        self._declined = b""
        """Head of a request that offered an upgrade: it is read again as one that did not."""
        self._paused = False
        self._waiting = False
        """An answer is asked for elsewhere: nothing is read or answered meanwhile."""
        self._fault: Fault | None = None
        self._begun = 0
        self._whole = False
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = self._head_bytes = 0
        self._in_head = False
        self._expects = False

    # -- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not self._episode.opened(self):
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._forget_body()
        self._todo.clear()
        self._episode.lost(self)

    def abort(self) -> None:
        self._over = True
        self._transport.abort()

    def pause_writing(self) -> None:
        self._paused = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._paused = False
        self._go_on()

    def _go_on(self) -> None:
        self._pump()
        self._let_continue()
        if not self._paused and not self._waiting and not self._over:
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        return self._held  # a client that only stops sending still gets the silence that was recorded

    def data_received(self, data: bytes) -> None:
        if self._idle and not self._over and not self._waiting:
            asked = self._memo.get(data)
            if asked is not None and not self._todo and not self._episode.journal.full:
                answer = self._episode.session.take(asked.looked)
                ready = asked.ready.get(answer.recorded) if isinstance(answer, Hit) else None
                if ready is None:
                    self._reply(asked, answer)
                    self._write()
                else:
                    self._transport.write(ready[0])
                    self._episode.log(ready[1], answer.repeated)  # type: ignore[union-attr]  # only hits are ready
                return
        if not self._over:
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        self._whole = self._idle and len(data) < MEMO_REQUEST and not self._todo
        self._begun = 0
        rest = data
        while rest and not self._over:
            try:
                self._parser.feed_data(rest)
                rest = b""
            except httptools.HttpParserUpgrade as upgrade:  # what follows is HTTP again: no upgrade is ever accepted
                if self._tunnel is not None:
                    self._open_tunnel(self._tunnel, rest[upgrade.args[0] :])
                    return
                rest = self._declined + rest[upgrade.args[0] :]
                self._declined = b""
                self._parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError as error:
                method, target = self._named()
                self._todo.append(self._fault or Fault(400, str(error) or "not HTTP", method, target))
                self._forget_body()
                rest = b""
                break
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD:
                self._todo.append(Fault(431, "the request's headers are longer than 64 KiB", *self._named()))
        if self._whole and self._idle and self._begun == 1 and len(self._todo) == 1:
            asked = self._todo[0]
            if isinstance(asked, Asked) and isinstance(asked.looked, Found) and not (asked.close or asked.envelope):
                self._door.memo.remember(bytes(data), asked)
        self._pump()
        self._let_continue()

    def _let_continue(self) -> None:
        if self._expects and not self._over and not self._todo and not self._waiting:
            self._expects = False
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # -- the parser's side

    def on_message_begin(self) -> None:
        self._begun += 1
        self._idle = False
        self._in_head = True
        self._url = b""
        self._headers = []
        self._body = []
        self._size = self._head_bytes = 0
        self._expects = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes | None) -> None:
        if self._in_head:  # else a trailer, which nothing here reads
            self._headers.append((name, value or b""))

    def on_headers_complete(self) -> None:
        self._in_head = False
        length = None
        size = len(self._url)
        chunked = False
        for name, value in self._headers:
            size += len(name) + len(value) + 4
            if len(name) in (6, 14, 17):
                match name.lower():
                    case b"content-length":
                        length = int(value) if value.isdigit() else -1
                    case b"transfer-encoding":
                        if value.strip().lower() != b"chunked":
                            self._refuse(501, "only the chunked transfer encoding is understood")
                        chunked = True
                    case b"expect":
                        self._expects = value.strip().lower() == b"100-continue"
        if self._parser.get_http_version() not in ("1.0", "1.1"):
            self._refuse(400, "only HTTP 1.1 and 1.0 are spoken here")
        if size > MAX_HEAD:
            self._refuse(431, "the request's headers are longer than 64 KiB")
        if chunked and (length is not None or self._parser.get_http_version() == "1.0"):
            self._refuse(400, "Transfer-Encoding stands beside Content-Length, or in HTTP/1.0")
        if length is not None and length > MAX_BODY:
            self._refuse(413, "the request's body is longer than 64 MiB")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        self._episode.body_bytes += len(body)
        self._body.append(body)
        if self._size > MAX_BODY:
            self._refuse(413, "the request's body is longer than 64 MiB")
        if self._episode.body_bytes > EPISODE_BODIES:
            self._refuse(413, "the episode has more than 256 MiB of request bodies under way")

    def on_message_complete(self) -> None:
        self._idle = True
        parser = self._parser
        method = parser.get_method().decode("ascii")
        target = _origin_form(self._url)
        request = Request(
            self._door.upstream,
            method,
            target,
            _decoded(tuple(self._headers)),
            b"".join(self._body),
        )
        self._forget_body()
        old = parser.get_http_version() == "1.0"
        close = old or not parser.should_keep_alive()
        upgrade = parser.should_upgrade()
        if upgrade and method != "CONNECT" and "websocket" not in request.header("upgrade").lower():
            self._declined = self._without_upgrade()
        elif method == "CONNECT" and self._known(request.target):
            self._tunnel = request.target
        elif upgrade:
            looked: Looked = self._episode.session.tape.refuse(request)
            self._todo.append(Asked(request, looked, False, old, close or method == "CONNECT"))
        elif self._door.via == "call":
            self._todo.append(self._call(request, old, close))
        elif self._door.surface is not None:
            self._todo.append(self._asked_by_mcp(self._door.surface, request, old, close))
        elif self._door.public is not None:
            self._ask_public(self._door.public, request, old, close)
        else:
            self._todo.append(Asked(request, self._door.look(request, self._alone()), method == "HEAD", old, close))

    def _known(self, authority: str) -> bool:
        public = self._door.public
        return public is not None and public.tunnel is not None and public.hosts.knows(authority)

    def _ask_public(self, public: PublicDoor, request: Request, old: bool, close: bool) -> None:
        scheme, authority = _absolute(self._url)
        if not authority:
            scheme, authority = "https" if public.secure else "http", request.header("host")
        if not authority:
            authority, self._whole = self._authority, False  # the bytes alone don't say whom they mean
        asked, looked = self._door.routed(request, authority, scheme, self._alone())
        self._todo.append(Asked(asked, looked, request.method == "HEAD", old, close))

    def _open_tunnel(self, authority: str, rest: bytes) -> None:
        """Become what the client asked its proxy for: a connection to that host."""
        assert self._door.public is not None
        assert self._door.public.tunnel is not None
        self._pump()
        self.connection_lost(None)  # for this protocol
        if self._todo or self._transport.is_closing():
            self._transport.abort()
            return
        self._transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        gate = self._door.public.tunnel(authority)
        self._transport.set_protocol(gate)
        gate.connection_made(self._transport)
        if rest:
            gate.data_received(rest)

    def _alone(self) -> bool:
        """True while this may be the only request in the bytes at hand, which are then remembered as they are."""
        return self._whole and self._begun == 1

    def _without_upgrade(self) -> bytes:
        """The head again, without the offer of another protocol, which is declined: httptools skips the body else."""
        lines = [b"%b %b HTTP/1.1\r\n" % (self._parser.get_method(), self._url)]
        lines += [
            b"%b: %b\r\n" % (name, value)
            for name, value in self._headers
            if name.lower() not in (b"upgrade", b"connection", b"http2-settings")
        ]
        if not self._parser.should_keep_alive():
            lines.append(b"Connection: close\r\n")
        return b"".join((*lines, b"\r\n"))

    def _call(self, request: Request, old: bool, close: bool) -> Asked | Fault | _Submitted:
        path = request.target.partition("?")[0]
        if request.method != "POST":
            return Fault(405, "tools are called by POST /<tool>", request.method, request.target)
        name = unquote_to_bytes(path.removeprefix("/")).decode("utf-8", "replace")
        if name == SUBMIT_ANSWER and name not in self._episode.session.tape.offered:
            if len(request.body) > MAX_ANSWER:
                return Fault(413, "the answer is longer than 1 MiB", CALL, name)
            return _Submitted(request.body, close)
        call = Request("", CALL, name, request.headers, request.body)
        return Asked(call, self._door.look(call, self._alone()), False, old, close)

    def _asked_by_mcp(
        self, surface: mcp.Surface, request: Request, old: bool, close: bool
    ) -> Asked | _Submitted | _Said:
        read = surface.read(request)
        if not isinstance(read, mcp.Ask):
            return _Said(request, read, request.method == "HEAD", close)
        if read.name == SUBMIT_ANSWER and read.name not in self._episode.session.tape.offered:
            if len(read.arguments) > MAX_ANSWER:
                too_long = read.envelope.failed(-32602, "the answer is longer than 1 MiB", fault="answer too long")
                return _Said(request, too_long, False, close)
            return _Submitted(read.arguments, close, read.envelope)
        call = Request("", CALL, read.name, (), read.arguments)
        return Asked(call, self._door.look(call, whole=False), False, old, close, read.envelope)

    def _refuse(self, status: int, what: str) -> None:
        self._fault = Fault(status, what, *self._named())
        raise ValueError(what)  # httptools stops, and `_feed` finds the fault

    def _named(self) -> tuple[str, str]:
        if self._idle:
            return "", ""
        try:
            method = self._parser.get_method().decode("ascii", "replace") if self._url else ""
        except (AttributeError, ValueError):
            method = ""
        return method, _text(self._url[:2048])

    def _forget_body(self) -> None:
        self._episode.body_bytes -= sum(map(len, self._body))
        self._body = []

    # -- answers

    def _pump(self) -> None:
        """Answer what has been asked, in order, while the client reads."""
        while self._todo and not self._paused and not self._over and not self._waiting:
            match self._todo.popleft():
                case Asked() as asked:
                    full = self._episode.journal.full
                    answer = capped(asked.looked) if full else self._episode.session.take(asked.looked)
                    elsewhere = self._episode.elsewhere
                    if elsewhere is not None and isinstance(answer, Miss) and answer.kind == "no_match":
                        self._ask_elsewhere(elsewhere, asked, answer)
                    else:
                        self._reply(asked, answer)
                case _Submitted() as given:
                    self._submitted(given)
                case _Said() as said:
                    self._say(said)
                case Fault() as fault:
                    self._malformed(fault)
            if self._out_bytes > _WRITE_AT_ONCE:
                self._write()
        self._write()

    def _ask_elsewhere(self, elsewhere: Elsewhere, asked: Asked, miss: Miss) -> None:
        """Wait, with this connection alone, for what `elsewhere` says of a call that was not recorded."""
        loop = asyncio.get_running_loop()
        self._waiting = True
        self._transport.pause_reading()

        def ask() -> None:
            found: Hit | None = None
            try:
                found = elsewhere(miss)
            finally:
                with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
                    loop.call_soon_threadsafe(told, found)

        def told(found: Hit | None) -> None:
            self._waiting = False
            if not self._over:
                self._reply(asked, found or miss)
                self._go_on()

        threading.Thread(target=ask, name="scoresheet-elsewhere", daemon=True).start()

    def _say(self, said: _Said) -> None:
        """What MCP answers by itself goes out unjournaled: it tells nothing of a recording, and is no tool call."""
        match said.reply:
            case mcp.Listen(first):
                self._out.append(wire.of_stream(first))
                self._write()
                self._over = self._held = True  # until the client goes, or the episode ends
            case mcp.Reply() as reply if reply.fault:
                fault = Fault(reply.status, reply.fault, said.request.method, said.request.target)
                self._send(_of_mcp(reply, said.head, said.close), tail_of_fault(self._door, fault), False, refused=True)
            case mcp.Reply() as reply:
                sent = _of_mcp(reply, said.head, said.close)
                self._out.append(sent.data)
                self._out_bytes += len(sent.data)
                if sent.then != "keep":
                    self._close_after()

    def _reply_by_mcp(self, asked: Asked, envelope: mcp.Envelope, answer: Answer) -> None:
        nearest, refused = None, True
        match answer:
            case Hit(recorded):
                refused = False
                answers = self._door.memo.answers
                told = answers.get(recorded)
                if told is None:
                    told = Told(*mcp.answer_of(recorded.response()), asked.looked, self._tail(asked, answer, 200))
                    if not answer.accepted and self._door.memo.room(2 * len(told.tail) + len(told.text) + 300):
                        answers[recorded] = told
                reply = envelope.result(told.text) if told.result else envelope.error(told.text)
                if told.looked is asked.looked and not answer.accepted:
                    self._send(_of_mcp(reply, False, asked.close), told.tail, answer.repeated)
                    return
            case Miss():
                known = answer.nearest()
                reply = envelope.error(mcp.miss(answer, missed(answer, known)))
                nearest = known and known.model_dump(mode="json")
            case Capped():
                reply = envelope.error(mcp.OVER_CAP)
        repeated = False if isinstance(answer, Capped) else answer.repeated
        tail = self._tail(asked, answer, reply.status, nearest)
        self._send(_of_mcp(reply, False, asked.close), tail, repeated, refused)

    def _reply(self, asked: Asked, answer: Answer) -> None:
        if asked.envelope is not None:
            self._reply_by_mcp(asked, asked.envelope, answer)
            return
        match answer:
            case Hit():
                ready = asked.ready.get(answer.recorded)
                if ready is None:
                    sent = wire.of(answer.recorded.response(), head=asked.head, old=asked.old, close=asked.close)
                    ready = (sent.data, self._tail(asked, answer, sent.status))
                    if sent.then != "keep":
                        self._send(sent, ready[1], answer.repeated)
                        return
                    if asked.memo is not None and asked.memo.room(len(ready[0]) + len(ready[1]) + 150):
                        asked.ready[answer.recorded] = ready
                self._out.append(ready[0])
                self._out_bytes += len(ready[0])
                self._episode.log(ready[1], answer.repeated)
            case Miss():
                nearest = answer.nearest()
                value = missed(answer, nearest)
                tail = self._tail(asked, answer, 403, nearest and nearest.model_dump(mode="json"))
                sent = wire.of_json(403, value, head=asked.head, close=asked.close)
                self._send(sent, tail, answer.repeated, refused=True)
            case Capped():
                sent = wire.of_json(403, {"error": "tool_cap"}, head=asked.head, close=asked.close)
                self._send(sent, self._tail(asked, answer, 403), False, refused=True)

    def _send(self, sent: wire.Wire, tail: bytes, repeat: bool, refused: bool = False) -> None:
        if sent.data:
            self._out.append(sent.data)
            self._out_bytes += len(sent.data)
        self._episode.log(tail, repeat, refused)  # before the client can act on the answer: the order is that of causes
        if sent.then != "keep":
            self._over = True
            self._write()
        match sent.then:
            case "keep":
                pass
            case "reset":
                raw = self._transport.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._transport.abort()
            case "close" if sent.hold_s:
                self._held = True
                asyncio.get_running_loop().call_later(sent.hold_s, self._transport.close)
            case "close":
                self._close_after()

    def _close_after(self) -> None:
        """Close when the client has read what it was sent."""
        self._over = True
        self._write()
        # closing with bytes unread would be a reset, which can take the answer with it (RFC 9112 §9.6)
        self._transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGER_S, self._transport.abort)

    def _submitted(self, given: _Submitted) -> None:
        self._episode.answer = body = given.body
        members = {
            "via": self._door.via,
            "upstream": "",
            "method": CALL,
            "path": SUBMIT_ANSWER,
            "fingerprint": "",
            "outcome": "answer",
            "status": 200,
            "body": journals.body_text(body),
        }
        if given.envelope is None:
            sent = wire.of_json(200, {"accepted": True}, close=given.close)
        else:
            sent = _of_mcp(given.envelope.result(mcp.ACCEPTED), False, given.close)
        self._send(sent, journals.tail(members), False)

    def _malformed(self, fault: Fault) -> None:
        sent = wire.of_json(fault.status, {"error": "malformed_request", "what": fault.what}, close=True)
        self._send(sent, tail_of_fault(self._door, fault), False, refused=True)

    def _tail(self, asked: Asked, answer: Answer, status: int, nearest: Any = None) -> bytes:
        return tail_of(self._door.via, asked.request, answer, status, nearest)

    def _write(self) -> None:
        if self._out:
            out = self._out
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))
            out.clear()
            self._out_bytes = 0


def _of_mcp(reply: mcp.Reply, head: bool, close: bool) -> wire.Wire:
    return wire.of_text(reply.status, reply.media, reply.body, allow=reply.allow, head=head, close=close)


def _absolute(url: bytes) -> tuple[str, str]:
    """Scheme and authority of a target that has them, else empty."""
    scheme, found, rest = url.partition(b"://")
    if not found or scheme.lower() not in (b"http", b"https"):
        return "", ""
    end = next((place for place, byte in enumerate(rest) if byte in b"/?"), len(rest))
    return _text(scheme.lower()), _text(rest[:end].rpartition(b"@")[2])


def _origin_form(url: bytes) -> str:
    """Path and query of a target; of an absolute one, which a client sends when it takes us for a proxy, its own."""
    lower = url[:8].lower()
    if lower.startswith((b"http://", b"https://")):
        rest = url[url.index(b"://") + 3 :]
        for place, byte in enumerate(rest):
            if byte in b"/?":
                return _text(rest[place:] if byte == 0x2F else b"/" + rest[place:])
        return "/"
    return _text(url)


@functools.lru_cache(maxsize=256)  # a client's requests differ in their length, if at all
def _decoded(headers: tuple[tuple[bytes, bytes], ...]) -> tuple[tuple[str, str], ...]:
    return tuple([(_text(name), _text(value)) for name, value in headers])


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
