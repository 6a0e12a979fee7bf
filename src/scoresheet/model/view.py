"""One episode's side of a model's door: what comes to it is read strictly, screened, answered and logged.

Where answers come from, the endpoint (`door`) or a recording (`playback`), is told by a subclass; nothing here opens a
connection. One thread a connection, blocking sockets.
"""

import abc
import contextlib
import functools
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus

from scoresheet.model import coding
from scoresheet.model.entry import UNRECORDED, Entry
from scoresheet.model.heads import MAX_BODY, MAX_HEAD, Bad, Chunks, RequestHead, ResponseHead, request_head
from scoresheet.model.log import ModelLog
from scoresheet.model.observed import Exchange
from scoresheet.model.upstream import ModelUpstream
from scoresheet.model.wire import anthropic, openai_chat, parts, reading
from scoresheet.model.wire.parts import Asked

READ = 1 << 16
HEAD_S = 10.0
"""How long a head may take, from its first byte."""
BODY_S = 60.0
CONNECT_S = 10.0
_IDLE_S = 120.0
_SETTLE_S = 30.0
"""How long at most a call waits for the count of those before it: only a client that does not read keeps it waiting."""
CONNECTIONS = 256
BODIES = 256 << 20
"""Request bytes that are under way at once."""

Screen = Callable[[Asked], str | None]
"""Why a request must not be sent, or `None`."""


def no_server_tools(asked: Asked) -> str | None:
    """The least that is screened: nothing runs at the provider."""
    names = asked.server_tools
    return f"tools of the provider's own, which the card does not allow: {', '.join(names)}" if names else None


@contextlib.contextmanager
def serve(view: "DoorView", listening: socket.socket) -> Iterator[None]:
    """Take what comes to a listening socket while the block runs; no thread of the view's outlives it."""
    copy = listening.dup()
    copy.setblocking(True)
    wake, waker = socket.socketpair()
    thread = threading.Thread(target=view.accept, args=(copy, wake), name="scoresheet-model", daemon=True)
    thread.start()
    try:
        yield
    finally:
        waker.close()
        thread.join()
        view.end()
        copy.close()
        wake.close()


class Unrecorded(Bad):
    """A call that the recording does not hold."""

    def __init__(self, why: str) -> None:
        super().__init__(403, why)


@dataclass(slots=True)
class Call:
    """A call that is under way."""

    head: RequestHead
    body: bytes
    started_s: float
    response: ResponseHead | None = None
    answer: bytearray | None = None
    first_byte_s: float | None = None
    fault: str | None = None
    said: str | None = None
    asked: Asked | None = None
    """`None` where that is not known."""
    wait_s: float | None = None
    """The endpoint asks to wait so long, and to be asked again: the client does not see this answer."""
    ending: bool = False
    """Its last bytes go out: whoever asks next must find it told."""

    @property
    def waits(self) -> bool:
        """It is to be sent once more."""
        return self.wait_s is not None and self.fault is None


