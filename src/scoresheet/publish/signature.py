"""Who signed a bundle: its signatures, and a signed tag that names it. No key is believed that nobody named."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scoresheet.errors import Finding
from scoresheet.publish.audit import Audit

State = Literal["none", "unchecked", "good", "bad"]


@dataclass(frozen=True, slots=True)
class Signature:
    """What is known of who signed."""

    state: State
    told: str
    """For people, behind `signature:`."""
    principals: Sequence[str] = ()
    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


def verify(audit: Audit, allowed: Path | None, tag: str | None = None) -> Signature:
    """What the signatures of a bundle are worth."""
    if not audit.signatures:
        findings: tuple[Finding, ...] = ()
        if allowed is not None:
            findings = (Finding("signature-none", audit.name, "signers were named, and nobody signed"),)
        return Signature("none", "none", findings=findings)
    return Signature("unchecked", "there, not checked: name who may sign with --allowed-signers")
