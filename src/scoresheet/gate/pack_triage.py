"""Triage of a whole pack: everything that decides a leaf is looked at once, before anything runs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from scoresheet.canonical import JsonValue
from scoresheet.digest import Digest
from scoresheet.documents.pack_record import PackRecord
from scoresheet.documents.protocol_card import LeakAllowance
from scoresheet.documents.receipt import ChainedReceipt
from scoresheet.documents.task import Task
from scoresheet.documents.task_card import TaskCard
from scoresheet.errors import Finding, Malformed, Refused
from scoresheet.gate import chain, inputs, leaks, reading, receipts, repository, suite
from scoresheet.gate.card import UNREADABLE
from scoresheet.gate.facts import CardFacts, PackFacts
from scoresheet.gate.inputs import CardSays
from scoresheet.gate.reading import CardFile
from scoresheet.gate.rules import judge
from scoresheet.pack import tree
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import CARD, FROZEN_AT, RECEIPTS

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class SeenCard:
    """The protocol card beside a pack, as it was when it was read, and what its rules say of it."""

    file: CardFile | None
    """`None` when it could not be read."""
    sha256: Digest | None
    findings: tuple[Finding, ...]

    @property
    def value(self) -> JsonValue:
        """What it says, complete or not."""
        return self.file.located.value if self.file is not None else None

    @property
    def faults(self) -> tuple[str, ...]:
        """Why it is not complete; empty when it is."""
        return tuple(finding.what for finding in self.findings if finding.severity == "error")


@dataclass(frozen=True, slots=True)
class PackTriage:
    """A pack, its card and its scan, ready to be decided on."""

    record: PackRecord
    card: SeenCard | None
    """`None`: no card lies beside the pack."""
    scan: leaks.Scan
    findings: tuple[Finding, ...]
    """Files that are not what was frozen."""

    @property
    def said(self) -> CardSays:
        """What the card says to triage."""
        return inputs.said_by(self.card.value if self.card is not None else None)

    def cards(self, now: datetime) -> Iterator[TaskCard]:
        """The facts of every task at the time `now`, in the pack's order. Raises `Refused`."""
        for task_id in self.record.tasks:
            yield inputs.task_card(task_id, self.record, self.said, now)

    def receipts(self, seat: str | None, issued_at: str) -> tuple[ChainedReceipt, ...]:
        """A receipt for every task, not yet chained. Raises `Refused`."""
        now = inputs.moment(issued_at)
        assert now is not None
        return tuple(chain.issue(self.cards(now), self.record.manifest_sha256, seat, issued_at))


def look(
    pack: Pack,
    progress: tree.Progress = tree.quiet,
    log: str | Path | None = None,
    card: str | Path | None = None,
    verified: bool = False,
) -> PackTriage:
    """Everything that triage decides a pack's tasks from.

    `log` is the receipts file that remembers earlier decisions (default: the one beside the pack, which is always
    asked), `card` the protocol card (default: the one beside the pack); `verified` says that the caller compared every
    file with the manifest. Raises `Usage`, `Refused`.
    """
    root = pack.root
    seen = suite.look(pack)
    file, unreadable = _read_card(Path(card) if card is not None else root / CARD)
    value = file.located.value if file is not None else None
    scan = leaks.scan(root, _allowances(value), progress)
    histories = [_history(root / RECEIPTS)]
    if log is not None and Path(log).absolute() != (root / RECEIPTS).absolute():
        histories.append(_history(Path(log)))
    ids, tasks = _tasks(pack, seen)
    fixture = str(pack.manifest_sha256)
    frozen_at = _frozen_at(root)
    for each in histories if frozen_at is not None else ():
        frozen_at = inputs.earlier(frozen_at, each.frozen_at.get(fixture))
    barred = {task_id: why for each in histories for task_id in ids if (why := each.bar(fixture, task_id)) is not None}
    differences = (*seen.findings, *(() if verified else pack.verify()))
    findings = tuple(finding for finding in dict.fromkeys(differences) if finding.severity == "error")
    manifest = pack.manifest
    record = PackRecord.from_value(
        {
            "manifest_sha256": fixture,
            "intact": not findings,
            "fixture_sha256": None if findings else seen.fixture_sha256,
            "frozen_at": frozen_at,
            "timeout_s": manifest.timeout_s,
            "seed": manifest.seed,
            "retries": manifest.retries,
            "tools": list(seen.pack.tools),
            "commit_known": _commit_known(value, root),
            "scan": _scan_record(scan),
            "barred": barred,
            "tasks": tasks,
        },
        "pack.json",
    )
    found = None
    if file is not None or unreadable is not None:
        found = judged(file, record) if file is not None else SeenCard(None, None, (unreadable,))  # type: ignore[arg-type]
    return PackTriage(record, found, scan, findings)


