"""The score receipt: what triage decided of one task, in a chain that can't be edited into a better leaf."""

from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from scoresheet.documents.model import Sha256, ToolDocument

Leaf = Literal["refuse", "quarantine", "refresh", "score"]

GENESIS = "0" * 64
"""`previous` of the first line of a chain."""


class Receipt(ToolDocument):
    """The published receipt, its members in the published order (vectors/receipts.json)."""

    rule = "receipt"
    leaf: Leaf
    oracle_kind: str | None
    mutation_scope: str | None
    fixture_sha256: str | None
    runner_seat: str | None
    """`null` unless the leaf is score; a score leaf without a seat has not started, and must not."""


class ChainedReceipt(Receipt):
    """A line of `receipts.jsonl`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")
    task_id: str
    manifest_sha256: Sha256 | None
    reason: str
    next_action: str
    issued_at: str
    """RFC 3339."""
    tool_version: str
    card: dict[str, Any]
    """The facts that the leaf was decided from: with them anybody derives the leaf again."""
    previous: Sha256
    """sha256 of the line before, without its newline; zeros for the first."""
