"""`run.json`: what a run set out to do, on which host, with which agent; written before the first episode.

The report's denominators come from here (the planned episodes), never from what survived. Pure.
"""

from typing import Annotated, Literal

from pydantic import Field

from scoresheet import canonical
from scoresheet.documents.manifest import Exclusion, Protocol
from scoresheet.documents.model import Many, Seconds, Sha256, TaskId, ToolDocument
from scoresheet.documents.model_recording import ModelKind

Status = Literal["running", "finished", "interrupted", "incomplete", "aborted"]
Isolation = Literal["bwrap", "none"]
Amount = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,17})(\.[0-9]{1,12})?$")]
"""Decimal text, exact."""


class PlannedTask(ToolDocument):
    """A task of the run, with what the statistics need of it."""

    rule = "run"
    task_id: TaskId
    cluster_id: str | None = None
    """Tasks of one cluster are resampled together; `null`: the task is a cluster of its own."""
    split: str | None = None
    """As the card says (`holdout` or `train_like`), else as the task does."""


class QuotedManifest(ToolDocument):
    """The values of the manifest that the report prints beside its digest."""

    rule = "run"
    protocol: Protocol
    timeout_s: Seconds | int
    retries: Annotated[int, Field(ge=0)]
    seed: Annotated[int, Field(ge=0)]
    repeats: int | None = None
    """`null`: the manifest declares none (v1 can't)."""
    on_mismatch: Literal["stop", "continue"] = "stop"
    on_exhausted: Literal["last", "refuse"] = "last"
    excluded: Many[Exclusion] = ()
    upstreams: dict[str, str] = {}
    """Name → the host that was recorded, and that was not called."""


class RunLimits(ToolDocument):
    """Bounds of every episode; a task may only lower them."""

    rule = "run"
    wall_clock_s: Seconds | int
    max_tool_calls: int | None = None
    memory_bytes: int | None = None
    pids: int = 256
    output_bytes: int = 8 << 20
    work_bytes: int = 1 << 30


class AgentIdentity(ToolDocument):
    """Which agent ran, without host paths."""

    rule = "run"
    kind: Literal["command", "python", "ready", "null", "oracle"]
    spec: str
    """As given to `--agent`, with directories of the host left out."""
    sha256: Sha256
    """Digest of the agent's own files and of the programs that run them; the same files elsewhere give the same."""
    interpreter: str | None = None
    """Name, version and sha256 of the binary that runs the agent, when it is not the agent itself."""


class Host(ToolDocument):
    """Where the run took place; in no figure's digest."""

    rule = "run"
    label: str
    system: str
    """Kernel name, release and machine."""
    python: str
    cores: int
    os: str | None = None
    """The distribution, such as `Debian GNU/Linux 12 (bookworm)`."""
    memory_bytes: int | None = None


class ReplayedModel(ToolDocument):
    """Where a model's answers came from that were not asked for anew."""

    rule = "run"
    recording_sha256: Sha256
    """Digest of the recording: it names every call of every episode."""
    run: str
    """Name of the run directory in which it lies."""
    endpoints: Many[str] = ()
    """`host:port` from which the answers came when they were recorded; nothing was sent there now."""


class RunBudget(ToolDocument):
    """What the run's model calls may spend, and what they spent: lost and interrupted episodes included."""

    rule = "run"
    max_tokens_total: Annotated[int, Field(ge=1)] | None = None
    """In and out together; `null`: no limit."""
    max_cost: Amount | None = None
    """Decimal text, in the currency of the run's price table; `null`: no limit."""
    currency: str | None = None
    spent_tokens: Annotated[int, Field(ge=0)] = 0
    spent_cost: Amount | None = None
    """Decimal text, exact; `null` without a price table, or when a model has no price."""
    stopped: str | None = None
    """Why the run stopped before its end; `null`: it did not, for this reason."""


class RunPlan(ToolDocument):
    """`run.json`."""

    rule = "run"
    format: Literal["scoresheet-run/1"] = "scoresheet-run/1"
    pack: str
    """Name of the pack's folder; the digest is what names the pack."""
    manifest_sha256: Sha256
    manifest: QuotedManifest
    tasks: Many[PlannedTask]
    pack_tasks: int | None = None
    """Tasks of the whole pack: more than `tasks` when only some were chosen."""
    repeats: Annotated[int, Field(ge=1)]
    repeats_from: Literal["manifest", "card", "option", "default"]
    """Who said how many repeats: `default` is printed as `not declared`."""
    retries: Annotated[int, Field(ge=0)]
    seed: Annotated[int, Field(ge=0)]
    limits: RunLimits
    jobs: Annotated[int, Field(ge=1)]
    isolation: Isolation
    """What was asked; what was proved is in each row and its evidence."""
    interval: Literal["cluster", "rows-v1"] = "cluster"
    agent: AgentIdentity
    seat: str | None
    versions: dict[str, str]
    """Component → version: scoresheet and what enforces the isolation."""
    host: Host
    started_at: str
    """RFC 3339, UTC."""
    resumed_at: Many[str] = ()
    """One entry for every `--resume`."""
    ended_at: str | None = None
    pack_verified: bool = False
    """True when every file of the pack was compared with its manifest before the first episode."""
    card_sha256: Sha256 | None = None
    """Digest of the protocol card as it lay beside the pack; `null`: there was none."""
    pack_record_sha256: Sha256 | None = None
    """Digest of pack.json: what triage saw of the pack; `null`: the pack was not triaged."""
    receipts_sha256: Sha256 | None = None
    """Digest of the last receipt of this run, written before its first episode; `null`: there are none."""
    receipts_count: int = 0
    not_started: Many[TaskId] = ()
    """Tasks whose leaf is not score: planned, and never begun."""
    lockfile_sha256: Sha256 | None = None
    """Of the card's `controls.lockfile`, where a file of that name was found; a card may name its digest instead."""
    model_endpoints: Many[str] = ()
    """`host:port` of every model endpoint that the episodes could reach through the model door."""
    model_kinds: Many[ModelKind] = ()
    """Which models' doors the episodes had, to an endpoint or to a recording."""
    model_replayed: ReplayedModel | None = None
    """The recording that answered in the model's place; `null`: there was no model, or it answered itself."""
    model_recording_sha256: Sha256 | None = None
    """Digest of recording.json, with which the run's own model calls were sealed at its end."""
    budget: RunBudget | None = None
    """`null`: no model could be called."""
    prices_sha256: Sha256 | None = None
    """Digest of prices.yaml, by which tokens are priced; `null`: no price table was given."""
    status: Status = "running"
    draft: Many[str] = ()
    """Why the report of this run can only be a draft."""

    @property
    def planned(self) -> int:
        """Episodes: tasks × repeats. The denominator of every rate."""
        return len(self.tasks) * self.repeats

    def text(self) -> bytes:
        """The file, every member written out."""
        return canonical.pretty(self.model_dump(mode="json", by_alias=True))
