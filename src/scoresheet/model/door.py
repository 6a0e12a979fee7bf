"""The model's door: a reverse proxy from an episode's sandbox to exactly one endpoint.

It listens on a socket that it is given, adds the key, and passes the answer on as it comes, byte for byte and chunk for
chunk. It can't be led elsewhere: the request is read strictly, its path must be one of the API's, the host is always
the endpoint's, and no redirect is followed. What the provider would run by itself is refused unless it is allowed.

One thread a connection, blocking sockets, and a pool of connections to the endpoint.
"""

import abc
import contextlib
import functools
import itertools
import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Literal

from scoresheet.errors import Usage
from scoresheet.model import coding, throttle
from scoresheet.model.entry import RATE_LIMITED, UNRECORDED, Entry
from scoresheet.model.heads import (
    MAX_BODY,
    MAX_HEAD,
    Bad,
    Chunks,
    RequestHead,
    ResponseHead,
    request_head,
    response_head,
)
from scoresheet.model.log import ModelLog
from scoresheet.model.observed import Exchange
from scoresheet.model.throttle import Turnstile
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
_LOOK_S = 0.2
_POOLED_S = 4.0
"""How long a connection to the endpoint is kept: shorter than servers do, so that none is found closed."""
CONNECTIONS = 256
BODIES = 256 << 20
"""Request bytes that are under way at once."""
MAX_ANSWER = 64 << 20

Screen = Callable[[Asked], str | None]
"""Why a request must not be sent, or `None`."""
Admit = Callable[[str, Asked | None], str | None]
"""The same of any call that would be sent: its path, and what it asks for where that is known."""
MayRetry = Callable[[Asked], bool]
"""Whether the door may send a question once more."""


def no_server_tools(asked: Asked) -> str | None:
    """The least that is screened: nothing runs at the provider."""
    names = asked.server_tools
    return f"tools of the provider's own, which the card does not allow: {', '.join(names)}" if names else None


def _every(_path: str, _asked: Asked | None) -> str | None:
    """Every call is sent."""
    return None


def _never(_asked: Asked) -> bool:
    """No call is sent again."""
    return False


class ModelDoor:
    """A way to one endpoint, for any number of episodes."""

    def __init__(
        self,
        upstream: ModelUpstream,
        key: str | None = None,
        tls: ssl.SSLContext | None = None,
        at_once: int | None = None,
    ) -> None:
        """`key`: sent to the endpoint, never told; `tls`: whom to trust, by default whom the system does.

        `at_once`: how many calls may be under way, of all episodes together; the others wait for their turn.

        Raises `Usage` for a key that can't stand in a header.
        """
        if key is not None and not (key.isascii() and key.isprintable() and " " not in key and key):
            mend = "export the variable again, without spaces and line breaks"
            raise Usage("the key of the model can't stand in a header", "--model-key-env", mend)
        self.upstream = upstream
        self.turnstile = Turnstile(at_once)
        self._key = key
        self._tls = tls or (ssl.create_default_context() if upstream.tls else None)
        self._lock = threading.Lock()
        self._idle: list[tuple[float, socket.socket]] = []

    @contextlib.contextmanager
    def episode(
        self,
        listening: socket.socket,
        log: ModelLog,
        screen: Screen = no_server_tools,
        on_exchange: Callable[[Exchange], None] | None = None,
        admit: Admit = _every,
        may_retry: MayRetry = _never,
    ) -> Iterator["DoorView"]:
        """Serve one episode while the block runs, on a listening TCP socket that stays its owner's.

        `on_exchange` hears of every call when it has ended, on the connection's thread. A call that the endpoint asks
        to send later is sent again by the door as often as `may_retry` says yes. When the block ends, every connection
        is closed and no thread is left.
        """
        view = _LiveView(self, log, screen, on_exchange, admit, may_retry)
        with serve(view, listening):
            yield view

    def close(self) -> None:
        """Close what is kept open to the endpoint."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, each in idle:
            each.close()

    def connect(self) -> socket.socket:
        """A connection to the endpoint. Raises `OSError`."""
        now = time.monotonic()
        while True:
            with self._lock:
                since, found = self._idle.pop() if self._idle else (0.0, None)
            if found is None:
                break
            if now - since < _POOLED_S and not _readable(found):
                return found
            found.close()
        raw = socket.create_connection((self.upstream.host, self.upstream.port), CONNECT_S)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return raw
        try:
            return self._tls.wrap_socket(raw, server_hostname=self.upstream.host)
        except BaseException:
            raw.close()
            raise

    def keep(self, connection: socket.socket) -> None:
        """Take back a connection whose answer has come to its end."""
        with self._lock:
            self._idle.append((time.monotonic(), connection))
            old = [self._idle.pop(0)[1]] if len(self._idle) > 32 else []
        for each in old:
            each.close()

    def head(self, head: RequestHead, target: str, length: int) -> bytes:
        """The head that goes to the endpoint."""
        lines = [f"{head.method} {target} HTTP/1.1", f"Host: {self.upstream.authority}"]
        lines += [f"{name}: {value}" for name, value in head.sent()]
        lines.append("Accept-Encoding: identity")  # so that it can be observed
        if self._key is not None:
            bearer = self.upstream.kind == "openai"
            lines.append(f"Authorization: Bearer {self._key}" if bearer else f"x-api-key: {self._key}")
        if head.method == "POST":
            lines.append(f"Content-Length: {length}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def masked(self) -> "Mask":
        """What keeps the key out of an answer."""
        return Mask((self._key or "").encode())


class Mask:
    """The key, should the endpoint ever repeat it, as asterisks of the same length: in a stream as well."""

    def __init__(self, key: bytes) -> None:
        self._key = key if len(key) >= 4 else b""
        self._held = b""

    def feed(self, data: bytes, last: bool = False) -> bytes:
        """The bytes to pass on; an end that could be the key's beginning is held until more comes."""
        if not self._key:
            return data
        data = (self._held + data).replace(self._key, b"*" * len(self._key))
        end = len(data)
        if not last:
            at = data.find(self._key[:1], max(0, len(data) - len(self._key) + 1))
            while at >= 0 and not self._key.startswith(data[at:]):
                at = data.find(self._key[:1], at + 1)
            end = at if at >= 0 else end
        self._held = data[end:]
        return data[:end]


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
        reader = _Reader(client)
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


