"""Replay as values: `ask(request)` gives `Hit | Miss | Capped`. Pure: no sockets, files, clock or threads.

A `Tape` is one task's recordings, compiled once and shared by every episode of the task: it never changes. A `Session`
is one episode's place on it. Any number of threads may ask one session: its only state are counters, and each is moved
by one `next` of an `itertools.count`, which the interpreter does as one step; two askers never get the same place of a
sequence, nor the same call number. The price of a request does not depend on how many calls are recorded.

Where a task has scenarios, a call is answered by what was recorded in the state that the episode is in, and may lead to
another. The state and the place in its sequence move as one step: who asks from several threads gives a lock (`turns`).
"""

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import jsonschema_rs

from scoresheet import canonical, json_pointer
from scoresheet.canonical import JsonValue
from scoresheet.documents.call_record import MissKind, Nearest
from scoresheet.documents.manifest import Protocol
from scoresheet.documents.task import Call, Task
from scoresheet.documents.tool import CALL, Request, Response, Tool
from scoresheet.errors import Malformed
from scoresheet.pack import fingerprint, mcp_calls
from scoresheet.pack.toolbox import Toolbox
from scoresheet.replay import difference

OnExhausted = Literal["last", "refuse"]

_NEIGHBOURS = 16
"""Recordings on each side of the asked one, in order of their text, that are compared to find the nearest."""
_SAMPLES = 32
"""Recordings spread over a group that are compared as well: neighbours in text differ late, not least."""
_LINES = 20
_COMPARED_BYTES = 256 * 1024
_SCHEMA_ERRORS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """One recorded call of the tape."""

    place: int
    """Where it stands in the task's `calls`."""
    fingerprint: str
    call: Call

    def response(self) -> Response:
        """The literal answer."""
        return self.call.response()


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What the tools' schemas say of one request."""

    tool: str | None = None
    """The tool that the request is a call of; `None` when that can't be told."""
    errors: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """The tool's `ignore` rules that took something out before the request was compared: each weakens the test."""


@dataclass(frozen=True, slots=True, eq=False)
class Hit:
    """The recorded answer. A schema-invalid call that was recorded is a hit all the same."""

    recorded: Recorded
    repeated: bool
    """True beyond the recorded count of this fingerprint."""
    verdict: Verdict
    accepted: bool = False
    """True when the answer came from elsewhere, and is recorded now: never in a run."""

    @property
    def fingerprint(self) -> str:
        return self.recorded.fingerprint


@dataclass(frozen=True, slots=True, eq=False)
class Miss:
    """No recording answers the request, and why."""

    kind: MissKind
    fingerprint: str
    verdict: Verdict
    request: Request
    tape: "Tape" = field(repr=False)
    repeated: bool = False
    recorded_count: int = 0
    """How often this very request was recorded, in this state: above 0 when the kind is `exhausted`."""
    states: tuple[tuple[str, str], ...] = ()
    """Scenario → the state that the episode was in, where the task has scenarios."""

    def nearest(self) -> Nearest | None:
        """The recorded request most like this one, with readable lines of difference; `None` when none is known.

        v1 recordings hold no readable request, so they never have one. Bounded: it compares at most about 64
        recordings, whatever the size of the tape.
        """
        return self.tape.nearest(self)


@dataclass(frozen=True, slots=True, eq=False)
class Capped:
    """One call more than `max_tool_calls`: not answered."""

    fingerprint: str
    verdict: Verdict


Answer = Hit | Miss | Capped
_UNCHECKED = Verdict()


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A request that the tape knows, before the episode's counters are asked: the same for every episode."""

    fingerprint: str
    verdict: Verdict
    hits: tuple[Hit, ...]
    """Answer of the first call, the second…; v1 answers every time with the first entry."""
    beyond: Hit | Miss
    """Answer of every call after those."""
    counter: str
    """Which of the episode's counters tells the place."""
    scenario: str = ""
    """The scenario whose state decides; empty when none does, and then the rest is so too."""
    in_state: Mapping[str, "Found"] = field(default_factory=dict)
    """State → what answers in it. In any other state it is what stands above."""


