"""Task cards on disk: read, and judged by their rules."""

from dataclasses import dataclass
from pathlib import Path

from scoresheet.canonical import JsonValue
from scoresheet.digest import Digest
from scoresheet.documents.task_card import TaskCard
from scoresheet.errors import Finding, Malformed, Refused, Usage
from scoresheet.gate import reading
from scoresheet.gate.facts import CardFacts
from scoresheet.gate.reading import CardFile
from scoresheet.gate.rules import judge_task_card


@dataclass(frozen=True, slots=True)
class CheckedTaskCard:
    """The verdict on one task card: its form only. What it leads to is `gate.triage`'s."""

    path: str
    sha256: Digest | None
    value: JsonValue
    rules: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """No error, and rules ran."""
        return self.rules > 0 and not self.findings


def check(path: str | Path) -> CheckedTaskCard:
    """Every finding of the task card at `path`. Raises `Usage` when the file can't be read."""
    try:
        return check_file(reading.read(path))
    except Malformed as error:
        mend = error.mend or "correct the text there"
        return CheckedTaskCard(
            str(path), None, None, 1, (Finding("card-yaml", error.where or str(path), error.what, mend),)
        )


def check_file(file: CardFile) -> CheckedTaskCard:
    """`check` of a card that was read."""
    judged = judge_task_card(CardFacts(file.path, file.located))
    return CheckedTaskCard(file.path, file.sha256, file.located.value, judged.rules, judged.findings)


def read_task_card(path: str | Path) -> TaskCard:
    """The task card at `path`. Raises `Refused` with every finding, `Usage` when it can't be read or is none."""
    _refuse_others(path)
    checked = check(path)
    if not checked.ok:
        raise Refused("the task card is not valid", checked.findings, str(path))
    return TaskCard.from_value(checked.value, str(path))


def _refuse_others(path: str | Path) -> None:
    """Raises `Usage` for a card of the other kind, or a pack's task: of these every member would be unknown."""
    try:
        file = reading.read(path)
    except Malformed:
        return  # `check` says so
    value, folder = file.located.value, Path(path).parent
    if file.kind == "task":
        pack = folder.parent if folder.name == "tasks" else folder
        what = "this is a task of a pack, not a task card"
        raise Usage(what, str(path), f"scoresheet triage {pack} decides on each task of the pack, once it is frozen")
    if isinstance(value, dict) and value.keys() & reading.PROTOCOL:
        what = "this is a protocol card, not a task card"
        raise Usage(what, str(path), f"scoresheet triage {folder} decides on the tasks of the pack beside it")
