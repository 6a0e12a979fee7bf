"""`confounds.jsonl`: what may have moved a figure, one dated entry a line: the tool's own, and people's."""

from typing import Literal

from scoresheet.documents.model import ToolDocument

Kind = Literal["resumed", "rerun", "uncommitted", "deviation", "human"]


class Confound(ToolDocument):
    """One entry."""

    rule = "confounds"
    at: str
    """RFC 3339, UTC."""
    by: Literal["scoresheet", "person"]
    kind: Kind
    text: str
    control: str | None = None
    """Of a deviation: the control, as the card names it, such as `controls.parallel_jobs`."""
    pinned: str | None = None
    """Of a deviation: what the card says."""
    seen: str | None = None
    """Of a deviation: what the run had."""

    def __str__(self) -> str:
        return f"{self.at} {self.kind}: {self.text}"
