"""The manifest that `freeze` writes; its own sha256 names the pack in every report."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scoresheet import canonical
from scoresheet.documents.model import Document, Many, Seconds, Sha256

DEFAULT_TIMEOUT_S = 30
DEFAULT_RETRIES = 0
DEFAULT_SEED = 20260922
DEFAULT_REPEATS = 5

Protocol = Literal["tool-replay-v1", "tool-replay-v2"]


class FrozenFile(Document):
    """A frozen file that is no task."""

    rule = "manifest"
    exec: bool
    sha256: Sha256
    size: Annotated[int, Field(ge=0)]


class Exclusion(Document):
    """A tool or task that is left out of the pack on purpose, and why. The report prints it."""

    rule = "manifest"
    tool: str | None = None
    task: str | None = None
    reason: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _one_subject(self) -> "Exclusion":
        if (self.tool is None) == (self.task is None):
            raise ValueError("an exclusion names either a tool or a task")
        return self

    def __str__(self) -> str:
        return f"{self.tool or self.task} ({self.reason})"


class Manifest(Document):
    """`manifest.json` of either protocol. v1 has only `protocol, retries, seed, tasks, timeout_s`."""

    rule = "manifest"
    protocol: Protocol
    retries: Annotated[int, Field(ge=0)] = DEFAULT_RETRIES
    seed: Annotated[int, Field(ge=0)] = DEFAULT_SEED
    tasks: dict[str, Sha256]
    """v1: file name → sha256 of the top-level task files. v2: path → sha256."""
    timeout_s: Seconds | int = DEFAULT_TIMEOUT_S
    repeats: Annotated[int, Field(ge=1)] | None = None
    on_mismatch: Literal["stop", "continue"] = "stop"
    on_exhausted: Literal["last", "refuse"] = "last"
    excluded: Many[Exclusion] = ()
    upstreams: dict[str, str] = {}
    """Name → the host that was recorded, with its port where that is not the usual one, and with the path that stood
    before every recorded one: `api.example.com/v1`."""
    files: dict[str, FrozenFile] = {}
    """v2: every other frozen file."""

    def text(self) -> bytes:
        """The manifest byte for byte (vectors/manifest_v1.json)."""
        return canonical.pretty(self.as_json())
