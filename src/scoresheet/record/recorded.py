"""A recorded task and its tools as the files of a pack. Pure: files in, files out."""

import base64
import contextlib
import dataclasses
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache

from scoresheet import canonical, digest
from scoresheet.canonical import JsonValue
from scoresheet.documents.manifest import Manifest
from scoresheet.documents.task import Call, Task
from scoresheet.documents.tool import Request, RequestCopy, Response, Tool
from scoresheet.errors import Finding, Refused
from scoresheet.pack import body as bodies
from scoresheet.pack import fingerprint
from scoresheet.pack import states as rules
from scoresheet.pack.toolbox import Toolbox
from scoresheet.record import states
from scoresheet.record import tools as inference
from scoresheet.record.exchange import Exchange
from scoresheet.record.redact import Redaction

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Draft:
    """A task that was recorded, not yet in the pack."""

    task_id: str
    prompt: str
    expected: Mapping[str, JsonValue]
    sent: tuple[Exchange, ...]
    """As it crossed the proxy: in memory only."""
    redaction: Redaction
    upstreams: Mapping[str, str]
    """Name → the host that was recorded."""
    offered: tuple[Tool, ...] = ()
    """Tools that a description of the API names: the task offers them all."""
    members: Mapping[str, JsonValue] = field(default_factory=dict)
    """More members of the task file: `tags`, `origin`, `limits`…"""
    with_states: bool = False
    """Write down the states that the calls went through (`states.infer`)."""
    told: states.States | None = None
    """The states that another tool's recording says the calls went through."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a recording changes in a pack."""

    files: Mapping[str, bytes | None]
    """Path → content; `None` removes the file. Files that stay as they are are not named."""
    tools: tuple[str, ...]
    """Tools that the task's calls use."""
    findings: tuple[Finding, ...]
    """Warnings."""
    scenarios: Mapping[str, JsonValue] = field(default_factory=dict)
    """Scenario → its states, of the task."""


def add(draft: Draft, files: Mapping[str, bytes], replace: bool = False) -> Changes:
    """The changes that put `draft` into the pack whose task, tool and manifest files are `files`.

    Tools are inferred from all the traffic of the pack; tasks that were recorded before get the new digests of tools
    that changed. Raises `Refused` when the task exists and is not to be replaced, and when a call would not be found
    again by its own request.
    """
    path = f"tasks/{draft.task_id}.json"
    others = [place for place in files if place.startswith("tasks/") and place != path]
    _unused_id(draft.task_id, path, files, others, replace)
    known = _tools(files)
    names = {tool.name: tool for tool in (*known, *draft.offered)}  # a description given now wins over a file
    ignored: dict[Request, list[str]] = defaultdict(list)
    for number, rule in draft.redaction.ignored:
        ignored[draft.redaction.exchanges[number].request].append(rule)
    seen = [
        inference.Observation.of(clean.request, clean.response, sent.request)
        for clean, sent in zip(draft.redaction.exchanges, draft.sent, strict=True)
    ]
    for place in others:
        seen += _earlier(files[place], place).observations
    tools = inference.infer(seen, names.values(), ignored)
    toolbox = Toolbox(tools)
    texts = {tool.name: _tool_text(tool) for tool in tools}
    called = (toolbox.rules_for(exchange.request)[0] for exchange in draft.redaction.exchanges)
    used = {tool.name for tool in called if tool is not None}
    by_name = [tool.name for tool in draft.offered if tool.http is None]  # in the order in which a server lists them
    mine = [*by_name, *sorted((used | {tool.name for tool in draft.offered}) - set(by_name))]
    task = _task(draft, mine, texts, toolbox)
    problems = tuple(rules.findings(path, Task.from_value(task, path)))
    if problems:
        task = _task(dataclasses.replace(draft, told=None, with_states=False), mine, texts, toolbox)
    changed: dict[str, bytes | None] = {path: canonical.pretty(task)}
    changed |= {f"tools/{name}.json": text for name, text in texts.items()}
    gone = {tool.name for tool in known} - texts.keys()
    changed |= {f"tools/{name}.json": None for name in gone}
    if any(files.get(place) != text for place, text in changed.items() if place.startswith("tools/")):
        for place in others:
            changed[place] = _brought_up(files[place], place, toolbox, texts, gone)
    changed[MANIFEST] = _manifest(files.get(MANIFEST), draft.upstreams)
    made = Task.from_value(task, path)
    _round_trip(path, draft.sent, draft.redaction.exchanges, made.calls, toolbox)
    unplayed = tuple(
        Finding("import-states", each.where, f"no states, only an order of the answers: {each.what}", _EDIT, "warning")
        for each in problems[:1]
    )
    findings = unplayed + tuple(
        Finding("record-schema", f"{request.method} {request.target}", what, _WIDEN, "warning")
        for request, what in inference.unfit(tools, (exchange.request for exchange in draft.sent))
    )
    kept = {place: data for place, data in changed.items() if files.get(place) != data}
    return Changes(kept, tuple(sorted(used)), findings, task.get("scenarios", {}))


