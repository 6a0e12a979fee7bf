"""What is wrong with a pack: its rules, and every difference from its manifest when it is frozen."""

import os
from dataclasses import dataclass
from pathlib import Path

from scoresheet.digest import Digest
from scoresheet.errors import Finding, Refused
from scoresheet.pack import freezer, tree
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import MANIFEST, Settings, sorted_findings


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on one pack."""

    findings: tuple[Finding, ...]
    files: int
    tasks: int
    manifest_sha256: Digest | None
    """`None` when the pack is not frozen."""

    @property
    def ok(self) -> bool:
        """No error, and something was checked: a check of nothing passes nothing."""
        return self.files > 0 and self.tasks > 0 and all(finding.severity != "error" for finding in self.findings)


def check(root: str | Path, progress: tree.Progress = tree.quiet) -> Checked:
    """Every finding of the pack in the folder `root`. Raises `Usage` when it can't be read."""
    settings = None
    pack: Pack | None = None
    findings: list[Finding] = []
    if os.path.lexists(Path(root, MANIFEST)):
        try:
            pack = Pack.open(root)
            settings = Settings(protocol=pack.manifest.protocol, timeout_s=pack.manifest.timeout_s)
        except Refused as refused:
            findings.extend(finding for finding in refused.findings if finding.rule != "pack-not-frozen")
    examined = freezer.examine(root, settings, progress)
    findings.extend(examined.findings)
    if pack is not None:
        findings.extend(pack.compare(examined.digests, {finding.where for finding in findings}))
    distinct = dict.fromkeys(findings)
    return Checked(
        sorted_findings(distinct), examined.files, examined.tasks, pack.manifest_sha256 if pack is not None else None
    )
