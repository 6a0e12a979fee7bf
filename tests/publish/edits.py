"""Runs in which one member is edited and all around it made to fit: digests, chains, rows and printed figures."""

import json
import shutil
import subprocess
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from scoresheet import canonical, digest, yaml12
from scoresheet.documents.baselines import Baselines
from scoresheet.documents.bundle import BundleIndex
from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.confound import Confound
from scoresheet.documents.dns_record import DnsRecord
from scoresheet.documents.evidence import Evidence
from scoresheet.documents.judgment import Judgment
from scoresheet.documents.manifest import Exclusion
from scoresheet.documents.model_recording import ModelRecording
from scoresheet.documents.pack_record import PackRecord
from scoresheet.documents.prices import PriceTable
from scoresheet.documents.receipt import GENESIS, ChainedReceipt
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.documents.task_card import TaskCard
from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from scoresheet.pack.folder import Pack
from scoresheet.publish import block, run_folder
from scoresheet.run import judgments
from scoresheet.stats import bill
from tests.command import SCORESHEET
from tests.run.packs import AGENTS, OBEY, shop, write_card
from tests.run.works import ACT, FIX, works

DOCUMENTS: dict[str, type[BaseModel]] = {
    "rows.jsonl": Row,
    "run.json": RunPlan,
    "calls.jsonl": CallRecord,
    "dns.jsonl": DnsRecord,
    "evidence.json": Evidence,
    "pack.json": PackRecord,
    "receipts.jsonl": ChainedReceipt,
    "confounds.jsonl": Confound,
    "baselines.json": Baselines,
    "judgments.jsonl": Judgment,
    "prices.yaml": PriceTable,
    "recording.json": ModelRecording,
    "bundle.json": BundleIndex,
}
"""Every file of a run or a bundle whose members are edited; reports are compared byte for byte."""
INSIDE: dict[tuple[str, str], type[BaseModel]] = {("receipts.jsonl", "card"): TaskCard}
"""Members that hold another document."""
_TURNS = [{"tool": "get_item", "arguments": {"n": 1}}, {"text": '{"price": 12}'}]
_PRICES = "currency: USD\ndate: 2026-11-30\nsource: a page\nmodels:\n  stub-model:\n    input: 0.25\n    output: 2.0\n"


def members(document: str) -> tuple[str, ...]:
    """Every member of a file, dotted: those of lists and of mappings stand for one of their items."""
    return tuple(_members(DOCUMENTS[document], document, ""))


