"""The models that a run's agents may call: their doors, what an agent is told of them, and what they saw."""

import contextlib
import functools
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from scoresheet.canonical import JsonValue
from scoresheet.documents.protocol_card import Controls
from scoresheet.errors import Usage
from scoresheet.model.door import ModelDoor
from scoresheet.model.log import MODEL_LOG, ModelLog
from scoresheet.model.observed import Exchange, Pinned, Retries
from scoresheet.model.playback import PlaybackDoor
from scoresheet.model.upstream import DUMMY_KEY, KINDS, VARIABLES, Kind, ModelUpstream, refuse_recorded
from scoresheet.model.view import DoorView, no_server_tools
from scoresheet.model.wire import parts
from scoresheet.model.wire.parts import Asked
from scoresheet.model.wire.reading import Read
from scoresheet.run import model_calls
from scoresheet.run.budget import INTERRUPTED, Budget, Limit
from scoresheet.run.model_recording import Recorded
from scoresheet.run.plan import Episode
from scoresheet.run.prices import Prices
from scoresheet.sandbox.spec import Door, Opened
from scoresheet.stats import bill

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
    budget: Budget = field(default_factory=Budget)
    """What they may spend, and have spent."""

    @classmethod
    def of(
        cls,
        endpoints: Sequence[str],
        keys: Sequence[str],
        recorded: Mapping[str, str],
        card: JsonValue,
        at_once: Sequence[str] = (),
    ) -> "Models":
        """What `--model KIND=URL`, `--model-key-env KIND=NAME` and `--model-concurrency KIND=N` ask for.

        Raises `Usage`, `ScoresheetError`.

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
        most = dict(_at_once(text, kinds) for text in at_once)
        doors = {
            upstream.kind: ModelDoor(upstream, named.get(upstream.kind), at_once=most.get(upstream.kind))
            for upstream in upstreams
        }
        return cls(doors, model_calls.held(card))

    @classmethod
    def replayed(cls, recorded: Recorded, card: JsonValue) -> "Models":
        """A recording in the models' place."""
        return cls({}, model_calls.held(card), recorded)

    def limited(self, tokens: int | None, cost: str | None) -> "Models":
        """The same with a budget. Raises `Usage` for one that can't be kept."""
        table = None if self.prices is None else self.prices.table
        try:
            limit = Limit(tokens, None if cost is None else bill.parsed(cost))
        except ValueError as error:
            raise Usage(str(error), "--max-cost", "write it in the currency of --prices, such as 12.50") from error
        pinned = None if self.controls is None else self.controls.model
        if cost is not None and table is not None and pinned is not None and bill.price_of(table, pinned) is None:
            what = f"a budget can't be kept: the price table does not name {pinned}, the model of the card"
            raise Usage(what, "--max-cost", "give it a price in the file of --prices")
        return replace(self, budget=Budget(limit, table))

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
        watch = Watch(opened, model_calls.pinned(self.controls, episode.seed, max_tool_calls), self.budget)
        with contextlib.ExitStack() as stack:
            if self.kinds:
                log = watch.log = ModelLog(folder / MODEL_LOG)
                stack.callback(log.close)
                for kind, opening in self._opening(episode, watch):
                    listening = opened.sockets[MODEL_DOORS + kind]
                    stack.enter_context(opening(listening, log, screen=watch.screen, on_exchange=watch.heard))
            yield watch

    def _opening(
        self, episode: Episode, watch: "Watch"
    ) -> Iterator[tuple[Kind, Callable[..., AbstractContextManager[DoorView]]]]:
        """How each door is opened."""
        if self.recorded is None:
            for kind, door in self.doors.items():
                yield kind, functools.partial(door.episode, admit=watch.admit, may_retry=watch.may_retry)
            return
        tape = self.recorded.tape(episode)
        for kind in self.recorded.kinds:
            yield kind, functools.partial(PlaybackDoor(kind).episode, tape=tape)


class Watch:
    """One episode's model calls, from any thread."""

    def __init__(self, opened: Opened, pinned: Pinned | None, budget: Budget) -> None:
        self.pinned = pinned
        self.cut_short = False
        """The run's budget was spent in the middle of this episode."""
        self._budget = budget
        self._retries = Retries()
        self.log: ModelLog | None = None
        """`None` where there are no models."""
        self._opened = opened
        self._lock = threading.Lock()
        self._tool_calls = 0
        self._over: str | None = None
        """Why this episode ends: nothing more is sent."""

    def start(self, moment: float) -> None:
        """The agent started then, by the monotonic clock."""
        if self.log is not None:
            self.log.start(moment)

    def screen(self, asked: Asked) -> str | None:
        """Why a request is not sent."""
        if self._over is not None:
            return self._over
        if self.pinned is None:
            return no_server_tools(asked)
        outside = self.pinned.outside(asked)
        if not outside:
            return None
        self._opened.stop("mismatch")
        return f"tools outside the card's allowlist: {', '.join(outside)}"

    def admit(self, path: str, asked: Asked | None) -> str | None:
        """Why a call is not sent that the card allows."""
        refusal = self._budget.refusal(path, asked)
        if refusal is not None:
            self.cut_short = True
            self._opened.stop(INTERRUPTED)
        return refusal

    def may_retry(self, asked: Asked) -> bool:
        """Whether the card allows that the door sends a question again that has failed."""
        with self._lock:
            return self.pinned is not None and self._retries.after_failure(asked.input_sha256) <= self.pinned.retries

    def heard(self, exchange: Exchange) -> None:
        """Take a call that has ended."""
        self._budget.take(exchange)
        if exchange.refused is None and isinstance(exchange.found, Read):
            with self._lock:
                self._retries.take(exchange, exchange.found.asked.input_sha256)
        if exchange.unrecorded:
            self._opened.stop("mismatch")
        answered = getattr(exchange.found, "answered", None)
        with self._lock:
            self._tool_calls += 0 if answered is None else len(answered.calls)
            made = self._tool_calls
        if self.pinned is None or answered is None:
            return
        if self.pinned.outside_calls(answered.calls):
            self._over = "the model called a tool that the card does not allow"
            self._opened.stop("mismatch")
        elif made > self.pinned.max_tool_calls:
            self._over = "the model called more tools than the card allows"
            self._opened.stop("tool_cap")


def _at_once(text: str, kinds: Sequence[Kind]) -> tuple[Kind, int]:
    name, _, number = text.partition("=")
    kind = next((each for each in KINDS if each == name), None)
    if kind is None or not re.fullmatch(r"[1-9][0-9]{0,5}", number):
        raise Usage(f"{text!r} is not KIND=N", "--model-concurrency", "--model-concurrency openai=4")
    if kind not in kinds:
        raise Usage(
            f"calls of {kind} are limited, but there is no such model", "--model-concurrency", "--model KIND=URL"
        )
    return kind, int(number)


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
