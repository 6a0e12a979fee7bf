"""Everything that can be recomputed of a run, from its directory or from a bundle, without network and without trust.

What is said three times over is told apart: what was checked, what could not be, what rests on the submitter's word.
"""

from dataclasses import dataclass, field
from pathlib import Path

from scoresheet.documents.bundle import BundleIndex
from scoresheet.documents.report import Report
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.pack.folder import Pack
from scoresheet.publish import bundle_file, run_folder, unpacking
from scoresheet.publish.examination import Examination, Found, Kind
from scoresheet.publish.row_places import folder_of
from scoresheet.publish.run_folder import RunFolder
from scoresheet.run import judgments


@dataclass(frozen=True, slots=True)
class Audit:
    """What is known of a run after everything was recomputed."""

    kind: Kind
    name: str
    findings: tuple[Finding, ...]
    """Everything that does not hold; empty when the run is what it says."""
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]
    word: tuple[str, ...]
    """What rests on the submitter's word."""
    run: RunFolder | None = None
    report: Report | None = None
    """`None` when it can't be computed."""
    sha256: str | None = None
    """Of bundle.json, which names the bundle."""
    index: BundleIndex | None = None
    index_bytes: bytes = b""
    signatures: dict[str, bytes] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True when nothing contradicts."""
        return not self.findings

    def refuse_no_bundle(self, path: Path) -> None:
        """Raise `Usage` when the file at `path` is no bundle at all."""
        if self.kind == "bundle" and self.sha256 is None:
            what = self.findings[0].what.removeprefix("this is no bundle: ")
            mend = "name the folder that `scoresheet run --out DIR` wrote, or the file that `scoresheet bundle` wrote"
            raise Usage(f"this is no bundle: {what}", str(path), mend)


def of_run(folder: Path, pack: Pack | None = None, printed: bool = True) -> Audit:
    """The audit of a run directory; without what was `printed` (report.*) when that is made anew.

    Raises `Usage` when it is none, `Refused` when run.json can't be read.
    """
    work = Examination("run", folder.name, folder, pack, printed=printed)
    plan = work.plan()
    if plan is None:
        raise Refused("not a run", work.findings, str(folder))
    work.rows(plan)
    for at in range(len(work.places)):
        row = work.row(at)
        work.refold(plan, at, row, _on_disk(folder, folder_of(row)))
    work.close(plan)
    return _ended(work)


def of_bundle(path: Path, into: Path, pack: Pack | None = None, keep_agent: bool = False) -> Audit:
    """The audit of a bundle; its top files are laid out in `into/run`, a pack in `into/pack`, an agent in `into/agent`.

    Raises `Usage` when there is no such file. What makes it unreadable is a finding.
    """
    folder = into / "run"
    folder.mkdir()
    work = Examination("bundle", path.name, folder, pack)
    try:
        with bundle_file.opened(path) as bundle:
            work.bundle = bundle
            try:
                unpacking.unpack(bundle, work, into, keep_agent)
            finally:
                work.findings[:0] = bundle.findings
    except Refused as refused:
        known = set(work.findings)
        work.findings += [finding for finding in refused.findings if finding not in known]
        where = refused.where or "the bundle"
        work.unchecked.append(f"everything from {where} on: the bundle can't be read further")
        return _ended(work)
    plan = work.plan()
    if plan is not None:
        work.close(plan)
    return _ended(work)


def read(path: Path, into: Path, pack: Pack | None = None) -> Audit:
    """The audit of the run directory or the bundle at `path`."""
    return of_run(path, pack) if path.is_dir() else of_bundle(path, into, pack)


def _ended(work: Examination) -> Audit:
    """What came out."""
    work.end()
    bundle = work.bundle
    return Audit(
        kind=work.kind,
        name=work.name,
        findings=tuple(work.findings),
        checked=tuple(work.checked),
        unchecked=tuple(work.unchecked),
        word=tuple(line.text for line in work.on_word()),
        run=work.run,
        report=work.report,
        sha256=bundle.sha256 if bundle is not None else None,
        index=bundle.index if bundle is not None else None,
        index_bytes=bundle.index_bytes if bundle is not None else b"",
        signatures=bundle.signatures if bundle is not None else {},
    )


def _on_disk(folder: Path, episode: str) -> Found:
    """The files of an episode of a run directory that a row can be held against."""
    for name in ("calls.jsonl", "dns.jsonl", "evidence.json", "patch.diff", judgments.TASK_VIEW):
        try:
            with run_folder.opened(folder / episode / name) as file:
                yield name, file
        except OSError:
            continue
