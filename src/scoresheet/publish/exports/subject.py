"""What is exported: a run that was admitted, its report, and its attempts one after another. Pure."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.protocol_card import ProtocolCard
from scoresheet.documents.report import Report
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.publish import block


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, with what people decided of it."""

    row: Row
    counted: bool
    """True when it enters the figures: the last attempt at a repeat of a task that counts."""
    oracle_kind: str | None = None
    """What judged it, as its task's receipt says."""
    calls: tuple[CallRecord, ...] = ()
    """What the door saw; empty for formats that do not show it."""
    prompt: str | None = None
    """`None` when the pack is not at hand, or may not travel."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a format asks for and no run knows: the submitter's word."""

    organization: str | None = None
    """Who publishes the result."""
    relationship: str = "other"
    """Of that organization to the model's maker."""
    model: str | None = None
    """`DEVELOPER/NAME` under which the result is filed."""
    dataset: str | None = None
    """`OWNER/NAME` of the suite on the Hugging Face Hub."""
    task: str | None = None
    """Id of the task in that dataset's eval.yaml."""
    source: str | None = None
    """Address where the bundle or its logs can be had."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An admissible run."""

    plan: RunPlan
    report: Report
    card: ProtocolCard
    names: Names
    attempts: Callable[[], Iterator[Attempt]]
    """Every attempt, in order of (task_id's bytes, repeat, attempt); may be asked for again."""

    @property
    def counted(self) -> Iterator[Attempt]:
        """The attempts that enter the figures, one a planned episode."""
        return (attempt for attempt in self.attempts() if attempt.counted)

    @property
    def ended_at(self) -> str:
        """RFC 3339, UTC."""
        return self.plan.ended_at or self.plan.started_at


@dataclass(frozen=True, slots=True)
class Member:
    """One file of an export; its path is below the folder (or in the archive) that holds it."""

    path: str
    chunks: Iterator[bytes]
    """To be read to its end before the next member is asked for."""


def sheet(report: Report) -> tuple[tuple[str, str], ...]:
    """The protocol sheet: what stands in the report, confounds first, one (key, value) a line."""
    lines = [("confounds", "no log" if report.confounds is None else str(report.confounds))]
    if report.attended:
        lines.append(("attended", "true"))
    lines += [("confound", each) for each in report.confound_entries]
    return tuple((key, block.one_line(value)) for key, value in (*lines, *block.entries(report)))


def sheet_members(report: Report) -> dict[str, str]:
    """The same as the members of an object; lines of one key are joined."""
    members: dict[str, str] = {}
    for key, value in sheet(report):
        members[key] = f"{members[key]} | {value}" if key in members else value
    return members


def json_text(value: JsonValue, *, ascii_only: bool = False) -> str:
    """A value on one line, members in their own order; sorted when an integer has more digits than Python writes."""
    try:
        return json.dumps(value, ensure_ascii=ascii_only)
    except ValueError:
        return canonical.jcs(value).decode()