class DoorView(abc.ABC):
    """One episode's door while it is open; where the answers come from is its subclass's."""

    def __init__(
        self, upstream: ModelUpstream, log: ModelLog, screen: Screen, on_exchange: Callable[[Exchange], None] | None
    ) -> None:
        self._upstream, self._log, self._screen, self._on_exchange = upstream, log, screen, on_exchange
        self._lock = threading.Lock()
        self._told = threading.Condition(self._lock)
        self._untold = 0
        self._over = False
        self._sockets: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._bytes = 0

    def accept(self, listening: socket.socket, wake: socket.socket) -> None:
        """Take connections until `wake` ends."""
        while True:
            readable, _, _ = select.select([listening, wake], [], [])
            if wake in readable:
                return
            try:
                client, _ = listening.accept()
            except OSError:
                continue
            with self._lock:
                full = len(self._threads) >= CONNECTIONS
                thread = threading.Thread(target=self._connection, args=(client,), daemon=True)
                if not full:
                    self._sockets.add(client)
                    self._threads.add(thread)
            if full:
                with contextlib.suppress(OSError):
                    client.sendall(said(503, "too many connections at once", self._upstream.kind))
                client.close()
            else:
                thread.start()

    def end(self) -> None:
        """Close every connection and wait for its thread."""
        with self._lock:
            self._over = True
            self._told.notify_all()
            sockets, threads = tuple(self._sockets), tuple(self._threads)
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits on it
        for thread in threads:
            thread.join(CONNECT_S + 5)

    def _connection(self, client: socket.socket) -> None:
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._serve(client)
        except (OSError, ValueError):  # the client went away, or the episode ended
            pass
        finally:
            client.close()
            with self._lock:
                self._sockets.discard(client)
                self._threads.discard(threading.current_thread())

    def _serve(self, client: socket.socket) -> None:
        reader = Reader(client)
        while not self._over:
            started, reserved = self._log.elapsed(), 0
            head: RequestHead | None = None
            body = b""
            try:
                raw = reader.head(_IDLE_S, HEAD_S)
                if raw is None:
                    return
                started = self._log.elapsed()
                head = request_head(raw)
                target = self._upstream.target(head.method, head.target)
                if target is None and head.upgrade:
                    raise Bad(426, "another protocol, which can't be observed: ask over HTTP")
                if target is None:
                    raise Bad(404, f"{head.method} {head.target.partition('?')[0]} is no part of the API")
                if self._log.full:
                    raise Bad(507, "the log of this episode's model calls is full")
                whole = head.length is not None and head.coding == "identity"
                reserved = self._reserve((head.length or 0) if whole else MAX_BODY)
                if head.waits:
                    client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = coding.unpacked(head.coding, reader.body(head.length, BODY_S))
                self._release(reserved - len(body))
                reserved = len(body)
                self._settle()
                call = Call(head, body, started, asked=self._check(head, body))
                again = self._forward(client, call, target)
            except Bad as bad:
                self._refuse(client, bad, head, body, started)
                return
            finally:
                self._release(reserved)
            if head.close or not again:
                return

    def _reserve(self, size: int) -> int:
        """Wait for room. A body of which the size is not known takes that of the largest, until it has come."""
        with self._told:
            if not self._told.wait_for(lambda: self._over or self._bytes + size <= BODIES, BODY_S):
                raise Bad(503, "too many bytes under way at once")
            if self._over:
                raise ConnectionError("the episode ended")
            self._bytes += size
        return size

    def _release(self, size: int) -> None:
        with self._told:
            self._bytes -= size
            self._told.notify_all()

    def _check(self, head: RequestHead, body: bytes) -> Asked | None:
        """What a call asks for, where that is known. Raises `Bad` when it must not be sent."""
        if head.method != "POST":
            return None
        known: Asked | None = None
        asked = reading.ask(head.target, body)
        if isinstance(asked, reading.Unobserved):
            value = parts.parsed(body)
            if not isinstance(value, dict):
                raise Bad(400, asked.reason)
            # whatever it is, nothing may run at the provider
            asked = (anthropic if self._upstream.kind == "anthropic" else openai_chat).asked(value)
            refused = no_server_tools(asked)
        else:
            known = asked
            refused = self._screen(asked)
        refused = refused or self._admit(head.target, known)
        if refused is not None:
            raise Bad(403, refused)
        return known

    def _admit(self, _path: str, _asked: Asked | None) -> str | None:
        """Why a call that is in order is not answered."""
        return None

    def _refuse(self, client: socket.socket, bad: Bad, head: RequestHead | None, body: bytes, started: float) -> None:
        now = self._log.elapsed()
        method, path = ("", "") if head is None else (head.method, head.target)
        headers = () if head is None else without_keys(head)
        kind = self._upstream.kind
        fault = UNRECORDED if isinstance(bad, Unrecorded) else None
        self._tell(Entry(kind, method, path, headers, body, None, (), b"", started, None, now, bad.why, fault))
        with contextlib.suppress(OSError):
            client.settimeout(2)
            client.sendall(said(bad.status, bad.why, kind))
            client.shutdown(socket.SHUT_WR)
            end = time.monotonic() + 1
            for _ in range(64):  # what is on its way is taken, or the refusal is lost to a reset
                if time.monotonic() > end or not client.recv(READ):
                    break

    @abc.abstractmethod
    def _forward(self, client: socket.socket, call: Call, target: str) -> bool:
        """Answer a call; true when the client's connection may go on. Raises `Bad` for one that is refused."""

    def _settle(self) -> None:
        """Wait until every call whose end the client may have seen is told: what it asks now follows from them."""
        with self._told:
            self._told.wait_for(lambda: not self._untold or self._over, _SETTLE_S)

    def _ending(self, call: Call) -> None:
        """Say that the last bytes of an answer are about to go out."""
        with self._told:
            if not call.ending:
                call.ending = True
                self._untold += 1

    def _ended(self, call: Call, *entries: Entry) -> None:
        """Tell what became of a call."""
        try:
            for entry in entries:
                self._tell(entry)
        finally:
            with self._told:
                if call.ending:
                    self._untold -= 1
                    self._told.notify_all()

    def _tell(self, entry: Entry) -> None:
        self._log.write(entry)
        exchange = entry.exchange()
        if exchange is not None and self._on_exchange is not None:
            self._on_exchange(exchange)


