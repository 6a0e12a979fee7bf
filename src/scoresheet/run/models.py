"""The models that a run's agents may call: their doors, what an agent is told of them, and what they saw."""

import contextlib
import functools
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from scoresheet.canonical import JsonValue
from scoresheet.documents.protocol_card import Controls
from scoresheet.errors import Usage
from scoresheet.model.door import DoorView, ModelDoor, no_server_tools
from scoresheet.model.log import MODEL_LOG, ModelLog
from scoresheet.model.observed import Exchange, Pinned
from scoresheet.model.playback import PlaybackDoor
from scoresheet.model.upstream import DUMMY_KEY, KINDS, VARIABLES, Kind, ModelUpstream, refuse_recorded
from scoresheet.model.wire import parts
from scoresheet.model.wire.parts import Asked
from scoresheet.run import model_calls
from scoresheet.run.model_recording import Recorded
from scoresheet.run.plan import Episode
from scoresheet.run.prices import Prices
from scoresheet.sandbox.spec import Door, Opened

MODEL_DOORS = "model-"
"""Doors of models: `model-KIND`."""
_FIRST_PORT = 8060


@dataclass(frozen=True, slots=True)
class Models:
    """Endpoints, one a kind at most, and the card's controls that their calls are held against."""

    doors: Mapping[Kind, ModelDoor] = field(default_factory=dict)
    controls: Controls | None = None
    """`None` without a card that holds: then nothing is compared."""
    recorded: Recorded | None = None
    """What answers in the models' place: then there is no endpoint."""
    prices: Prices | None = None
    """What their tokens cost; `None` where nobody said it."""

    @classmethod
    def of(
        cls, endpoints: Sequence[str], keys: Sequence[str], recorded: Mapping[str, str], card: JsonValue
    ) -> "Models":
        """What `--model KIND=URL` and `--model-key-env KIND=NAME` ask for. Raises `Usage`, `ScoresheetError`.

        `recorded`: the pack's own services, name → place, as its manifest says; `card`: as it stands, `None` without.
        """
        controls = parts.obj(parts.obj(card).get("controls"))
        published = parts.obj(parts.obj(parts.obj(card).get("publishing")).get("upstreams"))
        recorded = {**recorded, **{name: place for name, place in published.items() if isinstance(place, str)}}
        if endpoints and controls.get("network") == "denied":
            mend = "leave --model out, or change the card: controls: {network: model_only}"
            raise Usage("the card allows no model: its network is denied", "--model", mend)
        upstreams = [ModelUpstream.parse(text) for text in endpoints]
        kinds = [upstream.kind for upstream in upstreams]
        if len(set(kinds)) < len(kinds):
            raise Usage("two models of one kind", "--model", "one address a kind")
        named = dict(_key(text) for text in keys)
        for kind in named:
            if kind not in kinds:
                raise Usage(f"a key for {kind}, but no model", "--model-key-env", f"--model {kind}=URL")
        for upstream in upstreams:
            refuse_recorded(upstream, recorded)
        doors = {upstream.kind: ModelDoor(upstream, named.get(upstream.kind)) for upstream in upstreams}
        return cls(doors, model_calls.held(card))

    @classmethod
    def replayed(cls, recorded: Recorded, card: JsonValue) -> "Models":
        """A recording in the models' place."""
        return cls({}, model_calls.held(card), recorded)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Which models there are."""
        return tuple(self.doors) if self.recorded is None else self.recorded.kinds

    @property
    def places(self) -> tuple[str, ...]:
        """`host:port` of each, as the report names them."""
        return tuple(sorted(door.upstream.place for door in self.doors.values()))

    def close(self) -> None:
        """Close what is kept open to the endpoints."""
        for door in self.doors.values():
            door.close()

    def sandbox_doors(self) -> tuple[Door, ...]:
        """Their doors in the sandbox."""
        return tuple(Door(MODEL_DOORS + kind, _FIRST_PORT + KINDS.index(kind)) for kind in self.kinds)

    def environment(self, urls: Mapping[str, str]) -> dict[str, str]:
        """What an agent finds: addresses, keys that are none, and what the card pins of its side."""
        found: dict[str, str] = {}
        for kind in self.kinds:
            address, key = VARIABLES[kind]
            found[address] = urls[MODEL_DOORS + kind] + ("/v1" if kind == "openai" else "")
            found[key] = DUMMY_KEY
        if self.kinds and self.controls is not None:
            found["SCORESHEET_TEMPERATURE"] = f"{self.controls.temperature:.15g}"
            found["SCORESHEET_TOOL_ALLOWLIST"] = json.dumps(self.controls.tool_allowlist)
            if self.controls.model is not None:
                found["SCORESHEET_MODEL"] = self.controls.model
        return found

    @contextlib.contextmanager
    def episode(self, opened: Opened, folder: Path, episode: Episode, max_tool_calls: int | None) -> Iterator["Watch"]:
        """Serve the doors of one episode; a tool that is not allowed, or one call too many, stops it.

        Where the models are replayed, so does a call that was not recorded.
        """
        watch = Watch(opened, model_calls.pinned(self.controls, episode.seed, max_tool_calls))
        with contextlib.ExitStack() as stack:
            if self.kinds:
                log = watch.log = ModelLog(folder / MODEL_LOG)
                stack.callback(log.close)
                for kind, opening in self._opening(episode):
                    listening = opened.sockets[MODEL_DOORS + kind]
                    stack.enter_context(opening(listening, log, screen=watch.screen, on_exchange=watch.heard))
            yield watch

    def _opening(self, episode: Episode) -> Iterator[tuple[Kind, Callable[..., AbstractContextManager[DoorView]]]]:
        """How each door is opened."""
        if self.recorded is None:
            yield from ((kind, door.episode) for kind, door in self.doors.items())
            return
        tape = self.recorded.tape(episode)
        for kind in self.recorded.kinds:
            yield kind, functools.partial(PlaybackDoor(kind).episode, tape=tape)


class Watch:
    """One episode's model calls, from any thread."""

    def __init__(self, opened: Opened, pinned: Pinned | None) -> None:
        self.pinned = pinned
        self.log: ModelLog | None = None
        """`None` where there are no models."""
        self._opened = opened
        self._lock = threading.Lock()
        self._tool_calls = 0

    def start(self) -> None:
        """The agent starts now."""
        if self.log is not None:
            self.log.start()

    def screen(self, asked: Asked) -> str | None:
        """Why a request is not sent."""
        if self.pinned is None:
            return no_server_tools(asked)
        outside = self.pinned.outside(asked)
        if not outside:
            return None
        self._opened.stop("mismatch")
        return f"tools outside the card's allowlist: {', '.join(outside)}"

    def heard(self, exchange: Exchange) -> None:
        """Take a call that has ended."""
        if exchange.unrecorded:
            self._opened.stop("mismatch")
        answered = getattr(exchange.found, "answered", None)
        with self._lock:
            self._tool_calls += 0 if answered is None else len(answered.calls)
            made = self._tool_calls
        if self.pinned is None or answered is None:
            return
        if self.pinned.outside_calls(answered.calls):
            self._opened.stop("mismatch")
        elif made > self.pinned.max_tool_calls:
            self._opened.stop("tool_cap")


def _key(text: str) -> tuple[Kind, str]:
    name, _, variable = text.partition("=")
    kind = next((each for each in KINDS if each == name), None)
    if kind is None or not variable:
        raise Usage(f"{text!r} is not KIND=NAME", "--model-key-env", "--model-key-env openai=OPENAI_API_KEY")
    key = os.environ.get(variable)
    if not key:
        raise Usage(f"the environment holds no {variable}", "--model-key-env", f"export {variable}=…")
    return kind, key


NO_MODELS = Models()
