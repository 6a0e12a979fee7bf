"""An episode's `trajectory.json` in ATIF v1.8, Harbor's interchange format, from what passed the doors. Pure.

Steps are written as they are folded, one a line. None has a time: the same calls and answers give the same bytes.
"""

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.run_plan import AgentIdentity
from scoresheet.documents.task import Call, Task
from scoresheet.documents.tool import CALL, Request
from scoresheet.model.entry import Entry
from scoresheet.model.observed import Exchange
from scoresheet.model.wire import conversation
from scoresheet.model.wire.parts import Answered, Asked, ToolCall, Usage
from scoresheet.model.wire.reading import Read
from scoresheet.replay.session import Recorded, Tape
from scoresheet.run.plan import Episode

TRAJECTORY = "trajectory.json"
SCHEMA_VERSION = "ATIF-v1.8"
TEXT_BYTES = 64 * 1024
"""Most bytes of one text; what is longer is cut, and its size and digest are told."""
_WAITING = 64
"""Steps that wait for what came of their tool calls; more are written without it."""
_BITS = 10_000
"""Python writes integers of 4,300 digits, which is more."""
_JSON = (("content-type", "application/json"),)
_MALFORMED = "malformed"
_TOOLS_ONLY = (
    "Tool calls as the replay's door saw them, a step each. No model's door was open, so what the agent thought and"
    " whether a model was asked was not observed."
)
_BOTH = (
    "Tool calls as the replay's door saw them, and model calls as the model's door did. A step with llm_call_count 0 is"
    " a call at the replay that no answer of the model names, or a request that the door refused."
)


@dataclass(frozen=True, slots=True)
class About:
    """Whose trajectory it is."""

    manifest_sha256: str
    episode: Episode
    task: Task
    agent: AgentIdentity
    models: bool
    """Whether a model's door was open."""


