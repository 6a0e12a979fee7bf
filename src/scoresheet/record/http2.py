"""HTTP/2 between a recorded command and the proxy: each stream is a request like any other, told to who forwards it.

The wire is the library h2's (the extra `https`). One thread owns the connection, for TLS can't be read and written at
once; each request has a thread of its own, which leaves to that one what it sends, and waits where the client's window
is full. The service is asked over HTTP/1.1 as ever.
"""

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from scoresheet.record.relay import CHUNK, Framing, Message

_CANCEL = 8
_WINDOW = 1 << 20
_OWN = frozenset({b"transfer-encoding", b"connection", b"keep-alive", b"upgrade"})
Take = Callable[[Message, "Stream"], None]


class Http2:
    """One client's connection."""

    def __init__(self, client: ssl.SSLSocket, take: Take) -> None:
        """`take` is called on a thread of its own with each whole request and the stream that takes the answer."""
        from h2.config import H2Configuration
        from h2.connection import H2Connection

        self.changed = threading.Condition()
        """Held by whoever touches what follows; told when windows open and streams end."""
        self.wire: Any = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self.over = False
        self._client, self._take = client, take
        self._asked: dict[int, Message] = {}
        self._streams: dict[int, Stream] = {}
        self._bell, self._rope = socket.socketpair()
        self._unsent = b""

    def serve(self) -> None:
        """Until the client goes away. Raises `OSError`."""
        self._client.setblocking(False)
        self._bell.setblocking(False)
        try:
            with self.changed:
                self.wire.initiate_connection()
                self.wire.increment_flow_control_window(_WINDOW)
            while self._send() and self._receive():
                pass
        finally:
            with self.changed:
                self.over = True
                for stream in self._streams.values():
                    stream.gone = True
                self.changed.notify_all()
            for end in (self._bell, self._rope):
                end.close()

    def ring(self) -> None:
        """Let what was written be sent. Called under `changed`."""
        if not self.over:
            with contextlib.suppress(BlockingIOError):  # the bell rings already
                self._rope.send(b"!", socket.MSG_DONTWAIT)

    def _send(self) -> bool:
        """Send what there is; false at the end."""
        with self.changed:
            self._unsent += self.wire.data_to_send()
            ended = self.over
        while self._unsent:
            try:
                self._unsent = self._unsent[self._client.send(self._unsent) :]
            except ssl.SSLWantWriteError:
                return True
            except ssl.SSLWantReadError:
                break
        return not ended

    def _receive(self) -> bool:
        """Wait for something, and take it; false when the client has closed."""
        if not self._client.pending():
            waiting = select.poll()
            waiting.register(self._client, select.POLLIN | (select.POLLOUT if self._unsent else 0))
            waiting.register(self._bell, select.POLLIN)
            waiting.poll()
            with contextlib.suppress(BlockingIOError):
                self._bell.recv(CHUNK)
        try:
            data = self._client.recv(CHUNK)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return True
        return bool(data) and self._read(data)

    def _read(self, data: bytes) -> bool:
        from h2 import events
        from h2.exceptions import ProtocolError

        with self.changed:
            try:
                happened = self.wire.receive_data(data)
            except ProtocolError:  # h2 has written why
                self.over = True
                return True
            for event in happened:
                match event:
                    case events.RequestReceived():
                        self._begin(event.stream_id, event.headers)
                    case events.DataReceived():
                        self.wire.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                        if event.stream_id in self._asked:
                            self._asked[event.stream_id].body += event.data
                    case events.StreamEnded():
                        self._whole(event.stream_id)
                    case events.StreamReset():
                        self._asked.pop(event.stream_id, None)
                        if stream := self._streams.get(event.stream_id):
                            stream.gone = True
                    case events.ConnectionTerminated():
                        self.over = True
            self.changed.notify_all()  # windows may be open now
        return True

    def _begin(self, number: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        message = Message()
        pseudo = {name: value for name, value in headers if name.startswith(b":")}
        message.method = pseudo.get(b":method", b"").decode("latin-1")
        message.url = pseudo.get(b":path", b"")
        message.version = "2"
        cookies = b"; ".join(value for name, value in headers if name == b"cookie")  # RFC 9113 §8.2.3
        message.headers = [pair for pair in headers if not pair[0].startswith(b":") and pair[0] != b"cookie"]
        if cookies:
            message.headers.append((b"cookie", cookies))
        if not message.has(b"host"):
            message.headers.insert(0, (b"host", pseudo.get(b":authority", b"")))
        if message.has(b"expect", b"100-continue"):
            self.wire.send_headers(number, [(b":status", b"100")])
        self._asked[number] = message

    def _whole(self, number: int) -> None:
        message = self._asked.pop(number, None)
        if message is None:
            return
        if message.body and not message.has(b"content-length"):
            message.headers.append((b"content-length", str(len(message.body)).encode()))
        stream = self._streams[number] = Stream(self, number)
        threading.Thread(target=self._answer, args=(message, stream), daemon=True).start()

    def _answer(self, message: Message, stream: "Stream") -> None:
        try:
            self._take(message, stream)
        except OSError:  # the client went away
            pass
        finally:
            with self.changed:
                self._streams.pop(stream.number, None)


class Stream:
    """Who asked: takes one answer while it comes."""

    def __init__(self, connection: Http2, number: int) -> None:
        self.number = number
        self.gone = False
        self._connection = connection
        self._left: int | None = None
        """Bytes of the body that are still to come, where the service said how many."""
        self._ended = False

    def begin(self, status: int, reason: bytes, headers: Sequence[tuple[bytes, bytes]], framing: Framing) -> None:
        """Send the head. Raises `OSError` when the client has gone."""
        if framing == "length":
            self._left = next(int(value) for name, value in headers if name.lower() == b"content-length")
        self._ended = framing == "none" or self._left == 0
        with self._here() as wire:
            head = [(b":status", b"%03d" % status)]
            head += [(name.lower(), value) for name, value in headers if name.lower() not in _OWN]
            wire.send_headers(self.number, head, end_stream=self._ended)

    def body(self, data: bytes) -> None:
        """Send a piece of the body, as the client's windows let it through. Raises `OSError`.

        The last byte ends the stream: a client that counts bytes may be gone before a frame of its own could.
        """
        rest = memoryview(data)
        while rest:
            with self._here() as wire:
                size = min(len(rest), wire.local_flow_control_window(self.number), wire.max_outbound_frame_size)
                if size <= 0:
                    self._connection.changed.wait()
                    continue
                self._left = None if self._left is None else self._left - size
                self._ended = self._left == 0
                wire.send_data(self.number, rest[:size].tobytes(), end_stream=self._ended)
                rest = rest[size:]

    def end(self) -> None:
        """End the stream as it should. Raises `OSError`."""
        if self._ended:
            return
        with self._here() as wire:
            wire.end_stream(self.number)

    def abort(self) -> None:
        """Break the stream off: the service failed."""
        with contextlib.suppress(OSError), self._here() as wire:
            wire.reset_stream(self.number, _CANCEL)

    @contextlib.contextmanager
    def _here(self) -> Iterator[Any]:
        """The connection, while nobody else has it."""
        from h2.exceptions import ProtocolError

        with self._connection.changed:
            if self.gone or self._connection.over:
                raise BrokenPipeError("the stream is closed")
            try:
                yield self._connection.wire
            except ProtocolError as error:
                raise BrokenPipeError(str(error)) from error
            finally:
                self._connection.ring()