class _LiveView(DoorView):
    """Answers come from the endpoint."""

    def __init__(
        self,
        door: ModelDoor,
        log: ModelLog,
        screen: Screen,
        on_exchange: Callable[[Exchange], None] | None,
        admit: Admit,
        may_retry: MayRetry,
    ) -> None:
        super().__init__(door.upstream, log, screen, on_exchange)
        self._door, self._admitted, self._may_retry = door, admit, may_retry

    def _admit(self, path: str, asked: Asked | None) -> str | None:
        return self._admitted(path, asked)

    def _forward(self, client: socket.socket, call: Call, target: str) -> bool:
        """Send a call and pass its answer on; where the endpoint asks to wait and that is allowed, send it again."""
        for tries in itertools.count():
            again = self._turn(client, call, target, tries)
            if not call.waits:
                break
            if self._pause(client, call):
                call.fault = RATE_LIMITED
            self._ended(call, self._entry(call))
            if call.fault != RATE_LIMITED:
                break
            call = Call(call.head, call.body, self._log.elapsed(), asked=call.asked)
        return again and call.fault is None

    def _turn(self, client: socket.socket, call: Call, target: str, tries: int) -> bool:
        """The same once, when its turn has come; told before the next has its turn, unless it is to be sent again."""
        turnstile = self._door.turnstile
        if not turnstile.enter(lambda: self._over or _gone(client)):
            call.fault = "ended" if self._over else "client gone"
            self._ended(call, self._entry(call))
            return False
        try:
            if tries or turnstile.limited:
                self._check(call.head, call.body)  # what allowed it may be spent by now
            again = self._send(client, call, target, tries)
            if not call.waits:
                self._ended(call, self._entry(call))
            return again
        finally:
            turnstile.leave()

    def _pause(self, client: socket.socket, call: Call) -> bool:
        """Wait as the endpoint asked; false when the client went away, or the episode ended."""
        end = time.monotonic() + (call.wait_s or 0.0)
        while not self._over and not _gone(client):
            left = end - time.monotonic()
            if left <= 0:
                return True
            with self._told:
                self._told.wait_for(lambda: self._over, min(left, _LOOK_S))
        call.fault = "ended" if self._over else "client gone"
        return False

    def _send(self, client: socket.socket, call: Call, target: str, tries: int) -> bool:
        again = False
        service: socket.socket | None = None
        try:
            try:
                service = self._door.connect()
                self._add(service)
                service.settimeout(BODY_S)
                service.sendall(self._door.head(call.head, target, len(call.body)) + call.body)
                service.settimeout(None)
                again = self._relay(client, service, call, tries)
            except OSError as error:
                call.fault = call.fault or ("ended" if self._over else "cut" if call.response else "unreachable")
                if call.fault == "unreachable":
                    self._say(client, call, f"the model's endpoint can't be reached: {type(error).__name__}")
            except Bad as bad:
                call.fault = call.fault or "cut"
                if call.response is None:
                    self._say(client, call, bad.why)
        finally:
            if service is not None:
                with self._lock:
                    self._sockets.discard(service)
                if call.fault is None and call.response is not None and not call.response.close and not self._over:
                    self._door.keep(service)
                else:
                    service.close()
        return again

    def _relay(self, client: socket.socket, service: socket.socket, call: Call, tries: int) -> bool:
        reader = _Reader(service)
        mask = self._door.masked()
        while call.response is None:
            self._wait(client, service, call)
            raw = reader.head(None, HEAD_S)
            if raw is None:
                raise ConnectionError("no answer")
            head = response_head(mask.feed(raw, last=True), call.head.method)
            if head.status == 101:
                raise Bad(502, "the model's server changes the protocol")
            if head.status >= 200:
                call.response = head
        call.first_byte_s = self._log.elapsed()
        call.answer = bytearray()
        head = call.response
        if 300 <= head.status < 400:
            call.fault = "redirect"
            self._say(client, call, "the model's endpoint sends elsewhere, which is not followed")
            return False
        delay = throttle.delay_s(head.status, head.headers, tries)
        if delay is not None and call.asked is not None and self._may_retry(call.asked):
            call.wait_s = delay
        again = head.length is not None or head.chunked
        out = answer_head(head, close=call.head.close or not again)
        framing: Literal["chunked", "length", "close"] = (
            "chunked" if head.chunked else "close" if head.length is None else "length"
        )
        chunks, left = Chunks(), head.length or 0
        data = reader.taken(None if framing != "length" else left)
        while True:
            if framing == "length":
                data = data[:left]
                left -= len(data)
                plain, done = data, left == 0
            elif framing == "chunked":
                plain = chunks.feed(data)
                done = chunks.done
                data = data[: len(data) - len(chunks.rest)]
            else:
                plain, done = data, False
            call.answer += plain
            if len(call.answer) > MAX_ANSWER:
                call.fault = "too large"
                raise Bad(502, "an answer that is too large")
            passed = out + mask.feed(data, last=done)
            out = b""
            if call.wait_s is not None:
                passed = b""
            elif done:
                self._ending(call)
            if passed:
                try:
                    client.sendall(passed)
                except OSError:
                    call.fault = "client gone"
                    raise
            if done:
                if chunks.rest:
                    call.response = replace(head, close=True)
                return again
            self._wait(client, service, call)
            data = service.recv(READ)
            if not data:
                if framing == "close":
                    if call.wait_s is None:
                        with contextlib.suppress(OSError):
                            client.sendall(mask.feed(b"", last=True))
                    return False
                raise ConnectionError("cut")

    def _wait(self, client: socket.socket, service: socket.socket, call: Call) -> None:
        """Until the service says something. Raises `ConnectionError` when the client goes away or the episode ends."""
        if isinstance(service, ssl.SSLSocket) and service.pending():
            return
        watched = [service, client]
        while True:
            poller = select.poll()
            for each in watched:
                poller.register(each, select.POLLIN)
            ready = {number for number, _ in poller.poll()}
            if self._over:
                call.fault = "ended"
                raise ConnectionError("the episode ended")
            if service.fileno() in ready:
                return
            try:
                still_there = bool(client.recv(1, socket.MSG_PEEK))
            except OSError:
                still_there = False
            if not still_there:
                call.fault = "client gone"
                raise ConnectionError("the client went away")
            watched = [service]  # it already asks for the next thing

    def _say(self, client: socket.socket, call: Call, why: str) -> None:
        """Answer in the model's place."""
        call.said = why
        self._ending(call)
        with contextlib.suppress(OSError):
            client.sendall(said(502, why, self._upstream.kind))

    def _add(self, service: socket.socket) -> None:
        with self._lock:
            if self._over:
                service.close()
                raise ConnectionError("the episode ended")
            self._sockets.add(service)

    def _entry(self, call: Call) -> Entry:
        response = call.response
        return Entry(
            kind=self._upstream.kind,
            method=call.head.method,
            path=call.head.target,
            request_headers=without_keys(call.head),
            request=call.body,
            status=None if response is None else response.status,
            response_headers=() if response is None else response.headers,
            response=self._door.masked().feed(bytes(call.answer or b""), last=True),
            started_s=call.started_s,
            first_byte_s=call.first_byte_s,
            ended_s=self._log.elapsed(),
            fault=call.fault,
            said=call.said,
        )


class _Reader:
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


def _readable(connection: socket.socket) -> bool:
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    return bool(poller.poll(0))


def _gone(client: socket.socket) -> bool:
    """True when the other side has closed."""
    poller = select.poll()
    poller.register(client, select.POLLRDHUP)
    return bool(poller.poll(0))


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
