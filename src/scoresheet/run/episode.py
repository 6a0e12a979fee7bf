"""One episode: a sandbox, the doors, the agent under its contract, and the row that was folded from what was seen."""

import contextlib
import importlib.resources
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from scoresheet import canonical, digest
from scoresheet.canonical import JsonValue
from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.manifest import Manifest
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunLimits
from scoresheet.documents.task import Task
from scoresheet.documents.tool import Tool
from scoresheet.errors import ScoresheetError
from scoresheet.model.entry import MODEL_LOG
from scoresheet.model.observed import Pinned
from scoresheet.pack import mcp_calls
from scoresheet.replay import mcp
from scoresheet.replay.http import CALL_DOOR, MCP_DOOR, Public, ReplayServer
from scoresheet.replay.journal import CallJournal, read_back
from scoresheet.replay.session import Session, Tape
from scoresheet.run import grading, harvest, public, surface, trajectory, workspace
from scoresheet.run.agents.agent import PROGRAMS, Agent
from scoresheet.run.budget import INTERRUPTED
from scoresheet.run.fold import Left, Seen, completed, fold
from scoresheet.run.grading import Grader
from scoresheet.run.judgments import TASK_VIEW
from scoresheet.run.model_calls import ModelCalls, Reading
from scoresheet.run.models import MODEL_DOORS, NO_MODELS, Models
from scoresheet.run.oracle import by_human, by_work
from scoresheet.run.patch import PATCH, Change, patch
from scoresheet.run.plan import Episode
from scoresheet.run.verdict import Crash, Verdict
from scoresheet.run.workspace import Work
from scoresheet.sandbox.spec import ANSWER, HOME, TASK, Door, Ended, Launch, Limits, Opened, Sandbox, SandboxSpec

CALL_PORT = 8070
MCP_PORT = 8071
FIRST_PORT = 8080
NAMES = "dns.jsonl"
"""Which names were asked for."""
GRADING = "grading"
"""Folder of what the tests said."""
_PATH = "/usr/local/bin:/usr/bin:/bin"
_OWN_PATH = f"{PROGRAMS}/bin"
_INSIDE = ((f"{_OWN_PATH}/scoresheet-mcp", "mcp_stdio.py"), (f"{_OWN_PATH}/scoresheet-call", "call_tool.py"))
"""Programs on an agent's PATH, where there are tools."""

Watch = Callable[[Opened], AbstractContextManager[object]]
"""Told of every sandbox whose agent runs, so that it can be stopped from outside."""


class Interrupted(ScoresheetError):
    """The episode was ended from outside: it has no row, and is run again by `--resume` (exit 4)."""

    exit_code = 4


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """Everything that decides one episode."""

    episode: Episode
    manifest_sha256: str
    manifest: Manifest
    task: Task
    tape: Tape
    tools: Mapping[str, Tool]
    upstreams: tuple[str, ...]
    """Names, as recording gave them; `("",)` for a v1 pack that names none."""
    agent: Agent
    limits: RunLimits
    folder: Path
    """Where its journal and output are kept."""
    host: str
    work: Work | None = None
    """The task's workspace, when it has one."""
    grader: Grader | None = None
    """Judges workspaces; needed by tasks that are judged by their work."""
    models: Models = NO_MODELS


def run_episode(
    spec: EpisodeSpec, sandbox: Sandbox, server: ReplayServer, watch: Watch = contextlib.nullcontext
) -> Row:
    """The row of one episode, from its sandbox to its last process.

    Raises `NotIsolated` when isolation was not proved (nothing ran), `Interrupted` when it was stopped from outside,
    and whatever went wrong on our side: none of these is the agent's failure.
    """
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    limits = limits_of(spec.limits, spec.task)
    folder = _fresh(spec.folder)
    session = Session(spec.tape, limits.max_tool_calls)
    place = folder / workspace.FOLDER
    with workspace.temporary(place):
        if spec.work is not None:
            workspace.lay(spec.work, place)
        return _run(spec, sandbox, server, watch, session, limits, place, started_at)


