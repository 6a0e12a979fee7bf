"""A pack and what was asked → the plan of a run, checked before any episode starts."""

import fnmatch
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from scoresheet import __version__
from scoresheet.documents.manifest import DEFAULT_REPEATS
from scoresheet.documents.run_plan import (
    AgentIdentity,
    Host,
    Isolation,
    PlannedTask,
    QuotedManifest,
    RunLimits,
    RunPlan,
)
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.pack.folder import Pack
from scoresheet.run import oracle

_DEFAULT_JOBS = 4
_RESERVED = ("HOME", "PATH", "LANG")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller may choose; everything else comes from the pack."""

    repeats: int | None = None
    jobs: int | None = None
    tasks: str = "*"
    """Glob over task ids."""
    isolation: Isolation = "bwrap"
    interval: str = "cluster"
    seat: str | None = None


def plan_of(pack: Pack, agent: AgentIdentity, asked: Asked, pack_verified: bool = False) -> RunPlan:
    """The plan, every chosen task read. Raises `Refused` for tasks that can't be scored, `Usage`.

    `pack_verified` says that the caller compared every file of the pack with its manifest.
    """
    manifest = pack.manifest
    tasks: list[PlannedTask] = []
    findings: list[Finding] = []
    for task in pack.tasks():
        if not fnmatch.fnmatchcase(task.task_id, asked.tasks):
            continue
        finding = oracle.unscorable(task, task.task_id)
        if finding is not None:
            findings.append(finding)
        tasks.append(PlannedTask(task_id=task.task_id, cluster_id=task.cluster_id, split=task.split))
    if not tasks:
        raise Usage(f"no task of the pack is called {asked.tasks!r}", str(pack.root))
    if findings:
        raise Refused("tasks that can't be scored", findings, str(pack.root))
    upstreams_of(pack)
    repeats = asked.repeats or manifest.repeats or DEFAULT_REPEATS
    return RunPlan.from_value(
        {
            "pack": pack.root.resolve().name,
            "manifest_sha256": pack.manifest_sha256,
            "manifest": QuotedManifest(
                protocol=manifest.protocol,
                timeout_s=manifest.timeout_s,
                retries=manifest.retries,
                seed=manifest.seed,
                repeats=manifest.repeats,
                on_mismatch=manifest.on_mismatch,
                on_exhausted=manifest.on_exhausted,
                excluded=manifest.excluded,
                upstreams=manifest.upstreams,
            ),
            "tasks": tasks,
            "pack_tasks": len(manifest.tasks),
            "repeats": repeats,
            "repeats_from": "option" if asked.repeats else "manifest" if manifest.repeats else "default",
            "retries": manifest.retries,
            "seed": manifest.seed,
            "limits": RunLimits(wall_clock_s=manifest.timeout_s),
            "jobs": asked.jobs or min(os.cpu_count() or 1, _DEFAULT_JOBS),
            "isolation": asked.isolation,
            "interval": asked.interval,
            "agent": agent,
            "seat": asked.seat,
            "versions": _versions(asked.isolation),
            "host": _host(asked.seat),
            "started_at": now(),
            "pack_verified": pack_verified,
            "draft": list(_draft(asked, repeats, manifest.repeats, len(tasks), len(manifest.tasks))),
        },
        "run.json",
    )


def upstreams_of(pack: Pack) -> tuple[str, ...]:
    """Names of the recorded APIs, `("",)` when there is one that has no name. Raises `Refused` for unusable names."""
    named = set(pack.manifest.upstreams)
    named |= {tool.http.upstream for tool in pack.tools.values() if tool.http is not None}
    names = sorted(name for name in named if name)
    findings = [
        Finding(
            "upstream-name", name, f"{name!r} can't be an environment variable of the agent", "record under another"
        )
        for name in names
        if not name.isidentifier() or not name.isascii() or name in _RESERVED or name.startswith("SCORESHEET_")
    ]
    if findings:
        raise Refused("upstreams that agents can't be told of", findings, str(pack.root))
    return tuple(names) or ("",)


def now() -> str:
    """The time, RFC 3339, UTC, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _draft(asked: Asked, repeats: int, declared: int | None, chosen: int, tasks: int) -> Sequence[str]:
    reasons = ["this version has no protocol cards yet: nothing declares what is published"]
    if asked.isolation == "none":
        reasons.append("the episodes are not isolated")
    if chosen < tasks:
        reasons.append(f"only {chosen} of {tasks} tasks were chosen")
    if declared is not None and repeats != declared:
        reasons.append(f"{repeats} repeats, but the manifest declares {declared}")
    return reasons


def _versions(isolation: Isolation) -> Mapping[str, str]:
    versions = {"scoresheet": __version__}
    if isolation == "bwrap" and (bwrap := shutil.which("bwrap")):
        done = subprocess.run([bwrap, "--version"], capture_output=True, text=True, check=False, timeout=30)
        versions["bwrap"] = done.stdout.strip().removeprefix("bubblewrap ")
    return versions


def _host(seat: str | None) -> Host:
    uname = os.uname()
    return Host(
        label=seat or uname.nodename,
        system=f"{uname.sysname} {uname.release} {uname.machine}",
        python=platform.python_version(),
        cores=os.cpu_count() or 1,
    )
