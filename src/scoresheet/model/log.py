"""Writes `model.jsonl`: every call that came to a model's door, byte for byte, a line each."""

import threading
import time
from pathlib import Path
from typing import BinaryIO

from scoresheet.model.entry import MODEL_LOG, Entry, read_back

MAX_BYTES = 1 << 30
"""An agent must not fill the host's disk by asking: when a log is this long, no further call is sent."""


class ModelLog:
    """A file of entries, from any thread, and the clock of their times."""

    def __init__(self, path: Path) -> None:
        self._zero = time.monotonic()
        self._file: BinaryIO = path.open("xb")
        self._lock = threading.Lock()
        self._size = 0
        self._ended = False

    def start(self, moment: float) -> None:
        """The agent started then, by the monotonic clock: later times count from there, as those of calls.jsonl do."""
        self._zero = moment

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._zero

    @property
    def full(self) -> bool:
        """True when nothing more may be asked."""
        return self._size >= MAX_BYTES

    def write(self, entry: Entry) -> None:
        """Append an entry; of what is refused once the log is full, the first."""
        line = entry.line()
        with self._lock:
            if self._file.closed or (self._ended and entry.refused is not None):
                return
            self._ended = self._ended or (self.full and entry.refused is not None)
            self._file.write(line)
            self._file.flush()
            self._size += len(line)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


__all__ = ["MODEL_LOG", "Entry", "ModelLog", "read_back"]
