"""The one door, over HTTP/1.1: sockets that it is given, a session behind them, bytes as recorded.

`ReplayServer` owns one thread with an event loop and serves any number of episodes on it. It listens on sockets made
elsewhere (inside a sandbox's network namespace) and holds no code that could open a connection of its own.

A request costs the same whatever the number of recordings. Bytes that were asked before are known again as they
arrive (`_Memo`): what they mean depends on nothing but themselves, the door and the tape, and the episode's counters
are moved after that, so sequences, caps, `vary` and `ignore` hold for them as for any other request.
"""

import asyncio
import contextlib
import functools
import logging
import socket
import ssl
import struct
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self, cast
from urllib.parse import unquote_to_bytes

import httptools

from scoresheet.authority import Authority
from scoresheet.canonical import JsonValue
from scoresheet.documents.call_record import CallRecord, Nearest
from scoresheet.documents.tool import CALL, Request
from scoresheet.replay import http2, mcp, tls, wire
from scoresheet.replay import journal as journals
from scoresheet.replay.dns import Datagrams, NameLog, Responder, Stream
from scoresheet.replay.hosts import Hosts
from scoresheet.replay.journal import CallJournal
from scoresheet.replay.session import Answer, Capped, Found, Hit, Looked, Miss, Recorded, Session, Tape, capped

CALL_DOOR = "call"
"""The door that serves tools by name: `POST /<tool>`."""
MCP_DOOR = "mcp"
"""The door that serves the same tools over MCP (`mcp.PATH`)."""
WEB_DOORS = "web-"
"""Doors of public hosts: `web-PORT`, HTTPS and HTTP alike."""
PROXY_DOOR = "proxy"
"""A proxy's door to the same hosts."""
DNS_DOORS = ("dns", "dns-tcp")
SUBMIT_ANSWER = "submit_answer"
"""The tool by which an agent may answer, at the doors of tools, unless the task has a tool of that name."""

MAX_HEAD = 64 * 1024
MAX_BODY = 64 << 20
MAX_ANSWER = 1 << 20
_EPISODE_BODIES = 256 << 20
"""Request bytes that one episode may have under way at once, over all its connections."""
_CONNECTIONS = 1024
_MEMO_BYTES = 256 << 20
_MEMO_REQUEST = 16 * 1024
"""Longer requests are not remembered."""
_WRITE_AT_ONCE = 256 * 1024
_QUIET_TURNS = 5
_DRAIN_S = 10.0
"""For `serve`, whose clients may go on asking: a run closes when nobody lives who could."""
_NO_WEBSOCKETS = "websockets are not replayed"
_LINGER_S = 2.0
"""How long a closing connection waits for its client to close too."""

_log = logging.getLogger(__name__)


