"""The reports that lie in a run or a bundle, by what its rows give."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scoresheet import digest
from scoresheet.documents.report import Report
from scoresheet.errors import Finding
from scoresheet.publish import block, claims, quotes


@dataclass(frozen=True, slots=True)
class Printed:
    """What became of the printed reports."""

    names: tuple[str, ...] = ()
    """Of those that lie there, and were compared."""
    findings: tuple[Finding, ...] = ()
    older: tuple[str, ...] = ()
    """What was said of those that were printed before the last confounds, and hold but for these."""


def printed(folder: Path, report: Report, in_bundle: bool) -> Printed:
    """How the reports in `folder` compare with `report`; a bundle must hold them all, and of this very moment."""
    names: list[str] = []
    findings: list[Finding] = []
    older: list[str] = []
    for name, made in _MADE.items():
        path = folder / name
        if not path.exists():
            if in_bundle:
                findings.append(Finding("audit-report", name, "not there"))
            continue
        names.append(name)
        if digest.of_file(path).sha256 == digest.of(made(report).encode()):
            continue
        said = path.read_bytes()
        entries = next((n for n in range(report.confounds or 0) if made(_as_of(report, n)).encode() == said), None)
        if entries is not None and not in_bundle:
            what = f"{name} was printed when the confound log had {entries} of its {report.confounds} entries"
            older.append(f"{what}; all else in it holds")
            continue
        what = _differing(said, name, report)
        findings.append(Finding("audit-report", name, what, "print it anew: scoresheet report"))
    return Printed(tuple(names), tuple(findings), tuple(older))


_MADE: Mapping[str, Callable[[Report], str]] = {
    "report.txt": block.text,
    "report.json": Report.text,
    "report.md": block.markdown,
}


def _as_of(report: Report, entries: int) -> Report:
    """The report as it was when the confound log had so many entries."""
    return report.model_copy(update={"confounds": entries, "confound_entries": report.confound_entries[:entries]})


def _differing(said: bytes, name: str, report: Report) -> str:
    """Which figures of a printed report the rows don't give."""
    for claim in quotes.claims(said, prose=name != "report.json"):
        if found := claims.differences(claim, report):
            return claims.told(found)
    return "not what the rows give"
