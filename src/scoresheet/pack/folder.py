"""A frozen pack on disk, read lazily: whatever is handed out has the bytes that the manifest names."""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from scoresheet import canonical, digest
from scoresheet.digest import Digest, FileDigest
from scoresheet.documents.manifest import FrozenFile, Manifest
from scoresheet.documents.task import Task
from scoresheet.documents.tool import Tool
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.pack import portable, tree
from scoresheet.pack.freeze import BESIDE, CARD, FROZEN_AT, MANIFEST, RECEIPTS, is_task

_TASKS_SHOWN = 5


class Pack:
    """A frozen pack. Opening reads the manifest and nothing else."""

    def __init__(self, root: Path, manifest: Manifest, manifest_sha256: Digest) -> None:
        self.root = root
        self.manifest = manifest
        self.manifest_sha256 = manifest_sha256

    @classmethod
    def open(cls, path: str | Path) -> "Pack":
        """The pack in the folder `path`.

        Raises `Usage` when the folder can't be read, `Refused` when it is not frozen or its manifest is not one that
        `freeze` wrote, byte for byte.
        """
        root = Path(path)
        with tree.opened_root(root) as root_fd:
            try:
                facts, data = tree.read_at(root_fd, MANIFEST)
            except Refused as refused:
                if refused.findings[0].rule != "pack-missing":
                    raise
                refuse_run(root)
                raise _not_frozen(root, "it has no manifest.json") from refused
        manifest = manifest_of(data)
        if not manifest.tasks:  # `record` keeps the hosts that it recorded in a manifest that pins nothing yet
            raise _not_frozen(root, "its manifest names no task")
        return cls(root, manifest, facts.sha256)

    @property
    def task_paths(self) -> tuple[str, ...]:
        """Paths of all task files, sorted."""
        return tuple(self.manifest.tasks)

    def task(self, task_id: str) -> Task:
        """The task of that id, verified. Raises `Usage` when the pack has none, `Refused` when its bytes differ."""
        for path in (f"{task_id}.json", f"tasks/{task_id}.json"):
            if path in self.manifest.tasks:
                task = self.task_at(path)
                if task.task_id == task_id:
                    return task
        path_of = self._task_paths_by_id
        if task_id not in path_of:
            near = difflib.get_close_matches(task_id, path_of, 3) if len(path_of) <= 10_000 else []
            mend = (
                f"did you mean {', '.join(near)}?"
                if near
                else f"it has {', '.join(sorted(path_of)[:_TASKS_SHOWN])}{', …' if len(path_of) > _TASKS_SHOWN else ''}"
            )
            raise Usage(f"the pack has no task {task_id!r}", str(self.root), mend)
        return self.task_at(path_of[task_id])

    def task_at(self, path: str) -> Task:
        """The task in the file `path`, verified. Raises `Refused`."""
        task = Task.from_bytes(self.read(path), path)
        if self.manifest.protocol == "tool-replay-v1":
            self._check_tools(task, path)
        return task

    def tasks(self) -> Iterator[Task]:
        """Every task, verified, in the order of their paths; one at a time."""
        return map(self.task_at, self.manifest.tasks)

    @cached_property
    def tools(self) -> "Tools":
        """Name → tool, read and verified when asked for."""
        return Tools(self)

    def read(self, path: str) -> bytes:
        """The bytes of a frozen file. Raises `Refused` when the manifest has no such file, or other bytes."""
        expected = self._digest_of(path)
        if expected is None:
            what = "the manifest has no such file"
            raise Refused(what, [Finding("pack-extra", path, what)], path)
        facts, data = tree.read(self.root, path)
        if facts.sha256 != expected:
            finding = _differs(path, expected, facts.sha256, data)
            raise Refused(finding.what, [finding], path)
        return data

    def files_under(self, folder: str) -> dict[str, FrozenFile]:
        """Path → facts of the frozen files below a folder, such as `workspaces/refund-1` (v2)."""
        prefix = folder.rstrip("/") + "/"
        return {path: facts for path, facts in self.manifest.files.items() if path.startswith(prefix)}

    def verify(self, progress: tree.Progress = tree.quiet) -> tuple[Finding, ...]:
        """Every way in which the folder differs from the manifest; empty when it is what was frozen."""
        listing = tree.listing(self.root)
        v1 = self.manifest.protocol == "tool-replay-v1"
        entries = [entry for entry in listing.files if self._is_frozen(entry.path, v1)]
        found, findings = tree.digests(self.root, entries, progress)
        problems = [*listing.findings, *findings]
        problems.extend(self.compare(found, {finding.where for finding in problems}))
        if v1:
            problems.extend(self._tool_findings())
        return tuple(problems)

    def compare(self, found: Mapping[str, FileDigest], known: Collection[str] = ()) -> Iterator[Finding]:
        """Every difference between the manifest and the files `found`; files in `known` are not reported as missing."""
        for path in sorted({*self.manifest.tasks, *self.manifest.files} - found.keys() - set(known)):
            yield Finding("pack-missing", path, "frozen, but not there", "restore it, or freeze again")
        v1 = self.manifest.protocol == "tool-replay-v1"
        for path, facts in sorted(found.items()):
            if self._is_frozen(path, v1):
                yield from self._judge(path, facts)

    def _judge(self, path: str, facts: FileDigest) -> Iterator[Finding]:
        expected = self._digest_of(path)
        if expected is None:
            yield Finding("pack-extra", path, "there, but not frozen", "remove it, or freeze again")
        elif expected != facts.sha256:
            yield _differs(path, expected, facts.sha256, tree.read(self.root, path)[1])
        frozen = self.manifest.files.get(path)
        if frozen is not None and frozen.exec != facts.exec:
            what = f"frozen as {'executable' if frozen.exec else 'not executable'}, but it is the other"
            yield Finding("pack-mode", path, what, f"chmod {'+' if frozen.exec else '-'}x {path}")

    def _is_frozen(self, path: str, v1: bool) -> bool:
        if path in BESIDE:
            return False
        return not v1 or ("/" not in path and path.endswith(".json")) or path in self.manifest.tasks

    def _digest_of(self, path: str) -> str | None:
        sha256 = self.manifest.tasks.get(path)
        if sha256 is None and path in self.manifest.files:
            sha256 = self.manifest.files[path].sha256
        return sha256

    @cached_property
    def _task_paths_by_id(self) -> dict[str, str]:
        return {self.task_at(path).task_id: path for path in self.manifest.tasks}

    def _check_tools(self, task: Task, where: str) -> None:
        findings = [
            Finding(
                "tool-schema", where, f"tools/{tool.name}.json is not the file that the task names by schema_sha256"
            )
            for tool in task.tools
            if tool.name in self.tools and self.tools.digests[tool.name] != tool.schema_sha256
        ]
        if findings:
            raise Refused(findings[0].what, findings, where)

    def _tool_findings(self) -> Iterator[Finding]:
        if not len(self.tools):
            return
        for path in self.manifest.tasks:
            try:
                self.task_at(path)
            except Refused as refused:
                yield from (finding for finding in refused.findings if finding.rule == "tool-schema")