class ReplayServer:
    """A context manager: one event-loop thread, any number of episodes."""

    def __init__(self, http2: bool = True) -> None:
        """`http2`: offer it at the doors of public hosts."""
        self._http2 = http2
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._serve, name="scoresheet-replay", daemon=True)
        self._episodes: set[_Episode] = set()
        self._memory = _Memory()
        self._authority: Authority | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @property
    def authority(self) -> Authority:
        """Who signs the certificates of public hosts: one for all episodes. Raises `Usage` without the extra."""
        with self._lock:
            if self._authority is None:
                self._authority = Authority(self._http2)
            return self._authority

    @contextlib.contextmanager
    def episode(
        self,
        sockets: Mapping[str, socket.socket],
        upstream_of: Mapping[str, str],
        session: Session,
        journal: CallJournal,
        on_call: Callable[[CallRecord], None] | None = None,
        on_refusal: Callable[[CallRecord], None] | None = None,
        public: "Public | None" = None,
        elsewhere: "Elsewhere | None" = None,
    ) -> Iterator["EpisodeView"]:
        """Serve one episode while the block runs; from any thread.

        `sockets`: door name → listening TCP socket, which stays its owner's. `upstream_of`: door name → the upstream
        that it stands for; `CALL_DOOR` and `MCP_DOOR` need none. `on_call` hears every request, `on_refusal` only
        misses, calls over the cap and malformed requests: listening to all of them costs speed. Both are called on the
        server's thread when the answer is on its way, and must be quick. `elsewhere` is asked, on a thread of its own,
        for an answer to a call that was not recorded, while its connection waits; HTTP/2 never asks it.

        When the block ends, every connection is closed and the journal is flushed, synced and closed. Raises `OSError`
        when the journal could not be written.
        """
        episode = _Episode(session, journal, on_call, on_refusal, elsewhere)
        copies = [listening.dup() for listening in sockets.values()]
        try:
            self._wait(self._open(episode, dict(zip(sockets, copies, strict=True)), upstream_of, public))
            yield EpisodeView(episode)
        finally:
            self._wait(self._close(episode))
            journal.close()

    def _wait(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(
        self,
        episode: "_Episode",
        sockets: Mapping[str, socket.socket],
        upstream_of: Mapping[str, str],
        public: "Public | None",
    ) -> None:
        self._episodes.add(episode)
        for name, listening in sockets.items():
            if public is not None and (name in (PROXY_DOOR, *DNS_DOORS) or name.startswith(WEB_DOORS)):
                await self._open_public(episode, name, listening, public)
                continue
            via = {CALL_DOOR: "call", MCP_DOOR: "mcp"}.get(name, "http")
            upstream = upstream_of.get(name, "") if via == "http" else ""
            door = _Door(episode, via, upstream, self._memory.of(episode.session.tape, via, upstream))
            if via == "mcp":
                door.surface = self._memory.surface_of(episode.session.tape)
            listening.setblocking(False)
            server = await self._loop.create_server(functools.partial(_Connection, door), sock=listening, backlog=1024)
            episode.servers.append(server)

    async def _open_public(self, episode: "_Episode", name: str, listening: socket.socket, public: "Public") -> None:
        listening.setblocking(False)
        if name in DNS_DOORS:
            responder = Responder(public.hosts.names, public.names)
            if listening.type == socket.SOCK_DGRAM:
                transport, _ = await self._loop.create_datagram_endpoint(lambda: Datagrams(responder), sock=listening)
                episode.datagrams.append(transport)
                return
            factory: Callable[[], asyncio.Protocol] = lambda: Stream(responder, episode.opened, episode.lost)  # noqa: E731
        else:
            doors = {}
            for secure in (False, True):
                memo = self._memory.of(episode.session.tape, "http", f"\0{name} {secure}")
                doors[secure] = _Door(episode, "http", "", memo)
                doors[secure].public = _PublicDoor(public.hosts, secure)
            context = public.authority.server
            gate = functools.partial(_gate, context, doors, public.names)
            if name == PROXY_DOOR:
                memo = self._memory.of(episode.session.tape, "http", f"\0{name}")
                door = _Door(episode, "http", "", memo)
                door.public = _PublicDoor(public.hosts, False, gate)
                factory = functools.partial(_Connection, door)
            else:
                factory = functools.partial(gate, "")
        episode.servers.append(await self._loop.create_server(factory, sock=listening, backlog=1024))

    async def _close(self, episode: "_Episode") -> None:
        """Answer and journal what was sent before the end, then close.

        An agent that fires a call and dies has made it: what it sent lies in our sockets already, and each turn of the
        loop takes what is there. A few turns in which nothing happens are the end of it.
        """
        quiet, seen, end = 0, (-1, -1, -1), self._loop.time() + _DRAIN_S
        while quiet < _QUIET_TURNS and self._loop.time() < end:
            await asyncio.sleep(0)
            now = (episode.journal.seq, len(episode.connections), episode.body_bytes)
            quiet, seen = (quiet + 1 if now == seen else 0), now
        episode.over = True
        for server in episode.servers:
            server.close()
        for datagrams in episode.datagrams:
            datagrams.close()
        for connection in tuple(episode.connections):
            connection.abort()
        await asyncio.sleep(0)  # the loop tells the connections that they are lost
        self._episodes.discard(episode)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._flush()
        try:
            self._loop.run_forever()
        finally:
            for episode in tuple(self._episodes):
                self._loop.run_until_complete(self._close(episode))
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

    def _flush(self) -> None:
        for episode in self._episodes:
            episode.journal.flush()
        self._loop.call_later(journals.FLUSH_S, self._flush)


Elsewhere = Callable[[Miss], Hit | None]
"""Another answer to a call that was not recorded, `None` when there is none. A run has no such thing."""


class EpisodeView:
    """What the owner of an episode may ask while it is served."""

    def __init__(self, episode: "_Episode") -> None:
        self._episode = episode

    @property
    def answer(self) -> bytes | None:
        """Arguments of the last `submit_answer`; `None` when there was none."""
        return self._episode.answer


@dataclass(frozen=True, slots=True, eq=False)
class Public:
    """What an episode needs to be asked by the public names of its hosts."""

    hosts: Hosts
    authority: Authority
    names: NameLog
    """Filled with the names that were asked for."""


class _Abortable(Protocol):
    def abort(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Episode:
    session: Session
    journal: CallJournal
    on_call: Callable[[CallRecord], None] | None
    on_refusal: Callable[[CallRecord], None] | None
    elsewhere: Elsewhere | None = None
    servers: list[asyncio.Server] = field(default_factory=list)
    datagrams: list[asyncio.DatagramTransport] = field(default_factory=list)
    connections: set[_Abortable] = field(default_factory=set)
    body_bytes: int = 0
    over: bool = False
    answer: bytes | None = None

    def opened(self, connection: _Abortable) -> bool:
        """Whether one more connection is taken; it is counted then."""
        if self.over or len(self.connections) >= _CONNECTIONS:
            return False
        self.connections.add(connection)
        return True

    def lost(self, connection: _Abortable) -> None:
        self.connections.discard(connection)

    def log(self, tail: bytes, repeat: bool, refused: bool = False) -> None:
        line = self.journal.add(tail, repeat)
        if self.on_call is not None or (refused and self.on_refusal is not None):
            record = journals.read_back(line)
            if self.on_call is not None:
                self.on_call(record)
            if refused and self.on_refusal is not None:
                self.on_refusal(record)


@dataclass(slots=True, eq=False)
class _Asked:
    """One whole request, as it was parsed. Equal bytes at one door give an equal one."""

    request: Request
    looked: Looked
    head: bool
    old: bool
    close: bool
    envelope: mcp.Envelope | None = None
    """How MCP wraps the answer."""
    memo: "_Memo | None" = None
    """Where it is remembered."""
    ready: dict[Recorded, tuple[bytes, bytes]] = field(default_factory=dict)
    """Recording → bytes to send, tail of the journal's line; only where the connection goes on afterwards."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fault:
    """What came was no request that can be read, or not one that is taken."""

    status: int
    what: str
    method: str = ""
    target: str = ""


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


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """What MCP answers with a recording."""

    result: bool
    """Else it is an error."""
    text: bytes
    """Without its envelope."""
    looked: Looked
    tail: bytes
    """Of the journal's line, when that is what was found: another request may have the same recording."""


@dataclass(slots=True, eq=False)
class _Memory:
    """How much of requests seen before is kept, over all tapes of a server."""

    memos: weakref.WeakKeyDictionary[Tape, dict[tuple[str, str], "_Memo"]] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    surfaces: weakref.WeakKeyDictionary[Tape, mcp.Surface] = field(default_factory=weakref.WeakKeyDictionary)
    used: int = 0

    def surface_of(self, tape: Tape) -> mcp.Surface:
        found = self.surfaces.get(tape)
        if found is None:
            found = self.surfaces[tape] = mcp.Surface(tape)
        return found

    def of(self, tape: Tape, via: str, upstream: str) -> "_Memo":
        return self.memos.setdefault(tape, {}).setdefault((via, upstream), _Memo(self))

    def take(self, size: int) -> bool:
        """True when `size` more bytes may be kept; forgets tapes that are gone."""
        if self.used + size > _MEMO_BYTES:
            self.used = sum(memo.used for doors in self.memos.values() for memo in doors.values())
            if self.used + size > _MEMO_BYTES:
                return False
        self.used += size
        return True


@dataclass(slots=True, eq=False)
class _Memo:
    """Requests of one tape at one door that were seen before, by their raw bytes and by what of them can matter.

    Only hits are kept: their number is bounded by the recordings and their spellings, and `_Memory` bounds the bytes.
    """

    memory: _Memory
    raw: dict[bytes, _Asked] = field(default_factory=dict)
    known: dict[Any, Looked] = field(default_factory=dict)
    answers: dict[Recorded, "_Told"] = field(default_factory=dict)
    """Recording → what MCP answers with it."""
    used: int = 0
    full: bool = False

    def room(self, size: int) -> bool:
        if self.full:
            return False
        self.full = not self.memory.take(size)
        self.used += 0 if self.full else size
        return not self.full

    def remember(self, data: bytes, asked: _Asked) -> None:
        if self.room(2 * len(data) + 700):
            was = asked.request
            asked.request = Request(was.upstream, was.method, was.target, (), was.body)  # no line shows the headers
            asked.memo = self
            self.raw[data] = asked


@dataclass(frozen=True, slots=True, eq=False)
class _PublicDoor:
    """What is different where hosts are called by their public names."""

    hosts: Hosts
    secure: bool
    tunnel: Callable[[str], tls.Gate] | None = None
    """What takes over a connection to a host, at a proxy's door."""


class _Door:
    """Where a connection of an episode comes in."""

    __slots__ = ("episode", "memo", "public", "relevant", "surface", "upstream", "via")

    def __init__(self, episode: _Episode, via: str, upstream: str, memo: _Memo) -> None:
        self.episode, self.via, self.upstream, self.memo = episode, via, upstream, memo
        self.surface: mcp.Surface | None = None
        self.public: _PublicDoor | None = None
        tape = episode.session.tape
        self.relevant = {"content-type", "content-encoding"} | tape.vary

    def look(self, request: Request, whole: bool) -> Looked:
        """The tape's knowledge of a request; remembered when `whole` is false: its raw bytes will not be."""
        tape = self.episode.session.tape
        find = tape.look if self.via == "http" else lambda call: tape.look_call(call.target, call.body)
        if whole or len(request.body) > _MEMO_REQUEST:
            return find(request)
        relevant = self.relevant
        headers = tuple([pair for pair in request.headers if pair[0].lower() in relevant])
        key = (request.upstream, request.method, request.target, request.body, headers)
        looked = self.memo.known.get(key)
        if looked is None:
            looked = find(request)
            if isinstance(looked, Found) and self.memo.room(2 * len(request.body) + 800):
                self.memo.known[key] = looked
        return looked

    def routed(self, request: Request, authority: str, scheme: str, whole: bool) -> tuple[Request, Looked]:
        """A request to a public host, as the recordings know it, and their knowledge of it."""
        public = self.public
        assert public is not None
        secure = scheme == "https"
        first: tuple[Request, Looked] | None = None
        for one in public.hosts.find(authority, secure, request.target):
            asked = Request(one.upstream, request.method, one.target, request.headers, request.body)
            looked = self.look(asked, whole)
            if isinstance(looked, Found):
                return asked, looked
            first = first or (asked, looked)
        if first is not None:
            return first
        asked = Request("", request.method, f"{scheme}://{authority}{request.target}", request.headers, request.body)
        return asked, self.episode.session.tape.refuse(asked)


def _gate(context: ssl.SSLContext, doors: Mapping[bool, _Door], names: NameLog, authority: str) -> tls.Gate:
    """A connection to public hosts, whatever it will speak. `authority`: whom a tunnel was asked for."""
    episode = doors[True].episode

    def inner(*, secure: bool, server_name: str | None, http2: bool) -> asyncio.Protocol:
        door, host = doors[secure], authority or server_name or ""
        if http2:
            from scoresheet.replay.http2 import Http2

            return Http2(_Streams(door, host))
        return _Connection(door, host)

    def failed(server_name: str, reason: str) -> None:
        names.add(server_name or authority, "TLS", "refused_by_client")

    return tls.Gate(context, inner, episode.opened, episode.lost, failed)


class _Connection(asyncio.Protocol):
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

    def __init__(self, door: _Door, authority: str = "") -> None:
        """`authority`: the host that is meant where a request names none."""
        self._authority = authority
        self._tunnel: str | None = None
        self._door, self._episode, self._memo = door, door.episode, door.memo.raw
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._todo: deque[_Asked | _Fault | _Submitted | _Said] = deque()
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
        self._fault: _Fault | None = None
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
        if self._episode.over or len(self._episode.connections) >= _CONNECTIONS:
            self._over = True
            self._transport.abort()
        else:
            self._episode.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._forget_body()
        self._todo.clear()
        self._episode.connections.discard(self)

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
        self._whole = self._idle and len(data) < _MEMO_REQUEST and not self._todo
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
                self._todo.append(self._fault or _Fault(400, str(error) or "not HTTP", method, target))
                self._forget_body()
                rest = b""
                break
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD:
                self._todo.append(_Fault(431, "the request's headers are longer than 64 KiB", *self._named()))
        if self._whole and self._idle and self._begun == 1 and len(self._todo) == 1:
            asked = self._todo[0]
            if isinstance(asked, _Asked) and isinstance(asked.looked, Found) and not (asked.close or asked.envelope):
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
        if self._episode.body_bytes > _EPISODE_BODIES:
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
            self._todo.append(_Asked(request, looked, False, old, close or method == "CONNECT"))
        elif self._door.via == "call":
            self._todo.append(self._call(request, old, close))
        elif self._door.surface is not None:
            self._todo.append(self._asked_by_mcp(self._door.surface, request, old, close))
        elif self._door.public is not None:
            self._ask_public(self._door.public, request, old, close)
        else:
            self._todo.append(_Asked(request, self._door.look(request, self._alone()), method == "HEAD", old, close))

    def _known(self, authority: str) -> bool:
        public = self._door.public
        return public is not None and public.tunnel is not None and public.hosts.knows(authority)

    def _ask_public(self, public: _PublicDoor, request: Request, old: bool, close: bool) -> None:
        scheme, authority = _absolute(self._url)
        if not authority:
            scheme, authority = "https" if public.secure else "http", request.header("host")
        if not authority:
            authority, self._whole = self._authority, False  # the bytes alone don't say whom they mean
        asked, looked = self._door.routed(request, authority, scheme, self._alone())
        self._todo.append(_Asked(asked, looked, request.method == "HEAD", old, close))

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

    def _call(self, request: Request, old: bool, close: bool) -> _Asked | _Fault | _Submitted:
        path = request.target.partition("?")[0]
        if request.method != "POST":
            return _Fault(405, "tools are called by POST /<tool>", request.method, request.target)
        name = unquote_to_bytes(path.removeprefix("/")).decode("utf-8", "replace")
        if name == SUBMIT_ANSWER and name not in self._episode.session.tape.offered:
            if len(request.body) > MAX_ANSWER:
                return _Fault(413, "the answer is longer than 1 MiB", CALL, name)
            return _Submitted(request.body, close)
        call = Request("", CALL, name, request.headers, request.body)
        return _Asked(call, self._door.look(call, self._alone()), False, old, close)

    def _asked_by_mcp(
        self, surface: mcp.Surface, request: Request, old: bool, close: bool
    ) -> _Asked | _Submitted | _Said:
        read = surface.read(request)
        if not isinstance(read, mcp.Ask):
            return _Said(request, read, request.method == "HEAD", close)
        if read.name == SUBMIT_ANSWER and read.name not in self._episode.session.tape.offered:
            if len(read.arguments) > MAX_ANSWER:
                too_long = read.envelope.failed(-32602, "the answer is longer than 1 MiB", fault="answer too long")
                return _Said(request, too_long, False, close)
            return _Submitted(read.arguments, close, read.envelope)
        call = Request("", CALL, read.name, (), read.arguments)
        return _Asked(call, self._door.look(call, whole=False), False, old, close, read.envelope)

    def _refuse(self, status: int, what: str) -> None:
        self._fault = _Fault(status, what, *self._named())
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
                case _Asked() as asked:
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
                case _Fault() as fault:
                    self._malformed(fault)
            if self._out_bytes > _WRITE_AT_ONCE:
                self._write()
        self._write()

    def _ask_elsewhere(self, elsewhere: Elsewhere, asked: _Asked, missed: Miss) -> None:
        """Wait, with this connection alone, for what `elsewhere` says of a call that was not recorded."""
        loop = asyncio.get_running_loop()
        self._waiting = True
        self._transport.pause_reading()

        def ask() -> None:
            found: Hit | None = None
            try:
                found = elsewhere(missed)
            finally:
                with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
                    loop.call_soon_threadsafe(told, found)

        def told(found: Hit | None) -> None:
            self._waiting = False
            if not self._over:
                self._reply(asked, found or missed)
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
                fault = _Fault(reply.status, reply.fault, said.request.method, said.request.target)
                self._send(
                    _of_mcp(reply, said.head, said.close), _tail_of_fault(self._door, fault), False, refused=True
                )
            case mcp.Reply() as reply:
                sent = _of_mcp(reply, said.head, said.close)
                self._out.append(sent.data)
                self._out_bytes += len(sent.data)
                if sent.then != "keep":
                    self._close_after()

    def _reply_by_mcp(self, asked: _Asked, envelope: mcp.Envelope, answer: Answer) -> None:
        nearest, refused = None, True
        match answer:
            case Hit(recorded):
                refused = False
                answers = self._door.memo.answers
                told = answers.get(recorded)
                if told is None:
                    told = _Told(*mcp.answer_of(recorded.response()), asked.looked, self._tail(asked, answer, 200))
                    if not answer.accepted and self._door.memo.room(2 * len(told.tail) + len(told.text) + 300):
                        answers[recorded] = told
                reply = envelope.result(told.text) if told.result else envelope.error(told.text)
                if told.looked is asked.looked and not answer.accepted:
                    self._send(_of_mcp(reply, False, asked.close), told.tail, answer.repeated)
                    return
            case Miss():
                known = answer.nearest()
                reply = envelope.error(mcp.miss(answer, _missed(answer, known)))
                nearest = known and known.model_dump(mode="json")
            case Capped():
                reply = envelope.error(mcp.OVER_CAP)
        repeated = False if isinstance(answer, Capped) else answer.repeated
        tail = self._tail(asked, answer, reply.status, nearest)
        self._send(_of_mcp(reply, False, asked.close), tail, repeated, refused)

    def _reply(self, asked: _Asked, answer: Answer) -> None:
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
                value = _missed(answer, nearest)
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

    def _malformed(self, fault: _Fault) -> None:
        sent = wire.of_json(fault.status, {"error": "malformed_request", "what": fault.what}, close=True)
        self._send(sent, _tail_of_fault(self._door, fault), False, refused=True)

    def _tail(self, asked: _Asked, answer: Answer, status: int, nearest: Any = None) -> bytes:
        return _tail_of(self._door.via, asked.request, answer, status, nearest)

    def _write(self) -> None:
        if self._out:
            out = self._out
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))
            out.clear()
            self._out_bytes = 0


