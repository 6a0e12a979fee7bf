"""From the files of a pack to its manifest: every rule that the files break, or the manifest that pins them. Pure.

The rules that need a file system (links, devices, names) are `tree`'s; the walk and the writing are `freezer`'s.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.digest import FileDigest
from scoresheet.documents.manifest import DEFAULT_REPEATS, Exclusion, FrozenFile, Manifest, Protocol
from scoresheet.documents.task import Call, Task
from scoresheet.documents.tool import Tool
from scoresheet.errors import Finding, Refused, counted
from scoresheet.pack import blanks, fingerprint, states, workspaces
from scoresheet.pack.toolbox import Toolbox

MANIFEST = "manifest.json"
CARD = "card.yaml"
FROZEN_AT = "frozen_at.txt"
RECEIPTS = "receipts.jsonl"
BASELINES = "baselines.jsonl"
BESIDE = frozenset({MANIFEST, CARD, FROZEN_AT, RECEIPTS, BASELINES})
"""Top-level files beside the frozen pack: in no manifest and no tarball."""

_TASK_PATH = re.compile(r"(?:tasks/)?[^/]+\.json")
_TOOL_PATH = re.compile(r"tools/[^/]+\.json")
_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}")
_IGNORE = re.compile(r"/(?:json/.+|query/.+|form/.+)", re.DOTALL)
_BLANK = blanks.BLANK.encode()
_DERIVED = ("fixture_sha256", "age_hours", "frozen_at")
_VARYING = ("accept", "range")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the manifest says beside the files. `None` is the default, which v1 can hold."""

    protocol: Protocol | None = None
    timeout_s: float | int | None = None
    retries: int | None = None
    seed: int | None = None
    repeats: int | None = None
    on_mismatch: str | None = None
    on_exhausted: str | None = None
    excluded: tuple[Exclusion, ...] = ()
    upstreams: tuple[tuple[str, str], ...] = ()
    """Name → host that was recorded."""

    def beyond_v1(self) -> tuple[str, ...]:
        """The settings given that `tool-replay-v1` can't hold."""
        names = ("repeats", "on_mismatch", "on_exhausted", "excluded", "upstreams")
        return tuple(name for name in names if getattr(self, name))


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What freezing needs to know of one task file, without keeping the task."""

    path: str
    task_id: str = ""
    v2_field: str = ""
    """The first member that v1 can't hold; empty when v1 can hold the task."""
    wall_clock_s: float = 0.0
    tools: tuple[tuple[str, str], ...] = ()
    """Name and `schema_sha256` of each tool that the task offers."""
    unchecked: int = 0
    """Calls without a `request`: their fingerprint can't be recomputed."""
    works: bool = False
    """It is a workspace task."""
    judged: bool = False
    """What lies in its workspace is judged, by tests or as an output file, and no answer."""
    tests: tuple[str, ...] = ()
    """Paths of its frozen tests."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Frozen:
    """A manifest, or what forbids it; warnings either way."""

    manifest: Manifest | None
    findings: tuple[Finding, ...] = field(default=())

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that forbid freezing."""
        return tuple(finding for finding in self.findings if finding.severity == "error")


def is_task(path: str) -> bool:
    """Whether the file at `path` is a task: `*.json` at the top level or in `tasks/`."""
    return path not in BESIDE and _TASK_PATH.fullmatch(path) is not None


def is_tool(path: str) -> bool:
    """Whether the file at `path` is a tool: `tools/*.json`."""
    return _TOOL_PATH.fullmatch(path) is not None


