"""A model's door with a recording behind it. There is no endpoint, and nothing here that could open a connection."""

import contextlib
import re
import select
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from scoresheet.model.entry import Entry
from scoresheet.model.heads import ResponseHead
from scoresheet.model.log import ModelLog
from scoresheet.model.observed import Exchange
from scoresheet.model.recording import Hit, Miss, Tape
from scoresheet.model.upstream import Kind, ModelUpstream
from scoresheet.model.view import (
    Call,
    DoorView,
    Screen,
    Unrecorded,
    answer_head,
    no_server_tools,
    said,
    serve,
    without_keys,
)
from scoresheet.model.wire import parts

MISSED = "not in the model's recording"
_LEFT_OPEN = ("client gone", "ended")
"""Faults after which nothing came: whoever waited then waits again."""
_EVENTS = re.compile(rb".+?(?:\r?\n\r?\n|\Z)", re.DOTALL)
_BODILESS = (204, 304)


class PlaybackDoor:
    """A way to a recording, for any number of episodes."""

    def __init__(self, kind: Kind) -> None:
        # the rules of the API are the kind's; the place is none, for nothing is ever sent there
        self.upstream = ModelUpstream(False, "recording.invalid", 0, "/v1", kind)

    @contextlib.contextmanager
    def episode(
        self,
        listening: socket.socket,
        log: ModelLog,
        tape: "SharedTape",
        screen: Screen = no_server_tools,
        on_exchange: Callable[[Exchange], None] | None = None,
    ) -> Iterator[DoorView]:
        """Answer one episode's calls from `tape` while the block runs; else as `ModelDoor.episode`."""
        view = _PlaybackView(self.upstream, tape, log, screen, on_exchange)
        with serve(view, listening):
            yield view


class SharedTape:
    """A tape that several connections ask."""

    def __init__(self, tape: Tape) -> None:
        self._tape, self._lock = tape, threading.Lock()

    def ask(self, kind: str, method: str, path: str, body: bytes) -> Hit | Miss:
        """See `Tape.ask`."""
        with self._lock:
            return self._tape.ask(kind, method, path, body)


class _PlaybackView(DoorView):
    """Answers come from the recording, and a call that is not in it is refused."""

    def __init__(
        self,
        upstream: ModelUpstream,
        tape: SharedTape,
        log: ModelLog,
        screen: Screen,
        on_exchange: Callable[[Exchange], None] | None,
    ) -> None:
        super().__init__(upstream, log, screen, on_exchange)
        self._tape = tape

    def _forward(self, client: socket.socket, call: Call, target: str) -> bool:
        found = self._tape.ask(self._upstream.kind, call.head.method, call.head.target, call.body)
        match found:
            case Miss(why):
                raise Unrecorded(f"{MISSED}: {why}")
            case Hit(entry, before):
                again = self._answer(client, call, entry)
                self._ended(call, *(self._again(call, each) for each in (*before, entry)))
                return again
            case _:
                assert_never(found)

    def _answer(self, client: socket.socket, call: Call, entry: Entry) -> bool:
        """Say what was said then; true when the connection may go on."""
        if entry.said is not None:
            self._ending(call)
            with contextlib.suppress(OSError):
                client.sendall(said(502, entry.said, self._upstream.kind))
            return False
        if entry.status is None:
            self._hold(client, entry)
            return False
        chunked = parts.header(entry.response_headers, "transfer-encoding") is not None
        length = parts.header(entry.response_headers, "content-length")
        again = chunked or length is not None or entry.status in _BODILESS
        head = ResponseHead(entry.status, entry.response_headers, None, chunked, not again)
        data = answer_head(head, close=call.head.close or not again)
        data += b"".join(_chunks(entry.response)) if chunked else entry.response
        if chunked and entry.fault is None:
            data += b"0\r\n\r\n"
        if entry.fault is None:
            self._ending(call)
        with contextlib.suppress(OSError):
            client.sendall(data)
            if entry.fault is not None:
                self._hold(client, entry)
            return again and entry.fault is None
        return False

    def _hold(self, client: socket.socket, entry: Entry) -> None:
        """Where the agent went away from an answer, or the episode ended in it: until that happens again."""
        if entry.fault not in _LEFT_OPEN:
            return
        poller = select.poll()
        poller.register(client, select.POLLRDHUP)
        while not self._over and not poller.poll(1000):
            pass

    def _again(self, call: Call, entry: Entry) -> Entry:
        """The recorded exchange, at the time of this one."""
        now = self._log.elapsed()
        return replace(
            entry,
            request_headers=without_keys(call.head),
            request=call.body,
            started_s=call.started_s,
            first_byte_s=None if entry.first_byte_s is None else now,
            ended_s=now,
        )


def _chunks(body: bytes) -> Iterator[bytes]:
    """A body in chunks, one for each event of a stream."""
    for match in _EVENTS.finditer(body):
        yield b"%x\r\n%b\r\n" % (len(match[0]), match[0])