def append(
    path: str, sent: Exchange, redaction: Redaction, files: Mapping[str, bytes], upstreams: Mapping[str, str]
) -> Changes:
    """The changes that put one more call at the end of the task in the file `path`; what it holds stays as it is.

    `sent` is the call as it crossed; `redaction` ends with the same without its credentials. Raises `Refused` when the
    call would not be found again by its own request.
    """
    clean = redaction.exchanges[-1]
    rules = [rule for place, rule in redaction.ignored if place == len(redaction.exchanges) - 1]
    seen = [inference.Observation.of(clean.request, clean.response, sent.request)]
    tasks = [place for place in files if place.startswith("tasks/")]
    for place in tasks:
        seen += _earlier(files[place], place).observations
    known = _tools(files)
    tools = inference.infer(seen, known, {clean.request: rules})
    toolbox = Toolbox(tools)
    texts = {tool.name: _tool_text(tool) for tool in tools}
    gone = {tool.name for tool in known} - texts.keys()
    changed: dict[str, bytes | None] = {f"tools/{name}.json": text for name, text in texts.items()}
    changed |= {f"tools/{name}.json": None for name in gone}
    changed |= {place: _brought_up(files[place], place, toolbox, texts, gone) for place in tasks}
    brought_up = changed[path]
    assert brought_up is not None
    task = canonical.as_object(canonical.loads(brought_up))
    calls = [*task.get("calls", []), _call(clean, toolbox)]
    tool, _, _ = toolbox.rules_for(clean.request)
    references = [*task.get("tools", [])]
    if tool is not None and all(reference["name"] != tool.name for reference in references):
        references.append(_reference(tool.name, texts[tool.name]))
    task |= {"calls": calls, "tools": references}
    changed[path] = canonical.pretty(task)
    known = canonical.as_object(canonical.loads(files.get(MANIFEST, b"{}"))).get("upstreams", {})
    changed[MANIFEST] = _manifest(files.get(MANIFEST), {**upstreams, **known})  # recorded hosts stay what they were
    last = Task.from_value(task, path).calls[-1]
    _round_trip(path, (sent,), (clean,), (last,), toolbox)
    kept = {place: data for place, data in changed.items() if files.get(place) != data}
    return Changes(kept, (tool.name,) if tool is not None else (), ())


_EDIT = "write the states into the task, if its calls need them"
_WIDEN = "widen inputSchema in the tool's file, when the call is right"


def _unused_id(task_id: str, path: str, files: Mapping[str, bytes], others: Sequence[str], replace: bool) -> None:
    if path in files and not replace:
        what = f"the task {task_id} is recorded already"
        finding = Finding("record-task-exists", path, what, "add --replace to record it anew, or choose another --task")
        raise Refused(what, [finding], path)
    same = [place for place in others if _earlier(files[place], place).task_id == task_id]
    same += [place for place in files if place == f"{task_id}.json"]
    if same:
        what = f"another file holds a task called {task_id}"
        raise Refused(what, [Finding("record-task-exists", same[0], what, "choose another --task")], same[0])


def _tools(files: Mapping[str, bytes]) -> list[Tool]:
    return [Tool.from_bytes(data, place) for place, data in files.items() if place.startswith("tools/")]


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What a task that was recorded before tells of the tools."""

    task_id: str
    observations: tuple[inference.Observation, ...]


@lru_cache(maxsize=8192)  # a batch meets the same tasks again and again
def _earlier(data: bytes, place: str) -> _Earlier:
    task = Task.from_bytes(data, place)
    observations = tuple(
        inference.Observation.of(call.request.as_request(), call.response())
        for call in task.calls
        if call.request is not None
    )
    return _Earlier(task.task_id, observations)


def _task(draft: Draft, names: Sequence[str], texts: Mapping[str, bytes], toolbox: Toolbox) -> dict[str, JsonValue]:
    calls = [_call(exchange, toolbox) for exchange in draft.redaction.exchanges]
    return {
        "task_id": draft.task_id,
        "prompt": draft.prompt,
        "tools": [_reference(name, texts[name]) for name in names],
        "calls": calls,
        "expected": dict(draft.expected),
        **_with_states(draft, calls, toolbox),
        **draft.members,
    }


def _with_states(draft: Draft, calls: Sequence[dict[str, JsonValue]], toolbox: Toolbox) -> dict[str, JsonValue]:
    """The task's scenarios; each call is given what it says of them."""
    if draft.told is None and not draft.with_states:
        return {}
    reading = frozenset(name for name, tool in toolbox.by_name.items() if _reads(tool))
    fingerprints = [call["request_fingerprint"] for call in calls]
    found = draft.told or states.infer(draft.redaction.exchanges, fingerprints, reading)
    for call, state in zip(calls, found.calls, strict=True):
        if state is not None:
            call["state"] = state
    return {"scenarios": found.scenarios} if found.scenarios else {}


def _reads(tool: Tool) -> bool:
    return isinstance(tool.annotations, dict) and tool.annotations.get("readOnlyHint") is True


