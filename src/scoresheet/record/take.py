"""One take: a command run with the recording proxy in front of its services, and what came of it.

Nothing is written into the pack before the command has ended well and its recording has been searched for credentials,
and then everything at once.
"""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scoresheet import atomic_file, canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.manifest import DEFAULT_SEED
from scoresheet.documents.row import episode_seed
from scoresheet.documents.tool import Tool
from scoresheet.errors import Finding, Refused, ScoresheetError, Usage
from scoresheet.record import commit, mcp, recorded
from scoresheet.record.exchange import Exchange
from scoresheet.record.mcp_server import NAME as MCP_NAME
from scoresheet.record.mcp_server import McpRecording, McpServer
from scoresheet.record.plan import TaskPlan
from scoresheet.record.proxy import DEFAULT_TIMEOUT_S, RecordingProxy
from scoresheet.record.redact import Redaction, Replacement, redact
from scoresheet.record.tunnel import Tunnels
from scoresheet.record.upstream import Upstream

DEFAULT_WALL_CLOCK_S = 600.0
_TAIL = 2000
_CREDENTIAL = re.compile(r"(?i)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|CREDENTIALS|PAT)$")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a pack's tasks are recorded."""

    pack: Path
    upstreams: tuple[Upstream, ...]
    tools: tuple[Tool, ...] = ()
    """Named by a description of the API; with the pack's own, every task offers them."""
    replace: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    wall_clock_s: float = DEFAULT_WALL_CLOCK_S
    not_secret: tuple[str, ...] = ()
    mcp: McpServer | None = None
    mcp_bridge: Path | None = None
    """The program that carries MCP over stdio to an address."""
    https: bool = False
    """Also record calls to the services' own addresses."""
    states: bool = False
    """Write down the states that the calls went through."""
    quiet_command: bool = False
    """Keep the command's stderr to ourselves; it is shown when the command fails."""


@dataclass(frozen=True, slots=True)
class Take:
    """What was recorded of one task."""

    task_id: str
    calls: int
    faults: int
    tools: tuple[str, ...]
    expected: Mapping[str, JsonValue]
    redactions: tuple[Replacement, ...]
    ignored: tuple[str, ...]
    dropped_headers: tuple[tuple[str, int], ...]
    warnings: tuple[Finding, ...]
    files: tuple[str, ...]
    """Files of the pack that changed."""
    scenarios: Mapping[str, JsonValue]
    """Scenario → the states that the calls went through."""

    def as_json(self) -> dict[str, JsonValue]:
        """The facts for `--json`."""
        return {
            "task_id": self.task_id,
            "calls": self.calls,
            "faults": self.faults,
            "tools": list(self.tools),
            "expected": dict(self.expected),
            "redactions": [each.as_json() for each in self.redactions],
            "ignored": list(self.ignored),
            "dropped_headers": dict(self.dropped_headers),
            "warnings": [str(warning) for warning in self.warnings],
            "files": list(self.files),
            **({"scenarios": dict(self.scenarios)} if self.scenarios else {}),
        }


def record(plan: TaskPlan, settings: Settings) -> Take:
    """Run the plan's command, and put what it called into the pack.

    Raises `ScoresheetError` when there is nothing to record or it may not be written; the pack is then as it was.
    """
    _may_record(plan, settings)
    tools = _described(settings)
    exchanges, problems, answer, heard, known = _taken(plan, settings, tools)
    listed = {tool.name for tool in heard.tools}
    tools = (*heard.tools, *(tool for tool in tools if tool.name not in listed))
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise Refused("the traffic can't be recorded", errors, plan.task_id)
    if not exchanges:
        mcp_names = [f"${MCP_NAME} (or scoresheet-mcp)"] if settings.mcp else []
        names = ", ".join([*(f"${upstream.name}" for upstream in settings.upstreams), *mcp_names])
        mend = f"the command must call the address in {names}; its own default address is not recorded"
        raise ScoresheetError("the command made no call through the proxy: nothing was recorded", plan.task_id, mend)
    redaction = redact(exchanges, settings.not_secret, (*own_credentials(), *known))
    if redaction.findings:
        raise Refused("a credential can't be taken out", redaction.findings, plan.task_id)
    _no_secret_in_tools(plan, heard.tools, redaction)
    expected = _without_secrets(plan, answer, redaction)
    hosts = {upstream.name: upstream.place for upstream in settings.upstreams}
    draft = recorded.Draft(
        plan.task_id, plan.prompt, expected, exchanges, redaction, hosts, tools, plan.members, settings.states
    )
    with commit.locked(settings.pack):
        changes = recorded.add(draft, commit.read(settings.pack), settings.replace)
        commit.write(settings.pack, changes.files)
    warnings = [problem for problem in (*problems, *heard.findings) if problem.severity == "warning"]
    if settings.states and not changes.scenarios:
        what = "no answer changed with what was written: the task has no states"
        mend = "let the command read again what it wrote"
        warnings.append(Finding("record-states", plan.task_id, what, mend, "warning"))
    if plan.expected is not None and isinstance(answer, dict) and not _matches(plan.expected, answer):
        what = "the command's own answer is not the expected one"
        warnings.append(Finding("record-answer", plan.task_id, what, "look which of the two is wrong", "warning"))
    return Take(
        plan.task_id,
        len(exchanges),
        sum(exchange.response.fault is not None for exchange in exchanges),
        changes.tools,
        expected,
        redaction.replaced,
        tuple(dict.fromkeys(rule for _, rule in redaction.ignored)),
        redaction.dropped_headers,
        (*warnings, *changes.findings),
        tuple(sorted(changes.files)),
        changes.scenarios,
    )


