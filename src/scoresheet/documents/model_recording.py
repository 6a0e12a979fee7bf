"""`recording.json`: a run's model calls, each episode's by its digest, to be answered again; its digest names it."""

from typing import Annotated, Literal

from pydantic import Field

from scoresheet import canonical
from scoresheet.documents.model import Many, Sha256, TaskId, ToolDocument

ModelKind = Literal["openai", "anthropic"]


class RecordedEpisode(ToolDocument):
    """The model calls of one repeat of one task."""

    rule = "recording"
    task_id: TaskId
    repeat: Annotated[int, Field(ge=0)]
    attempts: Many[Sha256]
    """Digest of the model.jsonl of each attempt that counts, in their order: those that our own errors ended do not."""
    folders: Many[str]
    """Where each lies below the run."""


class ModelRecording(ToolDocument):
    """`recording.json`."""

    rule = "recording"
    format: Literal["scoresheet-model-recording/1"] = "scoresheet-model-recording/1"
    manifest_sha256: Sha256
    """Of the pack whose tasks the agent was given."""
    kinds: Many[ModelKind]
    """Which models the agent could call."""
    endpoints: Many[str]
    """`host:port` from which the answers came."""
    calls: Annotated[int, Field(ge=0)]
    episodes: Many[RecordedEpisode]

    def text(self) -> bytes:
        """The file."""
        return canonical.pretty(self.model_dump(mode="json"))
