"""Where the connections of an episode come in: what a request means there, what is remembered, and what is journaled.

Bytes that were asked before are known again as they arrive (`Memo`): what they mean depends on nothing but themselves,
the door and the tape, and the episode's counters are moved after that, so sequences, caps, `vary` and `ignore` hold for
them as for any other request. How they come, over HTTP/1.1 or HTTP/2, is told by `http1` and `http2`.
"""

import asyncio
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from scoresheet.canonical import JsonValue
from scoresheet.documents.call_record import CallRecord, Nearest
from scoresheet.documents.tool import Request
from scoresheet.replay import journal as journals
from scoresheet.replay import mcp, tls
from scoresheet.replay.hosts import Hosts
from scoresheet.replay.journal import CallJournal
from scoresheet.replay.session import Answer, Capped, Found, Hit, Looked, Miss, Recorded, Session, Tape

MAX_BODY = 64 << 20
EPISODE_BODIES = 256 << 20
"""Request bytes that one episode may have under way at once, over all its connections."""
_CONNECTIONS = 1024
_MEMO_BYTES = 256 << 20
MEMO_REQUEST = 16 * 1024
"""Longer requests are not remembered."""
_NO_WEBSOCKETS = "websockets are not replayed"

Elsewhere = Callable[[Miss], Hit | None]
"""Another answer to a call that was not recorded, `None` when there is none. A run has no such thing."""


class Abortable(Protocol):
    def abort(self) -> None: ...


@dataclass(slots=True, eq=False)
class Episode:
    session: Session
    journal: CallJournal
    on_call: Callable[[CallRecord], None] | None
    on_refusal: Callable[[CallRecord], None] | None
    elsewhere: Elsewhere | None = None
    servers: list[asyncio.Server] = field(default_factory=list)
    datagrams: list[asyncio.DatagramTransport] = field(default_factory=list)
    connections: set[Abortable] = field(default_factory=set)
    body_bytes: int = 0
    over: bool = False
    answer: bytes | None = None

    def opened(self, connection: Abortable) -> bool:
        """Whether one more connection is taken; it is counted then."""
        if self.over or len(self.connections) >= _CONNECTIONS:
            return False
        self.connections.add(connection)
        return True

    def lost(self, connection: Abortable) -> None:
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
class Asked:
    """One whole request, as it was parsed. Equal bytes at one door give an equal one."""

    request: Request
    looked: Looked
    head: bool
    old: bool
    close: bool
    envelope: mcp.Envelope | None = None
    """How MCP wraps the answer."""
    memo: "Memo | None" = None
    """Where it is remembered."""
    ready: dict[Recorded, tuple[bytes, bytes]] = field(default_factory=dict)
    """Recording → bytes to send, tail of the journal's line; only where the connection goes on afterwards."""


@dataclass(frozen=True, slots=True, eq=False)
class Fault:
    """What came was no request that can be read, or not one that is taken."""

    status: int
    what: str
    method: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What MCP answers with a recording."""

    result: bool
    """Else it is an error."""
    text: bytes
    """Without its envelope."""
    looked: Looked
    tail: bytes
    """Of the journal's line, when that is what was found: another request may have the same recording."""


@dataclass(slots=True, eq=False)
class Memory:
    """How much of requests seen before is kept, over all tapes of a server."""

    memos: weakref.WeakKeyDictionary[Tape, dict[tuple[str, str], "Memo"]] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    surfaces: weakref.WeakKeyDictionary[Tape, mcp.Surface] = field(default_factory=weakref.WeakKeyDictionary)
    used: int = 0

    def surface_of(self, tape: Tape) -> mcp.Surface:
        found = self.surfaces.get(tape)
        if found is None:
            found = self.surfaces[tape] = mcp.Surface(tape)
        return found

    def of(self, tape: Tape, via: str, upstream: str) -> "Memo":
        return self.memos.setdefault(tape, {}).setdefault((via, upstream), Memo(self))

    def take(self, size: int) -> bool:
        """True when `size` more bytes may be kept; forgets tapes that are gone."""
        if self.used + size > _MEMO_BYTES:
            self.used = sum(memo.used for doors in self.memos.values() for memo in doors.values())
            if self.used + size > _MEMO_BYTES:
                return False
        self.used += size
        return True


@dataclass(slots=True, eq=False)
class Memo:
    """Requests of one tape at one door that were seen before, by their raw bytes and by what of them can matter.

    Only hits are kept: their number is bounded by the recordings and their spellings, and `Memory` bounds the bytes.
    """

    memory: Memory
    raw: dict[bytes, Asked] = field(default_factory=dict)
    known: dict[Any, Looked] = field(default_factory=dict)
    answers: dict[Recorded, "Told"] = field(default_factory=dict)
    """Recording → what MCP answers with it."""
    used: int = 0
    full: bool = False

    def room(self, size: int) -> bool:
        if self.full:
            return False
        self.full = not self.memory.take(size)
        self.used += 0 if self.full else size
        return not self.full

    def remember(self, data: bytes, asked: Asked) -> None:
        if self.room(2 * len(data) + 700):
            was = asked.request
            asked.request = Request(was.upstream, was.method, was.target, (), was.body)  # no line shows the headers
            asked.memo = self
            self.raw[data] = asked


@dataclass(frozen=True, slots=True, eq=False)
class PublicDoor:
    """What is different where hosts are called by their public names."""

    hosts: Hosts
    secure: bool
    tunnel: Callable[[str], tls.Gate] | None = None
    """What takes over a connection to a host, at a proxy's door."""


class Door:
    """Where a connection of an episode comes in."""

    __slots__ = ("episode", "memo", "public", "relevant", "surface", "upstream", "via")

    def __init__(self, episode: Episode, via: str, upstream: str, memo: Memo) -> None:
        self.episode, self.via, self.upstream, self.memo = episode, via, upstream, memo
        self.surface: mcp.Surface | None = None
        self.public: PublicDoor | None = None
        tape = episode.session.tape
        self.relevant = {"content-type", "content-encoding"} | tape.vary

    def look(self, request: Request, whole: bool) -> Looked:
        """The tape's knowledge of a request; remembered when `whole` is false: its raw bytes will not be."""
        tape = self.episode.session.tape
        find = tape.look if self.via == "http" else lambda call: tape.look_call(call.target, call.body)
        if whole or len(request.body) > MEMO_REQUEST:
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


def missed(answer: Miss, nearest: Nearest | None) -> dict[str, JsonValue]:
    """What the client is told of a call that was not recorded."""
    return {
        "error": "unrecorded_call",
        "kind": answer.kind,
        "nearest": nearest and {"method": nearest.method, "path": nearest.path},
        "difference": list(nearest.difference) if nearest else [],
        **({"states": dict(answer.states)} if answer.states else {}),
        **({"what": _NO_WEBSOCKETS} if "websocket" in answer.request.header("upgrade").lower() else {}),
    }


def tail_of_fault(door: Door, fault: Fault) -> bytes:
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


def tail_of(via: str, request: Request, answer: Answer, status: int, nearest: Any) -> bytes:
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
