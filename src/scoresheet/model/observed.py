"""What an episode's model calls prove of the card's controls: verified, violated, or unobserved with the reason. Pure.

Only what passed the door counts. A control that a request leaves out is the provider's default, which nobody here
knows: that call is unobserved, unless the answer says what was used.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from scoresheet.documents.protocol_card import Controls
from scoresheet.model.wire.parts import Asked, ToolCall, Usage
from scoresheet.model.wire.reading import Read, Unobserved

Status = Literal["verified", "violated", "unobserved"]
Ending = Literal["mismatch", "tool_cap"]
SERVER = "server:"
"""Before a tool of the provider's own in `tool_allowlist`, such as `server:web_search`."""
_MCP = re.compile(r"mcp__[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*__(.+)")
_DATED = r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|\d{3})"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call that came to the door, when it had ended."""

    started_s: float
    ended_s: float
    found: Read | Unobserved
    status: int | None = None
    """Of the provider's answer; `None` when none came."""
    refused: str | None = None
    """Why the door did not send it."""
    by_door: bool = False
    """The door waited and sent it again: the agent never saw this answer."""
    unrecorded: bool = False
    """The model is replayed, and the recording holds no such call."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """What the card pins of the model's side."""

    temperature: float
    seeds: tuple[int, ...]
    """The episode's and the card's: either is right."""
    model: str | None
    tools: frozenset[str]
    max_tool_calls: int
    retries: int = 0

    @classmethod
    def of(cls, controls: Controls, episode_seed: int) -> "Pinned":
        """The card's controls for one episode."""
        return cls(
            temperature=float(controls.temperature),
            seeds=(episode_seed, controls.seed),
            model=controls.model,
            tools=frozenset(controls.tool_allowlist),
            max_tool_calls=controls.max_tool_calls,
            retries=controls.retries or 0,
        )

    def outside(self, asked: Asked) -> tuple[str, ...]:
        """Tools that a request offers and the card does not allow; those of the provider's own as `server:NAME`."""
        names = (SERVER + tool.name if tool.server else tool.name for tool in asked.tools)
        return tuple(dict.fromkeys(name for name in names if not self._allows(name)))

    def outside_calls(self, calls: Iterable[ToolCall]) -> tuple[str, ...]:
        """The same of tools that an answer calls."""
        names = (call.name for call in calls if not call.server)  # the provider's own were offered under another name
        return tuple(dict.fromkeys(name for name in names if not self._allows(name)))

    def _allows(self, name: str) -> bool:
        """A tool that came over MCP also counts under its own name: agents write `mcp__SERVER__NAME`."""
        if name in self.tools:
            return True
        match = _MCP.fullmatch(name)
        return match is not None and match[1] in self.tools


@dataclass(frozen=True, slots=True)
class ControlSeen:
    """One control, as it was seen."""

    control: str
    """As the card names it; `model_snapshot` for the dated name that answered."""
    status: Status
    pinned: str
    seen: tuple[tuple[str, int], ...]
    """Value → in how many calls, the most frequent first."""
    violations: int = 0
    """In how many calls, or how many calls too many."""
    note: str = ""

    def __str__(self) -> str:
        seen = ", ".join(f"{value} in {count}" for value, count in self.seen) or "nothing"
        return f"{self.control}: {self.status}, the card pins {self.pinned}, seen {seen}" + (
            f" ({self.note})" if self.note else ""
        )


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of one model."""

    model: str
    """The name that answered, else the one that was asked for."""
    calls: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Observation:
    """An episode's model calls, summed up."""

    controls: tuple[ControlSeen, ...]
    calls: int
    """That were sent to the model."""
    refused: int
    unobserved: int
    failed: int
    retries: int
    door_retries: int
    """Those of them that the door made, after the provider had asked it to wait."""
    tokens_in: int | None
    """`None` when no answer told its usage."""
    tokens_out: int | None
    tokens_cached: int
    tokens_reasoning: int
    unreported: int
    """Answers of the model without usage: the sums are then a lower bound."""
    untold: int
    """The same, with calls whose answer never came, or in a dialect that is not known."""
    models: tuple[str, ...]
    """Names that answered, in the order of their first answer; asked names where none answered."""
    tool_calls: int
    most_at_once: int
    """Calls that were under way at the same time."""
    ending: Ending | None
    """Why the episode had to end."""
    gave_up: str | None
    """The provider's last error, when the last call failed."""
    spent: tuple[Spent, ...] = ()
    """The tokens, model by model, in order of their names."""
    unrecorded: tuple[str, ...] = ()
    """Calls that the recording does not hold, where the model is replayed."""

    @property
    def violated(self) -> tuple[ControlSeen, ...]:
        """Each one is a confound."""
        return tuple(control for control in self.controls if control.status == "violated")


