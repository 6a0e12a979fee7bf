"""The script of a scripted model: what it answers at which turn, and how it fails. Pure.

The turn is read from the request, never counted: a request that is sent again gets the same answer again.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Literal, Self

from scoresheet.canonical import JsonValue
from scoresheet.errors import Malformed
from scoresheet.model.wire import anthropic, openai_chat, openai_responses, parts

FaultKind = Literal["status", "drop", "cut", "error_event", "hang"]
_FAULTS: tuple[FaultKind, ...] = ("status", "drop", "cut", "error_event", "hang")
_SAYS = frozenset({"text", "tool", "arguments", "custom", "input", "namespace", "calls", "choose", "weight", "model"})
_SCRIPT = frozenset({"model", "turns", "faults", "side", "usage", "delay_ms"})
_USAGE = parts.Usage(1000, 50, 100, 0, 7)
_FAULT = frozenset({"turn", "times", "kind", "status", "headers", "seconds", "message"})


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model makes."""

    tool: str
    arguments: JsonValue = field(default_factory=dict)
    """An object, or the text of a custom tool."""
    namespace: str | None = None
    custom: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model says at one turn."""

    text: str | None = None
    calls: tuple[Call, ...] = ()
    model: str | None = None
    """The name that answers at this turn, where it is another than the script's."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Several things that the model may say: which, the seed decides."""

    turns: tuple[Turn, ...]
    weights: tuple[float, ...]

    def pick(self, *of: object) -> Turn:
        """The one for these values: always the same one."""
        hashed = hashlib.sha256(":".join(map(str, of)).encode()).digest()
        point = int.from_bytes(hashed[:8], "big") / 2**64 * sum(self.weights)
        for turn, weight in zip(self.turns, self.weights, strict=True):
            point -= weight
            if point < 0:
                return turn
        return self.turns[-1]


@dataclass(frozen=True, slots=True)
class Fault:
    """A way to fail."""

    kind: FaultKind
    turn: int | None
    """`None`: at every turn."""
    times: int | None
    """How often, then the turn is answered; `None`: always."""
    status: int = 500
    headers: tuple[tuple[str, str], ...] = ()
    seconds: float = 60.0
    message: str = "scripted fault"


@dataclass(frozen=True, slots=True)
class Script:
    """A scripted model."""

    turns: tuple[Choice, ...]
    """The last one is said again for ever."""
    faults: tuple[Fault, ...] = ()
    model: str | None = None
    """The name that answers; `None`: the one that was asked for."""
    side: str | None = None
    """Said to requests without tools, such as titles that an agent has made beside its work."""
    usage: parts.Usage = _USAGE
    delay_ms: float = 0.0
    """Before each event of a stream."""

    @classmethod
    def of(cls, value: JsonValue) -> Self:
        """The script in a document. Raises `Malformed`."""
        document = _object(value, "", _SCRIPT)
        turns = document.get("turns")
        if not isinstance(turns, list) or not turns:
            raise Malformed("a script needs turns, at least one", "#/turns", "turns: [{text: done}]")
        usage = _object(document.get("usage", {}), "/usage", frozenset({"input", "output", "cached", "reasoning"}))
        side, model = document.get("side"), document.get("model")
        told = {name: _whole(number, f"/usage/{name}") for name, number in usage.items()}
        faults = document.get("faults", [])
        return cls(
            turns=tuple(_choice(turn, f"/turns/{place}") for place, turn in enumerate(turns)),
            faults=tuple(_fault(fault, f"/faults/{place}") for place, fault in enumerate(_list(faults, "/faults"))),
            model=None if model is None else _text(model, "/model"),
            side=None if side is None else _text(side, "/side"),
            usage=parts.Usage(
                told.get("input", 1000), told.get("output", 50), told.get("cached", 100), 0, told.get("reasoning", 7)
            ),
            delay_ms=_number(document.get("delay_ms", 0), "/delay_ms"),
        )

    def says(self, dialect: str, body: dict[str, JsonValue], seed: int) -> Turn:
        """What is answered to a request; `seed` and the request's own seed decide where there is a choice."""
        if self.side is not None and not body.get("tools"):
            return Turn(self.side)
        turn = turn_of(dialect, body)
        choice = self.turns[min(turn, len(self.turns) - 1)]
        return choice.pick(seed, turn, parts.whole(body.get("seed")))


def turn_of(dialect: str, body: dict[str, JsonValue]) -> int:
    """How often the model has spoken before, as the request tells it."""
    if dialect != openai_responses.DIALECT:
        return sum(message.get("role") == "assistant" for message in parts.items(body.get("messages")))
    spoken = 0
    before = parts.text(body.get("previous_response_id")) or ""
    number = before.rpartition("_")[2]
    if before.startswith("resp_stub_") and number.isascii() and number.isdigit() and len(number) < 7:
        spoken = int(number) + 1
    own = False
    for item in parts.items(body.get("input")):
        kind = parts.text(item.get("type")) or "message"
        was, own = own, kind == "reasoning" or kind.endswith("_call") or item.get("role") == "assistant"
        spoken += own and not was
    return spoken


