"""One episode: a sandbox, the doors, the agent under its contract, and the row that was folded from what was seen."""

import contextlib
import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
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
from scoresheet.replay.http import CALL_DOOR, ReplayServer
from scoresheet.replay.journal import CallJournal, read_back
from scoresheet.replay.session import Session, Tape
from scoresheet.run.agents.agent import Agent
from scoresheet.run.fold import Seen, fold
from scoresheet.run.plan import Episode
from scoresheet.sandbox.spec import ANSWER, HOME, TASK, Door, Ended, Launch, Limits, Opened, Sandbox, SandboxSpec

CALL_PORT = 8070
FIRST_PORT = 8080
INTERRUPTED = "interrupted"
_PATH = "/usr/local/bin:/usr/bin:/bin"

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
    calls_path = folder / "calls.jsonl"
    session = Session(spec.tape, limits.max_tool_calls)
    with sandbox.open(_sandbox_spec(spec, limits)) as opened:

        def refused(call: CallRecord) -> None:
            if call.outcome == "capped":
                opened.stop("tool_cap")
            elif call.outcome == "miss" and spec.manifest.on_mismatch == "stop":
                opened.stop("mismatch")

        journal = CallJournal(calls_path)
        doors = {name: upstream for name, upstream in _doors(spec.upstreams).items() if name != CALL_DOOR}
        with server.episode(opened.sockets, doors, session, journal, on_refusal=refused) as view:
            launch = _launch(spec, opened, limits)
            with watch(opened):
                journal.start()
                ended = opened.start(launch)
            submitted = view.answer
        evidence = opened.evidence
    if ended.stopped == INTERRUPTED:
        raise Interrupted("the episode was interrupted", spec.episode.folder)
    journal_bytes = calls_path.read_bytes()
    _keep(folder, ended, evidence.model_dump(mode="json"))
    return fold(
        Seen(
            manifest_sha256=spec.manifest_sha256,
            protocol=spec.manifest.protocol,
            on_mismatch=spec.manifest.on_mismatch,
            episode=spec.episode,
            task=spec.task,
            schema_unchecked=spec.tape.schema_unchecked,
            calls=[read_back(line) for line in journal_bytes.splitlines()],
            calls_sha256=digest.of(journal_bytes),
            submitted=submitted,
            ended=ended,
            evidence=evidence,
            started_at=started_at,
            host=spec.host,
        )
    )


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


def _doors(upstreams: tuple[str, ...]) -> dict[str, str]:
    """Door → upstream, the door of tools by name last."""
    return {**{f"http-{number}": upstream for number, upstream in enumerate(upstreams)}, CALL_DOOR: ""}


def _sandbox_spec(spec: EpisodeSpec, limits: RunLimits) -> SandboxSpec:
    ports = [*range(FIRST_PORT, FIRST_PORT + len(spec.upstreams)), CALL_PORT]
    view = task_view(spec.task, spec.tools, limits)
    return SandboxSpec(
        doors=tuple(Door(name, port) for name, port in zip(_doors(spec.upstreams), ports, strict=True)),
        limits=Limits(
            wall_clock_s=limits.wall_clock_s,
            pids=limits.pids,
            memory_bytes=limits.memory_bytes,
            work_bytes=limits.work_bytes,
            output_bytes=limits.output_bytes,
        ),
        binds=spec.agent.binds,
        files=((TASK, view), *spec.agent.files, *spec.agent.private(spec.task)),
    )


def _launch(spec: EpisodeSpec, opened: Opened, limits: RunLimits) -> Launch:
    """The agent contract (docs/cli, Agent contract): this environment, and nothing else."""
    urls = {name: f"http://{host}:{port}" for name, (host, port) in opened.addresses.items()}
    doors = _doors(spec.upstreams)
    environment = {
        "HOME": HOME,
        "PATH": ":".join((*spec.agent.path, _PATH)),
        "LANG": "C.UTF-8",
        "SCORESHEET_TASK": TASK,
        "SCORESHEET_CALL_URL": urls[CALL_DOOR],
        "SCORESHEET_ANSWER": ANSWER,
        "SCORESHEET_SEED": str(spec.episode.seed),
    }
    if len(spec.upstreams) == 1:
        environment["SCORESHEET_TOOLS_URL"] = urls["http-0"]
    for door, upstream in doors.items():
        if upstream:
            environment[upstream] = urls[door]
    return Launch(spec.agent.argv, tuple(environment.items()), task_view(spec.task, spec.tools, limits))


def _fresh(folder: Path) -> Path:
    """An empty folder; what an interrupted attempt without a row left there goes."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder


def _keep(folder: Path, ended: Ended, evidence: JsonValue) -> None:
    (folder / "stdout").write_bytes(ended.stdout)
    (folder / "stderr").write_bytes(ended.stderr)
    (folder / "evidence.json").write_bytes(canonical.pretty(evidence))
