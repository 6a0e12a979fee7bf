"""States out of a recording: what was written changed what is read afterwards. Pure.

One scenario a service. Each write that the service accepted leads from one state to the next; a request that was
answered otherwise in another state requires the state in which it was recorded. What was never seen is not guessed: in
a state in which such a request was not recorded, the replay has no answer.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import CALL, Request, Response
from scoresheet.pack import mcp_calls
from scoresheet.record.exchange import Exchange

FIRST = "start"
MCP = "mcp"
"""The scenario of the tools that have no HTTP."""
_READING = frozenset({"GET", "HEAD", "OPTIONS", "QUERY", "TRACE"})


@dataclass(frozen=True, slots=True)
class Told:
    """What a recording of another tool says of one call: names as they stand there."""

    scenario: str
    requires: str | None
    sets: str | None


@dataclass(frozen=True, slots=True)
class States:
    """The scenarios of a task, and what each of its calls says of them."""

    scenarios: dict[str, JsonValue]
    calls: tuple[dict[str, JsonValue] | None, ...]
    """The `state` of each call; `None` for a call that says nothing."""


@dataclass(frozen=True, slots=True)
class _Step:
    scenario: str
    state: str
    """In which the call was recorded."""
    sets: str | None
    key: str
    answer: object


def infer(exchanges: Sequence[Exchange], fingerprints: Sequence[str], reading: frozenset[str] = frozenset()) -> States:
    """The states of recorded calls, in the order in which they were asked; none where no answer ever changed.

    `reading` names the tools without HTTP that change nothing.
    """
    steps = list(_steps(exchanges, fingerprints, reading))
    answers: dict[str, dict[str, list[object]]] = defaultdict(lambda: defaultdict(list))
    for step in steps:
        answers[step.key][step.state].append(step.answer)
    changing = {key for key, by_state in answers.items() if _differ(list(by_state.values()))}
    told = {step.scenario for step in steps if step.key in changing}
    scenarios: dict[str, JsonValue] = {}
    calls: list[dict[str, JsonValue] | None] = []
    for step in steps:
        if step.scenario not in told:
            calls.append(None)
            continue
        states = scenarios.setdefault(step.scenario, [FIRST])
        state: dict[str, JsonValue] = {"scenario": step.scenario}
        if step.sets is not None:
            states.append(step.sets)
        if step.sets is not None or step.key in changing:
            calls.append(state | {"requires": step.state} | ({"sets": step.sets} if step.sets is not None else {}))
        else:
            calls.append(None)
    return States(scenarios, tuple(calls))


def told(calls: Sequence[Told | None], first: str) -> States:
    """The states that another tool told, each episode beginning in `first`; names become such as a pack can hold."""
    scenarios: dict[str, list[str]] = {}
    names: dict[str, dict[str, str]] = defaultdict(dict)
    found: list[dict[str, JsonValue] | None] = []
    for call in calls:
        if call is None or call.requires is call.sets is None:
            found.append(None)
            continue
        scenario = _name(call.scenario, names[""])
        known = names[f"of {scenario}"]
        states = scenarios.setdefault(scenario, [_name(first, known)])
        state: dict[str, JsonValue] = {"scenario": scenario}
        for member, name in (("requires", call.requires), ("sets", call.sets)):
            if name is not None:
                state[member] = _name(name, known)
                if state[member] not in states:
                    states.append(state[member])
        found.append(state)
    return States(dict(scenarios), tuple(found))


def _name(text: str, known: dict[str, str]) -> str:
    """A name that a pack can hold, the same for the same text and for no other."""
    if text not in known:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:60] or "state"
        candidates = [plain, *(f"{plain}-{number}" for number in range(2, 1000))]
        known[text] = next(each for each in candidates if each not in known.values())
    return known[text]


def _steps(exchanges: Sequence[Exchange], fingerprints: Sequence[str], reading: frozenset[str]) -> Sequence[_Step]:
    now: dict[str, str] = {}
    names: dict[str, str] = {}
    writes: dict[str, int] = defaultdict(int)
    steps = []
    for exchange, key in zip(exchanges, fingerprints, strict=True):
        request, response = exchange.request, exchange.response
        scenario = _name(request.upstream or MCP, names)  # an environment variable may begin with _
        state = now.get(scenario, FIRST)
        sets = None
        if _writes(request, reading) and _accepted(response):
            writes[scenario] += 1
            sets = now[scenario] = f"write-{writes[scenario]}"
        steps.append(_Step(scenario, state, sets, key, (response.status, response.fault, response.body)))
    return steps


def _writes(request: Request, reading: frozenset[str]) -> bool:
    if request.method != CALL:
        return request.method not in _READING
    return request.target not in reading and not request.target.startswith(mcp_calls.PREFIX)


def _accepted(response: Response) -> bool:
    """A write that ended in a fault may have been accepted all the same: nothing says that it was not."""
    return response.fault is not None or response.status < 400


def _differ(by_state: Sequence[list[object]]) -> bool:
    """Whether a request was answered otherwise in one state than in another."""
    first = by_state[0][0]
    if all(answer == first for answers in by_state for answer in answers):
        return False
    return any(answers != by_state[0] for answers in by_state[1:])
