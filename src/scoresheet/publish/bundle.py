"""A run as one file: the same run gives the same bytes anywhere. Read twice: once to list it, once to write it.

What a run rests on goes in byte for byte; reports are made anew from the rows; what agents wrote (output, patches,
trajectories) goes in by digest. A pack goes in only when it is named and no receipt bars it.
"""

import contextlib
import hashlib
import itertools
import os
import tempfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from scoresheet import atomic_file, digest
from scoresheet.digest import Digest, FileDigest
from scoresheet.documents.bundle import INDEX, SUMS, BundleIndex
from scoresheet.documents.report import Report
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.gate import receipts as receipts_file
from scoresheet.pack import archive, tree
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import FROZEN_AT, MANIFEST
from scoresheet.publish import block
from scoresheet.publish.bundle_file import BASELINE, EPISODE, JUDGED, SIGNATURE_SUMS, SIGNATURES, TOP, sums_line
from scoresheet.publish.run_folder import RECEIPTS, ROWS

OUTPUTS = "outputs.sha256"
_MADE = ("report.json", "report.md", "report.txt", OUTPUTS)
"""Made anew: what lies in the run directory under these names may be older than the confound log."""

_WHAT, _MEND = "the bundle", "name another file: -o FILE, or add --replace"

Signatures = Mapping[str, bytes]
"""Name below `signatures/` → content."""


@dataclass(frozen=True, slots=True)
class Written:
    """A bundle that was written."""

    sha256: Digest
    """Of its bundle.json: its name."""
    file_sha256: Digest
    """Of the whole file."""
    size: int
    index: BundleIndex


@dataclass(frozen=True, slots=True)
class Ready:
    """A run that was read and audited, ready to be put into a bundle."""

    run: Path
    plan: RunPlan
    report: Report
    frozen_at: str | None = None
    """When the pack was frozen, as the run recorded it."""
    pack: Pack | None = None
    agent: Path | None = None


Signer = Callable[[BundleIndex, bytes, Ready], Signatures]
"""Index, its bytes and the run → signatures."""


def carried(run: Path, pack: Pack | None) -> tuple[Pack | None, str]:
    """The pack, when every task's receipt lets it travel; else `None`, and why.

    Raises `Refused` when it is not what was frozen.
    """
    if pack is None:
        return None, "the pack was not named (--pack): the bundle holds its digest only"
    errors = [finding for finding in pack.verify() if finding.severity == "error"]
    if errors:
        raise Refused("the pack is not what was frozen", errors, str(pack.root))
    chain = receipts_file.read(run / RECEIPTS)
    latest = chain.latest if chain is not None else {}
    for task in pack.tasks():
        receipt = latest.get(task.task_id)
        if receipt is None:
            return None, f"{task.task_id} has no receipt, so the pack stays here: the bundle holds its digest only"
        if receipt.leaf != "score":
            why = f"{receipt.leaf}: {receipt.reason}"
            return None, f"{task.task_id} is {why}, so the pack stays here: the bundle holds its digest only"
    return pack, ""


def refuse_unwritable(out: Path, run: Path, *, replace: bool) -> None:
    """Raise the `Usage` that writing the bundle of `run` to `out` would end with, as far as it can be seen before."""
    if out.resolve().is_relative_to(run.resolve()):
        raise Usage("the bundle would lie inside the run that it holds", str(out), "write it beside the run")
    atomic_file.refuse_unwritable(out, _WHAT, replace=replace, mend=_MEND)


def write(ready: Ready, out: Path, sign: Signer | None = None, *, replace: bool = False) -> Written:
    """The bundle of a run, written to `out` whole or not at all.

    Raises `Refused` when a file changes meanwhile, `Usage` when `out` can't be written.
    """
    refuse_unwritable(out, ready.run, replace=replace)
    hashed, size = hashlib.sha256(), 0
    with contextlib.ExitStack() as stack:
        writer = _Writer(ready, stack)
        index = writer.index()
        text = index.text()
        signatures = sign(index, text, ready) if sign is not None else {}
        with atomic_file.written(out, _WHAT, replace=replace, mend=_MEND) as file:
            for data in writer.blocks(text, signatures):
                hashed.update(data)
                size += len(data)
                file.write(data)
    name = Digest(hashlib.sha256(text).hexdigest())
    return Written(name, Digest(hashed.hexdigest()), size, index)


