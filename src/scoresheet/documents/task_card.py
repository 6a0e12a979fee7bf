"""The task card: one agent job, as triage sees it (docs/formats, Task card)."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from scoresheet.documents.model import Document, Many, TaskId, without_nulls

OracleKind = Literal["pytest", "schema", "human", "match"]
MutationScope = Literal["read_only", "workspace", "network", "secrets"]
Number = Annotated[float | int, Field()]


class TaskCard(Document):
    """What triage decides from. Everything may be missing: a missing fact is a result (a leaf), never an error."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    rule = "task-card"

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        return without_nulls(value)

    task_id: TaskId | None = None
    goal: str | None = None
    inputs: Many[str] = ()
    """Files of the workspace that the agent is given."""
    reads: Many[str] = ()
    """Further files that the agent may read."""
    oracle_kind: OracleKind | Literal[""] | None = None
    mutation_scope: MutationScope | Literal[""] | None = None
    writable_root: str | None = None
    fixture_sha256: str | None = None
    age_hours: Number | None = None
    """Hours since the fixture was frozen; or give `frozen_at`."""
    frozen_at: str | None = None
    """RFC 3339; the age is then taken when triage runs."""
    stale_after_hours: Number | None = None
    leak_flag: bool | Literal["unknown"] | None = None
    attachments: dict[str, Any] | None = None
    """Your own members."""