class Tools(Mapping[str, Tool]):
    """The tools of a pack by name: each is read and verified when it is asked for.

    v1 manifests hold no tools: there the tasks pin them by `schema_sha256`, which `Pack.task` checks.
    """

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._read: dict[str, Tool] = {}
        self.v1 = pack.manifest.protocol == "tool-replay-v1"
        if self.v1:
            paths = sorted(f"tools/{found.name}" for found in (pack.root / "tools").glob("*.json"))
        else:
            paths = [path for path in pack.manifest.files if re.fullmatch(r"tools/[^/]+\.json", path)]
        self._paths = {path[6:-5]: path for path in paths}

    @cached_property
    def digests(self) -> dict[str, str]:
        """Name → `sha256:…` of the tool's file."""
        files = self._pack.manifest.files
        return {
            name: "sha256:" + (tree.read(self._pack.root, path)[0].sha256 if self.v1 else files[path].sha256)
            for name, path in self._paths.items()
        }

    def __getitem__(self, name: str) -> Tool:
        if name not in self._read:
            path = self._paths[name]
            if self.v1:
                data = tree.read(self._pack.root, path)[1]
                if "sha256:" + digest.of(data) != self.digests[name]:
                    what = "the tool changed since the pack was opened"
                    raise Refused(what, [Finding("pack-changed", path, what)], path)
            else:
                data = self._pack.read(path)
            self._read[name] = Tool.from_bytes(data, path)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, name: object) -> bool:
        return name in self._paths