def _run(
    spec: EpisodeSpec,
    sandbox: Sandbox,
    server: ReplayServer,
    watch: Watch,
    session: Session,
    limits: RunLimits,
    place: Path,
    started_at: str,
) -> Row:
    folder = spec.folder
    calls_path = folder / "calls.jsonl"
    hosts = public.of(spec.manifest, server)
    with sandbox.open(_sandbox_spec(spec, limits, place, hosts)) as opened:

        def refused(call: CallRecord) -> None:
            if call.outcome == "capped":
                opened.stop("tool_cap")
            elif call.outcome == "miss" and spec.manifest.on_mismatch == "stop":
                opened.stop("mismatch")

        journal = CallJournal(calls_path)
        doors = {name: upstream for name, upstream in _doors(spec).items() if name not in (CALL_DOOR, MCP_DOOR)}
        sockets = {name: each for name, each in opened.sockets.items() if not name.startswith(MODEL_DOORS)}
        with (
            server.episode(sockets, doors, session, journal, on_refusal=refused, public=hosts) as view,
            spec.models.episode(opened, folder, spec.episode, limits.max_tool_calls) as called,
        ):
            launch = _launch(spec, opened, limits, hosts)
            with watch(opened):
                called.start(journal.start())
                if hosts is not None:
                    hosts.names.start()
                ended = opened.start(launch)
            submitted = view.answer
        evidence = opened.evidence
    if ended.stopped == INTERRUPTED or called.cut_short:
        raise Interrupted("the episode was interrupted", spec.episode.folder)
    journal_bytes = calls_path.read_bytes()
    _keep(folder, ended, evidence.model_dump(mode="json"))
    if hosts is not None and public.asks_us(opened.sockets):
        (folder / NAMES).write_bytes(hosts.names.lines())
    if by_human(spec.task):
        (folder / TASK_VIEW).write_bytes(task_view(spec.task, spec.tools, limits))
    found = None if spec.work is None else _harvest(spec.work, place, folder, limits.work_bytes)
    calls = [read_back(line) for line in journal_bytes.splitlines()]
    passed = _passed(spec, calls, called.pinned)
    seen = Seen(
        manifest_sha256=spec.manifest_sha256,
        protocol=spec.manifest.protocol,
        on_mismatch=spec.manifest.on_mismatch,
        episode=spec.episode,
        task=spec.task,
        schema_unchecked=spec.tape.schema_unchecked,
        calls=calls,
        calls_sha256=digest.of(journal_bytes),
        submitted=submitted,
        ended=ended,
        evidence=evidence,
        started_at=started_at,
        host=spec.host,
        left=None if found is None else found.left,
        models=None if passed is None else passed.observation,
        prices=None if spec.models.prices is None else spec.models.prices.table,
        model_sha256=None if passed is None else passed.sha256,
    )
    if found is not None and by_work(spec.task) and completed(seen):
        seen = replace(seen, graded=_graded(spec, limits, found, place, watch))
    return fold(seen)


def _passed(spec: EpisodeSpec, calls: Sequence[CallRecord], pinned: Pinned | None) -> ModelCalls | None:
    """What passed the models' doors, `None` without them; the trajectory is written as it is read."""
    agent = spec.agent.identity
    about = trajectory.About(spec.manifest_sha256, spec.episode, spec.task, agent, bool(spec.models.kinds))
    with contextlib.ExitStack() as stack:
        file = stack.enter_context((spec.folder / trajectory.TRAJECTORY).open("wb"))
        if not spec.models.kinds:
            file.writelines(trajectory.written(about, spec.tape, calls))
            return None
        reading = Reading(stack.enter_context((spec.folder / MODEL_LOG).open("rb")), pinned)
        file.writelines(trajectory.written(about, spec.tape, calls, reading.exchanges()))
        return reading.seen()


@dataclass(frozen=True, slots=True)
class _Harvest:
    left: Left
    changes: tuple[Change, ...]
    kept: tuple[Change, ...]


def _harvest(work: Work, place: Path, folder: Path, work_bytes: int) -> _Harvest:
    """What lies in the workspace, now that nobody can change it; the patch is kept in `folder`."""
    found = harvest.harvest(place, work, work.size_bytes + work_bytes)
    made = patch(found.changes)
    (folder / PATCH).write_bytes(made.text)
    judged = surface.judged(found.changes, work.frozen)
    unread = surface.frozen_paths(found.unread, work.tests)
    left = Left(
        patch_lines=made.lines,
        patch_sha256=made.sha256,
        tests=bool(surface.frozen_paths(work.files, work.tests)),
        tests_changed=tuple(sorted({*judged.tests_changed, *map(surface.shown, unread)})),
        tests_added=judged.tests_added,
        touched=judged.touched,
        left_out=found.left_out,
        crossed=found.crossed,
    )
    return _Harvest(left, found.changes, judged.kept)


def _graded(spec: EpisodeSpec, limits: RunLimits, found: _Harvest, place: Path, watch: Watch) -> Verdict | Crash:
    assert spec.work is not None
    assert spec.task.oracle is not None
    oracle = spec.task.oracle
    if oracle.output_file is not None:
        path = oracle.output_file.encode()
        return grading.of_output(spec.task, harvest.output(found.changes, spec.work, path))
    assert spec.grader is not None
    workspace.remove(place)  # the room is needed once
    bounds = grading.limits_for(oracle, limits.memory_bytes, limits.work_bytes, limits.pids)
    try:
        return spec.grader.grade(spec.task, spec.work, found.kept, spec.folder / GRADING, bounds, watch)
    except grading.OracleFailed as error:
        return Crash(error.what)
    except grading.Stopped as error:
        raise Interrupted("the episode was interrupted", spec.episode.folder) from error


def limits_of(limits: RunLimits, task: Task) -> RunLimits:
    """The run's limits, lowered by the task's: a task can never raise one."""
    own = task.limits
    wall = limits.wall_clock_s if own.wall_clock_s is None else min(limits.wall_clock_s, own.wall_clock_s)
    caps = [cap for cap in (limits.max_tool_calls, own.max_tool_calls) if cap is not None]
    return limits.model_copy(update={"wall_clock_s": wall, "max_tool_calls": min(caps, default=None)})


