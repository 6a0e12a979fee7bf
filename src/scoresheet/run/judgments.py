"""The decisions of human judges: a chain of lines, and which decision stands for which row. Pure.

A decision stands until its own judge withdraws it. The first judge of a row is the one: a second decision never counts.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scoresheet import canonical, digest
from scoresheet.canonical import JsonValue
from scoresheet.documents.judgment import Judgment
from scoresheet.documents.receipt import GENESIS
from scoresheet.documents.row import Row
from scoresheet.errors import Finding, Refused

JUDGMENTS = "judgments.jsonl"
TASK_VIEW = "task.json"
"""In the folder of an episode that a human judges: the task as the agent was told it."""


@dataclass(frozen=True, slots=True)
class Judgments:
    """What a judgments file says."""

    standing: Mapping[str, Judgment] = field(default_factory=dict)
    """Digest of a row's line → the decision that stands for it, in order of their lines."""
    places: Mapping[str, str] = field(default_factory=dict)
    """The same digest → `judgments.jsonl:LINE`."""
    head: str = GENESIS
    """Digest of the last line."""
    lines: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def judges(self) -> tuple[str, ...]:
        """Who decided what stands."""
        return tuple(sorted({each.judge for each in self.standing.values()}))

    def last_of(self, judge: str) -> Judgment | None:
        """The latest decision of that judge that stands."""
        return next((each for each in reversed(list(self.standing.values())) if each.judge == judge), None)


@dataclass(frozen=True, slots=True)
class Material:
    """What a judge sees of one episode: nothing of the agent, nothing of the repeat."""

    prompt: str
    answer: JsonValue
    patch: bytes
    left_out: tuple[str, ...] = ()
    """What lay in the workspace and is in no patch."""

    @property
    def sha256(self) -> str:
        """The digest by which a decision names what was shown."""
        return shown_sha256(self.prompt, self.answer, digest.of(self.patch), self.left_out)


def shown_sha256(prompt: str, answer: JsonValue, patch_sha256: str | None, left_out: Iterable[str]) -> str:
    """The digest by which a decision names what was shown; a patch that is not there is an empty one."""
    patch = patch_sha256 or digest.of(b"")
    return digest.of(canonical.jcs({"answer": answer, "left_out": list(left_out), "patch": patch, "prompt": prompt}))


@dataclass(frozen=True, slots=True)
class Pending:
    """A row that waits for a judge."""

    row: Row
    sha256: str
    """Of its line."""


def read(data: bytes) -> Judgments:
    """What the bytes of a judgments file say; every line that breaks the chain, or decides again, is named."""
    standing: dict[str, Judgment] = {}
    places: dict[str, str] = {}
    findings: list[Finding] = []
    head, count = GENESIS, 0
    *lines, torn = data.split(b"\n")
    for number, body in enumerate(lines, 1):
        where = f"{JUDGMENTS}:{number}"
        before, head, count = head, hashlib.sha256(body).hexdigest(), number
        try:
            judgment = Judgment.from_bytes(body, where)
        except Refused as error:
            findings += error.findings
            continue
        if judgment.previous != before:
            what = "the line does not follow from the one before: lines were changed, moved or left out"
            findings.append(Finding("judgments-chain", where, what, "restore the file; judgments can't be edited"))
        there = standing.get(judgment.row_sha256)
        name = f"{judgment.task_id} repeat {judgment.repeat}"
        if judgment.verdict == "withdrawn":
            if there is None or there.judge != judgment.judge:
                what = f"{judgment.judge} withdraws a decision on {name} that is not theirs"
                findings.append(Finding("judgments-withdrawn", where, what))
                continue
            del standing[judgment.row_sha256]
        elif there is not None:
            what = f"{name} was judged by {there.judge} already, whose decision counts; {judgment.judge} decided again"
            findings.append(Finding("judgments-second", where, what))
        else:
            standing[judgment.row_sha256] = judgment
            places[judgment.row_sha256] = where
    if torn:
        what = f"the last line was never finished ({len(torn)} bytes)"
        findings.append(Finding("judgments-torn", f"{JUDGMENTS}:{count + 1}", what, "scoresheet judge RUN cuts it off"))
    return Judgments(standing, places, head, count, tuple(findings))


def line(judgment: Judgment) -> bytes:
    """The line of a judgment, with its newline."""
    return canonical.line(judgment.model_dump(mode="json"))


def order(pending: Iterable[Pending], seed: int) -> tuple[Pending, ...]:
    """What is to be judged, shuffled by the run's seed: neither task by task nor repeat by repeat."""

    def place(each: Pending) -> bytes:
        row = each.row
        return hashlib.sha256(f"judge:{seed}:{row.task_id}:{row.repeat}:{row.attempt}".encode()).digest()

    return tuple(sorted(pending, key=place))