@dataclass(slots=True)
class _Open:
    """A step that may still learn what came of its tool calls."""

    step: dict[str, Any]
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Id of the tool call → what came of it."""

    @property
    def whole(self) -> bool:
        return len(self.results) == len(self.calls)


class Trajectory:
    """A trajectory being written: `spoke` for every model call, in the order in which they began, then `end`."""

    def __init__(self, about: About, tape: Tape, calls: Iterable[CallRecord]) -> None:
        self._about, self._tape = about, tape
        self._calls = iter(calls)
        self._call = next(self._calls, None)
        self._counts: dict[tuple[str, str | None], int] = {}
        self._waiting: deque[_Open] = deque()
        self._questions: set[str] = set()
        self._steps = self._tool_calls = self._malformed = self._spoken = 0
        self._tokens: list[int] | None = None
        self._model: str | None = None

    def begin(self) -> Iterator[bytes]:
        """The file's beginning."""
        episode = self._about.episode
        name = f"{episode.task_id}/{episode.repeat}.{episode.attempt}"
        yield b'{"schema_version":"%b","session_id":%b,"trajectory_id":%b,"steps":[\n' % (
            SCHEMA_VERSION.encode(),
            _dumps(name),
            _dumps(f"{self._about.manifest_sha256}/{name}"),
        )
        yield from self._plain("user", self._about.task.prompt, {"given": "the task, on the agent's stdin"})

    def spoke(self, entry: Entry, exchange: Exchange) -> Iterator[bytes]:
        """Take a model call."""
        yield from self._until(exchange.started_s)
        told = conversation.told(entry.path, entry.request)
        self._results(told)
        self._spoken += 1
        found = exchange.found
        if not isinstance(found, Read):
            yield from self._add({"message": "", "extra": {"path": entry.path, "unobserved": found.reason}})
            return
        if exchange.refused is not None:
            extra = {"dialect": found.asked.dialect, "refused": exchange.refused}
            yield from self._add({"message": "", "llm_call_count": 0, "extra": extra})
            return
        if found.asked.input_sha256 not in self._questions:  # an asked-again question was told before
            self._questions.add(found.asked.input_sha256)
            for message in told.fresh:
                if (message.role, message.text) != ("user", self._about.task.prompt):
                    yield from self._plain(message.role, message.text, {})
        said = conversation.said(entry.path, entry.status, entry.response_headers, entry.response)
        yield from self._said(entry, found, said)

    def end(self) -> Iterator[bytes]:
        """The calls that are left, and the file's end."""
        yield from self._until(float("inf"))
        while self._waiting:
            yield self._line(self._waiting.popleft())
        about = self._about
        agent: dict[str, Any] = {"name": about.agent.spec, "version": about.agent.sha256}
        agent |= {} if self._model is None else {"model_name": self._model}
        definitions = list(self._definitions())
        agent |= {"tool_definitions": definitions} if definitions else {}
        agent["extra"] = {"kind": about.agent.kind}
        final: dict[str, Any] = {}
        if self._tokens is not None:
            names = ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens")
            final = dict(zip(names, self._tokens, strict=True))
        final["total_steps"] = self._steps
        final["extra"] = {"tool_calls": self._tool_calls}
        final["extra"] |= {"malformed_requests": self._malformed} if self._malformed else {}
        final["extra"] |= {"model_calls": self._spoken} if about.models else {}
        extra = {
            "manifest_sha256": about.manifest_sha256,
            "task_id": about.episode.task_id,
            "repeat": about.episode.repeat,
            "attempt": about.episode.attempt,
            "episode_seed": about.episode.seed,
            "observed": ["tool calls", "model calls"] if about.models else ["tool calls"],
        }
        notes = _BOTH if about.models else _TOOLS_ONLY
        yield b'\n],"agent":%b,"notes":%b,"final_metrics":%b,"extra":%b}\n' % (
            _dumps(agent),
            _dumps(notes),
            _dumps(final),
            _dumps(extra),
        )

    # what the model said

    def _said(self, entry: Entry, found: Read, said: conversation.Said) -> Iterator[bytes]:
        asked, answered = found.asked, found.answered
        model = (None if answered is None else answered.model) or asked.model
        self._model = self._model or model
        extra = _asked(asked) | _answered(answered) | ({} if entry.fault is None else {"fault": entry.fault})
        step: dict[str, Any] = {} if model is None else {"model_name": model}
        step |= {} if asked.effort is None else {"reasoning_effort": asked.effort}
        step["message"], cut = _text(said.text.encode())
        extra |= {f"message_{name}": value for name, value in cut.items()}
        if said.reasoning is not None:
            step["reasoning_content"], cut = _text(said.reasoning.encode())
            extra |= {f"reasoning_{name}": value for name, value in cut.items()}
        usage = None if answered is None else answered.usage
        if usage is not None:
            step["metrics"] = _metrics(usage)
            before = self._tokens or [0, 0, 0]
            told = (usage.input, usage.output, usage.cached)
            self._tokens = [old + new for old, new in zip(before, told, strict=True)]
        step |= {"llm_call_count": 1, "extra": extra}
        yield from self._add(step, [] if answered is None else _calls(answered.calls))

    def _results(self, told: conversation.Told) -> None:
        """What the agent told the model of its tool calls, where the replay has not seen them."""
        if not any(not each.whole for each in self._waiting):
            return
        results = dict(told.results)
        for waiting in self._waiting:
            for call in waiting.calls:
                id = call["tool_call_id"]
                if id not in waiting.results and id in results:
                    content, cut = _text(conversation.text_of(results[id]).encode())
                    extra = {"source": "as the agent told the model", **cut}
                    waiting.results[id] = {"source_call_id": id, "content": content, "extra": extra}

    # what the replay answered

    def _until(self, moment: float) -> Iterator[bytes]:
        while self._call is not None and self._call.at_s < moment:
            yield from self._called(self._call)
            self._call = next(self._calls, None)

    def _called(self, call: CallRecord) -> Iterator[bytes]:
        if call.outcome == _MALFORMED:
            self._malformed += 1
            return
        self._tool_calls += call.outcome in ("hit", "miss")
        tool, arguments = self._understood(call)
        seen: dict[str, Any] = {"via": call.via, "upstream": call.upstream, "method": call.method, "path": call.path}
        seen |= {"fingerprint": call.fingerprint} if call.fingerprint else {}
        seen |= {"schema_errors": list(call.schema_errors)} if call.schema_errors else {}
        result = self._result(call)
        issued = self._issued(tool, arguments)
        if issued is not None:
            waiting, made = issued
            made["extra"] = {**made.get("extra", {}), **seen}
            waiting.results[made["tool_call_id"]] = {"source_call_id": made["tool_call_id"], **result}
            return
        id = f"replay_{call.seq}"
        made = {"tool_call_id": id, "function_name": tool, "arguments": arguments, "extra": seen}
        step: dict[str, Any] = {"message": ""} | ({"llm_call_count": 0} if self._about.models else {})
        waiting = _Open({"source": "agent", **step}, [made], {id: {"source_call_id": id, **result}})
        self._waiting.append(waiting)
        yield from self._ready()

    def _understood(self, call: CallRecord) -> tuple[str, dict[str, JsonValue]]:
        """Name and arguments of what was called."""
        body = call.body if isinstance(call.body, str) else ""
        if call.method == CALL:
            given = _parsed(body)
            return call.tool or call.path, given if isinstance(given, dict) else {"input": given} if body else {}
        request = Request(call.upstream, call.method, call.path, _JSON if body else (), body.encode())
        found = self._tape.find(request) if call.tool is not None else None
        if found is not None and isinstance(found[1], dict):
            return found[0].name, found[1]
        return call.tool or f"{call.method} {call.path}", {} if call.body is None else {"body": call.body}

    def _result(self, call: CallRecord) -> dict[str, Any]:
        extra: dict[str, Any] = {"outcome": call.outcome, "status": call.status}
        extra |= {"kind": call.kind} if call.kind is not None else {}
        if call.outcome != "hit":
            return {"extra": extra}
        extra |= {"recorded_latency_ms": call.latency_ms_recorded} | ({"repeated": True} if call.repeat else {})
        recorded = self._recorded(call)
        if recorded is None:
            return {"extra": extra}
        body = recorded.response().body
        extra["response_sha256"] = "sha256:" + hashlib.sha256(body).hexdigest()
        try:
            content, cut = _text(body)
        except UnicodeDecodeError:
            return {"extra": {**extra, "bytes": len(body)}}
        return {"content": content, "extra": {**extra, **cut}}

    def _recorded(self, call: CallRecord) -> Recorded | None:
        """The recording that answered: the nth of its fingerprint, and of the state that it requires."""
        required = _required(call)
        found = self._tape.sequences.get(call.fingerprint, ())
        sequence = [each for each in found if _required(each.call) == required]
        if not sequence:
            return None
        key = call.fingerprint, required
        place = self._counts[key] = self._counts.get(key, -1) + 1
        recorded = sequence[0 if self._tape.protocol == "tool-replay-v1" else min(place, len(sequence) - 1)]
        same = (recorded.call.latency_ms_recorded, recorded.call.state) == (call.latency_ms_recorded, call.state)
        return recorded if same else None

    def _issued(self, tool: str, arguments: dict[str, JsonValue]) -> tuple[_Open, dict[str, Any]] | None:
        """The tool call of the model's that this is, when it said so."""
        named = [
            (waiting, call)
            for waiting in self._waiting
            for call in waiting.calls
            if call["tool_call_id"] not in waiting.results
            and (call["function_name"] == tool or call["function_name"].endswith(f"__{tool}"))
        ]
        alike = [each for each in named if each[1]["arguments"] == arguments]
        return next(iter(alike or named), None)

    # steps

    def _plain(self, role: str, text: str, extra: dict[str, Any]) -> Iterator[bytes]:
        message, cut = _text(text.encode())
        extra = {**extra, **cut}
        self._waiting.append(_Open({"source": role, "message": message} | ({"extra": extra} if extra else {})))
        yield from self._ready()

    def _add(self, step: dict[str, Any], calls: Iterable[dict[str, Any]] = ()) -> Iterator[bytes]:
        waiting = _Open({"source": "agent", **step})
        used: set[str] = set()
        for place, call in enumerate(calls):
            id = call["tool_call_id"]
            if not id or id in used:
                call["tool_call_id"] = f"call_{self._spoken}_{place}"
            used.add(call["tool_call_id"])
            waiting.calls.append(call)
        self._waiting.append(waiting)
        yield from self._ready()

    def _ready(self) -> Iterator[bytes]:
        while self._waiting and (self._waiting[0].whole or len(self._waiting) > _WAITING):
            yield self._line(self._waiting.popleft())

    def _line(self, waiting: _Open) -> bytes:
        self._steps += 1
        step = {"step_id": self._steps, **waiting.step}
        if waiting.calls:
            step["tool_calls"] = waiting.calls
        if waiting.results:
            results = (waiting.results.get(call["tool_call_id"]) for call in waiting.calls)
            step["observation"] = {"results": [each for each in results if each is not None]}
        return (b",\n" if self._steps > 1 else b"") + _dumps(step)

    def _definitions(self) -> Iterator[dict[str, Any]]:
        for name in self._tape.listed:
            tool = self._tape.tool(name)
            function: dict[str, Any] = {"name": name}
            function |= {"description": tool.description} if tool.description else {}
            function |= {"parameters": tool.input_schema} if tool.input_schema is not None else {}
            yield {"type": "function", "function": function}