def task_view(task: Task, tools: Mapping[str, Tool], limits: RunLimits) -> bytes:
    """What the agent is told of its task: never calls, expected or oracle."""
    view: dict[str, JsonValue] = {
        "task_id": task.task_id,
        "prompt": task.prompt,
        "tools": [_tool_view(reference.name, tools) for reference in task.tools],
        "limits": {"wall_clock_s": limits.wall_clock_s, "max_tool_calls": limits.max_tool_calls},
        "answer_schema": task.answer_schema,
    }
    return json.dumps(view, ensure_ascii=False, indent=1).encode() + b"\n"


def _tool_view(name: str, tools: Mapping[str, Tool]) -> dict[str, JsonValue]:
    if name not in tools:
        return {"name": name}
    shown = tools[name].as_json()
    members = ("name", "description", "inputSchema", "annotations", "http")
    return {member: shown[member] for member in members if member in shown}


def speaks_mcp(task: Task) -> bool:
    """True when there is something to offer over MCP."""
    return bool(task.tools) or any(
        call.request is not None and call.request.path.startswith(mcp_calls.PREFIX) for call in task.calls
    )


def tool_programs() -> tuple[tuple[str, bytes], ...]:
    """`scoresheet-mcp`, for clients that speak MCP over stdio, and `scoresheet-call`, for shells: path, source."""
    folder = importlib.resources.files("scoresheet.sandbox.inside")
    return tuple((path, (folder / name).read_bytes()) for path, name in _INSIDE)


def _doors(spec: EpisodeSpec) -> dict[str, str]:
    """Door → upstream, the doors of tools by name last."""
    doors = {f"http-{number}": upstream for number, upstream in enumerate(spec.upstreams)}
    return {**doors, CALL_DOOR: "", **({MCP_DOOR: ""} if speaks_mcp(spec.task) else {})}


def _sandbox_spec(spec: EpisodeSpec, limits: RunLimits, place: Path, hosts: Public | None) -> SandboxSpec:
    doors = _doors(spec)
    ports = {CALL_DOOR: CALL_PORT, MCP_DOOR: MCP_PORT}
    ports |= {f"http-{number}": FIRST_PORT + number for number in range(len(spec.upstreams))}
    view = task_view(spec.task, spec.tools, limits)
    return SandboxSpec(
        doors=(*(Door(name, ports[name]) for name in doors), *public.doors(hosts), *spec.models.sandbox_doors()),
        limits=Limits(
            wall_clock_s=limits.wall_clock_s,
            pids=limits.pids,
            memory_bytes=limits.memory_bytes,
            work_bytes=limits.work_bytes,
            output_bytes=limits.output_bytes,
        ),
        binds=spec.agent.binds,
        files=((TASK, view), *public.files(hosts), *spec.agent.files, *spec.agent.private(spec.task, spec.work)),
        programs=tool_programs() if MCP_DOOR in doors else (),
        workspace=None if spec.work is None else place,
        workspace_writable=spec.work is None or spec.work.writable,
        workspace_bytes=0 if spec.work is None else spec.work.size_bytes,
    )


def _launch(spec: EpisodeSpec, opened: Opened, limits: RunLimits, hosts: Public | None) -> Launch:
    """The agent contract (docs/cli, Agent contract): this environment, and nothing else."""
    urls = {name: f"http://{host}:{port}" for name, (host, port) in opened.addresses.items()}
    doors = _doors(spec)
    environment = {
        "HOME": HOME,
        "PATH": ":".join((*spec.agent.path, _PATH, *((_OWN_PATH,) if MCP_DOOR in doors else ()))),
        "LANG": "C.UTF-8",
        "SCORESHEET_TASK": TASK,
        "SCORESHEET_CALL_URL": urls[CALL_DOOR],
        "SCORESHEET_ANSWER": ANSWER,
        "SCORESHEET_SEED": str(spec.episode.seed),
    }
    if len(spec.upstreams) == 1:
        environment["SCORESHEET_TOOLS_URL"] = urls["http-0"]
    if MCP_DOOR in doors:
        environment["SCORESHEET_MCP_URL"] = urls[MCP_DOOR] + mcp.PATH
    for door, upstream in doors.items():
        if upstream:
            environment[upstream] = urls[door]
    environment |= public.environment(hosts, urls) | spec.models.environment(urls)
    return Launch(spec.agent.argv, tuple(environment.items()), task_view(spec.task, spec.tools, limits))


def _fresh(folder: Path) -> Path:
    """An empty folder; what an interrupted attempt without a row left there goes."""
    if folder.exists():
        workspace.remove(folder)
    folder.mkdir(parents=True)
    return folder


def _keep(folder: Path, ended: Ended, evidence: JsonValue) -> None:
    (folder / "stdout").write_bytes(ended.stdout)
    (folder / "stderr").write_bytes(ended.stderr)
    (folder / "evidence.json").write_bytes(canonical.pretty(evidence))
