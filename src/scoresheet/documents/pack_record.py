"""`pack.json` of a run: what was seen of the pack before the first episode.

With it, and with the card that lies beside it, every leaf is derived again and the card judged again where the pack
itself is not at hand. Pure.
"""

from typing import Any, Literal

from scoresheet import canonical
from scoresheet.documents.model import Many, Sha256, ToolDocument
from scoresheet.documents.task_card import OracleKind

LeakState = bool | Literal["unknown"]


class ScanRecord(ToolDocument):
    """What the leak scan looked at, and how much it found; never what it found."""

    rule = "pack-record"
    leak_flag: LeakState
    files: int
    size_bytes: int
    leaks: int
    allowed: int
    """Findings that the card allows by their digest."""
    unknown: int
    """Files that could not be searched."""
    rules: int
    ruleset_sha256: Sha256


class TaskRecord(ToolDocument):
    """One task, without its recordings."""

    rule = "pack-record"
    content_sha256: Sha256 | None = None
    """Of the task without its labels: equal for tasks that are copies of each other."""
    origin: str | None = None
    kind: Literal["replay", "workspace", "drill"] = "replay"
    oracle_kind: OracleKind | None = None
    """As declared, else `match` when `expected` is not empty, else none."""
    test_command: str | None = None
    card: dict[str, Any] = {}
    """The task's own triage facts."""


class PackRecord(ToolDocument):
    """A pack as triage saw it."""

    rule = "pack-record"
    format: Literal["scoresheet-pack-record/1"] = "scoresheet-pack-record/1"
    manifest_sha256: Sha256
    intact: bool
    """False when the files contradict the manifest: its digest then counts as missing."""
    fixture_sha256: Sha256 | None
    """Of the tarball that `freeze --tar` would have written."""
    frozen_at: str | None
    """RFC 3339: the earliest time that frozen_at.txt or the pack's receipts know for these bytes."""
    timeout_s: float | int
    seed: int
    retries: int
    tools: Many[str]
    commit_known: bool | None = None
    """Whether the git repository around the card holds `suite.git_sha`; `null`: there was none to ask."""
    scan: ScanRecord | None
    barred: dict[str, Literal["leak", "secrets"]] = {}
    """Task id → why an earlier receipt of these very bytes keeps it from ever getting score."""
    tasks: dict[str, TaskRecord]

    def text(self) -> bytes:
        """The file."""
        return canonical.pretty(
            self.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {"format": self.format}
        )
