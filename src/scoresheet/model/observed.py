"""What an episode's model calls prove of the card's controls: verified, violated, or unobserved with the reason. Pure.

Only what passed the door counts. A control that a request leaves out is the provider's default, which nobody here
knows: that call is unobserved, unless the answer says what was used.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from scoresheet.documents.protocol_card import Controls
from scoresheet.model.wire.parts import Answered, Asked, ToolCall
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
    models: tuple[str, ...]
    """Names that answered, in the order of their first answer; asked names where none answered."""
    tool_calls: int
    most_at_once: int
    """Calls that were under way at the same time."""
    ending: Ending | None
    """Why the episode had to end."""
    gave_up: str | None
    """The provider's last error, when the last call failed."""
    unrecorded: tuple[str, ...] = ()
    """Calls that the recording does not hold, where the model is replayed."""

    @property
    def violated(self) -> tuple[ControlSeen, ...]:
        """Each one is a confound."""
        return tuple(control for control in self.controls if control.status == "violated")


def observe(exchanges: Sequence[Exchange], pinned: Pinned) -> Observation:
    """What the calls of one episode prove, in the order in which they started."""
    ordered = sorted(exchanges, key=lambda each: each.started_s)
    sent = [each for each in ordered if each.refused is None]
    reads = [each.found for each in sent if isinstance(each.found, Read)]
    blind = len(sent) - len(reads)
    answers = [read.answered for read in reads if read.answered is not None]
    usages = [answer.usage for answer in answers if answer.usage is not None]
    tool_calls = sum(len(answer.calls) for answer in answers)
    retries, most_again = _retries(sent)
    tools = _tools(ordered, pinned, blind)
    capped = tool_calls > pinned.max_tool_calls
    controls = (
        _temperature(reads, pinned, blind),
        _seed(reads, pinned, blind),
        _model(reads, pinned, blind),
        _snapshot(answers, blind),
        tools,
        _cap(tool_calls, pinned, blind + sum(read.answered is None for read in reads), bool(sent)),
        _again(retries, most_again, pinned, blind, bool(sent)),
    )
    last = sent[-1] if sent else None
    unrecorded = tuple(each.refused or "" for each in ordered if each.unrecorded)
    answering = [answer.model for answer in answers]
    named = answering if any(answering) else [read.asked.model for read in reads]
    return Observation(
        controls=controls,
        calls=len(sent),
        refused=len(ordered) - len(sent),
        unobserved=blind,
        failed=sum(_failed(each) for each in sent),
        retries=retries,
        door_retries=sum(each.by_door for each in sent),
        tokens_in=sum(usage.input for usage in usages) if usages else None,
        tokens_out=sum(usage.output for usage in usages) if usages else None,
        tokens_cached=sum(usage.cached for usage in usages),
        tokens_reasoning=sum(usage.reasoning for usage in usages),
        unreported=sum(answer.usage is None and answer.failure is None for answer in answers),
        models=tuple(dict.fromkeys(name for name in named if name)),
        tool_calls=tool_calls,
        most_at_once=_most_at_once(sent),
        ending="mismatch" if tools.status == "violated" or unrecorded else "tool_cap" if capped else None,
        gave_up=_error(last) if last is not None and _failed(last) else None,
        unrecorded=unrecorded,
    )


def _temperature(reads: Sequence[Read], pinned: Pinned, blind: int) -> ControlSeen:
    def value(read: Read) -> float | None:
        return read.asked.temperature if read.asked.temperature is not None else _used(read.answered)

    return _valued("controls.temperature", f"{pinned.temperature:g}", reads, value, (pinned.temperature,), blind)


def _used(answered: Answered | None) -> float | None:
    return None if answered is None else answered.temperature


def _seed(reads: Sequence[Read], pinned: Pinned, blind: int) -> ControlSeen:
    shown = " or ".join(str(seed) for seed in dict.fromkeys(pinned.seeds))
    return _valued("controls.seed", shown, reads, lambda read: read.asked.seed, pinned.seeds, blind)


