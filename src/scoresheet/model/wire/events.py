"""Server-sent events out of the bytes of a stream, as the WHATWG standard reads them (§9.2.6). Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    """One event."""

    name: str
    """Of its `event` line; empty without one."""
    data: str


def events(body: bytes) -> Iterator[Event]:
    """The events, in their order; what a cut stream left unfinished is dropped, as every client does."""
    name, data = "", list[str]()
    for line in _LINE.split(body.decode("utf-8", "replace").removeprefix("\ufeff"))[:-1]:
        if not line:
            if data:
                yield Event(name, "\n".join(data))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