def read_tool(path: str, data: bytes) -> tuple[Tool | None, tuple[Finding, ...]]:
    """The tool in a file, and what is wrong with it."""
    try:
        tool = Tool.from_bytes(data, path)
    except Refused as refused:
        return None, refused.findings
    findings: list[Finding] = []
    if tool.name != path[6:-5]:
        what = f"the tool is called {tool.name!r}, its file {path[6:-5]!r}"
        findings.append(Finding("tool-name", f"{path}#/name", what, f"name the file tools/{tool.name}.json"))
    for place, rule in enumerate(tool.ignore):
        if not _IGNORE.fullmatch(rule):
            what = f"{rule!r} ignores nothing"
            mend = "write /json/<pointer>, /query/<name> or /form/<name>"
            findings.append(Finding("tool-ignore", f"{path}#/ignore/{place}", what, mend))
    if tool.http is not None:
        names = _PLACEHOLDER.findall(tool.http.path)
        rest = _PLACEHOLDER.sub("", tool.http.path)
        if not tool.http.path.startswith("/") or set("{}?#") & set(rest) or len(set(names)) < len(names):
            what = f"{tool.http.path!r} is not a path template"
            mend = "write a path such as /orders/{order_id}, each name once; the query is made from the other arguments"
            findings.append(Finding("tool-path", f"{path}#/http/path", what, mend))
    return tool, tuple(findings)


def read_task(path: str, data: bytes, toolbox: Toolbox) -> TaskFacts:
    """The facts of a task file; recorded requests are fingerprinted again."""
    try:
        task = Task.from_bytes(data, path)
    except Refused as refused:
        return TaskFacts(path, findings=refused.findings)
    v2_fields = task.v2_fields()
    unchecked = sum(call.request is None for call in task.calls)
    return TaskFacts(
        path,
        task.task_id,
        v2_fields[0] if v2_fields else "",
        task.limits.wall_clock_s or 0.0,
        tuple((tool.name, tool.schema_sha256) for tool in task.tools),
        unchecked,
        task.kind == "workspace",
        task.oracle is not None
        and (
            task.oracle.kind == "pytest"
            or task.oracle.output_file is not None
            or (task.oracle.kind == "human" and task.kind == "workspace" and not task.expected)
        ),
        () if task.oracle is None else task.oracle.tests,
        (*_task_findings(path, task, toolbox), *(_blanks(path, data) if _BLANK in data else ())),
    )


def _blanks(path: str, data: bytes) -> Iterator[Finding]:
    """Warnings: a pack is frozen also to be looked at, but nothing scores it."""
    for pointer in blanks.blanks(canonical.loads(data)):
        what = f"{pointer[1:].replace('/', '.')} is a blank: nothing scores a pack that holds one"
        yield Finding("task-blank", f"{path}#{pointer}", what, "fill it in, then freeze again", "warning")


def v1_manifest(tasks: Mapping[str, str], settings: Settings = Settings()) -> Manifest:
    """The v1 manifest of task files: file name → sha256 (vectors/manifest_v1.json)."""
    return Manifest.from_value({"protocol": "tool-replay-v1", "tasks": dict(tasks), **_common(settings)}, MANIFEST)


def freeze(
    files: Mapping[str, FileDigest],
    tasks: Sequence[TaskFacts],
    tools: Mapping[str, Tool | None],
    settings: Settings = Settings(),
) -> Frozen:
    """The manifest of a pack's files, or everything that forbids it.

    `files` is path → digest of every regular file, those beside the pack left out; `tools` is path → tool, `None` when
    it can't be read.
    """
    findings = [finding for task in tasks for finding in task.findings]
    findings += _layout(files, tasks)
    findings += _identities(tasks)
    findings += workspaces.pack_findings(files, tasks)
    findings += _pinned_tools(files, tasks, tools)
    v2_sign = _v2_sign(tasks, files)
    protocol = settings.protocol or ("tool-replay-v2" if v2_sign else "tool-replay-v1")
    if protocol == "tool-replay-v1":
        findings += _only_v1(files, tasks, settings)
    else:
        findings += _v2_notes(tasks)
    timeout_s = _common(settings)["timeout_s"]
    for task in tasks:
        if task.wall_clock_s > timeout_s:
            what = (
                f"the task's {task.wall_clock_s:g} s are more than the pack's {timeout_s:g}: a task may only lower it"
            )
            mend = f"--timeout-s {task.wall_clock_s:g}, or lower the task's"
            findings.append(Finding("task-limit", f"{task.path}#/limits/wall_clock_s", what, mend))
    found = Frozen(None, tuple(findings))
    if found.errors:
        return found
    digests = {task.path: files[task.path].sha256 for task in tasks}
    if protocol == "tool-replay-v1":
        return Frozen(v1_manifest(digests, settings), found.findings)
    value: dict[str, JsonValue] = {
        "protocol": protocol,
        **_common(settings),
        "repeats": settings.repeats or DEFAULT_REPEATS,
        "on_mismatch": settings.on_mismatch or "stop",
        "on_exhausted": settings.on_exhausted or "last",
        "excluded": [entry.as_json() for entry in settings.excluded],
        "upstreams": dict(settings.upstreams),
        "tasks": digests,
        "files": {
            path: FrozenFile(exec=facts.exec, sha256=facts.sha256, size=facts.size).as_json()
            for path, facts in files.items()
            if path not in digests
        },
    }
    return Frozen(Manifest.from_value(value, MANIFEST), found.findings)


