"""What a card can be compared with in its frozen pack: facts of every task, and the digest of the pack's tarball.

One pass: each file is read once, held against the manifest, and hashed as `freeze --tar` would write it.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from scoresheet import canonical, digest
from scoresheet.canonical import JsonValue
from scoresheet.digest import Digest, FileDigest
from scoresheet.documents.task import Task
from scoresheet.errors import Finding, Refused
from scoresheet.gate.facts import PackFacts
from scoresheet.gate.placeholder import is_placeholder
from scoresheet.pack import archive, blanks, freeze, tree
from scoresheet.pack.folder import Pack

LABELS = frozenset({"task_id", "split", "origin", "licence", "tags", "cluster_id", "card"})
"""What a task says about itself: two tasks that differ only here are copies of each other."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A frozen pack as its card sees it."""

    pack: PackFacts
    fixture_sha256: Digest
    """Of the tarball that `freeze --tar` would write now."""
    findings: tuple[Finding, ...]
    """Files that are not what was frozen; `where` is the path in the pack."""


@dataclass(slots=True)
class _Seen:
    ids: list[str] = field(default_factory=list)
    content: dict[str, str] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    tools: set[str] = field(default_factory=set)
    commands: dict[str, str] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)

    def add(self, task: Mapping[str, JsonValue]) -> None:
        task_id = str(task["task_id"])
        self.ids.append(task_id)
        content = {name: value for name, value in task.items() if name not in LABELS}
        self.content[task_id] = hashlib.sha256(canonical.jcs_fast(content)).hexdigest()
        if isinstance(origin := task.get("origin"), str):
            self.origins[task_id] = origin
        for tool in _items(task.get("tools")):
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                self.tools.add(name)
        oracle = task.get("oracle")
        if isinstance(oracle, dict) and oracle.get("kind") == "pytest":
            self.commands[task_id] = str(oracle.get("test_command", ""))
        self.kinds.add(str(task.get("kind", "replay")))


def look(pack: Pack) -> Suite:
    """The facts of a frozen pack, with every file that is not what was frozen. Raises `Usage`, `Refused`."""
    seen = _Seen()
    tarball = hashlib.sha256()
    length = 0
    digests: dict[str, FileDigest] = {}
    listing = tree.listing(pack.root)
    findings = list(listing.findings)
    with tree.opened_root(pack.root) as root_fd:
        for listed in listing.files:
            path = listed.path
            if path in freeze.BESIDE:
                continue
            try:
                if path in pack.manifest.tasks:
                    facts, data = tree.read_at(root_fd, path)
                    findings.extend(_task(path, data, seen))
                    blocks = iter((archive.header(path, facts), data, bytes(-len(data) % archive.BLOCK)))
                else:
                    facts = _digest(root_fd, path)
                    blocks = archive.entry(root_fd, path, facts)
                    if freeze.is_tool(path):
                        seen.tools.add(path[6:-5])
                digests[path] = facts
                for block in blocks:
                    tarball.update(block)
                    length += len(block)
            except Refused as refused:
                findings.extend(refused.findings)
    tarball.update(archive.end(length))
    findings.extend(pack.compare(digests, {finding.where for finding in findings}))
    manifest = pack.manifest
    facts_of_pack = PackFacts(
        task_ids=tuple(seen.ids),
        content=seen.content,
        origins=seen.origins,
        tools=tuple(sorted(seen.tools)),
        timeout_s=manifest.timeout_s,
        seed=manifest.seed,
        retries=manifest.retries,
        test_commands=seen.commands,
        kinds=frozenset(seen.kinds),
    )
    return Suite(facts_of_pack, Digest(tarball.hexdigest()), tuple(findings))


def blank_findings(root: str | Path) -> Iterator[Finding]:
    """Every blank that a task file still holds, such as the template's REPLACE_ME."""
    with tree.opened_root(root) as root_fd:
        for entry in tree.listing(root).files:
            if not freeze.is_task(entry.path):
                continue
            try:
                data = tree.read_at(root_fd, entry.path)[1]
                task = canonical.loads(data)
            except (Refused, canonical.JsonError):
                continue  # the pack's own rules name it
            yield from _blanks(entry.path, task)


def _blanks(path: str, task: JsonValue) -> Iterator[Finding]:
    for pointer in _blank_members(task):
        yield Finding("task-blank", f"{path}#{pointer}", f"{pointer[1:].replace('/', '.')} is empty", "fill it in")


def _blank_members(task: JsonValue) -> Iterator[str]:
    """Pointers of blanks in what a task's author writes: a prompt or an answer may well begin with `n/a`."""
    for pointer, text in blanks.written(task):
        free = pointer.startswith(("/prompt", "/expected"))
        if blanks.begins_blank(text) if free and text else is_placeholder(text):
            yield pointer


def _task(path: str, data: bytes, seen: _Seen) -> Iterator[Finding]:
    try:
        task = orjson.loads(data)
    except orjson.JSONDecodeError:
        task = None
    if isinstance(task, dict) and isinstance(task.get("task_id"), str):
        seen.add(task)
        if blanks.BLANK.encode() in data:
            yield from _blanks(path, task)
    else:
        what = "not a task: a JSON object with a task_id"
        yield Finding(f"{Task.rule}-json", path, what, "run `scoresheet check` on the pack")


def _digest(root_fd: int, path: str) -> FileDigest:
    fd = tree.opened(root_fd, path)
    try:
        return digest.of_open(fd, path)
    finally:
        os.close(fd)


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