def observe(exchanges: Iterable[Exchange], pinned: Pinned) -> Observation:
    """What the calls of one episode prove."""
    observer = Observer(pinned)
    for each in sorted(exchanges, key=lambda each: each.started_s):
        observer.take(each)
    return observer.observation()


class Retries:
    """How often a question was asked again after it had failed."""

    def __init__(self) -> None:
        self.again: Counter[str] = Counter()
        """Question → so often."""
        self._failing: set[str] = set()
        """Questions whose last answer failed."""

    def take(self, exchange: Exchange, question: str) -> None:
        """Take a call that was sent."""
        if question in self._failing:
            self.again[question] += 1
        if _failed(exchange):
            self._failing.add(question)
        else:
            self._failing.discard(question)

    def after_failure(self, question: str) -> int:
        """How often it will have been asked again when a call that now fails is sent once more."""
        return self.again[question] + (question in self._failing) + 1


class Observer:
    """Takes the calls of one episode in the order in which they began, and keeps none of them."""

    def __init__(self, pinned: Pinned) -> None:
        self._pinned = pinned
        self._sent = self._refused = self._blind = self._failed = self._by_door = 0
        self._reads = self._unanswered = self._unreported = self._tool_calls = 0
        self._usage: Usage | None = None
        self._spent: dict[str, Spent] = {}
        self._temperature = _Values("controls.temperature", f"{pinned.temperature:g}", (pinned.temperature,))
        shown = " or ".join(str(seed) for seed in dict.fromkeys(pinned.seeds))
        self._seed = _Values("controls.seed", shown, pinned.seeds)
        self._models: Counter[str] = Counter()
        self._wrong_models = 0
        self._asked: dict[str, None] = {}
        self._answering: Counter[str] = Counter()
        self._outside: Counter[str] = Counter()
        self._with_outside = self._screened = 0
        self._again = Retries()
        self._started, self._ended = array("d"), array("d")
        self._last: Exchange | None = None
        self._unrecorded: list[str] = []

    def take(self, exchange: Exchange) -> None:
        """Take a call."""
        found = exchange.found
        if exchange.unrecorded:
            self._unrecorded.append(exchange.refused or "")
        if isinstance(found, Read):
            self._screen(found)
        if exchange.refused is not None:
            self._refused += 1
            return
        self._sent += 1
        self._last = exchange
        self._failed += _failed(exchange)
        self._by_door += exchange.by_door
        self._started.append(exchange.started_s)
        self._ended.append(exchange.ended_s)
        if isinstance(found, Read):
            self._read(found)
            self._again.take(exchange, found.asked.input_sha256)
        else:
            self._blind += 1

    def observation(self) -> Observation:
        """What was seen."""
        pinned, blind = self._pinned, self._blind
        tools = self._tools()
        capped = self._tool_calls > pinned.max_tool_calls
        usage, last = self._usage, self._last
        return Observation(
            controls=(
                self._temperature.seen(blind),
                self._seed.seen(blind),
                self._model(),
                self._snapshot(),
                tools,
                self._cap(),
                self._retries(),
            ),
            calls=self._sent,
            refused=self._refused,
            unobserved=blind,
            failed=self._failed,
            retries=self._again.again.total(),
            door_retries=self._by_door,
            tokens_in=None if usage is None else usage.input,
            tokens_out=None if usage is None else usage.output,
            tokens_cached=0 if usage is None else usage.cached,
            tokens_reasoning=0 if usage is None else usage.reasoning,
            unreported=self._unreported,
            untold=self._unreported + self._unanswered + blind,
            models=tuple(self._answering or self._asked),
            tool_calls=self._tool_calls,
            most_at_once=_most_at_once(self._started, self._ended),
            ending="mismatch" if tools.status == "violated" or self._unrecorded else "tool_cap" if capped else None,
            gave_up=_error(last) if last is not None and _failed(last) else None,
            spent=tuple(self._spent[model] for model in sorted(self._spent)),
            unrecorded=tuple(self._unrecorded),
        )

    def _screen(self, read: Read) -> None:
        outside = set(self._pinned.outside(read.asked))
        if read.answered is not None:
            outside |= set(self._pinned.outside_calls(read.answered.calls))
        self._screened += 1
        self._with_outside += bool(outside)
        self._outside.update(outside)

    def _read(self, read: Read) -> None:
        asked, answered, pinned = read.asked, read.answered, self._pinned
        self._reads += 1
        used = None if answered is None else answered.temperature
        self._temperature.add(asked.temperature if asked.temperature is not None else used)
        self._seed.add(asked.seed)
        name, answering = asked.model or "no model", None if answered is None else answered.model
        self._models[name if answering in (None, name) else f"{name} answered by {answering}"] += 1
        right = pinned.model is None or _is(name, pinned.model)
        self._wrong_models += not right or (answering is not None and not _is(answering, name))
        if asked.model:
            self._asked.setdefault(asked.model)
        if answered is None:
            self._unanswered += 1
            return
        self._tool_calls += len(answered.calls)
        if answered.model:
            self._answering[answered.model] += 1
        if answered.usage is not None:
            self._usage = answered.usage if self._usage is None else self._usage.plus(answered.usage)
            self._spend(answered.model or name, answered.usage)
        self._unreported += answered.usage is None and answered.failure is None

    def _spend(self, model: str, usage: Usage) -> None:
        before = self._spent.get(model, Spent(model, 0, Usage(0, 0)))
        self._spent[model] = Spent(model, before.calls + 1, before.usage.plus(usage))

    def _model(self) -> ControlSeen:
        pinned = self._pinned.model
        note = "the card names no model" if pinned is None else ""
        unknown = not self._reads or self._blind or pinned is None
        status: Status = "violated" if self._wrong_models else "unobserved" if unknown else "verified"
        seen = tuple(self._models.most_common())
        return ControlSeen("controls.model", status, pinned or "none", seen, self._wrong_models, note)

    def _snapshot(self) -> ControlSeen:
        names = self._answering
        others = names.total() - max(names.values(), default=0)
        status: Status = "violated" if others else "verified" if names and not self._blind else "unobserved"
        note = "the name that answers changed during the episode" if others else ""
        return ControlSeen("model_snapshot", status, "one", tuple(names.most_common()), others, note)

    def _tools(self) -> ControlSeen:
        wrong = self._with_outside
        status: Status = "violated" if wrong else "verified" if self._screened and not self._blind else "unobserved"
        # names of one call have no order of their own
        seen = tuple(sorted(self._outside.items(), key=lambda each: (-each[1], each[0])))
        shown = ", ".join(sorted(self._pinned.tools)) or "no tool"
        return ControlSeen("controls.tool_allowlist", status, shown, seen, wrong)

    def _cap(self) -> ControlSeen:
        over = max(self._tool_calls - self._pinned.max_tool_calls, 0)
        unread = self._blind + self._unanswered
        status: Status = "violated" if over else "verified" if self._sent and not unread else "unobserved"
        seen = ((f"{self._tool_calls} tool calls", 1),)
        return ControlSeen("controls.max_tool_calls", status, str(self._pinned.max_tool_calls), seen, over)

    def _retries(self) -> ControlSeen:
        again = self._again.again
        retries, most = again.total(), max(again.values(), default=0)
        over = max(most - self._pinned.retries, 0)
        status: Status = "violated" if over else "verified" if self._sent and not self._blind else "unobserved"
        seen = ((f"{retries} retries", 1),)
        return ControlSeen("controls.retries", status, str(self._pinned.retries), seen, retries if over else 0)


