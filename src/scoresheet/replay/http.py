"""The one door, over HTTP: sockets that it is given, a session behind them, bytes as recorded.

`ReplayServer` owns one thread with an event loop and serves any number of episodes on it. It listens on sockets made
elsewhere (inside a sandbox's network namespace) and holds no code that could open a connection of its own.

A request costs the same whatever the number of recordings: what it means is told at its `door`, how it comes by `http1`
and `http2`.
"""

import asyncio
import contextlib
import functools
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from scoresheet.authority import Authority
from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.tool import Request
from scoresheet.replay import http2, tls, wire
from scoresheet.replay import journal as journals
from scoresheet.replay.dns import Datagrams, NameLog, Responder, Stream
from scoresheet.replay.door import (
    EPISODE_BODIES,
    MAX_BODY,
    Abortable,
    Door,
    Elsewhere,
    Episode,
    Fault,
    Memory,
    PublicDoor,
    missed,
    tail_of,
    tail_of_fault,
)
from scoresheet.replay.hosts import Hosts
from scoresheet.replay.http1 import Connection
from scoresheet.replay.journal import CallJournal
from scoresheet.replay.session import Capped, Hit, Miss, Session, capped

CALL_DOOR = "call"
"""The door that serves tools by name: `POST /<tool>`."""
MCP_DOOR = "mcp"
"""The door that serves the same tools over MCP (`mcp.PATH`)."""
WEB_DOORS = "web-"
"""Doors of public hosts: `web-PORT`, HTTPS and HTTP alike."""
PROXY_DOOR = "proxy"
"""A proxy's door to the same hosts."""
DNS_DOORS = ("dns", "dns-tcp")

_QUIET_TURNS = 5
_DRAIN_S = 10.0
"""For `serve`, whose clients may go on asking: a run closes when nobody lives who could."""


class ReplayServer:
    """A context manager: one event-loop thread, any number of episodes."""

    def __init__(self, http2: bool = True) -> None:
        """`http2`: offer it at the doors of public hosts."""
        self._http2 = http2
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._serve, name="scoresheet-replay", daemon=True)
        self._episodes: set[Episode] = set()
        self._memory = Memory()
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
        episode = Episode(session, journal, on_call, on_refusal, elsewhere)
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
        episode: Episode,
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
            door = Door(episode, via, upstream, self._memory.of(episode.session.tape, via, upstream))
            if via == "mcp":
                door.surface = self._memory.surface_of(episode.session.tape)
            listening.setblocking(False)
            server = await self._loop.create_server(functools.partial(Connection, door), sock=listening, backlog=1024)
            episode.servers.append(server)

    async def _open_public(self, episode: Episode, name: str, listening: socket.socket, public: "Public") -> None:
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
                doors[secure] = Door(episode, "http", "", memo)
                doors[secure].public = PublicDoor(public.hosts, secure)
            context = public.authority.server
            gate = functools.partial(_gate, context, doors, public.names)
            if name == PROXY_DOOR:
                memo = self._memory.of(episode.session.tape, "http", f"\0{name}")
                door = Door(episode, "http", "", memo)
                door.public = PublicDoor(public.hosts, False, gate)
                factory = functools.partial(Connection, door)
            else:
                factory = functools.partial(gate, "")
        episode.servers.append(await self._loop.create_server(factory, sock=listening, backlog=1024))

    async def _close(self, episode: Episode) -> None:
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


class EpisodeView:
    """What the owner of an episode may ask while it is served."""

    def __init__(self, episode: Episode) -> None:
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


def _gate(context: ssl.SSLContext, doors: Mapping[bool, Door], names: NameLog, authority: str) -> tls.Gate:
    """A connection to public hosts, whatever it will speak. `authority`: whom a tunnel was asked for."""
    episode = doors[True].episode

    def inner(*, secure: bool, server_name: str | None, http2: bool) -> asyncio.Protocol:
        door, host = doors[secure], authority or server_name or ""
        if http2:
            from scoresheet.replay.http2 import Http2

            return Http2(_Streams(door, host))
        return Connection(door, host)

    def failed(server_name: str, reason: str) -> None:
        names.add(server_name or authority, "TLS", "refused_by_client")

    return tls.Gate(context, inner, episode.opened, episode.lost, failed)


class _Streams:
    """What answers the streams of an HTTP/2 connection, at a door of public hosts."""

    def __init__(self, door: Door, authority: str) -> None:
        self._door, self._episode, self._authority = door, door.episode, authority

    def opened(self, connection: Abortable) -> bool:
        return self._episode.opened(connection)

    def lost(self, connection: Abortable) -> None:
        self._episode.lost(connection)

    def room(self, more: int, size: int) -> bool:
        self._episode.body_bytes += more
        return size <= MAX_BODY and self._episode.body_bytes <= EPISODE_BODIES

    def too_long(self, asked: http2.Asked) -> wire.Fields:
        what = "the request's body is longer than 64 MiB, or the episode has more than 256 MiB of them under way"
        fault = Fault(413, what, asked.method, f"https://{asked.authority or self._authority}{asked.target}"[:2048])
        self._episode.log(tail_of_fault(self._door, fault), False, refused=True)
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
                fields = wire.fields_of_json(403, missed(answer, known), head=head)
                nearest = known and known.model_dump(mode="json")
            case Capped():
                fields = wire.fields_of_json(403, {"error": "tool_cap"}, head=head)
        tail = tail_of(self._door.via, request, answer, fields.told, nearest)
        episode.log(tail, repeated, refused=not isinstance(answer, Hit))
        return fields


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
