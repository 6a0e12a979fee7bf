"""`judgments.jsonl`: what people decided of episodes whose success no program could say, one decision a line.

Every line holds the digest of the row that it judges and of the line before, so that no decision can be moved to
another row, changed or left out without a trace. Pure.
"""

from typing import Annotated, Literal

from pydantic import Field

from scoresheet.documents.model import Sha256, TaskId, ToolDocument

Decided = Literal["pass", "fail", "withdrawn"]


class Judgment(ToolDocument):
    """One decision. A withdrawn one is a line of its own: nothing is ever rewritten."""

    rule = "judgments"
    task_id: TaskId
    repeat: Annotated[int, Field(ge=0)]
    attempt: Annotated[int, Field(ge=0)]
    row_sha256: Sha256
    """Of the row's line in rows.jsonl, without its newline."""
    shown_sha256: Sha256
    """Of what the judge was shown: the RFC 8785 text of `{"answer", "left_out", "patch", "prompt"}`, where patch is its
    sha256."""
    verdict: Decided
    judge: Annotated[str, Field(min_length=1, max_length=100)]
    """Who decided."""
    at: str
    """RFC 3339, UTC."""
    previous: Sha256
    """Digest of the line before, without its newline; zeros at the start."""