class _Values:
    """A control that every call sends, or does not."""

    def __init__(self, control: str, shown: str, right: tuple[float, ...]) -> None:
        self._control, self._shown, self._right = control, shown, right
        self._seen: Counter[str] = Counter()
        self._wrong = self._missing = 0

    def add(self, value: float | None) -> None:
        """Take what a call sent."""
        text = "not sent" if value is None else f"{value:.15g}" if isinstance(value, float) else f"{value}"
        self._seen[text] += 1
        self._missing += value is None
        self._wrong += value is not None and value not in self._right

    def seen(self, blind: int) -> ControlSeen:
        """What was seen, beside so many calls that say nothing."""
        seen = Counter(self._seen)
        if blind:
            seen["unobserved"] = blind
        unknown = not self._seen or blind > 0 or self._missing
        status: Status = "violated" if self._wrong else "unobserved" if unknown else "verified"
        return ControlSeen(self._control, status, self._shown, tuple(seen.most_common()), self._wrong)


def _is(name: str, pinned: str) -> bool:
    """True for the name itself and for a dated snapshot of it."""
    return name == pinned or re.fullmatch(re.escape(pinned.removesuffix("-latest")) + _DATED, name) is not None


def _failed(each: Exchange) -> bool:
    if each.status is None or each.status >= 400:
        return True
    answered = each.found.answered if isinstance(each.found, Read) else None
    return answered is not None and (answered.failure is not None or not answered.complete)


def _error(each: Exchange) -> str:
    answered = each.found.answered if isinstance(each.found, Read) else None
    if answered is not None and answered.failure is not None:
        return f"{answered.failure.kind}: {answered.failure.message}"
    return "the answer was cut" if each.status is not None and each.status < 400 else f"status {each.status or 'none'}"


def _most_at_once(started: Iterable[float], ended: Iterable[float]) -> int:
    under_way = most = 0
    # at the same instant, ends come before starts
    for _, step in sorted([*((moment, 1) for moment in started), *((moment, -1) for moment in ended)]):
        under_way += step
        most = max(most, under_way)
    return most