def judged(file: CardFile, record: PackRecord) -> SeenCard:
    """A card held against a pack that was seen before: the pack itself need not be there."""
    facts = CardFacts(file.path, file.located, record.fixture_sha256, pack_facts(record), record.commit_known)
    return SeenCard(file, file.sha256, judge(facts).findings)


def pack_facts(record: PackRecord) -> PackFacts:
    """What a card is compared with, from what was recorded of the pack."""
    tasks = record.tasks
    return PackFacts(
        task_ids=tuple(tasks),
        content={task_id: task.content_sha256 for task_id, task in tasks.items() if task.content_sha256},
        origins={task_id: task.origin for task_id, task in tasks.items() if task.origin},
        tools=tuple(record.tools),
        timeout_s=record.timeout_s,
        seed=record.seed,
        retries=record.retries,
        test_commands={task_id: task.test_command for task_id, task in tasks.items() if task.test_command is not None},
        kinds=frozenset(task.kind for task in tasks.values()),
    )


def _read_card(path: Path) -> tuple[CardFile | None, Finding | None]:
    if not path.exists():
        return None, None
    try:
        return reading.read(path), None
    except Malformed as error:
        return None, Finding(UNREADABLE, error.where or str(path), error.what, error.mend)


def _allowances(card: JsonValue) -> Iterator[LeakAllowance]:
    """The allowances of a card that can be understood; the others are the card's own findings."""
    given = card.get("leak_allow") if isinstance(card, dict) else None
    for each in given if isinstance(given, list) else ():
        try:
            yield LeakAllowance.from_value(each, CARD)
        except Refused:
            continue


def _history(path: Path) -> chain.History:
    """What a receipts file remembers. Raises `Refused` when it was tampered with: nothing then rests on it."""
    found = receipts.read(path)
    if found is None:
        return chain.History()
    broken = [finding for finding in found.findings if finding.rule != "receipt-torn"]
    if broken:
        what, mend = "the receipts are not as they were written", "restore the file; receipts can't be edited"
        raise Refused(what, broken, str(path), mend)
    return chain.history(found)


def _frozen_at(root: Path) -> str | None:
    try:
        text = (root / FROZEN_AT).read_text("ascii").strip()
    except (OSError, ValueError):
        return None
    return text if inputs.moment(text) is not None else None


def _tasks(pack: Pack, seen: suite.Suite) -> tuple[list[str], dict[str, JsonValue]]:
    ids: list[str] = []
    found: dict[str, JsonValue] = {}
    for path in pack.task_paths:
        task_id, record = _task(pack, path)
        if task_id in seen.pack.content:
            record["content_sha256"] = seen.pack.content[task_id]
        if task_id in seen.pack.test_commands:
            record["test_command"] = seen.pack.test_commands[task_id]
        ids.append(task_id)
        found[task_id] = record
    return ids, found


def _task(pack: Pack, path: str) -> tuple[str, dict[str, JsonValue]]:
    """Id and record of a task; of one that is not what was frozen, only its id."""
    name = path.rpartition("/")[2].removesuffix(".json")
    try:
        task = Task.from_bytes(tree.read(pack.root, path)[1], path)
    except Refused:
        return name, {}
    record: dict[str, JsonValue] = {"kind": task.kind}
    if task.origin is not None:
        record["origin"] = task.origin
    kind = task.oracle.kind if task.oracle is not None else "match"
    if kind != "match" or task.expected:
        record["oracle_kind"] = kind
    if isinstance(task.card, dict) and task.card:
        record["card"] = task.card
    return task.task_id, record


def _scan_record(scan: leaks.Scan) -> dict[str, JsonValue]:
    return {
        "leak_flag": leaks.leak_flag(scan),
        "files": scan.files,
        "size_bytes": scan.size_bytes,
        "leaks": len(scan.leaks),
        "allowed": len(scan.findings) - len(scan.leaks),
        "unknown": len(scan.unknown),
        "rules": scan.rules,
        "ruleset_sha256": scan.ruleset_sha256,
    }


def _commit_known(card: JsonValue, root: Path) -> bool | None:
    section = card.get("suite") if isinstance(card, dict) else None
    sha = section.get("git_sha") if isinstance(section, dict) else None
    if not isinstance(sha, str) or not _COMMIT.fullmatch(sha):
        return None
    return repository.commit(root, sha).known


__all__ = ["PackTriage", "SeenCard", "judged", "look", "pack_facts"]