def digest_of(ready: Ready) -> Digest:
    """The name of the bundle that `write` would make."""
    with contextlib.ExitStack() as stack:
        return Digest(hashlib.sha256(_Writer(ready, stack).index().text()).hexdigest())


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the content of a file of the bundle comes from."""

    path: str
    root: int
    """Descriptor of the folder; -1: it is made, `made` holds it."""
    below: str


class _Writer:
    """The files of one bundle: listed and hashed once, then written and hashed again."""

    def __init__(self, ready: Ready, stack: contextlib.ExitStack) -> None:
        self._ready = ready
        self._scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scoresheet-")))
        self._run = stack.enter_context(tree.opened_root(ready.run))
        self._made = stack.enter_context(tree.opened_root(self._scratch))
        self._pack = stack.enter_context(tree.opened_root(ready.pack.root)) if ready.pack is not None else -1
        self._agent = -1
        if ready.agent is not None:
            folder = ready.agent if ready.agent.is_dir() else ready.agent.parent
            self._agent = stack.enter_context(tree.opened_root(folder))
        self._executable: set[str] = set()
        self._sizes = array("Q")

    def index(self) -> BundleIndex:
        """bundle.json; SHA256SUMS lies in the scratch folder then."""
        self._make()
        hashed = hashlib.sha256()
        with (self._scratch / SUMS).open("wb") as sums:
            for source in self._sources():
                facts = _facts(source)
                self._sizes.append(facts.size)
                if facts.exec and source.path.startswith(("pack/", "agent/")):
                    self._executable.add(source.path)
                line = sums_line(facts.sha256, source.path)
                hashed.update(line)
                sums.write(line)
            size = sums.tell()
        report = self._ready.report
        return BundleIndex(
            manifest_sha256=report.manifest_sha256,
            card_sha256=report.card_sha256,
            rows_sha256=report.rows_sha256,
            figures_sha256=report.figures_sha256,
            draft=report.draft,
            pack="included" if self._ready.pack is not None else "digest only",
            agent="included" if self._ready.agent is not None else "digest only",
            executable=tuple(sorted(self._executable, key=str.encode)),
            files=len(self._sizes),
            sums_sha256=hashed.hexdigest(),
            sums_size=size,
        )

    def blocks(self, index: bytes, signatures: Signatures) -> Iterator[bytes]:
        """The bytes of the whole file."""
        length = 0
        for data in itertools.chain(_whole(INDEX, index), self._listing(), _signed(signatures), self._files()):
            length += len(data)
            yield data
        yield archive.end(length)

    def _listing(self) -> Iterator[bytes]:
        return archive.entry(self._made, SUMS, digest.of_file(self._scratch / SUMS))

    def _files(self) -> Iterator[bytes]:
        with (self._scratch / SUMS).open("rb") as sums:
            for source, size, line in zip(self._sources(), self._sizes, sums, strict=True):
                facts = FileDigest(Digest(line[:64].decode()), size, source.path in self._executable, 1)
                yield from archive.entry(source.root, source.below, facts, source.path)

    def _sources(self) -> Iterator[_Source]:
        """Every file of SHA256SUMS, in the order of `place`."""
        for name in TOP:
            if name in _MADE:
                yield _Source(name, self._made, name)
            elif (self._ready.run / name).exists():
                yield _Source(name, self._run, name)
        if self._ready.agent is not None:
            yield from self._sources_below("agent", self._agent, self._agent_paths())
        if self._ready.pack is not None:
            for path in BASELINE:
                if (self._ready.run / path).exists():
                    yield _Source(path, self._run, path)
            yield from self._sources_below("pack", self._pack, self._pack_paths(self._ready.pack))
        for folder in self._episodes():
            for name in self._of_episode:
                if (self._ready.run / folder / name).exists():
                    yield _Source(f"{folder}/{name}", self._run, f"{folder}/{name}")

    def _sources_below(self, folder: str, root: int, paths: list[str]) -> Iterator[_Source]:
        for path in sorted(paths, key=str.encode):
            made = folder == "pack" and path == FROZEN_AT
            yield _Source(f"{folder}/{path}", self._made if made else root, path)

    def _agent_paths(self) -> list[str]:
        agent = self._ready.agent
        assert agent is not None
        if not agent.is_dir():
            return [agent.name]
        listing = tree.listing(agent)
        errors = [finding for finding in listing.findings if finding.severity == "error"]
        if errors:
            raise Refused("the agent can't be put into a bundle", errors, str(agent))
        return [entry.path for entry in listing.files]

    def _pack_paths(self, pack: Pack) -> list[str]:
        frozen_at = [FROZEN_AT] if self._ready.frozen_at is not None else []
        tools = [f"tools/{name}.json" for name in pack.tools]
        return [*{MANIFEST, *frozen_at, *pack.manifest.tasks, *pack.manifest.files, *tools}]

    def _make(self) -> None:
        """Put what is made anew into the scratch folder."""
        report = self._ready.report
        for name, text in (
            ("report.json", report.text()),
            ("report.md", block.markdown(report)),
            ("report.txt", block.text(report)),
        ):
            (self._scratch / name).write_text(text, encoding="utf-8", newline="\n")
        if self._ready.frozen_at is not None:
            (self._scratch / FROZEN_AT).write_text(f"{self._ready.frozen_at}\n")
        with (self._scratch / OUTPUTS).open("wb") as outputs:
            for folder in self._episodes():
                for path in _outputs(self._ready.run, folder, self._of_episode):
                    outputs.write(sums_line(_facts(_Source(path, self._run, path)).sha256, path))

    @property
    def _of_episode(self) -> tuple[str, ...]:
        return (*EPISODE, JUDGED) if self._ready.pack is not None else EPISODE

    def _episodes(self) -> Iterator[str]:
        """Folders of the attempts that have a row, in the order of their bytes."""
        # a folder's files stand together: what sorts is each name with its slash
        for task_id in sorted(self._attempts, key=lambda task_id: f"{task_id}/".encode()):
            numbers = self._attempts[task_id]
            names = {f"{repeat}.{attempt}/" for repeat, attempt in zip(numbers[::2], numbers[1::2], strict=True)}
            yield from (f"episodes/{task_id}/{name[:-1]}" for name in sorted(names))

    @cached_property
    def _attempts(self) -> dict[str, "array[int]"]:
        """Task → repeat and attempt of each of its rows, one after the other: there may be very many."""
        found: dict[str, array[int]] = {}
        with (self._ready.run / ROWS).open("rb") as rows:
            for number, line in enumerate(rows, 1):
                row = Row.from_bytes(line, f"{ROWS}:{number}")
                found.setdefault(row.task_id, array("Q")).extend((row.repeat, row.attempt))
        return found


def _facts(source: _Source) -> FileDigest:
    """The digest of a file as it lies. Raises `Refused` when it is gone or no regular file."""
    try:
        fd = tree.opened(source.root, source.below)
    except OSError as error:
        what = f"the file can't be read: {error.strerror}"
        raise Refused(what, [Finding("bundle-source", source.path, what)], source.path) from error
    try:
        return digest.of_open(fd, source.path)
    finally:
        os.close(fd)


def _outputs(run: Path, folder: str, held: tuple[str, ...]) -> list[str]:
    """What else lies in an episode's folder: what the agent wrote, and what the tests said of it."""
    found = []
    for parent, _, names in os.walk(run / folder):
        for name in names:
            path = (Path(parent) / name).relative_to(run).as_posix()
            if path.rpartition("/")[2] not in held or path.count("/") > 3:
                found.append(path)
    return sorted(found, key=str.encode)


def _whole(path: str, data: bytes) -> Iterator[bytes]:
    """The blocks of a file that is at hand."""
    yield archive.header(path, FileDigest(digest.of(data), len(data), False, 1))
    yield data
    yield bytes(-len(data) % archive.BLOCK)


def _signed(signatures: Signatures) -> Iterator[bytes]:
    """The blocks of the signatures and of their list; none without signatures."""
    if not signatures:
        return
    named = {SIGNATURES + name: signatures[name] for name in sorted(signatures, key=str.encode)}
    yield from _whole(SIGNATURE_SUMS, b"".join(sums_line(digest.of(data), path) for path, data in named.items()))
    for path, data in named.items():
        yield from _whole(path, data)
