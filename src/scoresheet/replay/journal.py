"""`calls.jsonl`: what the door saw, one line a request, in the order of the answers.

Lines are gathered in memory and written every `FLUSH_S` seconds and at the end of the episode, when they are synced.
The constant part of a line (`tail`) is made once for a request and its answer; the hot path adds what changes.
"""

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from scoresheet.canonical import JsonValue
from scoresheet.documents.call_record import CallRecord

FLUSH_S = 0.2
BODY_BYTES = 64 * 1024
MAX_BYTES = 256 << 20
"""An agent must not fill the host's disk by asking: when a journal is this long, every further call is capped."""
_PENDING_BYTES = 1 << 20
_FIRST = b'{"seq":%d,"at_s":%.6f,"repeat":false,%b'
_REPEAT = b'{"seq":%d,"at_s":%.6f,"repeat":true,%b'


class CallJournal:
    """Appends the lines of one episode. Belongs to one thread at a time: the server's, while it serves."""

    def __init__(self, path: str | os.PathLike[str], clock: Callable[[], float] = time.monotonic) -> None:
        """Raises `OSError` when the file can't be made; it is appended to when it exists."""
        self.path = Path(path)
        self.seq = 0
        self.full = False
        self._room = MAX_BYTES
        self._pending = 0
        self._clock = clock
        self._zero = clock()
        self._lines: list[bytes] = []
        self._failed: OSError | None = None
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def start(self) -> float:
        """The agent starts now: `at_s` of every later line counts from here. The moment, by the clock."""
        self._zero = self._clock()
        return self._zero

    def add(self, tail: bytes, repeat: bool = False) -> bytes:
        """Append the line that ends in `tail`, and return it."""
        line = (_REPEAT if repeat else _FIRST) % (self.seq, self._clock() - self._zero, tail)
        self.seq += 1
        self._lines.append(line)
        self._pending += len(line)
        if self._pending > _PENDING_BYTES:
            self.flush()
        return line

    def flush(self) -> None:
        """Hand what is gathered to the system. A disk that fails is told by `close`, not to the agent."""
        if not self._lines or self._failed is not None:
            return
        data = memoryview(b"".join(self._lines))
        self._lines.clear()
        self._pending = 0
        self._room -= len(data)
        self.full = self._room < 0
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError as error:
            self._failed = error

    def close(self) -> None:
        """Flush, sync and close. Raises `OSError` when any line was lost: the episode then has no journal."""
        if self._fd < 0:
            return
        self.flush()
        try:
            if self._failed is None:
                os.fsync(self._fd)
        finally:
            os.close(self._fd)
            self._fd = -1
        if self._failed is not None:
            raise self._failed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def tail(members: dict[str, Any]) -> bytes:
    """The line's constant part: every member of `CallRecord` but `seq`, `at_s` and `repeat`."""
    return orjson.dumps(members)[1:] + b"\n"


def read_back(line: bytes) -> CallRecord:
    """A line as the document that it is."""
    return CallRecord.from_bytes(line, "calls.jsonl")


def body_text(body: bytes) -> JsonValue:
    """A body as the journal holds it: text cut at `BODY_BYTES`, `{"base64": …}` when it is not UTF-8, else `None`."""
    if not body:
        return None
    cut = body[:BODY_BYTES]
    try:
        return cut.decode()
    except UnicodeDecodeError as error:
        if len(body) > BODY_BYTES and error.start >= BODY_BYTES - 3:  # cut inside a character
            return cut[: error.start].decode()
        return {"base64": base64.b64encode(cut).decode()}
