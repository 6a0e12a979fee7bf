"""The scenarios of a task: what its calls say of states must be declared, and every state must be reached. Pure.

A scenario is a list of states, the first of which each episode begins in. Cycles are as good as chains.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from scoresheet.documents.task import Call, CallState, Task
from scoresheet.documents.tool import CALL
from scoresheet.errors import Finding
from scoresheet.pack import mcp_calls

Placed = tuple[int, Call, CallState]
"""A call that names a scenario, and its place in the task."""


def findings(path: str, task: Task) -> Iterator[Finding]:
    """Every rule that a task's scenarios break; none for a task without them."""
    placed = [(place, call, call.state) for place, call in enumerate(task.calls) if call.state is not None]
    if not placed and not task.scenarios:
        return
    unclear = (*_undeclared(path, placed, task.scenarios), *_mixed(path, placed))
    yield from unclear
    yield from _unasked(path, placed)
    if unclear:  # what can be reached is not known
        return
    for scenario, states in task.scenarios.items():
        mine = [each for each in placed if each[2].scenario == scenario]
        where = f"{path}#/scenarios/{scenario}"
        if not mine:
            yield Finding("task-scenario-unused", where, "no call names this scenario", "remove it")
            continue
        reached = reachable(states, [state for _, _, state in mine])
        for place, state in enumerate(states):
            if state not in reached:
                what = f"no call leads to the state {state!r} from {states[0]!r}, in which each episode begins"
                mend = "remove it, or let a call that can be made set it"
                yield Finding("task-state-unreachable", f"{where}/{place}", what, mend)
        yield from _shadowed(path, task, scenario, reached)


def reachable(states: Sequence[str], steps: Sequence[CallState]) -> frozenset[str]:
    """The states that some order of calls can lead to; the first is where it begins."""
    leads: dict[str | None, set[str]] = defaultdict(set)
    for step in steps:
        if step.sets is not None:
            leads[step.requires].add(step.sets)
    reached: set[str] = set()
    ahead = [states[0], *leads[None]]  # what requires nothing can be called at once
    while ahead:
        state = ahead.pop()
        if state not in reached:
            reached.add(state)
            ahead += leads[state]
    return frozenset(reached)


def _undeclared(path: str, placed: Sequence[Placed], scenarios: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    for place, _, state in placed:
        where = f"{path}#/calls/{place}/state"
        states = scenarios.get(state.scenario)
        if states is None:
            what = f"the task declares no scenario {state.scenario!r}"
            mend = f'add "scenarios": {{"{state.scenario}": ["<first state>", …]}} to the task'
            yield Finding("task-state-undeclared", f"{where}/scenario", what, mend)
            continue
        for member, name in (("requires", state.requires), ("sets", state.sets)):
            if name is not None and name not in states:
                what = f"the scenario {state.scenario} declares no state {name!r}"
                mend = f"it declares {', '.join(states)}: name one of these, or add it there"
                yield Finding("task-state-undeclared", f"{where}/{member}", what, mend)


def _unasked(path: str, placed: Sequence[Placed]) -> Iterator[Finding]:
    reads = {mcp_calls.name_of(method) for method in (*mcp_calls.LISTS, mcp_calls.HELLO)}
    for place, call, _ in placed:
        if call.request is not None and call.request.method == CALL and call.request.path in reads:
            what = f"{call.request.path} is shown to clients without being a call: it has no state"
            yield Finding("task-state-unasked", f"{path}#/calls/{place}/state", what, "remove its state")


def _mixed(path: str, placed: Sequence[Placed]) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for place, call, state in placed:
        known = first.setdefault(call.request_fingerprint, state.scenario)
        if known != state.scenario:
            what = f"calls of one fingerprint belong to two scenarios, {known} and {state.scenario}"
            mend = "let one scenario decide which of them answers"
            yield Finding("task-state-mixed", f"{path}#/calls/{place}/state/scenario", what, mend)


def _shadowed(path: str, task: Task, scenario: str, reached: frozenset[str]) -> Iterator[Finding]:
    taken: dict[str, set[str]] = defaultdict(set)
    for call in task.calls:
        if call.state is not None and call.state.scenario == scenario and call.state.requires is not None:
            taken[call.request_fingerprint].add(call.state.requires)
    for place, call in enumerate(task.calls):
        anywhere = call.state is None or call.state.requires is None
        if anywhere and reached <= taken.get(call.request_fingerprint, set()):
            what = "this call never answers: others of its fingerprint require each state that can be reached"
            mend = "say which state it requires, or remove it"
            yield Finding("task-state-shadowed", f"{path}#/calls/{place}", what, mend)