def manifest_of(data: bytes, where: str = MANIFEST) -> Manifest:
    """The manifest in exactly the bytes that `freeze` writes. Raises `Refused`."""
    try:
        value = canonical.loads(data, Manifest.most_digits)
    except canonical.JsonError as error:
        raise _inexact(where, f"not a manifest: {error.what}", data) from error
    if canonical.pretty(value) != data:
        raise _inexact(where, "not the bytes that freeze writes: it was edited or reformatted", data)
    manifest = Manifest.from_value(value, where)
    v1 = manifest.protocol == "tool-replay-v1"
    findings: list[Finding] = []
    for path in (*manifest.tasks, *manifest.files):
        fault = portable.path_fault(path)
        if path in BESIDE:
            fault = "lies beside the pack and can't be frozen"
        elif not fault and path in manifest.tasks and path in manifest.files:
            fault = "is listed twice"
        elif not fault and v1 and "/" in path:
            fault = "is not at the top level"
        if fault:
            findings.append(Finding("manifest-path", f"{where}#{path!r}", f"the path {fault}"))
    unknown = sorted(set(value) - set(Manifest.model_fields))
    if unknown:
        what = f"unknown members: {', '.join(unknown)}"
        findings.append(Finding("manifest-member", where, what, "freeze again with this version"))
    if findings:
        raise Refused("the manifest is refused", findings, where)
    return manifest


def refuse_run(root: Path) -> None:
    """Raise `Usage` when a run lies at `root`, where a pack belongs."""
    if (root / "rows.jsonl").is_file() and not (root / MANIFEST).exists():
        mend = f"scoresheet report {root} says whether it is admissible, scoresheet verify {root} recomputes it"
        raise Usage("this is a run, not a pack", str(root), mend)


def _not_frozen(root: Path, why: str) -> Refused:
    what, mend = f"the pack is not frozen: {why}", f"scoresheet freeze {root}"
    return Refused(what, [Finding("pack-not-frozen", str(root), what, mend)], str(root))


def _inexact(where: str, what: str, data: bytes) -> Refused:
    if b"\r\n" in data:
        what += "; its line endings are CRLF"
    elif data.startswith(b"\xef\xbb\xbf"):
        what += "; it starts with a byte order mark"
    mend = "restore the file, or freeze again; `* -text` in .gitattributes keeps git from rewriting it"
    return Refused(what, [Finding("manifest-bytes", where, what, mend)], where)


def _differs(path: str, expected: str, found: str, data: bytes) -> Finding:
    kind = _kind(path)
    unix = data.replace(b"\r\n", b"\n")
    if expected in (digest.of(unix), digest.of(unix.replace(b"\n", b"\r\n"))):
        what = f"only the line endings of this {kind} differ from what was frozen"
        return Finding("pack-differs", path, what, "add `* -text` to .gitattributes and check the pack out again")
    what = f"the bytes of this {kind} differ: frozen as {expected}, but it is {found}"
    return Finding("pack-differs", path, what, "restore it, or freeze again")


def _kind(path: str) -> str:
    if is_task(path):
        return "task"
    kinds = {"tools": "tool", "workspaces": "workspace file", "oracles": "oracle file"}
    return kinds.get(path.partition("/")[0], "file") if "/" in path else "file"


__all__ = ["BESIDE", "CARD", "FROZEN_AT", "MANIFEST", "RECEIPTS", "Pack", "Tools", "manifest_of"]
