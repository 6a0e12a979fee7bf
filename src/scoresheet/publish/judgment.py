"""Whether a change may be merged: every score that it adds, edits or pulls the ground from, judged at head.

What stands behind a score is found by digest, wherever it lies: rows by rows_sha256, card and manifest by what run.json
says. Reads the repository through `publish.change`, and lays each run out in a folder of its own to read it.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from scoresheet import canonical, digest, yaml12
from scoresheet.documents.baselines import Baselines
from scoresheet.documents.manifest import Manifest
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Finding, Refused, ScoresheetError
from scoresheet.gate import card
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import CARD, FROZEN_AT, MANIFEST, RECEIPTS
from scoresheet.publish import quotes, run_folder
from scoresheet.publish.change import LINK, SUBMODULE, Change, Content, Entry, Repository, shown
from scoresheet.publish.claimed_comparison import contradictions
from scoresheet.publish.claims import differences, method_of, told
from scoresheet.publish.comparable import Entrant
from scoresheet.publish.quotes import Claim
from scoresheet.publish.run_folder import BASELINES, ROWS, RUN, RunFolder
from scoresheet.run.prices import PRICES

State = Literal["ok", "baseline", "draft", "accepted", "refused"]
STATES: tuple[State, ...] = ("ok", "baseline", "draft", "accepted", "refused")

_TEXT_BYTES = 32 << 20
"""A larger file that holds marks of a score can't be judged: it is refused, never skipped."""
_SIDE_BYTES = 64 << 20
_SMALL_BYTES = 8 << 20
_CARD_BYTES = yaml12.MAX_BYTES
_CARDS = (".yaml", ".yml", ".json")
_FROM_CARD = (
    "attended", "card_sha256", "decision", "decisions", "excluded", "not_called", "primary", "secondary", "tie_margin",
)  # fmt: skip
_EXECUTABLE = "100755"
_POINTER = b"version https://git-lfs.github.com/spec/"
_SCORED_NAMES = (
    ROWS,
    RUN,
    RECEIPTS,
    "confounds.jsonl",
    BASELINES,
    "judgments.jsonl",
    "pack.json",
    PRICES,
    MANIFEST,
    CARD,
)
_SCORED_SUFFIXES = (".jsonl", ".json", ".md", ".markdown", ".txt", ".html", ".yaml", ".yml")
_PROSE = ("", ".md", ".markdown", ".mdx", ".rst", ".adoc", ".txt", ".html", ".htm", ".tex", ".csv", *_SCORED_SUFFIXES)
_LFS = "run `git lfs pull` and commit the file itself: what can't be read can't be judged (docs/ci)"


@dataclass(frozen=True, slots=True)
class Judged:
    """One score of the change, and what is wrong with it."""

    path: str
    line: int | None
    kind: Literal["rows", "report", "block", "comparison"]
    digest: str
    """By which `--accept` names it."""
    state: State
    findings: tuple[Finding, ...] = ()

    @property
    def place(self) -> str:
        """`path:line`, printable."""
        return f"{shown(self.path)}:{self.line}" if self.line else shown(self.path)


