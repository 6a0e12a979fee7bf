"""What can be wrong, said so that a person can mend it: what, where, and the mend.

One base, and a kind only where a caller acts differently (the exit code). A rule that was broken is a `Finding`, a
value; `Refused` carries all of them at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

ISSUES = "https://github.com/scoresheet/scoresheet/issues"


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule and one place that it does not hold, or a warning."""

    rule: str
    """Stable id, such as `pack-symlink`; documented under that name."""
    where: str
    """Path, `path:line:column` or `path#/json/pointer`."""
    what: str
    mend: str = ""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return f"{self.where}: {self.what} [{self.rule}]"


def counted(number: int, noun: str) -> str:
    """`1 finding`, `2 findings`: how messages say how many."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class ScoresheetError(Exception):
    """Anything that scoresheet refuses or cannot do. `exit_code` is the command line's (docs/exit-codes)."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, where: str = "", mend: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.mend = what, where, mend

    def __str__(self) -> str:
        return f"{self.what} — {self.where}" if self.where else self.what

    def with_place(self, where: str) -> "ScoresheetError":
        """The same error, placed: `where` goes before a place that it already has."""
        self.where = f"{where}:{self.where}" if self.where else where
        return self


class Malformed(ScoresheetError):
    """A document that is not what its format says: the answer is no (exit 1)."""


class Refused(ScoresheetError):
    """Rules were broken; every finding is carried, not only the first (exit 1)."""

    def __init__(self, what: str, findings: Sequence[Finding], where: str = "", mend: str = "") -> None:
        super().__init__(what, where, mend)
        self.findings = tuple(findings)


class Usage(ScoresheetError):
    """The command was called wrongly, or a path can't be read (exit 2)."""

    exit_code = 2


class NotIsolated(ScoresheetError):
    """Isolation can't be had or was not proved (exit 3). `code` names why, such as `bwrap-missing`."""

    exit_code = 3

    def __init__(self, code: str, what: str, where: str = "", mend: str = "") -> None:
        super().__init__(f"{code}: {what}", where, mend)
        self.code = code


class Incomplete(ScoresheetError):
    """The run has episodes without a last attempt, or was interrupted earlier: it can be resumed (exit 4)."""

    exit_code = 4
