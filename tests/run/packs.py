"""Small frozen packs: a shop with one item, and tasks whose prompt tells `tests/agents/obey.sh` how to behave."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from scoresheet import digest
from scoresheet.documents.tool import Request
from scoresheet.gate import suite
from scoresheet.pack import fingerprint, freezer
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import Settings
from tests import cards

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
    card = cards.card(
        task_ids,
        suite.look(pack).fixture_sha256,
        wall_clock_s=manifest.timeout_s,
        seed=manifest.seed,
        retries=manifest.retries,
        repeats=manifest.repeats or 5,
        stale_after_hours=87600,
    )
    card["publishing"] |= {"excluded": [], "upstreams": {}}
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


def by_task(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """task_id → its rows."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.task_id, []).append(row)
    return found