def written(
    about: About, tape: Tape, calls: Iterable[CallRecord], spoken: Iterable[tuple[Entry, Exchange]] = ()
) -> Iterator[bytes]:
    """The whole file in pieces; `spoken`: the model calls, in the order in which they began."""
    made = Trajectory(about, tape, calls)
    yield from made.begin()
    for entry, exchange in spoken:
        yield from made.spoke(entry, exchange)
    yield from made.end()


def _required(call: CallRecord | Call) -> str | None:
    return None if call.state is None else call.state.requires


def _asked(asked: Asked) -> dict[str, Any]:
    found = {
        "dialect": asked.dialect,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "seed": asked.seed,
        "max_tokens": asked.max_tokens,
    }
    return {name: value for name, value in found.items() if value is not None}


def _answered(answered: Answered | None) -> dict[str, Any]:
    if answered is None:
        return {"answered": False}
    found: dict[str, Any] = {
        "status": answered.status,
        "finish": answered.finish,
        "response_id": answered.response_id,
        "complete": None if answered.complete else False,
    }
    if answered.failure is not None:
        found["failure"] = {"kind": answered.failure.kind, "message": answered.failure.message[:1000]}
    return {name: value for name, value in found.items() if value is not None}


def _metrics(usage: Usage) -> dict[str, Any]:
    found: dict[str, Any] = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cached,
    }
    more = {"reasoning_tokens": usage.reasoning, "cache_write_tokens": usage.cache_write}
    more = {name: value for name, value in more.items() if value}
    return found | ({"extra": more} if more else {})


