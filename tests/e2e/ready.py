"""A ready-made agent on one task of an example pack, in the real sandbox, with a scripted model behind the door."""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from scoresheet.documents.row import Row
from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from tests.command import SCORESHEET

HOUSE = Path(__file__).parents[2]
KEY = "sk-real-ready-made-7f3a9c0d21"
"""The model's real key: it must be nowhere."""
COUNT = "catalog.count.2"
COUNT_CALL: dict[str, Any] = {
    "tool": "get_catalog_by_catalog_name",
    "arguments": {"catalog_name": "airports", "state__exact": "TX", "latitude__gte": 32, "_size": 0},
}
SLICE = "pages.last-item"
MEND = "sed -i 's/start + size - 1/start + size/' pages/offset.py && python3 -m pytest -q"


@dataclass(frozen=True)
class Tried:
    """What one run left."""

    done: subprocess.CompletedProcess[str]
    rows: tuple[Row, ...]
    heard: tuple[dict[str, Any], ...]
    """Requests, as the scripted model got them."""
    out: Path
    address: str

    @property
    def row(self) -> Row:
        assert len(self.rows) == 1, self.said
        return self.rows[0]

    @property
    def said(self) -> str:
        """All that was printed, of the run and of the agent."""
        kept = sorted([*self.out.rglob("stdout"), *self.out.rglob("stderr")])
        return "\n".join([self.done.stdout, self.done.stderr, *(path.read_text("utf-8", "replace") for path in kept)])


def pack(
    name: str, task: str, folder: Path, controls: Mapping[str, Any], timeout_s: int = 120, host: str | None = None
) -> Path:
    """A copy of an example pack with room for a model: other limits, and a card that allows and pins one.

    With a public `host` as the one that was recorded, names are asked inside, and every name that is asked is kept.
    """
    shutil.copytree(HOUSE / "examples" / "packs" / name, folder)
    (folder / "receipts.jsonl").unlink(missing_ok=True)
    if host is not None:
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["upstreams"] = dict.fromkeys(manifest["upstreams"], host)
        (folder / "manifest.json").write_text(json.dumps(manifest))
    path = folder / "tasks" / f"{task}.json"
    value = json.loads(path.read_text())
    value.pop("limits", None)
    path.write_text(json.dumps(value))
    frozen = [SCORESHEET, "freeze", str(folder), "--timeout-s", str(timeout_s)]
    subprocess.run(frozen, check=True, capture_output=True, timeout=300)
    card = yaml.safe_load((folder / "card.yaml").read_text())
    card["controls"] |= {"network": "model_only", "model": "stub-model", "wall_clock_s": timeout_s, **controls}
    (folder / "card.yaml").write_text(json.dumps(card))
    return folder


def run(
    agent: str,
    pack: Path,
    task: str,
    turns: Sequence[Mapping[str, Any]],
    out: Path,
    kind: str = "openai",
    more: Mapping[str, Any] | None = None,
    path: str = "/usr/local/bin:/usr/bin:/bin",
    on_turn: Callable[[int, int | None], None] | None = None,
    replayed: Path | None = None,
) -> Tried:
    """The run of one episode; `on_turn` hears of the runner's process and a request's turn before it is answered.

    With a run to be `replayed`, its recorded answers stand in the scripted model's place.
    """
    heard: list[dict[str, Any]] = []
    process: subprocess.Popen[str] | None = None

    def hear(told: dict[str, Any]) -> None:
        heard.append(told)
        if on_turn is not None and process is not None:
            on_turn(process.pid, told["turn"])

    environment = {"PATH": path, "LANG": "C.UTF-8", "THE_KEY": KEY}
    with ModelStub(
        Script.of({"turns": list(turns) or [{"text": "Nobody asks."}], **(more or {})}), on_request=hear
    ) as stub:
        words = [SCORESHEET, "run", str(pack), "--agent", agent, "--tasks", task, "--repeats", "1", "--seat", "a"]
        words += ["--draft", "--quiet", "--out", str(out)]
        if replayed is not None:
            words += ["--replay-model", str(replayed)]
        else:
            address = f"{stub.address}/v1" if kind == "openai" else stub.address
            words += ["--model", f"{kind}={address}", "--model-key-env", f"{kind}=THE_KEY", "--record-model"]
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=out.parent
        )
        try:
            said = process.communicate(timeout=300)
        finally:
            process.kill()
            process.wait()
        done = subprocess.CompletedProcess(words, process.returncode, *said)
    lines = (out / "rows.jsonl").read_bytes().splitlines() if (out / "rows.jsonl").exists() else []
    rows = tuple(Row.from_bytes(line, "rows.jsonl") for line in lines)
    return Tried(done, rows, tuple(heard), out, stub.address.removeprefix("http://"))