def _valued(
    control: str,
    shown: str,
    reads: Sequence[Read],
    value: Callable[[Read], float | None],
    right: tuple[float, ...],
    blind: int,
) -> ControlSeen:
    values = [value(read) for read in reads]
    seen = Counter(
        "not sent" if each is None else f"{each:.15g}" if isinstance(each, float) else f"{each}" for each in values
    )
    if blind:
        seen["unobserved"] = blind
    wrong = sum(each is not None and each not in right for each in values)
    unknown = not values or blind > 0 or None in values
    status: Status = "violated" if wrong else "unobserved" if unknown else "verified"
    return ControlSeen(control, status, shown, tuple(seen.most_common()), wrong)


def _model(reads: Sequence[Read], pinned: Pinned, blind: int) -> ControlSeen:
    seen: Counter[str] = Counter()
    wrong = 0
    for read in reads:
        asked = read.asked.model or "no model"
        answered = None if read.answered is None else read.answered.model
        seen[asked if answered in (None, asked) else f"{asked} answered by {answered}"] += 1
        right = pinned.model is None or _is(asked, pinned.model)
        wrong += not right or (answered is not None and not _is(answered, asked))
    note = "the card names no model" if pinned.model is None else ""
    unknown = not reads or blind or pinned.model is None
    status: Status = "violated" if wrong else "unobserved" if unknown else "verified"
    return ControlSeen("controls.model", status, pinned.model or "none", tuple(seen.most_common()), wrong, note)


def _is(name: str, pinned: str) -> bool:
    """True for the name itself and for a dated snapshot of it."""
    return name == pinned or re.fullmatch(re.escape(pinned.removesuffix("-latest")) + _DATED, name) is not None


def _snapshot(answers: Sequence[Answered], blind: int) -> ControlSeen:
    names = Counter(answer.model for answer in answers if answer.model)
    others = sum(names.values()) - max(names.values(), default=0)
    status: Status = "violated" if others else "verified" if names and not blind else "unobserved"
    note = "the name that answers changed during the episode" if others else ""
    return ControlSeen("model_snapshot", status, "one", tuple(names.most_common()), others, note)


def _tools(ordered: Sequence[Exchange], pinned: Pinned, blind: int) -> ControlSeen:
    seen: Counter[str] = Counter()
    wrong = 0
    reads = [each.found for each in ordered if isinstance(each.found, Read)]
    for read in reads:
        outside = set(pinned.outside(read.asked))
        if read.answered is not None:
            outside |= set(pinned.outside_calls(read.answered.calls))
        wrong += bool(outside)
        seen.update(outside)
    status: Status = "violated" if wrong else "verified" if reads and not blind else "unobserved"
    shown = ", ".join(sorted(pinned.tools)) or "no tool"
    return ControlSeen("controls.tool_allowlist", status, shown, tuple(seen.most_common()), wrong)


def _cap(tool_calls: int, pinned: Pinned, unread: int, any_sent: bool) -> ControlSeen:
    over = max(tool_calls - pinned.max_tool_calls, 0)
    status: Status = "violated" if over else "verified" if any_sent and not unread else "unobserved"
    seen = ((f"{tool_calls} tool calls", 1),)
    return ControlSeen("controls.max_tool_calls", status, str(pinned.max_tool_calls), seen, over)


def _again(retries: int, most: int, pinned: Pinned, blind: int, any_sent: bool) -> ControlSeen:
    over = max(most - pinned.retries, 0)
    status: Status = "violated" if over else "verified" if any_sent and not blind else "unobserved"
    seen = ((f"{retries} retries", 1),)
    return ControlSeen("controls.retries", status, str(pinned.retries), seen, retries if over else 0)


def _retries(sent: Sequence[Exchange]) -> tuple[int, int]:
    """How many calls asked again what had failed, and the most for one question."""
    failed: set[str] = set()
    again: Counter[str] = Counter()
    for each in sent:
        if not isinstance(each.found, Read):
            continue
        question = each.found.asked.input_sha256
        if question in failed:
            again[question] += 1
        if _failed(each):
            failed.add(question)
        else:
            failed.discard(question)
    return again.total(), max(again.values(), default=0)


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


def _most_at_once(sent: Sequence[Exchange]) -> int:
    moments = [(each.started_s, 1) for each in sent] + [(each.ended_s, -1) for each in sent]
    under_way = most = 0
    for _, step in sorted(moments):  # at the same instant, ends come before starts
        under_way += step
        most = max(most, under_way)
    return most