def _calls(calls: Iterable[ToolCall]) -> Iterator[dict[str, Any]]:
    for call in calls:
        given = _parsed(call.arguments)
        arguments = given if isinstance(given, dict) else {"input": call.arguments} if call.arguments else {}
        made: dict[str, Any] = {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments}
        yield made | ({"extra": {"run_by": "the provider"}} if call.server else {})


def _parsed(text: str) -> JsonValue:
    try:
        return canonical.loads(text) if text else None
    except canonical.JsonError:
        return text


def _text(data: bytes) -> tuple[str, dict[str, Any]]:
    """The text, cut where it is too long, and what is then told of it. Raises `UnicodeDecodeError` when it is none."""
    if len(data) <= TEXT_BYTES:
        return data.decode(), {}
    data.decode()
    cut = {"bytes": len(data), "sha256": "sha256:" + hashlib.sha256(data).hexdigest()}
    return data[:TEXT_BYTES].decode("utf-8", "ignore"), cut


def _dumps(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits, or a lone surrogate
        pass
    try:
        return json.dumps(value, separators=(",", ":")).encode()
    except ValueError:  # an integer of more digits than Python writes
        return json.dumps(_with_text(value), separators=(",", ":")).encode()


def _with_text(value: Any) -> Any:
    """The same, with text for integers that Python does not write."""
    match value:
        case dict():
            return {name: _with_text(member) for name, member in value.items()}
        case list():
            return [_with_text(item) for item in value]
        case int() if value.bit_length() > _BITS:
            return canonical.jcs(value).decode()
        case _:
            return value
