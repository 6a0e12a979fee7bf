"""Runs as they lie on the disk, small and honest: every file is written by the product's own documents."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scoresheet import canonical
from scoresheet.documents.baselines import Baseline, Baselines
from scoresheet.documents.receipt import ChainedReceipt
from scoresheet.documents.row import Row, episode_seed
from scoresheet.documents.run_plan import AgentIdentity, Host, PlannedTask, QuotedManifest, RunLimits, RunPlan

PACK = "78568c0f78a363e24164f2ee4a9f9fcb29891ee5b4c8a0e8b88040fc0977d6ae"
SEED = 20260922
A = (5, 5, 4, 2, 0, 5, 5, 3, 5, 1, 5, 4)
B = (4, 5, 2, 2, 0, 3, 5, 1, 4, 0, 4, 2)


def plan(tasks: int = 12, repeats: int = 5, retries: int = 0, manifest: Mapping[str, Any] = {}, **more: Any) -> RunPlan:
    """A plan of so many tasks."""
    quoted = {"protocol": "tool-replay-v2", "timeout_s": 30, "retries": retries, "seed": SEED, "repeats": repeats}
    quoted |= {"excluded": [{"tool": "open_ticket", "reason": "side effect"}], "upstreams": {"SHOP": "shop.example"}}
    fields: dict[str, Any] = {
        "pack": "billing",
        "manifest_sha256": PACK,
        "manifest": QuotedManifest.model_validate(quoted | dict(manifest)),
        "tasks": tuple(PlannedTask(task_id=f"t{number:02}") for number in range(tasks)),
        "repeats": repeats,
        "repeats_from": "manifest",
        "retries": retries,
        "seed": SEED,
        "limits": RunLimits(wall_clock_s=30),
        "jobs": 2,
        "isolation": "bwrap",
        "agent": AgentIdentity(kind="command", spec="python3 careful.py", sha256="a" * 64),
        "seat": "laptop-a",
        "versions": {"scoresheet": "0.1.0"},
        "host": Host(label="h1", system="Linux 6.1 x86_64", python="3.11.7", cores=2),
        "started_at": "2026-09-22T10:00:00Z",
        "pack_verified": True,
        "status": "finished",
    }
    return RunPlan(**(fields | more))


def row(task_id: str = "t00", repeat: int = 0, success: int | None = 1, **more: Any) -> Row:
    """One attempt, isolated and completed unless `more` says otherwise."""
    fields: dict[str, Any] = {
        "manifest_sha256": PACK,
        "task_id": task_id,
        "repeat": repeat,
        "attempt": 0,
        "episode_seed": episode_seed(SEED, task_id, repeat),
        "success": success,
        "schema_ok": 1,
        "unauthorized": 0,
        "timeout": 0,
        "exit_reason": "completed",
        "elapsed_s": 0.25,
        "cpu_s": 0.1,
        "recorded_latency_ms": 40.5,
        "tool_calls": 2,
        "repeated_calls": 0,
        "isolation": "proved",
        "started_at": "2026-09-22T10:00:01Z",
        "host": "h1",
    }
    return Row(**(fields | more))


def rows(passed: Iterable[int] = A, repeats: int = 5) -> list[Row]:
    """First attempts: so many of each task's repeats succeed, the first ones."""
    return [
        row(f"t{task:02}", repeat, int(repeat < count))
        for task, count in enumerate(passed)
        for repeat in range(repeats)
    ]


def refused(task_id: str, repeat: int, **more: Any) -> Row:
    """An episode that asked for what was not recorded."""
    return row(task_id, repeat, 0, unauthorized=1, schema_ok=0, exit_reason="mismatch", **more)


def baselines(null: int = 0, oracle: int = 12) -> Baselines:
    """Both baselines of the pack, as they should be."""
    return Baselines(
        manifest_sha256=PACK,
        isolation="proved",
        null=Baseline(agent="null", successes=null, episodes=12, failing=("t00",) if null else (), rows_sha256=PACK),
        oracle=Baseline(
            agent="oracle", successes=oracle, episodes=12, failing=("t03",) if oracle < 12 else (), rows_sha256=PACK
        ),
        ended_at="2026-09-22T09:00:00Z",
    )


def receipt(task_id: str, leaf: str = "score", **more: Any) -> ChainedReceipt:
    """A receipt that lets the task run, or says why not."""
    fields = {
        "leaf": leaf,
        "oracle_kind": "match",
        "mutation_scope": "read_only",
        "fixture_sha256": PACK,
        "runner_seat": "laptop-a" if leaf == "score" else None,
        "task_id": task_id,
        "manifest_sha256": PACK,
        "reason": "oracle, scope, digest and age hold" if leaf == "score" else "the age is over the window",
        "next_action": "Bind a runner seat, then run",
        "issued_at": "2026-09-22T09:00:00Z",
        "tool_version": "0.1.0",
        "card": {},
        "previous": "0" * 64,
    }
    return ChainedReceipt.model_validate(fields | more)


def line(one: Row) -> bytes:
    """The row as the journal writes it."""
    return canonical.line(one.model_dump(mode="json"))


def write(folder: Path, the_plan: RunPlan, the_rows: Iterable[Row], **files: bytes) -> Path:
    """The run directory; `files` maps `confounds` to the bytes of confounds.jsonl, and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_bytes(the_plan.text())
    (folder / "rows.jsonl").write_bytes(b"".join(map(line, the_rows)))
    for name, content in files.items():
        suffix = ".json" if name == "baselines" else ".jsonl"
        (folder / (name + suffix)).write_bytes(content)
    return folder