def _taken(
    plan: TaskPlan, settings: Settings, tools: Sequence[Tool]
) -> tuple[tuple[Exchange, ...], tuple[Finding, ...], JsonValue, mcp.Heard, tuple[str, ...]]:
    """Exchanges, problems, the command's answer, what was heard over MCP, and credentials that were shown there."""
    upstreams, server = settings.upstreams, settings.mcp
    if server is not None and server.upstream is not None:
        upstreams = (*upstreams, server.upstream)
    with (
        tempfile.TemporaryDirectory(prefix="scoresheet-mcp-") as folder,
        contextlib.ExitStack() as stack,
    ):
        tunnels = None
        if settings.https:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="scoresheet-trust-"))
            tunnels = Tunnels(settings.upstreams, Path(place))
        proxy = stack.enter_context(
            RecordingProxy(upstreams, settings.timeout_s, tools, streaming=(MCP_NAME,), tunnels=tunnels)
        )
        recording = None if server is None else McpRecording(server, Path(folder), settings.mcp_bridge)
        with contextlib.ExitStack() as answering:
            more = {} if recording is None else answering.enter_context(recording.environment(proxy.addresses))
            if tunnels is not None:
                more = {**more, **tunnels.environment(proxy.proxy_address)}
            try:
                answer = _run(plan, settings, tools, proxy, more)
            except ScoresheetError as error:
                seen = dict.fromkeys(f"{problem.where}: {problem.what}" for problem in proxy.problems())
                if seen:  # more often than not why the command failed
                    error.mend = "; ".join((*seen, error.mend))
                raise
        proxy.settle()
        recorded_all, problems = proxy.exchanges(), proxy.problems()
        over_mcp = tuple(each for each in recorded_all if each.request.upstream == MCP_NAME)
        heard = mcp.Heard((), (), ()) if recording is None else recording.heard(over_mcp)
    exchanges = tuple(each for each in recorded_all if each.request.upstream != MCP_NAME)
    kept = tuple(problem for problem in problems if problem.where != MCP_NAME or problem.severity == "error")
    return (*exchanges, *heard.exchanges), kept, answer, heard, mcp.secrets_of(over_mcp)


def _may_record(plan: TaskPlan, settings: Settings) -> None:
    """Refuse before the command runs what would be refused after it."""
    if settings.pack.exists() and not settings.pack.is_dir():
        raise Usage("the pack is not a directory", str(settings.pack), "name a folder, or a new one")
    atomic_file.refuse_unmakeable(settings.pack.absolute(), "the pack", "name a folder that you can write to")
    path = settings.pack / "tasks" / f"{plan.task_id}.json"
    if path.exists() and not settings.replace:
        what = f"the task {plan.task_id} is recorded already"
        mend = "add --replace to record it anew, or choose another --task"
        raise Refused(what, [Finding("record-task-exists", str(path), what, mend)], str(path))


def _described(settings: Settings) -> tuple[Tool, ...]:
    """The tools that people described, in the pack or now: every task offers them. A description given now wins."""
    tools: dict[str, Tool] = {}
    for path in sorted((settings.pack / "tools").glob("*.json")):
        tool = Tool.from_bytes(path.read_bytes(), f"tools/{path.name}")
        if not tool.inferred:
            tools[tool.name] = tool
    return tuple((tools | {tool.name: tool for tool in settings.tools}).values())


def _run(
    plan: TaskPlan, settings: Settings, tools: Sequence[Tool], proxy: RecordingProxy, more: Mapping[str, str]
) -> JsonValue:
    """Run the command under the agent contract (docs/agents); its answer, `None` when it gave none."""
    with tempfile.TemporaryDirectory(prefix="scoresheet-record-") as folder:
        task, answer = Path(folder, "task.json"), Path(folder, "answer.json")
        view = canonical.line(_view(plan, tools))
        task.write_bytes(view)
        services = {name: address for name, address in proxy.addresses.items() if name != MCP_NAME}
        environment = _environment(plan, services) | {
            **more,
            "SCORESHEET_CALL_URL": proxy.call_address,
            "SCORESHEET_TASK": str(task),
            "SCORESHEET_ANSWER": str(answer),
        }
        stdout = _output(plan, settings, environment, view)
        if answer.exists():
            return _answer(answer.read_bytes(), f"{plan.task_id}, $SCORESHEET_ANSWER")
        if proxy.submitted is not None:
            return _answer(proxy.submitted, f"{plan.task_id}, submit_answer")
        lines = [line for line in stdout.splitlines() if line.strip()]
        try:
            value = canonical.loads(lines[-1]) if lines else None
        except canonical.JsonError:
            return None
        return value if isinstance(value, dict) else None


