"""The protocol card, `agent-eval-protocol/v1`: what a score was measured on, and under which controls.

The model is for cards that hold; a card that does not is judged on its raw value by `gate.rules`, all faults at once.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from scoresheet.documents.model import Document, Many, Sha256, without_nulls

SCHEMA = "agent-eval-protocol/v1"
Count = Annotated[int, Field(ge=0)]
Number = Annotated[float | int, Field(ge=0, allow_inf_nan=False)]


class _Part(Document):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    rule = "card"

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        return without_nulls(value)


class Suite(_Part):
    """The dataset."""

    name: str
    git_sha: Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
    """Commit of the suite's repository, in full."""
    fixture_hash: str
    """sha256 of the frozen tarball (`freeze --tar FILE`), with or without `sha256:`."""
    license: str
    source: str
    contamination_note: str
    task_count: Count
    taxonomy: dict[str, Count]
    """Kind of task → how many; sums to task_count."""
    origins: dict[str, Many[str]] = {}
    """Origin (scraped-issue, internal-bug, synthetic, homework, `other: …`) → task ids."""


class DatasetSplit(_Part):
    """Which tasks may enter a published figure."""

    train_like: Many[str]
    holdout: Many[str]


class Estimates(_Part):
    """Figures that nobody measured, labelled as such."""

    human_minutes_per_task: Number | None = None


class Metrics(_Part):
    """What is reported: one primary with its secondaries, and no headline scalar."""

    primary: str
    """One of the decision table's (docs/gates)."""
    secondary: Many[str]
    headline_scalar_allowed: Literal[False]
    decision: str | None = None
    tie_margin: Number | None = None
    estimates: Estimates | None = None


class Controls(_Part):
    """What was held fixed."""

    runtime: str
    lockfile: str
    tool_allowlist: Many[str]
    test_command: str
    wall_clock_s: Number
    max_tool_calls: Count
    temperature: Number
    seed: Count
    human_intervention: Literal["none", "logged"]
    parallel_jobs: Count
    network: Literal["denied", "model_only"]
    retries: Count | None = None
    repeats: Count | None = None
    model: str | None = None
    stale_after_hours: Number | None = None


class Environment(_Part):
    """Where it ran."""

    os: str
    notes: str | None = None


class Exclusion(_Part):
    """A tool or task left out on purpose."""

    tool: str | None = None
    task: str | None = None
    reason: str


class Publishing(_Part):
    """What is published together with the rows."""

    negative_results: Literal["required"]
    confound_log: Literal["required"]
    excluded: Many[Exclusion] = ()
    upstreams: dict[str, str] = {}


class LeakAllowance(_Part):
    """A finding of the leak scan that a person has looked at."""

    match_sha256: Sha256
    reason: str


class ProtocolCard(_Part):
    """A complete protocol card."""

    schema_: Annotated[Literal["agent-eval-protocol/v1"], Field(alias="schema")]
    suite: Suite
    dataset_split: DatasetSplit
    metrics: Metrics
    controls: Controls
    environment: Environment
    publishing: Publishing
    triage_defaults: dict[str, Any] = {}
    """Fields of the task card, for every task of the pack."""
    leak_allow: Many[LeakAllowance] = ()
    attachments: dict[str, Any] | None = None
    """Your own members."""