def _tool_text(tool: Tool) -> bytes:
    """The tool's file. One that a server lists keeps the order of its members: that is what a model is shown."""
    if tool.http is not None:
        return canonical.pretty(tool.as_json())
    return json.dumps(tool.as_json(), indent=2).encode() + b"\n"


def _reference(name: str, text: bytes) -> JsonValue:
    return {"name": name, "schema_sha256": f"sha256:{digest.of(text)}"}


def _call(exchange: Exchange, toolbox: Toolbox) -> dict[str, JsonValue]:
    request = exchange.request
    _, vary, ignore = toolbox.rules_for(request)
    return {
        "request_fingerprint": fingerprint.v2(request, vary, ignore),
        "request": _copy(request, vary, ignore),
        **answer(exchange.response),
    }


def answer(response: Response) -> dict[str, JsonValue]:
    """The members of a call that hold its answer."""
    value: dict[str, JsonValue] = {
        "response_status": response.status,
        "latency_ms_recorded": response.latency_ms,
        "response_headers": [list(pair) for pair in response.headers],
    }
    try:
        value["response_bytes"] = response.body.decode()
    except UnicodeDecodeError:
        value["response_base64"] = base64.b64encode(response.body).decode()
    if response.fault is not None:
        value["fault"] = response.fault
    if response.stream:
        value["stream"] = list(response.stream)
    return value


def _copy(request: Request, vary: Sequence[str], ignore: Sequence[str]) -> dict[str, JsonValue]:
    """The readable copy of a request; its body is a JSON value where that has the same fingerprint."""
    path, mark, query = request.target.partition("?")
    value: dict[str, JsonValue] = {"method": request.method, "path": path, "upstream": request.upstream}
    if mark:
        value["query"] = query
    if request.headers:
        value["headers"] = [list(pair) for pair in request.headers]
    if not request.body:
        return value
    own = fingerprint.v2(request, vary, ignore)
    for member in _bodies(request):
        copy = RequestCopy.from_value(value | member, "request")
        if fingerprint.v2(copy.as_request(), vary, ignore) == own:
            return value | member
    return value | {"body_base64": base64.b64encode(request.body).decode()}


def _bodies(request: Request) -> list[dict[str, JsonValue]]:
    found: list[dict[str, JsonValue]] = []
    if bodies.is_json(bodies.media_type(request.header("content-type"))):
        with contextlib.suppress(canonical.JsonError):
            found.append({"body": canonical.loads(request.body)})
    with contextlib.suppress(UnicodeDecodeError):
        found.append({"body_text": request.body.decode()})
    return found


def _brought_up(data: bytes, place: str, toolbox: Toolbox, texts: Mapping[str, bytes], gone: Set[str]) -> bytes:
    """An earlier task's file after its tools changed: fingerprints and references anew, all else as it was."""
    task = canonical.as_object(canonical.loads(data))
    kept = {reference["name"]: reference for reference in task.get("tools", []) if reference["name"] not in gone}
    names = set(kept)
    calls = []
    for call in task.get("calls", []):
        if "request" in call:
            request = RequestCopy.from_value(call["request"], place).as_request()
            tool, vary, ignore = toolbox.rules_for(request)
            names |= {tool.name} if tool is not None else set()
            call = call | {"request_fingerprint": fingerprint.v2(request, vary, ignore)}
        calls.append(call)
    order = sorted(names) if list(kept) == sorted(kept) else [*kept, *sorted(names - set(kept))]
    references = [_reference(name, texts[name]) if name in texts else kept[name] for name in order]
    value = task | {"calls": calls, "tools": references}
    return data if value == task else canonical.pretty(value)


def _manifest(data: bytes | None, upstreams: Mapping[str, str]) -> bytes:
    """A manifest that keeps the hosts that were recorded until the pack is frozen (again); it pins nothing yet."""
    if data is None:
        return Manifest(protocol="tool-replay-v2", tasks={}, upstreams=dict(upstreams)).text()
    value = canonical.as_object(canonical.loads(data))
    return canonical.pretty(value | {"upstreams": {**value.get("upstreams", {}), **upstreams}})


def _round_trip(
    path: str, sent: Sequence[Exchange], clean: Sequence[Exchange], calls: Sequence[Call], toolbox: Toolbox
) -> None:
    """Raises `Refused` when a request, as it was sent, would not find its own answer in the task."""
    findings = []
    for place, (crossed, kept, call) in enumerate(zip(sent, clean, calls, strict=True)):
        _, vary, ignore = toolbox.rules_for(crossed.request)
        copy = call.request
        assert copy is not None
        ways = {fingerprint.v2(request, vary, ignore) for request in (crossed.request, copy.as_request())}
        if ways != {call.request_fingerprint} or not _same(call.response(), kept.response):
            what = "the recorded call does not answer the request that it was recorded from"
            where = f"{path}#/calls/{place}"
            findings.append(Finding("record-round-trip", where, what, "report this: it is a fault of scoresheet"))
    if findings:
        raise Refused("the recording does not replay itself", findings)


def _same(one: Response, other: Response) -> bool:
    return (one.status, one.headers, one.body, one.fault, one.stream) == (
        other.status, other.headers, other.body, other.fault, other.stream
    )  # fmt: skip
