"""`rows.jsonl`: one line per attempt, appended and synced as the episode ends, never rewritten."""

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from scoresheet.canonical import JsonValue
from scoresheet.documents.call_record import Nearest
from scoresheet.documents.model import Document, Fingerprint, Many, Sha256, TaskId

ExitReason = Literal["completed", "mismatch", "timeout", "tool_cap", "model_error", "agent_error", "harness_error"]
Bit = Annotated[int, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""Bounded, as durations are: so no row makes a sum or a text that can't be held."""
Duration = Annotated[float, Field(ge=0, le=1e15)]


class Mismatch(Document):
    """A call that was not recorded."""

    rule = "rows"
    method: str
    path: str
    fingerprint: str
    kind: str = "no_match"
    nearest: Nearest | None = None


class ModelUsage(Document):
    """Tokens of one model in one attempt, as its provider counted them."""

    rule = "rows"
    model: str
    """The name that answered, else the one that was asked for."""
    calls: Count
    """Answers that told their tokens."""
    input: Count
    """With those that were read from a cache or written to one."""
    cached: Count = 0
    cache_write: Count = 0
    output: Count
    """With those of reasoning."""
    reasoning: Count = 0


class Row(Document):
    """One attempt at one repeat of one task."""

    rule = "rows"
    most_digits = None
    manifest_sha256: Sha256
    task_id: TaskId
    repeat: Count
    attempt: Count
    episode_seed: Count
    success: Bit | None
    """`null` while a human judges."""
    schema_ok: Bit
    unauthorized: Bit
    timeout: Bit
    exit_reason: ExitReason
    limit: str | None = None
    """The limit that ended the episode: `wall_clock`, `tool_calls`, `output`, `disk`, `memory`, `pids`."""
    limit_at_s: Duration | None = None
    answer: JsonValue = None
    elapsed_s: Duration
    cpu_s: Duration
    recorded_latency_ms: Duration
    tool_calls: Count
    repeated_calls: Count
    mismatches: Many[Mismatch] = ()
    schema_errors: Many[str] = ()
    ignored: dict[str, Count] = {}
    """`TOOL RULE` → in how many calls that `ignore` rule took something out before the request was compared."""
    schema_unchecked: Many[str] = ()
    """Tools whose arguments could not be checked: v1 without `tools/<name>.json` or `http`."""
    model_calls: Count | None = None
    """Calls that passed the model's door; `null`: there was none."""
    model_retries: Count | None = None
    """How often a question was asked again after it had failed, by the agent or by the door."""
    model_door_retries: Count | None = None
    """Those that the door made, after the provider had asked it to wait."""
    tokens_in: Count | None = None
    tokens_out: Count | None = None
    model_usage: Many[ModelUsage] = ()
    """The same tokens, model by model and kind by kind."""
    model_untold: Count | None = None
    """Answers that told no tokens, and calls in a dialect that is not known: the sums are then a lower bound."""
    cost: Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,17})(\.[0-9]{1,12})?$")] | None = None
    """What the tokens cost by the run's price table, exact; `null` without a table, or when not all of it is known."""
    models: Many[str] = ()
    """Names that answered, dated where they are."""
    model_unrecorded: Many[str] = ()
    """Where the model was replayed: calls that its recording does not hold. The first one ended the episode."""
    controls: dict[str, Literal["verified", "violated", "unobserved"]] = {}
    """Control of the card → what the model's calls showed of it (docs/model)."""
    violations: Many[str] = ()
    """What was seen of each control that is violated."""
    patch_lines: Count | None = None
    patch_sha256: str | None = None
    tests_identical: Bit | None = None
    """1 when every frozen test that the agent could see is byte for byte what it was; `null` without a workspace."""
    test_files_changed: Count | None = None
    """How many of them were changed or removed."""
    tests_changed: Many[str] = ()
    """Which: paths of the workspace."""
    tests_added: Many[str] = ()
    """Test files that the agent added: its right, and never part of what grades it."""
    grading_surface: Many[str] = ()
    """What it changed that could have bent the grading, `path: what`. None of it was there when it was graded, but for
    code that names the test runner, and says so."""
    patch_left_out: Many[str] = ()
    """What lay in the workspace and is in no patch: `path: why`."""
    peak_memory_bytes: Count | None = None
    agent_exit: Annotated[int, Field(gt=-(1 << 63), lt=1 << 63)] | None = None
    """Exit status of the agent's process; negative for a signal; `null` when it never started or was killed by us."""
    detail: str | None = None
    """One sentence for a person: why the episode ended as it did, when that is not plain."""
    isolation: Literal["proved", "not_isolated", "not_proved"]
    """`proved` only from the evidence of this very episode."""
    calls_sha256: Sha256 | None = None
    """Digest of the episode's calls.jsonl, from which this row was folded."""
    model_sha256: Sha256 | None = None
    """Digest of its model.jsonl, from which what it says of models was folded; `null`: there was no model's door."""
    started_at: str
    host: str


def episode_seed(seed: int, task_id: str, repeat: int) -> int:
    """The seed of one repeat: 63 bits of sha256 of `seed:task_id:repeat` (docs/formats, Rows)."""
    hashed = hashlib.sha256(f"{seed}:{task_id}:{repeat}".encode()).digest()
    return int.from_bytes(hashed[:8], "big") & (2**63 - 1)


__all__ = ["Bit", "Count", "Duration", "ExitReason", "Fingerprint", "Mismatch", "ModelUsage", "Row", "episode_seed"]