def _members(model: type[BaseModel], document: str, before: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        path = before + (field.alias or name)
        inner = INSIDE.get((document, path)) or _model(field.annotation)
        if inner is None:
            yield path
        else:
            yield from _members(inner, document, path + ".")


def _model(annotation: Any) -> type[BaseModel] | None:
    """The model that a member holds, or holds many of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return None
    return next((found for each in typing.get_args(annotation) if (found := _model(each)) is not None), None)


# Real runs.


def runs(folder: Path) -> dict[str, tuple[Path, Pack]]:
    """Four small runs, which together have every file: plain calls, workspaces, human judges, models."""
    found = {"calls": _calls(folder / "calls"), "works": _works(folder / "works")}
    return found | {"judged": _judged(folder / "judged"), "models": _models(folder / "models")}


def _scoresheet(*words: object, ok: tuple[int, ...] = (0,), keys: str = "") -> None:
    done = subprocess.run([SCORESHEET, *map(str, words)], input=keys, capture_output=True, text=True, timeout=300)
    assert done.returncode in ok, done.stderr + done.stdout


def _calls(folder: Path) -> tuple[Path, Pack]:
    prompts = {"miss": "guesser", "named": "by_name", "sloppy": "sloppy", "quits": "quits"}
    left_out = (Exclusion(tool="open_ticket", reason="a side effect"),)
    pack = shop(folder / "pack", prompts, repeats=1, excluded=left_out)
    _scoresheet("run", pack.root, "--agent", OBEY, "--seat", "a", "--out", folder / "run", "--quiet")
    for place in (folder / "run" / "episodes").glob("*/*"):
        record = {"name": "shop.example", "type": "A", "answer": "address", "first_s": 0.1, "count": 1}
        (place / "dns.jsonl").write_bytes(canonical.line(record))
    return folder / "run", pack


def _works(folder: Path) -> tuple[Path, Pack]:
    prompts = {
        "fix": f"{FIX}; mkfifo pipe; echo > tests/test_new.py; echo '#' >> tests/test_shop.py; echo > conftest.py"
    }
    pack = works(folder / "pack", prompts)

    def card(card: dict[str, Any]) -> None:
        card["controls"] |= {"tool_allowlist": ["none"], "test_command": "python -m pytest tests"}

    write_card(pack, card)
    _scoresheet("run", pack.root, "--agent", ACT, "--seat", "a", "--out", folder / "run", "--quiet", "--draft")
    return folder / "run", pack


def _judged(folder: Path) -> tuple[Path, Pack]:
    pack = shop(folder / "pack", {"a": "careful", "b": "wrong"}, repeats=1, extra={"oracle": {"kind": "human"}})
    words = ("run", pack.root, "--agent", OBEY, "--seat", "a", "--out", folder / "run", "--quiet", "--draft")
    _scoresheet(*words, ok=(4,))
    _scoresheet("judge", folder / "run", "--judge", "alice", keys="y\nn\n")
    return folder / "run", pack


def _models(folder: Path) -> tuple[Path, Pack]:
    pack = shop(folder / "pack", {"warm": "be warm"}, repeats=1)

    def card(card: dict[str, Any]) -> None:
        card["controls"] |= {"network": "model_only", "temperature": 0, "model": "stub-model"}

    write_card(pack, card)
    (folder / "prices.yaml").write_text(_PRICES)
    with ModelStub(Script.of({"turns": _TURNS})) as stub:
        _scoresheet(
            "run", pack.root, "--agent", f"python3 {AGENTS / 'model_agent.py'}", "--draft", "--seat", "a", "--quiet",
            "--out", folder / "run", "--model", f"openai={stub.address}/v1", "--record-model",
            "--prices", folder / "prices.yaml", "--max-tokens-total", 100_000,
        )  # fmt: skip
    return folder / "run", pack


# One member edited.

Value = Any


@dataclass(frozen=True)
class Place:
    """Where a member is found in a run."""

    run: str
    file: str
    line: int | None
    """`None`: the file is one document."""
    keys: tuple[str | int, ...]
    value: Value


def place(found: Mapping[str, tuple[Path, Pack]], document: str, member: str) -> Place | None:
    """Where the runs have the member: with a value if any has one, else where it could stand; `None`: nowhere."""
    some = [place for name, (run, _) in found.items() for place in _places(name, run, document, member)]
    return min(some, key=lambda place: place.value in (None, [], {}), default=None)


def _places(name: str, run: Path, document: str, member: str) -> Iterator[Place]:
    files = [run / document] if (run / document).exists() else sorted(run.glob(f"episodes/*/*/{document}"))
    *above, last = member.split(".")
    for path in files:
        file = path.relative_to(run).as_posix()
        for number, value in _values(path):
            for keys, holder in _walk(value, above):
                many = list(holder.values()) if isinstance(holder, dict) else []
                if isinstance(holder, list):
                    found = [((*keys, at), item) for at, item in enumerate(holder)]
                elif many and last not in holder and all(isinstance(each, dict) for each in many):
                    found = [((*keys, key), item) for key, item in holder.items()]
                else:
                    found = [(keys, holder)]
                for place, item in found:
                    if isinstance(item, dict):
                        yield Place(name, file, number, (*place, last), item.get(last))


def _values(path: Path) -> Iterator[tuple[int | None, Value]]:
    if path.suffix == ".jsonl":
        yield from ((number, json.loads(line)) for number, line in enumerate(path.read_bytes().splitlines()))
    elif path.suffix == ".yaml":
        yield None, yaml12.load(path.read_bytes()).value
    else:
        yield None, json.loads(path.read_bytes())


def _walk(value: Value, names: list[str]) -> Iterator[tuple[tuple[str | int, ...], Value]]:
    if not names:
        yield (), value
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from (((at, *keys), there) for keys, there in _walk(item, names))
    elif isinstance(value, dict):
        if names[0] in value:
            found = _walk(value[names[0]], names[1:])
            yield from (((names[0], *keys), there) for keys, there in found)
        else:  # a mapping of many, or a member that is not written out
            for key, item in value.items() if names[0] not in value else ():
                if isinstance(item, dict) and names[0] in item:
                    yield from (((key, *keys), there) for keys, there in _walk(item, names))


OTHERS: dict[str, Value] = {
    "exit_reason": "agent_error", "rows.jsonl exit_reason": "completed", "run.json isolation": "none",
    "isolation": "not_proved", "cost": "0.0008", "spent_cost": "0.0008", "max_cost": "5",
    "manifest.protocol": "tool-replay-v1", "on_mismatch": "continue", "on_exhausted": "refuse", "cluster_id": "c",
    "repeats_from": "card", "interval": "rows-v1", "agent.kind": "ready",
    "lockfile_sha256": "5" * 64, "model_kinds": ["anthropic"], "stopped": "enough", "run.json status": "interrupted",
    "via": "call", "outcome": "malformed", "calls.jsonl kind": "exhausted", "mismatches.kind": "exhausted",
    "dns.jsonl answer": "no_such_name", "state": "not_proved", "checks.verdict": "holds", "commit_known": True,
    "barred": {"t": "leak"}, "tasks.kind": "replay", "oracle_kind": "schema", "leaf": "refuse", "card.goal": "g",
    "card.mutation_scope": "network", "mutation_scope": "network", "card.attachments": {"a": 1}, "by": "person",
    "confounds.jsonl kind": "human", "verdict": "withdrawn", "currency": "EUR", "pinned": "1", "seen": "2",
    "card.inputs": ["a"], "card.reads": ["a"], "tasks.card": {"writable_root": "/w"}, "tasks.origin": "o",
    "states": {"s": "one"}, "rows.jsonl limit": "disk",
    "body": "x", "date": "2026-11-29", "bundle.json pack": "included",
    "bundle.json agent": "included", "unknown": 1, "agent.interpreter": "sh", "host.os": "Debian", "models.input": 0.24,
    "models.output": 1.9, "receipts.jsonl kind": "x", "tests_identical": 1, "controls": {"controls.seed": "violated"},
    "resumed_at": ["2026-11-29T00:00:00Z"],
}  # fmt: skip
"""Where another value of the same kind would be none: the member, or its end, after its file where it needs one."""


def edited(document: str, member: str, value: Value) -> Value:
    """Another value for a member."""
    for name, other in OTHERS.items():
        file, _, end = name.rpartition(" ")
        if file in ("", document) and (member == end or member.endswith(f".{end}")) and other != value:
            return other
    match value:
        case bool():
            return not value
        case int() if member in ("success", "schema_ok", "unauthorized", "timeout"):
            return 1 - value
        case int() | float():
            return value + 1
        case str() if len(value) == 64 and set(value) <= set("0123456789abcdef"):
            return "5" * 64
        case str() if value.endswith("Z") and value[:4].isdigit():
            return value[:17] + ("00" if value[17:19] != "00" else "01") + value[19:]
        case str():
            return value + "x"
        case [first, *_] if isinstance(first, str):
            return [*value, "another"]
        case [_, *_]:
            return value[:-1]
        case []:
            return ["another"]
        case dict() if value:
            name = next(iter(value))
            return value | {name: edited(document, "", value[name])}
        case dict():
            return {"another": 1}
        case _:
            return 1


def edit(run: Path, place: Place, value: Value) -> None:
    """Put `value` in the place, and make everything else fit that its own writer would have made fit."""
    path = run / place.file
    values = [each for _, each in _values(path)]
    before = path.read_bytes().splitlines()
    inner = values[place.line or 0]
    for key in place.keys[:-1]:
        inner = inner[key]
    inner[place.keys[-1]] = value
    if path.suffix == ".jsonl":
        after = list(map(canonical.line, values))
        path.write_bytes(b"".join(after))
    elif path.suffix == ".yaml":
        path.write_text(json.dumps(values[0]))
    else:
        path.write_bytes(canonical.pretty(values[0]))
    _rebuild(run, path.name, place, before)


def _rebuild(run: Path, name: str, place: Place, before: list[bytes]) -> None:
    plan = json.loads((run / "run.json").read_bytes())
    named = {
        "pack.json": "pack_record_sha256",
        "prices.yaml": "prices_sha256",
        "recording.json": "model_recording_sha256",
    }
    match name:
        case "calls.jsonl":
            _refold(run, place)
        case "prices.yaml":
            _price(run)
        case "rows.jsonl":
            _relink(run, before)
        case "judgments.jsonl" if place.keys != ("previous",):
            _chain(run / name)
        case "receipts.jsonl" if place.keys != ("previous",):
            plan["receipts_sha256"] = _chain(run / name)
        case _:
            pass
    if name in named:
        plan[named[name]] = digest.of((run / name).read_bytes())
    if name != "run.json":
        (run / "run.json").write_bytes(canonical.pretty(plan))
    print_again(run)


def print_again(run: Path) -> None:
    """The reports as the files now give them; as they were where no report can be made."""
    try:
        report = run_folder.read(run).report()
    except Exception:  # noqa: BLE001  # whatever it is, verify must tell it
        return
    for file, text in (("txt", block.text(report)), ("json", report.text()), ("md", block.markdown(report))):
        (run / f"report.{file}").write_bytes(text.encode())


def _refold(run: Path, place: Place) -> None:
    """The row of an episode, as its calls now give it."""
    _, task_id, number, _ = place.file.split("/")
    data = (run / place.file).read_bytes()
    try:
        calls = [CallRecord.from_bytes(line, "calls.jsonl") for line in data.splitlines()]
    except Exception:  # noqa: BLE001  # no call any more
        return
    made = [call for call in calls if call.outcome in ("hit", "miss")]
    missed = [call for call in made if call.outcome == "miss"]
    errors = [error for call in made for error in call.schema_errors]
    ignored: dict[str, int] = {}
    for call in made:
        for rule in call.ignored:
            ignored[f"{call.tool or '?'} {rule}"] = ignored.get(f"{call.tool or '?'} {rule}", 0) + 1
    members = {
        "calls_sha256": digest.of(data),
        "tool_calls": len(made),
        "repeated_calls": sum(call.repeat for call in made),
        "recorded_latency_ms": round(sum(call.latency_ms_recorded for call in made), 6),
        "unauthorized": int(bool(missed)),
        "schema_ok": int(not errors),
        "schema_errors": errors,
        "ignored": ignored,
        "mismatches": [
            {
                "method": call.method, "path": call.path, "fingerprint": call.fingerprint,
                "kind": call.kind or "no_match",
                "nearest": None if call.nearest is None else call.nearest.model_dump(mode="json"),
            }
            for call in missed
        ],
    }  # fmt: skip
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_bytes().splitlines()]
    for row in rows:
        if (row["task_id"], f"{row['repeat']}.{row['attempt']}") == (task_id, number):
            row |= members
    (run / "rows.jsonl").write_bytes(b"".join(map(canonical.line, rows)))


def _price(run: Path) -> None:
    """What the tokens of every row cost now."""
    try:
        table = PriceTable.from_value(yaml12.load((run / "prices.yaml").read_bytes()).value, "prices.yaml")
    except Exception:  # noqa: BLE001  # no table any more
        return
    rows = [Row.from_bytes(line, "rows.jsonl") for line in (run / "rows.jsonl").read_bytes().splitlines()]
    made = []
    for row in rows:
        amount = bill.bill(row.model_usage, table).whole
        made.append(row.model_copy(update={"cost": None if amount is None else bill.text(amount)}))
    (run / "rows.jsonl").write_bytes(b"".join(canonical.line(row.model_dump(mode="json")) for row in made))


def _relink(run: Path, before: list[bytes]) -> None:
    """Judgments name the rows that they judge as they now are, and what was shown."""
    if not (run / "judgments.jsonl").exists():
        return
    after = (run / "rows.jsonl").read_bytes().splitlines()
    now = {digest.of(old): new for old, new in zip(before, after, strict=True)}
    made = []
    for line in (run / "judgments.jsonl").read_bytes().splitlines():
        value = json.loads(line)
        new = now.get(value["row_sha256"])
        if new is not None:
            row = json.loads(new)
            view = json.loads((run / f"episodes/{value['task_id']}/{value['repeat']}.0/task.json").read_bytes())
            value["row_sha256"] = digest.of(new)
            value["shown_sha256"] = judgments.shown_sha256(
                view["prompt"], row["answer"], row["patch_sha256"], row["patch_left_out"]
            )
        made.append(canonical.line(value))
    (run / "judgments.jsonl").write_bytes(b"".join(made))
    _chain(run / "judgments.jsonl")


def _chain(path: Path) -> str:
    """Chain the lines of a file anew; the digest of the last."""
    head, made = GENESIS, []
    for line in path.read_bytes().splitlines():
        made.append(canonical.line(json.loads(line) | {"previous": head}))
        head = digest.of(made[-1].rstrip(b"\n"))
    path.write_bytes(b"".join(made))
    return head


def copied(run: Path, to: Path) -> Path:
    """A copy of a run, its files shared until they are written anew."""
    shutil.copytree(run, to)
    return to