@dataclass(frozen=True, slots=True, eq=False)
class Absent:
    """A request that the tape does not know."""

    miss: Miss


Looked = Found | Absent


def unchecked(task: Task, tools: Mapping[str, Tool], protocol: Protocol) -> tuple[str, ...]:
    """The offered tools whose arguments can't be checked: no `tools/<name>.json` or no `http` (v1), or no schema."""
    found = ((reference.name, tools.get(reference.name)) for reference in task.tools)
    v1 = protocol == "tool-replay-v1"
    return tuple(
        name for name, tool in found if tool is None or tool.input_schema is None or (v1 and tool.http is None)
    )


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Tape:
    """One task's recordings, compiled. `Tape.of` makes it; nothing changes it."""

    protocol: Protocol
    on_exhausted: OnExhausted
    offered: frozenset[str]
    listed: tuple[str, ...]
    """The same in the order of the task file, each once."""
    schema_unchecked: tuple[str, ...]
    """Offered tools whose arguments can't be checked: no `tools/<name>.json` or no `http` (v1), or no schema."""
    vary: frozenset[str]
    """Lower-case names of every header that can change an answer of this tape."""
    first_states: Mapping[str, str]
    """Scenario → the state that each episode begins in."""
    sequences: Mapping[str, tuple[Recorded, ...]]
    _toolbox: Toolbox
    _validators: Mapping[str, Any]
    _groups: Mapping[tuple[str, str, str], tuple[Recorded, ...]]
    _places: tuple[tuple[str, str, str], ...]
    _memo: dict[Any, Any]
    """Search indexes of groups, built when first missed: a cache, not state."""

    @classmethod
    def of(
        cls,
        task: Task,
        tools: Mapping[str, Tool] | Toolbox,
        protocol: Protocol = "tool-replay-v2",
        on_exhausted: OnExhausted = "last",
    ) -> Self:
        """The tape of one task; `tools` are the pack's, by name, or their toolbox, which tasks may share.

        Raises `Malformed` when a tool's schema is no JSON Schema, or refers to one that is not inside it.
        """
        toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools.values())
        tools = toolbox.by_name
        offered = tuple(reference.name for reference in task.tools)
        known = {name: tools[name] for name in offered if name in tools}
        sequences: dict[str, list[Recorded]] = {}
        groups: dict[tuple[str, str, str], list[Recorded]] = {}
        for place, call in enumerate(task.calls):
            recorded = Recorded(place, call.request_fingerprint, call)
            sequence = sequences.setdefault(recorded.fingerprint, [])
            if call.request is not None and not sequence:
                group = (call.request.upstream, call.request.path, call.request.method)
                groups.setdefault(group, []).append(recorded)
            sequence.append(recorded)
        return cls(
            protocol=protocol,
            on_exhausted=on_exhausted,
            offered=frozenset(offered),
            listed=tuple(dict.fromkeys(offered)),
            schema_unchecked=unchecked(task, tools, protocol),
            vary=frozenset(
                header.lower() for tool in tools.values() if tool.http is not None for header in tool.http.vary
            ),
            first_states={scenario: states[0] for scenario, states in task.scenarios.items()},
            sequences={key: tuple(entries) for key, entries in sequences.items()},
            _toolbox=toolbox,
            _validators={
                name: _validator(name, tool.input_schema)
                for name, tool in known.items()
                if tool.input_schema is not None
            },
            _groups={key: tuple(entries) for key, entries in groups.items()},
            _places=tuple(sorted(groups)),
            _memo={},
        )

    def look(self, request: Request) -> Looked:
        """What the tape knows of a request at a recorded API's door."""
        return self._look(request, self._verdict(request))

    def look_call(self, name: str, arguments: bytes) -> Looked:
        """What the tape knows of a tool called by name; `arguments` is strict JSON, no bytes are `{}`."""
        request = Request("", CALL, name, (), arguments)
        if name.startswith(mcp_calls.PREFIX) and name not in self.offered:
            return self._look(request, _UNCHECKED)  # what an MCP server holds beside tools
        if name not in self.offered:
            verdict = Verdict(name, (f"{name}: the task offers no such tool",))
            return Absent(Miss("unknown_tool", self._digest(request), verdict, request, self))
        tool = self.tool(name)
        try:
            value = canonical.loads(arguments) if arguments else {}
        except canonical.JsonError as error:
            verdict = Verdict(name, (f"{name}: the arguments are not strict JSON: {error.what}",))
            return Absent(Miss("no_match", self._digest(request), verdict, request, self))
        if not isinstance(value, dict):
            verdict = Verdict(name, (f"{name}: the arguments must be a JSON object",))
            return Absent(Miss("no_match", self._digest(request), verdict, request, self))
        verdict = Verdict(name, self._schema_errors(name, value))
        try:
            request = self._toolbox.request_for(tool, value)
        except Malformed as error:  # an argument that the path template needs is missing or is no scalar
            verdict = Verdict(name, verdict.errors or (f"{name}: {error.what}",))
            return Absent(Miss("no_match", self._digest(request), verdict, request, self))
        return self._look(request, verdict)

    def tool(self, name: str) -> Tool:
        """A tool as the pack describes it; one that it has no file for is nothing but a name."""
        return self._toolbox.by_name.get(name) or Tool(name=name)

    def find(self, request: Request) -> tuple[Tool, JsonValue] | None:
        """The tool of the pack that a request calls, and its arguments; `None` when it calls none."""
        return self._toolbox.find(request)

    def refuse(self, request: Request) -> Absent:
        """A request that no recording can answer, whatever its fingerprint: a tunnel, a protocol upgrade."""
        return Absent(Miss("no_match", self._digest(request), _UNCHECKED, request, self))

    def nearest(self, miss: Miss) -> Nearest | None:
        """See `Miss.nearest`."""
        asked = miss.request
        if miss.kind in ("exhausted", "wrong_state"):
            first = self.sequences[miss.fingerprint][0].call.request
            method, path = (first.method, first.path) if first else (asked.method, asked.target)
            why = tuple(self._same_request(miss))
            return Nearest(fingerprint=miss.fingerprint, method=method, path=path, difference=why)
        best: tuple[int, int, Recorded, tuple[str, ...]] | None = None
        own = self._parts(asked)
        for recorded in self._candidates(asked):
            copy = recorded.call.request
            assert copy is not None  # only calls with a readable request are in a group
            lines = difference.lines(self._parts(copy.as_request()), own)
            if best is None or (len(lines), recorded.place) < best[:2]:
                best = (len(lines), recorded.place, recorded, lines)
        if best is None:
            return None
        recorded, lines = best[2], best[3]
        copy = recorded.call.request
        assert copy is not None
        path = copy.path if copy.query is None else f"{copy.path}?{copy.query}"
        more = (f"and {len(lines) - _LINES} more",) if len(lines) > _LINES else ()
        return Nearest(
            fingerprint=recorded.fingerprint, method=copy.method, path=path, difference=(*lines[:_LINES], *more)
        )

    def _same_request(self, miss: Miss) -> Iterable[str]:
        """Why what was recorded of this very request does not answer it."""
        states = {call.state.scenario: call.state for call in self._calls(miss.fingerprint) if call.state is not None}
        now = dict(miss.states)
        if miss.kind == "wrong_state":
            for scenario in states:
                known = sorted({call.state.requires or "" for call in self._calls(miss.fingerprint) if call.state})
                yield f"state {scenario}: recorded in {' and '.join(known)}, asked in {now.get(scenario)}"
            return
        count = miss.recorded_count
        within = "".join(f" in the state {now[scenario]} of {scenario}" for scenario in states if scenario in now)
        yield f"recorded {count} time{'s' * (count != 1)}{within}, asked once more"

    def _calls(self, digest: str) -> tuple[Call, ...]:
        return tuple(recorded.call for recorded in self.sequences[digest])

    def _look(self, request: Request, verdict: Verdict) -> Looked:
        digests, ignored = self._digests(request)
        if ignored:
            verdict = replace(verdict, ignored=ignored)
        for digest in digests:
            if sequence := self.sequences.get(digest):
                return self._found(digest, sequence, verdict, request)
        return Absent(Miss("no_match", digests[0] if digests else "", verdict, request, self))

    def _found(self, digest: str, sequence: tuple[Recorded, ...], verdict: Verdict, request: Request) -> Found:
        if self.protocol == "tool-replay-v1":
            sequence = (sequence[0],) * len(sequence)
        elif self.first_states:
            return self._found_by_state(digest, sequence, verdict, request)
        return self._sequence(digest, sequence, verdict, request, digest)

    def _sequence(
        self, digest: str, sequence: tuple[Recorded, ...], verdict: Verdict, request: Request, counter: str
    ) -> Found:
        beyond: Hit | Miss
        if self.protocol == "tool-replay-v1" or self.on_exhausted == "last":
            beyond = Hit(sequence[-1], True, verdict)
        else:
            beyond = Miss("exhausted", digest, verdict, request, self, True, len(sequence))
        hits = tuple([Hit(recorded, False, verdict) for recorded in sequence])
        return Found(digest, verdict, hits, beyond, counter)

    def _found_by_state(self, digest: str, sequence: tuple[Recorded, ...], verdict: Verdict, request: Request) -> Found:
        by_state: dict[str, list[Recorded]] = {}
        scenario = ""
        for recorded in sequence:
            state = recorded.call.state
            by_state.setdefault((state and state.requires) or "", []).append(recorded)
            scenario = scenario or (state.scenario if state else "")
        anywhere = tuple(by_state.pop("", ()))
        found = {
            name: self._sequence(digest, tuple(entries), verdict, request, f"{digest} {name}")
            for name, entries in by_state.items()
        }
        if anywhere:
            return replace(
                self._sequence(digest, anywhere, verdict, request, digest), scenario=scenario, in_state=found
            )
        wrong = Miss("wrong_state", digest, verdict, request, self)
        return Found(digest, verdict, (), wrong, digest, scenario, found)

    def _digests(self, request: Request) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Fingerprints to look up, in order; the ignore rules that removed something."""
        if self.protocol == "tool-replay-v1":
            return fingerprint.v1_of(request), ()
        _, vary, ignore = self._toolbox.rules_for(request)
        if not ignore:
            return (fingerprint.v2(request, vary),), ()
        found = fingerprint.canonical(request, vary, ignore)
        return (found.fingerprint,), found.removed

    def _digest(self, request: Request) -> str:
        digests, _ = self._digests(request)
        return digests[0] if digests else ""

    def _verdict(self, request: Request) -> Verdict:
        found = self._toolbox.find(request)
        if found is None:
            if not self.offered or self.schema_unchecked:  # it may be a call of a tool that can't be told
                return _UNCHECKED
            return Verdict(
                None, (f"{request.method} {difference.cut(request.target)}: no offered tool takes this request",)
            )
        tool, arguments = found
        if tool.name not in self.offered:
            return Verdict(tool.name, (f"{tool.name}: the task does not offer this tool",))
        return Verdict(tool.name, self._schema_errors(tool.name, arguments))

    def _schema_errors(self, name: str, arguments: JsonValue) -> tuple[str, ...]:
        validator = self._validators.get(name)
        if validator is None or name in self.schema_unchecked or validator.is_valid(arguments):
            return ()
        return tuple(
            f"{name}: {json_pointer.of(error.instance_path) or '(whole)'}: {difference.cut(error.message)}"
            for error in itertools.islice(validator.iter_errors(arguments), _SCHEMA_ERRORS)
        )

    def _parts(self, request: Request) -> dict[str, Any]:
        if len(request.body) > _COMPARED_BYTES:
            text = f"{len(request.body)} bytes, too many to compare here"
            request = replace(request, headers=(("content-type", "text/plain"),), body=text.encode())
        _, vary, ignore = self._toolbox.rules_for(request)
        return fingerprint.form(request, vary, ignore)

    def _candidates(self, asked: Request) -> Iterable[Recorded]:
        if not self._places:
            return ()
        path = asked.target.partition("?")[0] or "/"
        groups = [(asked.upstream, path, asked.method)]
        if groups[0] not in self._groups:
            place = bisect_left(self._places, groups[0])
            groups = list(self._places[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS])
            seen: list[Recorded] = []
            for group in groups:
                seen.extend(self._near(group, asked, 2))
            return seen
        return self._near(groups[0], asked, _NEIGHBOURS)

    def _near(self, group: tuple[str, str, str], asked: Request, neighbours: int) -> Sequence[Recorded]:
        """At most `4 * neighbours` recordings of one group: those next to the asked one in text, and samples."""
        entries = self._groups[group]
        if len(entries) <= 2 * neighbours:
            return entries
        index = self._memo.get(group)
        if index is None:
            index = sorted(((_text(entry.call), entry.place, entry) for entry in entries), key=lambda item: item[:2])
            self._memo[group] = index
        place = bisect_left(index, (_asked_text(asked), -1), key=lambda item: item[:2])
        near = index[max(0, place - neighbours) : place + neighbours]
        step = max(1, len(index) // min(_SAMPLES, 2 * neighbours))
        return [item[2] for item in (*near, *index[::step])]


@dataclass(slots=True, eq=False)
class Session:
    """One episode's place on a tape. `asked` counts; `ask` and `call` give the next answer."""

    tape: Tape
    max_tool_calls: int | None = None
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _counters: dict[str, "itertools.count[int]"] = field(default_factory=dict)
    turns: AbstractContextManager[object] = field(default_factory=nullcontext)
    """Entered while the states of scenarios move: a lock, when several threads ask."""
    _states: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._states = dict(self.tape.first_states)

    def ask(self, request: Request) -> Answer:
        """The answer to a request at a recorded API's door."""
        return self.take(self.tape.look(request))

    def call(self, name: str, arguments: bytes) -> Answer:
        """The answer to a tool called by name."""
        return self.take(self.tape.look_call(name, arguments))

    def take(self, looked: Looked) -> Answer:
        """The answer to what the tape knows, moving this episode's counters, and its states, by one call."""
        if self.max_tool_calls is not None and next(self._numbers) > self.max_tool_calls:
            return capped(looked)
        if isinstance(looked, Found) and not looked.scenario:
            answer = self._next(looked)
        else:
            with self.turns:
                answer = looked.miss if isinstance(looked, Absent) else self._step(looked)
                if isinstance(answer, Miss) and self._states:
                    return replace(answer, states=tuple(self._states.items()))
        return answer

    def _step(self, looked: Found) -> Hit | Miss:
        answer = self._next(looked.in_state.get(self._states.get(looked.scenario, ""), looked))
        if isinstance(answer, Hit):
            state = answer.recorded.call.state
            if state is not None and state.sets is not None:
                self._states[state.scenario] = state.sets
        return answer

    def _next(self, found: Found) -> Hit | Miss:
        counter = self._counters.get(found.counter)
        if counter is None:
            counter = self._counters.setdefault(found.counter, itertools.count())
        place = next(counter)
        return found.hits[place] if place < len(found.hits) else found.beyond