def _common(settings: Settings) -> dict[str, JsonValue]:
    defaults = Manifest.model_fields
    return {
        name: defaults[name].default if getattr(settings, name) is None else getattr(settings, name)
        for name in ("timeout_s", "retries", "seed")
    }


def _task_findings(path: str, task: Task, toolbox: Toolbox) -> Iterator[Finding]:
    if task.kind == "drill":
        what = "a drill needs a live side effect: no recording can stand for it"
        mend = f"keep drills elsewhere, and say so: --exclude-task {task.task_id}=drill"
        yield Finding("task-drill", f"{path}#/kind", what, mend)
    yield from workspaces.task_findings(path, task)
    yield from states.findings(path, task)
    if isinstance(task.card, dict):
        for name in _DERIVED:
            if name in task.card:
                what = "inside a pack this is derived from the manifest and frozen_at.txt"
                yield Finding("task-card-derived", f"{path}#/card/{name}", what, f"remove {name}")
    names = [tool.name for tool in task.tools]
    for name in sorted({name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ()):
        yield Finding("task-tool-twice", f"{path}#/tools", f"the tool {name!r} is offered twice", "name it once")
    recorded: dict[str, list[tuple[int, Call]]] = defaultdict(list)
    for place, call in enumerate(task.calls):
        yield from _call_findings(f"{path}#/calls/{place}", call, toolbox)
        if call.request is not None:
            recorded[call.request_fingerprint].append((place, call))
    for same in recorded.values():
        if len(same) > 1:
            yield from _varying(path, same)


def _call_findings(where: str, call: Call, toolbox: Toolbox) -> Iterator[Finding]:
    if call.stream:
        length = len(call.response().body)
        if any(end > length for end in call.stream) or list(call.stream) != sorted(set(call.stream)):
            what = f"chunk boundaries must rise and stay within the body's {length} bytes"
            yield Finding("task-stream", f"{where}/stream", what, "record the task again")
    if call.request is None:
        return
    try:
        request = call.request.as_request()
    except (canonical.JsonError, ValueError) as error:
        yield Finding("task-request", f"{where}/request", f"the request can't be read: {error}", "record it again")
        return
    _, vary, ignore = toolbox.rules_for(request)
    found = fingerprint.v2(request, vary, ignore)
    if found != call.request_fingerprint:
        what = f"its request is {found}, not {call.request_fingerprint}"
        mend = "write the fingerprint of the request, or record the call again"
        yield Finding("task-fingerprint", f"{where}/request_fingerprint", what, mend)


def _varying(path: str, same: Sequence[tuple[int, Call]]) -> Iterator[Finding]:
    for header in _VARYING:
        values = {call.request.as_request().header(header) for _, call in same if call.request is not None}
        if len(values) > 1:
            places = ", ".join(str(place) for place, _ in same)
            what = f"calls {places} have one fingerprint, but their {header.title()} headers differ"
            mend = f'add "vary": ["{header}"] to the http of the tool, and record again'
            yield Finding("task-vary", f"{path}#/calls/{same[0][0]}", what, mend)


def _layout(files: Mapping[str, FileDigest], tasks: Sequence[TaskFacts]) -> Iterator[Finding]:
    if not tasks:
        what = "the pack has no task: no *.json at its top level or in tasks/"
        yield Finding("pack-empty", ".", what, "scoresheet record PACK --task ID …")
    for path in files:
        if path.startswith("tasks/") and not is_task(path):
            yield Finding("pack-not-a-task", path, "tasks/ holds task files only (*.json)", "move it elsewhere")
        elif path.startswith("tools/") and not is_tool(path):
            yield Finding("pack-not-a-tool", path, "tools/ holds tool files only (*.json)", "move it elsewhere")
    for path, facts in files.items():
        if facts.hard_links > 1:
            what = "the file has other names (hard links): what changes there changes here"
            yield Finding("pack-hard-link", path, what, "cp --remove-destination a copy over it", "warning")


def _identities(tasks: Sequence[TaskFacts]) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for task in tasks:
        if task.task_id and first.setdefault(task.task_id, task.path) != task.path:
            what = f"the id {task.task_id!r} is that of {first[task.task_id]} too"
            yield Finding("task-id-twice", f"{task.path}#/task_id", what, "give each task its own task_id")


def _pinned_tools(
    files: Mapping[str, FileDigest], tasks: Sequence[TaskFacts], tools: Mapping[str, Tool | None]
) -> Iterator[Finding]:
    for task in tasks:
        for place, (name, sha256) in enumerate(task.tools):
            path = f"tools/{name}.json"
            if path in files and sha256 != f"sha256:{files[path].sha256}":
                what = f"{path} is sha256:{files[path].sha256}, not what the task names"
                mend = "write the digest of the file, or restore the file"
                yield Finding("tool-schema", f"{task.path}#/tools/{place}/schema_sha256", what, mend)


def _v2_sign(tasks: Sequence[TaskFacts], files: Mapping[str, FileDigest]) -> str:
    for task in tasks:
        if "/" in task.path:
            return f"{task.path} is not at the top level"
        if task.v2_field:
            return f"{task.path}#{task.v2_field} is a member that only tool-replay-v2 knows"
    return ""


def _only_v1(files: Mapping[str, FileDigest], tasks: Sequence[TaskFacts], settings: Settings) -> Iterator[Finding]:
    for task in tasks:
        if "/" in task.path:
            what = "tool-replay-v1 holds top-level task files only"
            yield Finding("v1-layout", task.path, what, "move it to the top level, or freeze as tool-replay-v2")
        if task.v2_field:
            what = "only tool-replay-v2 knows this member"
            yield Finding("v1-field", f"{task.path}#{task.v2_field}", what, "freeze as tool-replay-v2, or remove it")
    for name in settings.beyond_v1():
        what = f"a tool-replay-v1 manifest can't hold {name}"
        yield Finding("v1-setting", MANIFEST, what, "say it in card.yaml, or record the pack as tool-replay-v2")
    frozen = {task.path for task in tasks}
    left_out = [path for path in files if path not in frozen]
    pinned = {f"tools/{name}.json" for task in tasks for name, _ in task.tools}
    unpinned = [path for path in left_out if path not in pinned]
    if unpinned:
        shown = ", ".join(unpinned[:3]) + (f" and {len(unpinned) - 3} more" if len(unpinned) > 3 else "")
        what = f"in no tool-replay-v1 manifest, so nothing pins it: {shown}"
        yield Finding("v1-not-pinned", unpinned[0], what, "only task files, and tools by schema_sha256, are", "warning")


def _v2_notes(tasks: Sequence[TaskFacts]) -> Iterator[Finding]:
    unchecked = [task for task in tasks if task.unchecked]
    if unchecked:
        count = sum(task.unchecked for task in unchecked)
        which = f"{counted(count, 'call')} in {counted(len(unchecked), 'task')}"
        what = f"{which} without a request: nothing to check the fingerprint against"
        yield Finding("task-unchecked", unchecked[0].path, what, "keep a readable `request` per call", "warning")


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors first, then by place and rule."""
    return tuple(sorted(findings, key=lambda finding: (finding.severity, finding.where, finding.rule)))
