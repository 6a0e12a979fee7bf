"""An episode's model calls out of its `model.jsonl`: for its row when it ends, and for whoever verifies it. Pure.

Both read the same file in the same order, so that a row can be held against it.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from scoresheet.canonical import JsonValue
from scoresheet.digest import Digest
from scoresheet.documents.protocol_card import Controls
from scoresheet.errors import Refused
from scoresheet.model import ordered
from scoresheet.model.entry import Entry
from scoresheet.model.observed import Exchange, Observation, Observer, Pinned
from scoresheet.model.wire import parts

_NOTHING = Pinned(0.0, (), None, frozenset(), 0)
_PIECE = 1 << 20


def held(card: JsonValue) -> Controls | None:
    """The controls of a card as it stands; `None` when they don't hold: then nothing is compared."""
    controls = parts.obj(card).get("controls")
    try:
        return Controls.from_value(controls, "card.yaml#/controls") if isinstance(controls, dict) else None
    except Refused:
        return None


def pinned(controls: Controls | None, seed: int, max_tool_calls: int | None) -> Pinned | None:
    """What the card pins for an episode with that seed; a task may lower the cap. `None` without a card that holds."""
    if controls is None:
        return None
    found = Pinned.of(controls, seed)
    caps = [found.max_tool_calls] + ([] if max_tool_calls is None else [max_tool_calls])
    return replace(found, max_tool_calls=min(caps))


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """What a whole log showed."""

    observation: Observation
    sha256: Digest
    """Of the log."""


class Reading:
    """A log being read: walk `exchanges` to its end, then ask for what was seen."""

    def __init__(self, log: BinaryIO, pinned: Pinned | None) -> None:
        self._log, self._pinned = log, pinned
        self._observer = Observer(pinned or _NOTHING)

    def exchanges(self) -> Iterator[tuple[Entry, Exchange]]:
        """Every call that asks a model something, in the order in which they began. Raises `Malformed`."""
        for entry in ordered.entries(self._log):
            exchange = entry.exchange()
            if exchange is not None:
                self._observer.take(exchange)
                yield entry, exchange

    def seen(self) -> ModelCalls:
        """What the calls that were walked showed."""
        seen = self._observer.observation()
        if self._pinned is None:
            seen = replace(seen, controls=(), ending="mismatch" if seen.unrecorded else None)
        hashed = hashlib.sha256()
        self._log.seek(0)
        while data := self._log.read(_PIECE):
            hashed.update(data)
        return ModelCalls(seen, Digest(hashed.hexdigest()))