def _missed(answer: Miss, nearest: Nearest | None) -> dict[str, JsonValue]:
    """What the client is told of a call that was not recorded."""
    return {
        "error": "unrecorded_call",
        "kind": answer.kind,
        "nearest": nearest and {"method": nearest.method, "path": nearest.path},
        "difference": list(nearest.difference) if nearest else [],
        **({"states": dict(answer.states)} if answer.states else {}),
        **({"what": _NO_WEBSOCKETS} if "websocket" in answer.request.header("upgrade").lower() else {}),
    }


def _of_mcp(reply: mcp.Reply, head: bool, close: bool) -> wire.Wire:
    return wire.of_text(reply.status, reply.media, reply.body, allow=reply.allow, head=head, close=close)


def _tail_of_fault(door: _Door, fault: _Fault) -> bytes:
    members = {
        "via": door.via,
        "upstream": door.upstream,
        "method": fault.method,
        "path": fault.target,
        "fingerprint": "",
        "outcome": "malformed",
        "status": fault.status,
        "schema_errors": [],
        "body": fault.what,
    }
    return journals.tail(members)


def _tail_of(via: str, request: Request, answer: Answer, status: int, nearest: Any) -> bytes:
    members = {
        "via": via,
        "upstream": request.upstream,
        "method": request.method,
        "path": request.target,
        "fingerprint": answer.fingerprint,
        "outcome": _OUTCOMES[type(answer)] if not (isinstance(answer, Hit) and answer.accepted) else "accepted",
        "kind": answer.kind if isinstance(answer, Miss) else None,
        "status": status,
        "latency_ms_recorded": answer.recorded.call.latency_ms_recorded if isinstance(answer, Hit) else 0.0,
        "tool": answer.verdict.tool,
        "schema_errors": answer.verdict.errors,
        "ignored": answer.verdict.ignored,
        "nearest": nearest,
        **_states_of(answer),
        "body": journals.body_text(request.body),
    }
    return journals.tail(members)


