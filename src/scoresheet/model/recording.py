"""A recorded episode's model calls, from which the same calls are answered again. Pure: a miss is a value.

A request is known by its method, its path with the query, and its body as RFC 8785 text, without the members that name
the caller and not the question. Calls of one fingerprint are a sequence: the nth gets the nth answer, and one more than
was recorded is a miss.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from scoresheet import json_pointer
from scoresheet.canonical import JsonValue
from scoresheet.model.entry import RATE_LIMITED, Entry
from scoresheet.model.wire import parts

CALLER = frozenset({"metadata", "user", "safety_identifier", "prompt_cache_key", "client_metadata"})
"""Members of a request that say who asks: providers keep them apart from what the model reads."""
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Hit:
    """The recorded answer."""

    entry: Entry
    before: tuple[Entry, ...] = ()
    """Answers that the door took and asked again, when it was recorded: the agent never saw them."""


@dataclass(frozen=True, slots=True)
class Miss:
    """The recording holds no such call, or no more of them."""

    why: str


def fingerprint(kind: str, method: str, path: str, body: bytes) -> str:
    """What a call to a model is known by."""
    value = parts.parsed(body)
    told: JsonValue
    if isinstance(value, dict):
        told = ["json", {name: member for name, member in value.items() if name not in CALLER}]
    else:
        told = ["text", body.decode("latin-1")] if body else ["none"]
    return parts.sha256({"v": 1, "kind": kind, "method": method, "path": path, "body": told})


class Tape:
    """One recorded episode; answers are used up in their order."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """What the door refused by itself is not recorded: it refuses it again."""
        self._kept = sorted((each for each in entries if each.refused is None), key=lambda each: each.started_s)
        self._left: dict[str, list[Entry]] = {}
        self._counts: dict[str, int] = {}
        for entry in self._kept:
            name = fingerprint(entry.kind, entry.method, entry.path, entry.request)
            self._left.setdefault(name, []).append(entry)
            self._counts[name] = self._counts.get(name, 0) + (entry.fault != RATE_LIMITED)

    def ask(self, kind: str, method: str, path: str, body: bytes) -> Hit | Miss:
        """The next answer to such a call."""
        name = fingerprint(kind, method, path, body)
        left = self._left.get(name)
        if left is None:
            return Miss(self._nearest(kind, method, path, body))
        before: list[Entry] = []
        while left and left[0].fault == RATE_LIMITED:
            before.append(left.pop(0))
        if not left:
            return Miss(f"{method} {path} was recorded {_times(self._counts[name])}, and is asked once more")
        return Hit(left.pop(0), tuple(before))

    def _nearest(self, kind: str, method: str, path: str, body: bytes) -> str:
        """In which place the next call to the same path was another one."""
        said = f"{method} {path}"[:_LONGEST]
        alike = [each for each in self._kept if (each.kind, each.method, each.path) == (kind, method, path)]
        if not alike:
            return f"{said} was never recorded in this episode"
        waiting = {id(each) for left in self._left.values() for each in left}
        entry = next((each for each in alike if id(each) in waiting), alike[-1])
        place = difference(parts.parsed(entry.request), parts.parsed(body))
        number = self._kept.index(entry) + 1
        return f"{said} is not what was recorded: call {number} of the recording differs at {place or 'its text'}"


def difference(recorded: JsonValue, asked: JsonValue) -> str | None:
    """JSON pointer of the first place in which two values differ; `None` when they don't, or one is no JSON."""
    pointer: str = ""
    while True:
        match recorded, asked:
            case dict(), dict():
                names = sorted(recorded.keys() | asked.keys())
                name: str | None = next(
                    (each for each in names if _unlike(recorded, asked, each, at_top=not pointer)), None
                )
                if name is None:
                    return pointer or None
                pointer += f"/{json_pointer.step(name)}"
                if name not in recorded or name not in asked:
                    return pointer[:_LONGEST]
                recorded, asked = recorded[name], asked[name]
            case list(), list():
                both = zip(recorded, asked, strict=False)
                place = next((place for place, (left, right) in enumerate(both) if left != right), None)
                if place is None:
                    return f"{pointer}/{min(len(recorded), len(asked))}"[:_LONGEST]
                pointer += f"/{place}"
                recorded, asked = recorded[place], asked[place]
            case _:
                return pointer[:_LONGEST] or None


def _unlike(recorded: dict[str, JsonValue], asked: dict[str, JsonValue], name: str, *, at_top: bool) -> bool:
    if at_top and name in CALLER:
        return False
    return (name in recorded) != (name in asked) or recorded.get(name) != asked.get(name)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
