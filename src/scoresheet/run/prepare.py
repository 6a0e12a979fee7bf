"""A pack and what was asked → the plan of a run, checked before any episode starts."""

import fnmatch
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scoresheet import __version__, digest
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
from scoresheet.errors import Finding, Refused, ScoresheetError, Usage
from scoresheet.pack.folder import Pack
from scoresheet.run import grading, oracle
from scoresheet.run.admission import Admission

_DEFAULT_JOBS = 4
_MOST_TOLD = 20
"""Tasks that are told one by one."""
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


def plan_of(
    pack: Pack, agent: AgentIdentity, asked: Asked, pack_verified: bool = False, admission: Admission | None = None
) -> RunPlan:
    """The plan, every chosen task read. Raises `Refused` for tasks that can't be scored, `Usage`.

    `pack_verified` says that the caller compared every file of the pack with its manifest; `admission` is its triage,
    and where the manifest is silent its card decides.
    """
    manifest = pack.manifest
    tasks: list[PlannedTask] = []
    findings: list[Finding] = []
    tested = False
    for task in pack.tasks():
        if not fnmatch.fnmatchcase(task.task_id, asked.tasks):
            continue
        finding = oracle.unscorable(task, task.task_id) or grading.unready(pack, task)
        tested = tested or oracle.by_work(task)
        if finding is not None and (admission is None or task.task_id in admission.startable):
            findings.append(finding)
        split = task.split if admission is None else admission.split_of(task.task_id) or task.split
        tasks.append(PlannedTask(task_id=task.task_id, cluster_id=task.cluster_id, split=split))
    if not tasks:
        mend = "the pack's tasks are the keys of `tasks` in manifest.json; a glob such as 'billing.*' takes several"
        raise Usage(f"no task of the pack is called {asked.tasks!r}", str(pack.root), mend)
    if findings:
        raise Refused("tasks that can't be scored", findings, str(pack.root))
    upstreams_of(pack)
    declared = manifest.repeats or _count(admission, "repeats")
    repeats = asked.repeats or declared or DEFAULT_REPEATS
    said_by = "manifest" if manifest.repeats else "card" if declared else "default"
    card = admission.triage.card if admission is not None else None
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
            "repeats_from": "option" if asked.repeats and asked.repeats != declared else said_by,
            "retries": manifest.retries,
            "seed": manifest.seed,
            "limits": RunLimits(wall_clock_s=manifest.timeout_s, max_tool_calls=_count(admission, "max_tool_calls")),
            "jobs": asked.jobs or _count(admission, "parallel_jobs") or min(os.cpu_count() or 1, _DEFAULT_JOBS),
            "isolation": asked.isolation,
            "interval": asked.interval,
            "agent": agent,
            "seat": asked.seat,
            "versions": {**_versions(asked.isolation), **(grading.versions() if tested else {})},
            "host": _host(asked.seat),
            "started_at": now(),
            "pack_verified": pack_verified,
            "card_sha256": card.sha256 if card is not None else None,
            "lockfile_sha256": _lockfile(admission, pack.root),
            "draft": list(_draft(asked, admission, repeats, declared, tasks, len(manifest.tasks))),
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


def _draft(
    asked: Asked,
    admission: Admission | None,
    repeats: int,
    declared: int | None,
    chosen: Sequence[PlannedTask],
    tasks: int,
) -> Iterator[str]:
    """Why the report can only be a draft, as far as that is known before the first episode."""
    card = admission.triage.card if admission is not None else None
    if card is None:
        yield "no protocol card lies beside the pack (card.yaml): nothing declares what is published"
    elif card.faults:
        more = f" (and {len(card.faults) - 1} more; `scoresheet check` lists them)" if len(card.faults) > 1 else ""
        yield f"the protocol card is not complete: {card.faults[0]}{more}"
    leaves = admission.leaves if admission is not None else {}
    held = [leaves[task.task_id] for task in chosen if admission is not None and leaves[task.task_id].leaf != "score"]
    for receipt in held[:_MOST_TOLD]:
        yield f"{receipt.task_id} is not started: {receipt.leaf}: {receipt.reason}"
    if len(held) > _MOST_TOLD:
        yield f"{len(held) - _MOST_TOLD} more tasks are not started"
    if asked.isolation == "none":
        yield "the episodes are not isolated"
    if len(chosen) < tasks:
        yield f"only {len(chosen)} of {tasks} tasks were chosen"
    if declared is not None and repeats != declared:
        yield f"repeats is {repeats}, but {declared} is declared"


def _count(admission: Admission | None, control: str) -> int | None:
    """A control of the card that is a count above 0."""
    value = admission.control(control) if admission is not None else None
    return value if type(value) is int and value > 0 else None


def _lockfile(admission: Admission | None, root: Path) -> str | None:
    """Digest of the file that the card's `controls.lockfile` names, beside the pack or where the run was started."""
    text = admission.control("lockfile") if admission is not None else None
    name = text.split()[0] if isinstance(text, str) and text.split() else ""
    for folder in (root, Path.cwd()) if name else ():
        try:
            return digest.of_file(folder / name).sha256
        except (OSError, ScoresheetError, ValueError):
            continue
    return None


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
        os=_distribution(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )


def _distribution() -> str | None:
    try:
        text = Path("/etc/os-release").read_text("utf-8", "replace")
    except OSError:
        return None
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', text, re.MULTILINE)
    return found[1] if found else None
