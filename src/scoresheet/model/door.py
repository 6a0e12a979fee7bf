"""The model's door: a reverse proxy from an episode's sandbox to exactly one endpoint.

It listens on a socket that it is given, adds the key, and passes the answer on as it comes, byte for byte and chunk for
chunk. It can't be led elsewhere: the request is read strictly, its path must be one of the API's, the host is always
the endpoint's, and no redirect is followed. What the provider would run by itself is refused unless it is allowed.

One thread a connection, blocking sockets, and a pool of connections to the endpoint.
"""

import contextlib
import itertools
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

from scoresheet.errors import Usage
from scoresheet.model import throttle
from scoresheet.model.entry import RATE_LIMITED, Entry
from scoresheet.model.heads import Bad, Chunks, RequestHead, response_head
from scoresheet.model.log import ModelLog
from scoresheet.model.observed import Exchange
from scoresheet.model.throttle import Turnstile
from scoresheet.model.upstream import ModelUpstream
from scoresheet.model.view import (
    BODY_S,
    CONNECT_S,
    HEAD_S,
    READ,
    Call,
    DoorView,
    Reader,
    Screen,
    answer_head,
    no_server_tools,
    said,
    serve,
    without_keys,
)
from scoresheet.model.wire.parts import Asked

_LOOK_S = 0.2
_POOLED_S = 4.0
"""How long a connection to the endpoint is kept: shorter than servers do, so that none is found closed."""
MAX_ANSWER = 64 << 20

Admit = Callable[[str, Asked | None], str | None]
"""The same of any call that would be sent: its path, and what it asks for where that is known."""
MayRetry = Callable[[Asked], bool]
"""Whether the door may send a question once more."""


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
    ) -> Iterator[DoorView]:
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
        reader = Reader(service)
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


def _readable(connection: socket.socket) -> bool:
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    return bool(poller.poll(0))


def _gone(client: socket.socket) -> bool:
    """True when the other side has closed."""
    poller = select.poll()
    poller.register(client, select.POLLRDHUP)
    return bool(poller.poll(0))