class Reader:
    """Bytes of one connection, a head or a body at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""

    def head(self, idle_s: float | None, whole_s: float) -> bytes | None:
        """A head without its empty line; `None` when the peer has closed before it. Raises `Bad`, `OSError`."""
        end: float | None = time.monotonic() + whole_s if self._buffer else None
        while b"\r\n\r\n" not in self._buffer:
            if len(self._buffer) > MAX_HEAD:
                raise Bad(431, f"a head of more than {MAX_HEAD} bytes")
            data = self._more(idle_s if end is None else end - time.monotonic(), waiting=end is None)
            if not data:
                if self._buffer:
                    raise Bad(400, "a head without an end")
                return None
            end = end or time.monotonic() + whole_s
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        if len(head) > MAX_HEAD:
            raise Bad(431, f"a head of more than {MAX_HEAD} bytes")
        return head

    def body(self, length: int | None, whole_s: float) -> bytes:
        """A body of a length, or in chunks. Raises `Bad`, `OSError`."""
        end = time.monotonic() + whole_s
        found = bytearray()
        chunks = Chunks()
        while True:
            if length is None:
                found += chunks.feed(self.taken(None))
                self._buffer = chunks.rest
                if chunks.done:
                    return bytes(found)
            else:
                found += self.taken(length - len(found))
                if len(found) == length:
                    return bytes(found)
            if len(found) > MAX_BODY:
                raise Bad(413, f"a body of more than {MAX_BODY} bytes")
            data = self._more(end - time.monotonic(), waiting=False)
            if not data:
                raise Bad(400, "a body without its end")
            self._buffer += data

    def taken(self, most: int | None) -> bytes:
        """What has come already, at most so much of it."""
        taken = self._buffer if most is None else self._buffer[:most]
        self._buffer = self._buffer[len(taken) :]
        return taken

    def _more(self, left_s: float | None, waiting: bool) -> bytes:
        if left_s is not None and left_s <= 0:
            raise Bad(408, "too slow")
        self._connection.settimeout(left_s)
        try:
            return self._connection.recv(READ)
        except TimeoutError:
            if waiting:
                return b""
            raise Bad(408, "too slow") from None
        finally:
            with contextlib.suppress(OSError):
                self._connection.settimeout(None)


def without_keys(head: RequestHead) -> tuple[tuple[str, str], ...]:
    """What an agent took for its key is not kept, dummy or not."""
    secret = ("authorization", "x-api-key", "api-key", "cookie", "x-goog-api-key", "proxy-authorization")
    return tuple((name, value) for name, value in head.headers if name.lower() not in secret)


def answer_head(head: ResponseHead, *, close: bool) -> bytes:
    """The head of an answer as the client gets it."""
    lines = [f"HTTP/1.1 {head.status} {_reason(head.status)}"]
    lines += [f"{name}: {value}" for name, value in head.passed()]
    lines += ["connection: close"] if close else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@functools.cache
def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def said(status: int, why: str, kind: str) -> bytes:
    """An answer of the door's own, in the provider's form; no client takes it for something to try again."""
    error = {"type": "scoresheet_refused", "message": f"scoresheet: {why}"}
    value = (
        {"type": "error", "error": error} if kind == "anthropic" else {"error": {**error, "param": None, "code": None}}
    )
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} {_reason(status)}\r\ncontent-type: application/json\r\nx-should-retry: false\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body