@dataclass(frozen=True, slots=True)
class Judgment:
    """What the gate says of a change."""

    change: Change
    scores: tuple[Judged, ...]
    loose: tuple[Finding, ...]
    """What is wrong with files that no score could be read from."""
    notes: tuple[str, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that refuses the change."""
        return (*self.loose, *(finding for score in self.scores for finding in score.findings))

    @property
    def ok(self) -> bool:
        """True when nothing refuses the change."""
        return not self.findings

    def count(self, state: State) -> int:
        """Scores in that state."""
        return sum(score.state == state for score in self.scores)


def judge(repository: Repository, change: Change, accepted: frozenset[str] = frozenset()) -> Judgment:
    """Every score of the change, judged by what lies at its head."""
    return _Judge(repository, change, accepted).judgment()


@dataclass(frozen=True, slots=True)
class _Run:
    """A run at head, read; or why it can't be."""

    folder: RunFolder | None
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class _Judge:
    repository: Repository
    change: Change
    accepted: frozenset[str]
    tree: dict[str, Entry] = field(init=False)
    loose: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _digests: dict[str, str] = field(default_factory=dict)
    _runs: dict[str, _Run] = field(default_factory=dict)
    _claims: dict[tuple[str, int], Claim] = field(default_factory=dict)
    """(path, place in it) → a score in a text."""
    _rows: set[str] = field(default_factory=set)
    """Paths of rows that are judged."""

    def __post_init__(self) -> None:
        self.tree = self.repository.files(self.change.head)

    def judgment(self) -> Judgment:
        links = 0
        for changed in self.change.files:
            if changed.new is None or changed.new_path is None:
                continue
            if changed.new.mode == SUBMODULE:
                links += 1
            else:
                self._look(changed.new_path, changed.new)
        if links:
            self.notes.append(f"{links} changed submodules were not entered: their scores are gated where they live")
        self._shaken()
        scores = [*map(self._judged_rows, sorted(self._rows))]
        scores += [self._judged_claim(path, claim) for (path, _), claim in sorted(self._claims.items())]
        return Judgment(self.change, tuple(scores), tuple(self.loose), tuple(self.notes))

    # which scores

    def _look(self, path: str, entry: Entry) -> None:
        """Take note of the scores in a changed file."""
        name = path.rpartition("/")[2]
        if entry.mode == LINK:
            if name in _SCORED_NAMES:
                mend = "commit the file itself"
                self.loose.append(
                    Finding("claim-link", shown(path), f"{name} is a symlink: no score can rest on it", mend)
                )
            return
        content = self.repository.read(entry, _TEXT_BYTES, quotes.MARKS + quotes.MARKS_16)
        self._digests[entry.oid] = content.sha256
        if content.data.startswith(_POINTER) and name.endswith(_SCORED_SUFFIXES):
            what = "the file is a git-lfs pointer, so a score in it can't be judged"
            self.loose.append(Finding("claim-lfs", shown(path), what, _LFS))
        elif content.marks or name == ROWS:
            self._take(path, content)

    def _take(self, path: str, content: Content) -> None:
        if quotes.is_rows(path, content.data):
            self._rows.add(path)
            return
        if not content.whole:
            what = f"the file has {content.size} bytes and holds marks of a score: it is too large to be judged"
            mend = f"keep reports in files of at most {_TEXT_BYTES >> 20} MiB"
            self.loose.append(Finding("claim-size", shown(path), what, mend))
            return
        suffix = os.path.splitext(path.rpartition("/")[2])[1].lower()
        for place, claim in enumerate(quotes.claims(content.data, prose=suffix in _PROSE)):
            self._claims[path, place] = claim

    def _shaken(self) -> None:
        """Take note of unchanged scores whose ground the change edits or removes."""
        gone = {self._digest(changed.old) for changed in self.change.files if changed.old and changed.old.regular}
        gone |= set(self._packs_touched())
        beside = {
            path.rpartition("/")[0]
            for changed in self.change.files
            for path in (changed.old_path, changed.new_path)
            if path is not None and path.rpartition("/")[2] in _SCORED_NAMES
        }
        if not gone and not beside:
            return
        looked = {path for path, _ in self._claims} | {changed.new_path for changed in self.change.files}
        texts: list[tuple[str, Content]] = []
        for path in self.repository.mentioning(self.change.head, "manifest_sha256"):
            entry = self.tree.get(path)
            if entry is None or not entry.regular:
                continue
            folder, _, name = path.rpartition("/")
            if name == ROWS:
                if folder in beside:
                    self._rows.add(path)
                continue
            content = self.repository.read(entry, _TEXT_BYTES)
            self._digests[entry.oid] = content.sha256
            if name == RUN:
                self._rows.update(self._rows_of(folder, content, gone))
            elif path not in looked and content.whole:
                texts.append((path, content))
        gone |= {self._digest(self.tree[path]) for path in self._rows if path in self.tree}
        for path, content in texts:
            for place, claim in enumerate(quotes.claims(content.data, prose=False)):
                if claim.digests & gone:
                    self._claims[path, place] = claim

    def _rows_of(self, folder: str, content: Content, gone: set[str]) -> Iterator[str]:
        """The rows of the run in `folder`, when it names a digest that is gone."""
        try:
            plan = RunPlan.from_bytes(content.data, RUN)
        except ScoresheetError:
            return
        if {plan.manifest_sha256, plan.card_sha256} & gone:
            path = _join(folder, ROWS)
            if path in self.tree:
                yield path

    def _packs_touched(self) -> Iterator[str]:
        """Digests of manifests at head that pin a changed file."""
        paths = {path for changed in self.change.files for path in (changed.old_path, changed.new_path) if path}
        for root in {parent for path in paths for parent in _parents(path)}:
            entry = self.tree.get(_join(root, MANIFEST))
            if entry is None or not entry.regular:
                continue
            content = self.repository.read(entry, _SIDE_BYTES)
            manifest = _manifest(content.data)
            if manifest and any(_join(root, name) in paths for name in (*manifest.tasks, *manifest.files)):
                yield content.sha256

    # judging them

    def _judged_rows(self, path: str) -> Judged:
        sha256 = self._digest(self.tree[path])
        if sha256 in self.accepted:
            return Judged(path, None, "rows", sha256, "accepted")
        if self._is_baseline(path, sha256):
            return Judged(path, None, "rows", sha256, "baseline")
        findings = self._run(path).findings
        return Judged(path, None, "rows", sha256, "refused" if findings else "ok", findings)

    def _is_baseline(self, path: str, sha256: str) -> bool:
        """True for rows of the null or the oracle agent that a baselines.json at head is made of: nobody's score."""
        beside = self.tree.get(_join(path.rpartition("/")[0], RUN))
        if beside is None or not beside.regular:
            return False
        try:
            kind = RunPlan.from_bytes(self.repository.read(beside, _SIDE_BYTES).data, RUN).agent.kind
        except Refused:
            return False
        return kind in ("null", "oracle") and (kind, sha256) in self._baselines()

    def _baselines(self) -> Iterator[tuple[str, str]]:
        """(agent, digest of its rows) of every baselines.json at head."""
        for _, entry in self._likely((BASELINES,), _SMALL_BYTES):
            try:
                both = Baselines.from_bytes(self.repository.read(entry, _SMALL_BYTES).data, BASELINES)
            except Refused:
                continue
            yield "null", both.null.rows_sha256
            yield "oracle", both.oracle.rows_sha256

    def _judged_claim(self, path: str, claim: Claim) -> Judged:
        kind: Literal["report", "block", "comparison"] = "block" if claim.value is None else "report"
        judged = Judged(path, claim.line, "comparison" if claim.is_comparison else kind, claim.digest, "ok")
        if {claim.digest, self._digest(self.tree[path])} & self.accepted:
            return replace(judged, state="accepted")
        if claim.draft:
            return replace(judged, state="draft")
        findings = tuple(self._faults(claim, judged.place))
        return replace(judged, state="refused" if findings else "ok", findings=findings)

    def _faults(self, claim: Claim, place: str) -> Iterator[Finding]:
        if claim.fault:
            mend = "quote the whole block that `scoresheet report` prints; an old one goes on the --accept list"
            yield Finding(claim.rule, place, claim.fault, mend)
        if claim.is_comparison:
            yield from self._compared(claim, place)
            return
        named = claim.get("rows_sha256")
        if named is None:
            return
        path = self._rows_named(named)
        if path is None:
            yield self._absent("claim-rows", place, "rows", named, (ROWS, ".jsonl"))
            return
        run = self._run(path)
        yield from self._faults_of(run, path, place)
        if run.folder is not None:
            found = differences(claim, run.folder.report(method_of(claim)))
            if any(each.rule == "claim-card" for each in run.findings):  # told already, and these lines come from it
                found = tuple(each for each in found if each.key not in _FROM_CARD)
            if found:
                mend = f"print it anew: scoresheet report {shown(path.rpartition('/')[0]) or '.'}"
                yield Finding("claim-figures", place, told(found), mend)

    def _compared(self, claim: Claim, place: str) -> Iterator[Finding]:
        """What is wrong with a comparison: with the runs that it names, or with what it says of them."""
        runs = dict(claim.runs)
        if len(runs) < 2:
            what = "the comparison does not name the rows of its runs (rows_sha256)"
            yield Finding("claim-comparison", place, what, "print it anew: scoresheet compare RUN RUN")
            return
        entrants: list[Entrant] = []
        for label, sha256 in runs.items():
            path = self._rows_named(sha256)
            if path is None:
                yield self._absent("claim-rows", place, f"rows of run {label}", sha256, (ROWS, ".jsonl"))
                continue
            run = self._run(path)
            yield from self._faults_of(run, path, place)
            if run.folder is not None:
                name, read = path.rpartition("/")[0].rpartition("/")[2], run.folder
                entrants.append(Entrant(label, name, read.plan, read.outcomes, read.evidence, read.rows_sha256))
        if len(entrants) == len(runs):
            for what in contradictions(claim, entrants):
                yield Finding("claim-comparison", place, what, "print it anew: scoresheet compare RUN RUN")

    def _faults_of(self, run: _Run, path: str, place: str) -> Iterator[Finding]:
        """What is wrong with a run that a score at `place` rests on."""
        if path in self._rows and run.findings:
            what = f"its rows, {shown(path)}, are refused: {run.findings[0].what}"
            more = f"; and {len(run.findings) - 1} more, told there" if len(run.findings) > 1 else ""
            yield Finding(run.findings[0].rule, place, what + more, run.findings[0].mend)
        else:
            for finding in run.findings:
                yield Finding(finding.rule, place, f"its rows, {shown(path)}: {finding.what}", finding.mend)

    def _rows_named(self, sha256: str) -> str | None:
        likely = [path for path in self.tree if path.endswith(".jsonl")]
        likely.sort(key=lambda path: not path.endswith("/" + ROWS))
        for path in (*sorted(self._rows), *likely):
            entry = self.tree[path]
            if entry.regular and self._digest(entry) == sha256:
                return path
        return None

    def _run(self, path: str) -> _Run:
        if path not in self._runs:
            findings: list[Finding] = []
            with tempfile.TemporaryDirectory(prefix="scoresheet-") as scratch:
                folder = self._laid_out(path, Path(scratch), findings)
            self._runs[path] = _Run(folder, tuple(findings))
        return self._runs[path]

    def _laid_out(self, path: str, scratch: Path, findings: list[Finding]) -> RunFolder | None:
        """The run whose rows are at `path`, read from copies of what lies beside them at head."""
        folder, where = path.rpartition("/")[0], shown(path)
        for beside, entry in self.tree.items():
            parent, _, name = beside.rpartition("/")
            if parent == folder and entry.regular and name in _SCORED_NAMES:
                self._copy(beside, scratch / name, findings)
        self._copy(path, scratch / ROWS, findings)
        if any(finding.rule == "claim-lfs" for finding in findings):
            return None
        if not (scratch / RUN).exists():
            what = f"rows without their run.json in {shown(folder) or '.'}: nobody can say what was planned"
            findings.append(Finding("claim-run", where, what, "commit the run directory as `scoresheet run` wrote it"))
            mend = "put a complete card.yaml beside the pack (`scoresheet check card.yaml`) and run again"
            findings.append(Finding("claim-card", where, "rows without a protocol card: no run.json names one", mend))
            self._receipts(scratch, where, findings)
            return None
        try:
            plan = RunPlan.from_bytes((scratch / RUN).read_bytes(), shown(_join(folder, RUN)))
        except Refused as error:
            findings += [Finding("claim-run", each.where, each.what, each.mend) for each in error.findings]
            return None
        pack = scratch / "pack"
        self._pack(plan, where, pack, findings)
        self._card(plan, where, pack, findings)
        self._receipts(scratch, where, findings)
        return self._read(scratch, where, findings)

    def _receipts(self, scratch: Path, where: str, findings: list[Finding]) -> None:
        if not (scratch / RECEIPTS).exists():
            mend = "commit receipts.jsonl of the run directory with the rows"
            findings.append(Finding("claim-receipts", where, "no score receipts stand beside the rows", mend))

    def _read(self, scratch: Path, where: str, findings: list[Finding]) -> RunFolder | None:
        """The run; judged by what it recorded of its pack, and by the pack's own bytes when they are at head."""
        told_already = {finding.rule for finding in findings}
        covered = {"claim-card": ("report-card", "report-holdout"), "claim-receipts": ("report-receipts",)}
        silent = {rule for mine, theirs in covered.items() if mine in told_already for rule in theirs}
        try:
            run = run_folder.read(scratch)
            unmet = run.unmet
            if "claim-pack" not in told_already and (scratch / "pack" / FROZEN_AT).exists():
                unmet += run_folder.read(scratch, Pack.open(scratch / "pack")).unmet
        except Refused as error:
            findings += [
                Finding("claim-run", where, f"{each.where}: {each.what}", each.mend) for each in error.findings
            ]
            return None
        except ScoresheetError as error:
            findings.append(Finding("claim-run", where, error.what, error.mend))
            return None
        mend = "scoresheet report RUN says the same: it must print the figures without --draft"
        for reason in dict.fromkeys(unmet):
            if reason.rule not in silent:
                findings.append(Finding(reason.rule, where, reason.text.replace(f"{scratch}/", ""), mend))
        return run

    def _pack(self, plan: RunPlan, where: str, out: Path, findings: list[Finding]) -> None:
        """Lay the pack out, when its bytes are those that the run's manifest pins."""
        path = self._named(plan.manifest_sha256, (MANIFEST,), _SIDE_BYTES)
        if path is None:
            findings.append(self._absent("claim-manifest", where, "manifest", plan.manifest_sha256, (MANIFEST,)))
            return
        manifest = _manifest(self.repository.read(self.tree[path], _SIDE_BYTES).data)
        if manifest is None:
            findings.append(Finding("claim-manifest", where, f"{shown(path)} is no manifest", "freeze the pack again"))
            return
        root = path.rpartition("/")[0]
        pinned = {**manifest.tasks, **{name: each.sha256 for name, each in manifest.files.items()}}
        there = {name: self.tree.get(_join(root, name)) for name in pinned}
        if not any(there.values()):
            self.notes.append(f"{shown(root) or '.'} holds a manifest without its pack: only its digest was compared")
            return
        for name, sha256 in pinned.items():
            entry = there[name]
            if entry is None or not entry.regular:
                what = f"the pack lacks {shown(_join(root, name))}, which its manifest pins"
            elif self._digest(entry) != sha256:
                what = f"{shown(_join(root, name))} is not what the manifest pins{self._why(entry, sha256)}"
            else:
                continue
            findings.append(Finding("claim-pack", where, what, "restore the file, or run again on the new pack"))
        for name in self._of_pack(root, manifest, pinned):
            self._copy(_join(root, name), out / name, findings)

    def _of_pack(self, root: str, manifest: Manifest, pinned: Iterable[str]) -> Iterator[str]:
        """The pack's files, and what freezing writes beside them. A v1 manifest pins tasks only, not the tools."""
        whole = f"{root}/" if root and manifest.protocol == "tool-replay-v1" else _join(root, "tools/")
        inside = {path.removeprefix(f"{root}/" if root else "") for path in self.tree if path.startswith(whole)}
        for name in sorted({*pinned, *inside, MANIFEST, FROZEN_AT, RECEIPTS} - {CARD}):
            entry = self.tree.get(_join(root, name))
            if entry is not None and entry.regular:
                yield name

    def _card(self, plan: RunPlan, where: str, pack: Path, findings: list[Finding]) -> None:
        """The card of the run, held against its pack when that was laid out."""
        if plan.card_sha256 is None:
            mend = "put a complete card.yaml beside the pack (`scoresheet check card.yaml`) and run again"
            findings.append(Finding("claim-card", where, "rows without a protocol card: run.json names none", mend))
            return
        path = self._named(plan.card_sha256, _CARDS, _CARD_BYTES)
        if path is None:
            findings.append(self._absent("claim-card", where, "protocol card", plan.card_sha256, _CARDS))
            return
        whole = (pack / MANIFEST).exists() and not any(each.rule == "claim-pack" for each in findings)
        out = (pack if whole else pack.with_name("alone")) / ("card.json" if path.endswith(".json") else CARD)
        self._copy(path, out, findings)
        if not (pack.parent / CARD).exists():
            self._copy(path, pack.parent / CARD, findings)
        checked = card.check(out, alone=not whole)
        for finding in checked.findings:
            if finding.severity == "error":
                place = finding.where.replace(str(out), shown(path)).replace(f"{out.parent}/", "")
                what = f"the card is not complete: {finding.what} ({finding.rule}, {place})"
                findings.append(Finding("claim-card", where, what, finding.mend))

    # files at head

    def _copy(self, path: str, out: Path, findings: list[Finding]) -> None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("wb") as file:
            self.repository.copy(self.tree[path], file)
        if self.tree[path].mode == _EXECUTABLE:
            out.chmod(0o755)
        with out.open("rb") as file:
            if file.read(len(_POINTER)) == _POINTER:
                what = f"{shown(path)} is a git-lfs pointer, so the score can't be judged"
                findings.append(Finding("claim-lfs", shown(path), what, _LFS))

    def _named(self, sha256: str, suffixes: tuple[str, ...], most: int) -> str | None:
        """The file at head with that digest."""
        for path, entry in self._likely(suffixes, most):
            if self._digest(entry) == sha256:
                return path
        return None

    def _likely(self, suffixes: tuple[str, ...], most: int) -> Iterator[tuple[str, Entry]]:
        likely = [path for path in self.tree if path.endswith(suffixes)]
        likely.sort(key=lambda path: not path.rpartition("/")[2].startswith(("card.", "manifest.")))
        for path in likely:
            entry = self.tree[path]
            if entry.regular and (entry.size or 0) <= most:
                yield path, entry

    def _absent(self, rule: str, where: str, noun: str, sha256: str, suffixes: tuple[str, ...]) -> Finding:
        """That no file at head has a digest; when one would without line endings converted, that it is so."""
        for path, entry in self._likely(suffixes, _SMALL_BYTES):
            if why := self._why(entry, sha256):
                what = f"{shown(path)} is not the {noun} that was used{why}"
                return Finding(
                    rule, where, what, "add `* -text` to .gitattributes and commit the file as it was written"
                )
        what = f"no {noun} at head has the digest that it names ({sha256[:12]}…)"
        return Finding(rule, where, what, f"commit the {noun} with the score, unedited")

    def _why(self, entry: Entry, sha256: str) -> str:
        data = self.repository.read(entry, _SIDE_BYTES).data
        plain = data.replace(b"\r\n", b"\n")
        if sha256 in (digest.of(plain), digest.of(plain.replace(b"\n", b"\r\n"))):
            return ": only its line endings (CRLF) changed"
        pointer = data.startswith(_POINTER) and sha256.encode() in data
        return ": it is a git-lfs pointer (`git lfs pull`)" if pointer else ""

    def _digest(self, entry: Entry) -> str:
        if entry.oid not in self._digests:
            self._digests[entry.oid] = self.repository.read(entry, 0).sha256
        return self._digests[entry.oid]


def _manifest(data: bytes) -> Manifest | None:
    try:
        return Manifest.from_value(canonical.loads(data, Manifest.most_digits), MANIFEST)
    except ScoresheetError:
        return None


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _parents(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path