def capped(looked: Looked) -> Capped:
    """The answer to any request when the episode may make no more."""
    if isinstance(looked, Found):
        return Capped(looked.fingerprint, looked.verdict)
    return Capped(looked.miss.fingerprint, looked.miss.verdict)


def _refuse_reference(uri: str) -> JsonValue:
    raise ValueError(f"{uri} is outside the tool's own file, and nothing is fetched")


def _validator(name: str, schema: JsonValue) -> Any:
    try:
        return jsonschema_rs.Draft202012Validator(schema, retriever=_refuse_reference)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        what = str(error).partition("\n")[0]
        raise Malformed(
            f"inputSchema is no JSON Schema 2020-12 that can be used alone: {what}",
            f"tools/{name}.json",
            "mend the schema; put what it refers to under its own $defs",
        ) from error


def _text(call: Call) -> str:
    copy = call.request
    assert copy is not None
    return f"{copy.query or ''}\n{_body_text(copy.body) if 'body' in copy.model_fields_set else copy.body_text or ''}"


def _asked_text(asked: Request) -> str:
    query = asked.target.partition("?")[2]
    try:
        return f"{query}\n{_body_text(canonical.loads(asked.body))}"
    except canonical.JsonError:
        return f"{query}\n{asked.body[:_COMPARED_BYTES].decode('latin-1')}"


def _body_text(value: JsonValue) -> str:
    return canonical.jcs_fast(value).decode()
