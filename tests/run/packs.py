"""Small frozen packs: a shop with one item, and tasks whose prompt tells `tests/agents/obey.sh` how to behave."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from scoresheet import digest
from scoresheet.documents.tool import Request
from scoresheet.gate import suite
from scoresheet.pack import fingerprint, freezer
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import Settings

AGENTS = Path(__file__).parent.parent / "agents"
OBEY = str(AGENTS / "obey.sh")
TOOL = {
    "name": "get_item",
    "description": "One item of the shop.",
    "inputSchema": {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
        "additionalProperties": False,
    },
    "http": {"upstream": "SHOP", "method": "GET", "path": "/items/{n}"},
}


def shop(
    folder: Path, prompts: Mapping[str, str], v1: bool = False, extra: Mapping[str, Any] | None = None, **settings: Any
) -> Pack:
    """A pack with a task for each prompt. `GET /items/1` is recorded, and `GET /items/0`, which the schema forbids."""
    (folder / "tools").mkdir(parents=True)
    tool = json.dumps(TOOL).encode()
    (folder / "tools" / "get_item.json").write_bytes(tool)
    tasks = folder if v1 else folder / "tasks"
    tasks.mkdir(exist_ok=True)
    for task_id, prompt in prompts.items():
        task = {
            "task_id": task_id,
            "prompt": prompt,
            "tools": [{"name": "get_item", "schema_sha256": "sha256:" + digest.of(tool)}],
            "calls": [call("/items/1", 200, {"price": 12}, v1), call("/items/0", 400, {"error": "no such item"}, v1)],
            "expected": {"price": 12},
        }
        (tasks / f"{task_id}.json").write_text(json.dumps(task | dict(extra or {})))
    if not v1:
        settings = {"upstreams": (("SHOP", "shop.example"),)} | settings
    freezer.write(folder, Settings(protocol="tool-replay-v1" if v1 else "tool-replay-v2", **settings))
    pack = Pack.open(folder)
    write_card(pack)
    return pack


def write_card(pack: Pack, change: Callable[[dict[str, Any]], None] = lambda card: None) -> dict[str, Any]:
    """A complete protocol card beside the pack, every task held out, as `change` leaves it."""
    task_ids = [task.task_id for task in pack.tasks()]
    manifest = pack.manifest
    card: dict[str, Any] = {
        "schema": "agent-eval-protocol/v1",
        "suite": {
            "name": "shop",
            "git_sha": "59d430a9506458e4b8a45fa6426d376dcf3eec17",
            "fixture_hash": "sha256:" + suite.look(pack).fixture_sha256,
            "license": "Apache-2.0",
            "source": "invented",
            "contamination_note": "written for a test",
            "task_count": len(task_ids),
            "taxonomy": {"price": len(task_ids)},
            "origins": {"synthetic": list(task_ids)},
        },
        "dataset_split": {"train_like": [], "holdout": task_ids},
        "metrics": {
            "decision": "does it finish under the budget?",
            "primary": "share of runs that exit before wall_clock_s",
            "secondary": ["timeout vs tool-cap vs model error", "success_mean"],
            "headline_scalar_allowed": False,
            "tie_margin": 0.05,
        },
        "controls": {
            "runtime": "linux",
            "lockfile": "none",
            "tool_allowlist": ["get_item"],
            "test_command": "none",
            "wall_clock_s": manifest.timeout_s,
            "max_tool_calls": 40,
            "temperature": 0.0,
            "seed": manifest.seed,
            "human_intervention": "none",
            "parallel_jobs": 2,
            "network": "denied",
            "retries": manifest.retries,
            "repeats": manifest.repeats or 5,
            "stale_after_hours": 87600,
        },
        "environment": {"os": "linux", "notes": "none is needed"},
        "publishing": {"negative_results": "required", "confound_log": "required", "excluded": [], "upstreams": {}},
    }
    change(card)
    (pack.root / "card.yaml").write_text(json.dumps(card, indent=1))  # JSON is YAML
    return card


def call(target: str, status: int, answer: Any, v1: bool) -> dict[str, Any]:
    """One recorded GET."""
    request = Request("SHOP", "GET", target)
    recorded = {
        "request_fingerprint": fingerprint.v1("GET", target, None) if v1 else fingerprint.v2(request),
        "response_status": status,
        "response_bytes": json.dumps(answer),
        "latency_ms_recorded": 40.0,
    }
    if not v1:
        recorded["request"] = {"upstream": "SHOP", "method": "GET", "path": target}
    return recorded


def alive(marker: str) -> list[str]:
    """Command lines of every process of the host, in whatever namespace, that hold the marker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in command and pid != str(os.getpid()):
            found.append(command.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


def by_task(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """task_id → its rows."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.task_id, []).append(row)
    return found
