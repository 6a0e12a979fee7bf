"""Writes `model.jsonl`: every call that came to a model's door, byte for byte, a line each."""

import threading
import time
from pathlib import Path
from typing import BinaryIO

from scoresheet.model.entry import MODEL_LOG, Entry, read_back


class ModelLog:
    """A file of entries, from any thread, and the clock of their times."""

    def __init__(self, path: Path) -> None:
        self._zero = time.monotonic()
        self._file: BinaryIO = path.open("xb")
        self._lock = threading.Lock()

    def start(self) -> None:
        """The agent starts now: every later time counts from here, as those of calls.jsonl do."""
        self._zero = time.monotonic()

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._zero

    def write(self, entry: Entry) -> None:
        """Append an entry."""
        line = entry.line()
        with self._lock:
            if not self._file.closed:
                self._file.write(line)
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


__all__ = ["MODEL_LOG", "Entry", "ModelLog", "read_back"]
