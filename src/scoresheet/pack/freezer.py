"""Freezing a folder: walked, read, judged by `freeze`, and only then written."""

import contextlib
import gc
import marshal
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from scoresheet import atomic_file, digest
from scoresheet.digest import Digest, FileDigest
from scoresheet.documents.manifest import Manifest, Protocol
from scoresheet.documents.tool import Tool
from scoresheet.errors import Finding, Refused, ScoresheetError
from scoresheet.pack import freeze, tree
from scoresheet.pack.folder import refuse_run
from scoresheet.pack.freeze import BESIDE, FROZEN_AT, MANIFEST, Frozen, Settings, TaskFacts
from scoresheet.pack.toolbox import Toolbox

PARALLEL_TASKS = 10_000
"""Task files from which a second interpreter is worth its start."""

HEAD_START_TASKS = 6000
"""What the first interpreter reads while another starts."""

Read = tuple[FileDigest | None, TaskFacts]


@dataclass(frozen=True, slots=True)
class Examined:
    """A folder as freezing sees it."""

    frozen: Frozen
    """The manifest that the files would get, or what forbids one."""
    digests: Mapping[str, FileDigest]
    """Path → digest of every file that could be read, those beside the pack left out."""
    files: int
    """Files seen, those beside the pack left out."""
    tasks: int

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything found, errors first."""
        return freeze.sorted_findings(self.frozen.findings)


@dataclass(frozen=True, slots=True)
class Written:
    """A manifest on disk."""

    path: Path
    sha256: Digest
    frozen_at: str
    warnings: tuple[Finding, ...]
    digests: Mapping[str, FileDigest]
    """Path → digest of every file of the pack."""
    tasks: int
    protocol: Protocol


def examine(
    root: str | Path,
    settings: Settings | None = None,
    progress: tree.Progress = tree.quiet,
    ahead: tree.Ahead | None = None,
) -> Examined:
    """What freezing `root` would find; nothing is written.

    Raises `Usage` when the folder can't be read, and when it is a run.

    `ahead` is what `tree.hashing_ahead(root)` has begun.
    """
    with _no_collection():
        return _examine(root, settings, progress, ahead)


def _examine(
    root: str | Path, settings: Settings | None, progress: tree.Progress, ahead: tree.Ahead | None = None
) -> Examined:
    refuse_run(Path(root))
    listing = tree.listing(root) if ahead is None else ahead.listing
    entries = [entry for entry in listing.files if entry.path not in BESIDE]
    task_entries: list[tree.Entry] = []
    other_entries: list[tree.Entry] = []
    for entry in entries:
        (task_entries if freeze.is_task(entry.path) else other_entries).append(entry)
    total = sum(entry.size_bytes for entry in entries)
    others = sum(entry.size_bytes for entry in other_entries)
    files, findings = tree.digests(root, other_entries, lambda done, _: progress(done, total), ahead)
    tools, tool_findings = _tools(root, [entry.path for entry in other_entries if freeze.is_tool(entry.path)])
    named = {tool.name: tool for tool in tools.values() if tool is not None}
    tasks: list[TaskFacts] = []
    for facts, task in _read_tasks(root, task_entries, tuple(named.values()), progress, others, total):
        tasks.append(task)
        if facts is not None:
            files[task.path] = facts
    ordered = {entry.path: files[entry.path] for entry in entries if entry.path in files}
    frozen = freeze.freeze(ordered, tasks, tools, settings or Settings())
    seen = (*listing.findings, *findings, *tool_findings, *frozen.findings)
    broken = any(finding.severity == "error" for finding in seen)
    return Examined(Frozen(None if broken else frozen.manifest, seen), ordered, len(entries), len(tasks))


def write(
    root: str | Path,
    settings: Settings | None = None,
    now: datetime | None = None,
    progress: tree.Progress = tree.quiet,
    ahead: tree.Ahead | None = None,
) -> Written:
    """Freeze the folder `root`. Raises `Refused` with every finding, and has then written nothing; `Usage`."""
    examined = examine(root, settings, progress, ahead)
    manifest = examined.frozen.manifest
    if manifest is None:
        raise Refused("not frozen", examined.findings, str(root))
    text = manifest.text()
    path = Path(root, MANIFEST)
    frozen_at = _kept_time(Path(root), text) or _rfc3339(now or datetime.now(UTC))
    atomic_file.replace(path, text)
    atomic_file.replace(Path(root, FROZEN_AT), f"{frozen_at}\n".encode())
    return Written(
        path, digest.of(text), frozen_at, examined.findings, examined.digests, examined.tasks, manifest.protocol
    )


def recorded_hosts(root: str | Path) -> tuple[tuple[str, str], ...]:
    """Name → recorded host of the manifest that `root` has now, if any: freezing again keeps them."""
    try:
        return tuple(Manifest.from_bytes(Path(root, MANIFEST).read_bytes(), MANIFEST).upstreams.items())
    except (OSError, Refused):
        return ()


def read_tasks(root: str | Path, paths: Sequence[str], tools: Sequence[Tool]) -> list[Read]:
    """Digest and facts of task files, in their order; the digest is `None` for a file that could not be read."""
    toolbox = Toolbox(tools)
    found: list[Read] = []
    with tree.opened_root(root) as root_fd:
        for path in paths:
            found.append(_read_task(root_fd, path, toolbox))
    return found


def _read_task(root_fd: int, path: str, toolbox: Toolbox) -> Read:
    try:
        facts, data = tree.read_at(root_fd, path)
    except Refused as refused:
        return None, TaskFacts(path, findings=refused.findings)
    return facts, freeze.read_task(path, data, toolbox)


def _read_tasks(
    root: str | Path,
    entries: Sequence[tree.Entry],
    tools: Sequence[Tool],
    progress: tree.Progress,
    done: int,
    total: int,
) -> list[Read]:
    toolbox = Toolbox(tools)
    shares = min(tree.workers(), 8) if len(entries) >= PARALLEL_TASKS else 1
    step = max(len(entries) - HEAD_START_TASKS, 0) // shares or 1
    own = len(entries) - step * (shares - 1)
    mine, theirs = entries[:own], entries[own:]
    found: list[Read] = []
    with contextlib.ExitStack() as stack:
        readers = [
            stack.enter_context(_Reader(root, [entry.path for entry in theirs[start : start + step]], tools))
            for start in range(0, len(theirs), step)
        ]
        root_fd = stack.enter_context(tree.opened_root(root))
        for entry in mine:
            found.append(_read_task(root_fd, entry.path, toolbox))
            done += entry.size_bytes * shares
            progress(min(done, total), total)
        for reader in readers:
            found.extend(reader.result())
    return found


class _Reader:
    """A second interpreter that reads tasks: parsing holds the interpreter, so threads would not help."""

    def __init__(self, root: str | Path, paths: Sequence[str], tools: Sequence[Tool]) -> None:
        command = [sys.executable, "-I", "-c", _CHILD, *sys.path]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        documents = [tool.as_json() for tool in tools]
        self._question = marshal.dumps((os.path.abspath(root), list(paths), documents))

    def __enter__(self) -> "_Reader":
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the exit status tells
            self._process.stdin.write(self._question)
            self._process.stdin.close()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdout is not None
        if self._process.poll() is None:
            self._process.kill()
        self._process.stdout.close()
        self._process.wait()

    def result(self) -> list[Read]:
        assert self._process.stdout is not None
        answer = self._process.stdout.read()
        if self._process.wait() != 0:
            raise ScoresheetError(f"the second reader ended with status {self._process.returncode}", "freeze")
        return [_unpacked(*packed) for packed in marshal.loads(answer)]  # from our own child, over our own pipe


_CHILD = "import sys; sys.path[:] = sys.argv[1:]; from scoresheet.pack.freezer import answer; answer()"


def answer() -> None:
    """The other side of `_Reader`: a question on stdin, its answer on stdout."""
    root, paths, documents = marshal.load(sys.stdin.buffer)
    tools = [Tool.from_value(document, "tools") for document in documents]
    with _no_collection():
        read = read_tasks(root, paths, tools)
        marshal.dump([_packed(facts, task) for facts, task in read], sys.stdout.buffer)


def _packed(facts: FileDigest | None, task: TaskFacts) -> tuple[object, ...]:
    file = None if facts is None else (facts.sha256, facts.size, facts.exec, facts.hard_links)
    findings = [(f.rule, f.where, f.what, f.mend, f.severity) for f in task.findings]
    known = task.path, task.task_id, task.v2_field, task.wall_clock_s, task.tools, task.unchecked
    work = task.works, task.judged, task.tests
    return file, (*known, *work), findings


def _unpacked(
    file: tuple[Digest, int, bool, int] | None,
    known: tuple[str, str, str, float, tuple[tuple[str, str], ...], int, bool, bool, tuple[str, ...]],
    findings: list[tuple[str, str, str, str, Literal["error", "warning"]]],
) -> Read:
    facts = None if file is None else FileDigest(*file)
    return facts, TaskFacts(*known, findings=tuple(Finding(*finding) for finding in findings))


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """No search for reference cycles meanwhile: there are none, and looking costs more than the work."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _tools(root: str | Path, paths: Sequence[str]) -> tuple[dict[str, Tool | None], tuple[Finding, ...]]:
    tools: dict[str, Tool | None] = {}
    findings: list[Finding] = []
    for path in paths:
        try:
            data = tree.read(root, path)[1]
        except Refused as refused:
            findings.extend(refused.findings)
            continue
        tools[path], problems = freeze.read_tool(path, data)
        findings.extend(problems)
    return tools, tuple(findings)


def _kept_time(root: Path, text: bytes) -> str:
    try:
        if (root / MANIFEST).read_bytes() != text:
            return ""
        kept = (root / FROZEN_AT).read_text("ascii").strip()
        return kept if datetime.fromisoformat(kept).utcoffset() is not None else ""
    except (OSError, ValueError):
        return ""


def _rfc3339(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
