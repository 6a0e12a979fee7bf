"""The names of a sandbox: recorded hosts are here, nothing else exists, and every question is written down.

The responder answers on sockets that it is given and asks nobody: it holds no way to resolve anything.
"""

import asyncio
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import orjson

from scoresheet.documents.dns_record import DnsRecord

MOST_NAMES = 10_000
"""An agent must not fill the host's memory by asking: what comes after is counted together."""
_TYPES = {1: "A", 28: "AAAA"}
_A, _IN = 1, 1
_ADDRESS = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x7f\x00\x00\x01"  # name above, A, IN, 5 s, 127.0.0.1
_TCP_S = 10.0
_TCP_BYTES = 4096


@dataclass(slots=True, eq=False)
class NameLog:
    """What was asked in one episode: a line for each name, type and answer."""

    clock: Callable[[], float] = time.monotonic
    _zero: float = field(default_factory=time.monotonic)
    _heard: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)

    def start(self) -> None:
        """The agent starts now."""
        self._zero = self.clock()

    def add(self, name: str, kind: str, answer: str) -> None:
        """One question."""
        key = (name, kind, answer)
        if key not in self._heard and len(self._heard) >= MOST_NAMES:
            key = ("*", "*", answer)
        seen = self._heard.setdefault(key, [max(0.0, self.clock() - self._zero), 0])
        seen[1] += 1

    def records(self) -> tuple[DnsRecord, ...]:
        """In the order in which they were first asked."""
        return tuple(
            DnsRecord.model_validate(
                {"name": name, "type": kind, "answer": answer, "first_s": round(first, 6), "count": int(count)}
            )
            for (name, kind, answer), (first, count) in self._heard.items()
        )

    def lines(self) -> bytes:
        """The file `dns.jsonl`."""
        return b"".join(orjson.dumps(record.as_json()) + b"\n" for record in self.records())


@dataclass(frozen=True, slots=True, eq=False)
class Responder:
    """Answers one message at a time."""

    names: frozenset[str]
    log: NameLog

    def answer(self, message: bytes) -> bytes:
        """The reply; empty for what is no question, which is dropped."""
        if len(message) < 12 or message[2] & 0x80:
            return b""
        opcode, questions = message[2] >> 3 & 15, int.from_bytes(message[4:6], "big")
        found = _question(message) if questions == 1 and opcode == 0 else None
        if found is None:
            self.log.add("", "", "malformed")
            return _reply(message, b"", 1, b"")  # FORMERR
        name, kind, group, end = found
        asked = message[12:end]
        known = name in self.names and group == _IN
        has_address = known and kind == _A
        word = "address" if has_address else "empty" if known else "no_such_name"
        self.log.add(name, _TYPES.get(kind, f"TYPE{kind}"), word)
        return _reply(message, asked, 0 if known else 3, _ADDRESS if has_address else b"")


def _question(message: bytes) -> tuple[str, int, int, int] | None:
    """(name, type, class, where the question ends) of the only question; `None` when it can't be read."""
    labels: list[str] = []
    place = 12
    try:
        while size := message[place]:
            if size > 63 or place + size >= len(message):
                return None
            labels.append(message[place + 1 : place + 1 + size].decode("ascii", "backslashreplace"))
            place += size + 1
        kind, group = struct.unpack_from(">HH", message, place + 1)
    except (IndexError, struct.error):
        return None
    return ".".join(labels).lower(), kind, group, place + 5


def _reply(message: bytes, question: bytes, code: int, record: bytes) -> bytes:
    flags = bytes(
        (0x84 | message[2] & 0x01, 0x80 | code)
    )  # a reply, authoritative; recursion as asked, and "available"
    counts = struct.pack(">HHHH", bool(question), bool(record), 0, 0)
    return message[:2] + flags + counts + question + record


class Datagrams(asyncio.DatagramProtocol):
    """The responder on a UDP socket."""

    def __init__(self, responder: Responder) -> None:
        self._responder = responder
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if reply := self._responder.answer(data):
            self._transport.sendto(reply, addr)


class Stream(asyncio.Protocol):
    """The responder on a TCP connection: each message after two bytes of length."""

    def __init__(self, responder: Responder, opened: Callable[["Stream"], bool], lost: Callable[["Stream"], None]):
        """`opened` may refuse it; `lost` hears its end."""
        self._responder, self._opened, self._lost = responder, opened, lost
        self._data = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not self._opened(self):
            self._transport.abort()
        asyncio.get_running_loop().call_later(_TCP_S, self._transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(self)

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 2 and len(self._data) >= (end := 2 + int.from_bytes(self._data[:2], "big")):
            reply = self._responder.answer(self._data[2:end])
            self._data = self._data[end:]
            if reply:
                self._transport.write(len(reply).to_bytes(2, "big") + reply)
        if len(self._data) > _TCP_BYTES:
            self._transport.abort()
