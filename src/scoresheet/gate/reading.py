"""A card file as it was written: bounded, located, and one of two kinds."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scoresheet import canonical, digest, yaml12
from scoresheet.canonical import JsonValue
from scoresheet.digest import Digest
from scoresheet.errors import Malformed, Usage
from scoresheet.yaml12 import Located

"""What Python prints of one integer without complaint."""
PROTOCOL = frozenset({"suite", "dataset_split", "metrics", "controls", "environment", "publishing"})
"""Members that only a protocol card has."""
_TASK = frozenset({"task_id", "goal", "oracle_kind", "mutation_scope", "fixture_sha256", "leak_flag", "writable_root"})


@dataclass(frozen=True, slots=True)
class CardFile:
    """The bytes of a card, by their digest, and what they say."""

    path: str
    sha256: Digest
    located: Located

    @property
    def kind(self) -> Literal["protocol card", "task card", "task"]:
        """Which card this is, by its members; `task` for a task file of a pack."""
        value = self.located.value
        if not isinstance(value, dict) or "schema" in value or PROTOCOL & value.keys():
            return "protocol card"
        if "prompt" in value and "calls" in value:
            return "task"
        return "task card" if _TASK & value.keys() else "protocol card"


def read(path: str | Path) -> CardFile:
    """The card at `path`: JSON when its name ends in .json, else YAML.

    Raises `Malformed` with `path:line:column` when it says nothing that can be read, `Usage` when the file can't be.
    """
    return parse(content(str(path)), str(path))


def parse(data: bytes, path: str) -> CardFile:
    """`read` of bytes that are already there. Raises `Malformed`."""
    try:
        located = _json(data) if path.endswith(".json") else yaml12.load(data)
    except Malformed as error:
        error.with_place(path)
        raise
    return CardFile(path, digest.of(data), located)


def content(path: str) -> bytes:
    """What the file holds, as much as a card may. Raises `Usage`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # NONBLOCK: opening a FIFO must not hang
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Usage("not a regular file", path, "give the path of a card")
            return file.read(yaml12.MAX_BYTES + 1)  # one more than is allowed: the reader then says so
    except OSError as error:
        raise Usage(f"the file can't be read: {error.strerror}", path) from error


def _json(data: bytes) -> Located:
    if len(data) > yaml12.MAX_BYTES:
        raise Malformed(f"larger than {yaml12.MAX_BYTES // 1024} KiB", "1:1")
    value = canonical.loads(data, canonical.MOST_DIGITS)
    if _endless(value, 0):
        raise Malformed(f"more than {yaml12.MAX_DEPTH} levels", "1:1")
    try:
        placed = yaml12.load(data)  # JSON is YAML almost everywhere: then each value has a place
    except Malformed:
        return Located(value, {}, {})
    return Located(value, placed.places, placed.keys)


def _endless(value: JsonValue, depth: int) -> bool:
    if depth > yaml12.MAX_DEPTH:
        return True
    if isinstance(value, dict):
        return any(_endless(item, depth + 1) for item in value.values())
    if isinstance(value, list):
        return any(_endless(item, depth + 1) for item in value)
    return False
