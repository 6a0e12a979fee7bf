"""`baselines.json`: what the null and the oracle agent scored on one pack: written by `baseline`, read by `report`."""

from typing import Annotated, Literal

from pydantic import Field

from scoresheet import canonical
from scoresheet.documents.model import Many, Sha256, TaskId, ToolDocument


class Baseline(ToolDocument):
    """One built-in agent on every task, repeated."""

    rule = "baselines"
    agent: Literal["null", "oracle"]
    successes: Annotated[int, Field(ge=0)]
    episodes: Annotated[int, Field(ge=1)]
    """Planned, so that a lost episode is never a smaller denominator."""
    failing: Many[TaskId] = ()
    """Tasks that did not score what they must: 0 for null, 1 for oracle."""
    unjudged: Annotated[int, Field(ge=0)] = 0
    """Episodes of the oracle agent that only a human could judge: no success, and no failing task either."""
    rows_sha256: Sha256
    """Digest of the baseline run's rows.jsonl."""

    @property
    def mean(self) -> float:
        """Share of planned episodes that succeeded."""
        return self.successes / self.episodes

    @property
    def sound(self) -> bool:
        """True when every task scored what it must."""
        return not self.failing


class Baselines(ToolDocument):
    """Both baselines of one frozen pack."""

    rule = "baselines"
    format: Literal["scoresheet-baselines/1"] = "scoresheet-baselines/1"
    manifest_sha256: Sha256
    isolation: Literal["proved", "not_isolated", "not_proved"]
    null: Baseline
    oracle: Baseline
    ended_at: str

    @property
    def sound(self) -> bool:
        """True when null scored 0 and oracle 1 on every task: the pack itself can tell right from wrong."""
        return self.null.sound and self.oracle.sound

    def text(self) -> bytes:
        """The file, every member written out."""
        return canonical.pretty(self.model_dump(mode="json", by_alias=True))