def _output(plan: TaskPlan, settings: Settings, environment: Mapping[str, str], view: bytes) -> bytes:
    try:
        process = subprocess.Popen(
            plan.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if settings.quiet_command else None,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        mend = "write after -- what starts the agent, such as: -- python3 agent.py"
        raise Usage(f"the command can't be started: {error.strerror}", plan.command[0], mend) from error
    try:
        stdout, stderr = process.communicate(view, timeout=settings.wall_clock_s)
    except subprocess.TimeoutExpired as error:
        what = f"the command did not end within {settings.wall_clock_s:g} s: nothing was recorded"
        raise ScoresheetError(what, plan.task_id, "raise --wall-clock-s") from error
    finally:
        _end(process)
    if process.returncode != 0:
        said = (stderr or b"").decode("utf-8", "replace")[-_TAIL:].strip()
        what = f"the command ended with status {process.returncode}: nothing was recorded"
        mend = f"the command said: {said}" if said else "mend the command; what it said stands above"
        raise ScoresheetError(what, plan.task_id, mend)
    return stdout


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Leave nothing of the command behind, its children included."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _environment(plan: TaskPlan, addresses: Mapping[str, str]) -> dict[str, str]:
    environment = dict(os.environ) | dict(addresses)
    if len(addresses) == 1:
        environment["SCORESHEET_TOOLS_URL"] = next(iter(addresses.values()))
    environment["SCORESHEET_SEED"] = str(episode_seed(DEFAULT_SEED, plan.task_id, 0))
    for name in ("NO_PROXY", "no_proxy"):  # a proxy for the outside world must not take the calls to ours
        environment[name] = ",".join(filter(None, (environment.get(name), "127.0.0.1", "localhost")))
    return environment


def own_credentials() -> tuple[str, ...]:
    """What the command found in its environment under a name that says what it is."""
    return tuple(value for name, value in os.environ.items() if _CREDENTIAL.search(name) and len(value) >= 12)


def _view(plan: TaskPlan, tools: Sequence[Tool]) -> dict[str, JsonValue]:
    return {
        "task_id": plan.task_id,
        "prompt": plan.prompt,
        "tools": [_shown(tool) for tool in tools],
        "limits": plan.members.get("limits", {}),
        "answer_schema": plan.members.get("answer_schema"),
    }


def _no_secret_in_tools(plan: TaskPlan, tools: Sequence[Tool], redaction: Redaction) -> None:
    for tool in tools:
        if found := redaction.credentials.found(canonical.pretty(tool.as_json()).decode()):
            what = f"a credential ({found[0][2]}) stands in the description of the tool {tool.name}"
            raise Refused(what, [Finding("record-secret-in-tool", tool.name, what, "take it out")], plan.task_id)


def _matches(expected: Mapping[str, JsonValue], answer: Mapping[str, JsonValue]) -> bool:
    return all(name in answer and canonical.jcs(answer[name]) == canonical.jcs(expected[name]) for name in expected)


def _shown(tool: Tool) -> dict[str, JsonValue]:
    members = ("name", "description", "inputSchema", "annotations", "http")
    return {name: value for name, value in tool.as_json().items() if name in members}


def _answer(data: bytes, where: str) -> JsonValue:
    try:
        return canonical.loads(data)
    except canonical.JsonError as error:
        raise error.with_place(where) from error


def _without_secrets(plan: TaskPlan, answer: JsonValue, redaction: Redaction) -> Mapping[str, JsonValue]:
    """What is expected; refuses a credential in what people wrote, replaces one that the command repeats."""
    credentials = redaction.credentials
    for where, value in (("prompt", plan.prompt), ("expected", plan.expected), ("members", dict(plan.members))):
        text = value if isinstance(value, str) else canonical.jcs(value).decode()
        if found := credentials.found(text):
            what = f"a credential ({found[0][2]}) stands in the task's {where}"
            raise Refused(what, [Finding("record-secret-in-task", plan.task_id, what, "take it out")], plan.task_id)
    if plan.expected is not None:
        return plan.expected
    if not isinstance(answer, dict) or not answer:
        mend = "let its last line on stdout be a JSON object, or write one to $SCORESHEET_ANSWER; or give --expected"
        raise ScoresheetError("the command gave no answer to expect: nothing was recorded", plan.task_id, mend)
    clean, _, _ = credentials.replaced(canonical.jcs(answer).decode())
    return canonical.as_object(canonical.loads(clean))
