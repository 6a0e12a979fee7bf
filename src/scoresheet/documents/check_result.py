"""What `scoresheet check --json` prints: one stable shape for packs, protocol cards and task cards."""

from typing import Annotated, Literal

from pydantic import Field

from scoresheet.documents.model import Many, Sha256, ToolDocument

Kind = Literal["pack", "protocol card", "task card", "score"]


class CheckFinding(ToolDocument):
    """One rule and one place that it does not hold, or a warning."""

    rule_: Annotated[str, Field(alias="rule")]
    """Stable id; documented under that name in docs/gates or docs/packs."""
    severity: Literal["error", "warning"]
    where: str
    """The place as people read it: `path:line:column` or `path#/json/pointer`."""
    path: str
    """The file, as it was reached from where the command ran."""
    line: int | None = None
    """From 1; `null` where a place in the text makes no sense."""
    column: int | None = None
    what: str
    mend: str = ""


class CheckTarget(ToolDocument):
    """The verdict on one pack or card."""

    target: str
    kind: Kind
    ok: bool
    sha256: Sha256 | None = None
    """A card's own digest."""
    rules: int = 0
    """How many of the card's rules ran; 0 for a pack, whose rules run on every file."""
    files: int | None = None
    tasks: int | None = None
    manifest_sha256: Sha256 | None = None
    primary: str | None = None
    holdout: int | None = None
    findings: Many[CheckFinding] = ()
    not_judged: Many[str] = ()
    """What could not be looked at, and why: never a silent pass."""


class CheckResult(ToolDocument):
    """The verdicts on all targets of one command."""

    schema_: Annotated[Literal["scoresheet-check/v1"], Field(alias="schema")] = "scoresheet-check/v1"
    ok: bool
    cards: int
    rules: int
    """Rules that ran, over all cards."""
    targets: Many[CheckTarget]