_OUTCOMES = {Hit: "hit", Miss: "miss", Capped: "capped"}


def _states_of(answer: Answer) -> dict[str, JsonValue]:
    """What the journal says of states, where a task has scenarios."""
    match answer:
        case Hit(recorded) if recorded.call.state is not None:
            return {"state": recorded.call.state.model_dump(mode="json")}
        case Miss(states=states) if states:
            return {"states": dict(states)}
    return {}


class _Streams:
    """What answers the streams of an HTTP/2 connection, at a door of public hosts."""

    def __init__(self, door: _Door, authority: str) -> None:
        self._door, self._episode, self._authority = door, door.episode, authority

    def opened(self, connection: _Abortable) -> bool:
        return self._episode.opened(connection)

    def lost(self, connection: _Abortable) -> None:
        self._episode.lost(connection)

    def room(self, more: int, size: int) -> bool:
        self._episode.body_bytes += more
        return size <= MAX_BODY and self._episode.body_bytes <= _EPISODE_BODIES

    def too_long(self, asked: http2.Asked) -> wire.Fields:
        what = "the request's body is longer than 64 MiB, or the episode has more than 256 MiB of them under way"
        fault = _Fault(413, what, asked.method, f"https://{asked.authority or self._authority}{asked.target}"[:2048])
        self._episode.log(_tail_of_fault(self._door, fault), False, refused=True)
        return wire.fields_of_json(413, {"error": "malformed_request", "what": what})

    def answer(self, asked: http2.Asked) -> wire.Fields:
        episode, head = self._episode, asked.method == "HEAD"
        request = Request("", asked.method, asked.target, asked.headers, b"".join(asked.body))
        request, looked = self._door.routed(request, asked.authority or self._authority, "https", whole=False)
        answer = capped(looked) if episode.journal.full else episode.session.take(looked)
        repeated, nearest = False, None
        match answer:
            case Hit():
                fields, repeated = wire.fields_of(answer.recorded.response(), head=head), answer.repeated
            case Miss():
                known, repeated = answer.nearest(), answer.repeated
                fields = wire.fields_of_json(403, _missed(answer, known), head=head)
                nearest = known and known.model_dump(mode="json")
            case Capped():
                fields = wire.fields_of_json(403, {"error": "tool_cap"}, head=head)
        tail = _tail_of(self._door.via, request, answer, fields.told, nearest)
        episode.log(tail, repeated, refused=not isinstance(answer, Hit))
        return fields


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


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
