"""A bundle laid out on the disk, for what reads run directories: verified, with the journal of every episode."""

from dataclasses import dataclass
from pathlib import Path

from scoresheet.errors import Finding, Refused
from scoresheet.pack.folder import Pack
from scoresheet.publish import audit, bundle_file
from scoresheet.publish.audit import Audit

_CALLS = "calls.jsonl"


@dataclass(frozen=True, slots=True)
class Laid:
    """Where the files of a bundle lie, and what was found when it was verified."""

    root: Path
    """As a run directory."""
    audit: Audit
    pack: Pack | None
    """The bundle's own, unless another was given; `None` when something does not hold."""

    @property
    def faults(self) -> tuple[Finding, ...]:
        """Everything in it that does not hold."""
        return tuple(finding for finding in self.audit.findings if finding.severity == "error")


def lay(path: Path, into: Path, pack: Pack | None = None) -> Laid:
    """The bundle in the file at `path`, below the folder `into`; journals only when everything holds.

    Raises `Usage` when there is no such file, `Refused` when it changes meanwhile.
    """
    seen = audit.of_bundle(path, into, pack)
    laid = Laid(into / "run", seen, pack)
    if laid.faults or seen.run is None:
        return laid
    _lay_calls(path, laid.root, seen.sha256)
    if pack is None and (into / "pack").exists():
        return Laid(laid.root, seen, Pack.open(into / "pack"))
    return laid


def _lay_calls(path: Path, root: Path, sha256: str | None) -> None:
    with bundle_file.opened(path) as found:
        if found.sha256 != sha256:
            raise Refused("the bundle changed while it was read", [], str(path))
        for member in found.members():
            top, _, name = member.path.rpartition("/")
            if name != _CALLS or not top.startswith("episodes/"):
                member.pass_over()
                continue
            (root / top).mkdir(parents=True, exist_ok=True)
            with (root / member.path).open("xb") as file:
                file.writelines(member.chunks())
        if found.findings:
            raise Refused("the bundle changed while it was read", found.findings, str(path))