def offered(dialect: str, body: dict[str, JsonValue]) -> tuple[str, ...]:
    """Names of the tools that a request offers."""
    decoder = {each.DIALECT: each for each in (openai_chat, openai_responses, anthropic)}[dialect]
    return tuple(tool.name for tool in decoder.asked(body).tools)


def _choice(value: JsonValue, place: str) -> Choice:
    turn = _object(value, place, _SAYS)
    if "choose" not in turn:
        return Choice((_turn(turn, place),), (1.0,))
    options = _list(turn["choose"], f"{place}/choose")
    if not options:
        raise Malformed("nothing to choose from", f"#{place}/choose", "give at least one turn")
    turns = tuple(
        _turn(_object(each, f"{place}/choose/{number}", _SAYS), f"{place}/choose/{number}")
        for number, each in enumerate(options)
    )
    weights = tuple(
        _number(each.get("weight", 1), f"{place}/choose/{number}/weight") for number, each in enumerate(options)
    )
    if sum(weights) <= 0:
        raise Malformed("every weight is 0", f"#{place}/choose", "give one of them a weight")
    return Choice(turns, weights)


def _turn(turn: dict[str, JsonValue], place: str) -> Turn:
    calls = [
        _call(_object(each, f"{place}/calls/{number}", _SAYS), f"{place}/calls/{number}")
        for number, each in enumerate(_list(turn.get("calls", []), f"{place}/calls"))
    ]
    if "tool" in turn or "custom" in turn:
        calls.insert(0, _call(turn, place))
    text = turn.get("text")
    if text is None and not calls:
        raise Malformed("a turn that says nothing", f"#{place}", "give it text, tool, custom, calls or choose")
    model = turn.get("model")
    return Turn(
        None if text is None else _text(text, f"{place}/text"),
        tuple(calls),
        None if model is None else _text(model, f"{place}/model"),
    )


def _call(call: dict[str, JsonValue], place: str) -> Call:
    if "custom" in call:
        return Call(
            _text(call["custom"], f"{place}/custom"), _text(call.get("input", ""), f"{place}/input"), custom=True
        )
    space = call.get("namespace")
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict | str):
        raise Malformed("arguments are an object, or text that is sent as it is", f"#{place}/arguments")
    return Call(
        _text(call.get("tool"), f"{place}/tool"),
        arguments,
        None if space is None else _text(space, f"{place}/namespace"),
    )


def _fault(value: JsonValue, place: str) -> Fault:
    fault = _object(value, place, _FAULT)
    kind = next((each for each in _FAULTS if each == fault.get("kind", "status")), None)
    if kind is None:
        raise Malformed(f"no such fault: {fault.get('kind')!r}", f"#{place}/kind", f"one of {', '.join(_FAULTS)}")
    turn, times = fault.get("turn"), fault.get("times", 1)
    headers = _object(fault.get("headers", {}), f"{place}/headers", None)
    status = _whole(fault.get("status", 500), f"{place}/status")
    if not 400 <= status <= 599:
        raise Malformed(f"{status} is no status of an error", f"#{place}/status", "400 to 599")
    for name, told in headers.items():
        if any(letter in f"{name}{told}" for letter in "\r\n\0"):
            raise Malformed("a header holds a line break", f"#{place}/headers")
        if not (name.isascii() and name) or any(ord(letter) > 255 for letter in str(told)):
            raise Malformed("a header that can't be sent: its name is ASCII, its value Latin-1", f"#{place}/headers")
    return Fault(
        kind=kind,
        turn=None if turn in (None, "any") else _whole(turn, f"{place}/turn"),
        times=None if times == "always" else _whole(times, f"{place}/times"),
        status=status,
        headers=tuple((name, str(told)) for name, told in headers.items()),
        seconds=_number(fault.get("seconds", 60), f"{place}/seconds"),
        message=_text(fault.get("message", "scripted fault"), f"{place}/message"),
    )


def _object(value: JsonValue, place: str, known: frozenset[str] | None) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise Malformed("an object is needed here", f"#{place}")
    unknown = [] if known is None else sorted(set(value) - known)
    if unknown and known is not None:
        raise Malformed(f"unknown member {unknown[0]!r}", f"#{place}", f"known: {', '.join(sorted(known))}")
    return value


def _list(value: JsonValue, place: str) -> list[JsonValue]:
    if not isinstance(value, list):
        raise Malformed("a list is needed here", f"#{place}")
    return value


def _text(value: JsonValue, place: str) -> str:
    if not isinstance(value, str):
        raise Malformed("text is needed here", f"#{place}")
    return value


def _whole(value: JsonValue, place: str) -> int:
    found = parts.whole(value)
    if found is None or found < 0:
        raise Malformed("a whole number, 0 or more, is needed here", f"#{place}")
    return found


def _number(value: JsonValue, place: str) -> float:
    found = parts.number(value)
    if found is None or found < 0:
        raise Malformed("a number, 0 or more, is needed here", f"#{place}")
    return found
