"""The calls of a `model.jsonl` in the order in which they began; the log has them as they ended. Pure.

Two passes over the file, one entry in memory at a time.
"""

from array import array
from collections.abc import Iterator
from typing import BinaryIO

from scoresheet.errors import Malformed
from scoresheet.model.entry import MODEL_LOG, Entry, read_back

_STARTED = b',"started_s":'
"""In JSON text these bytes are a member: inside a string the quotes would be escaped."""


def entries(file: BinaryIO) -> Iterator[Entry]:
    """The entries of a log that can be read twice. Raises `Malformed`, with the line."""
    offsets, sizes, moments = array("Q"), array("Q"), array("d")
    offset = 0
    for number, line in enumerate(file, 1):
        offsets.append(offset)
        sizes.append(len(line))
        moments.append(_started(line, number))
        offset += len(line)
    for place in sorted(range(len(moments)), key=moments.__getitem__):  # of two at one moment, the first that ended
        file.seek(offsets[place])
        line = file.read(sizes[place])
        try:
            entry = next(read_back(line))
        except (Malformed, StopIteration) as error:
            raise _malformed(place + 1) from error
        if entry.started_s != moments[place]:
            raise _malformed(place + 1)
        yield entry


def _started(line: bytes, number: int) -> float:
    _, found, rest = line.rpartition(_STARTED)
    text = rest.partition(b",")[0]
    try:
        return float(text) if found and len(text) < 40 else float("x")
    except ValueError as error:
        raise _malformed(number) from error


def _malformed(number: int) -> Malformed:
    return Malformed("no line of a model log", f"{MODEL_LOG}:{number}")
