"""What a test command's end says of the work that it graded. Pure.

A verdict needs a report that can be believed: whatever else happened is a `Crash`, which decides nothing by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scoresheet.documents.task import Oracle
from scoresheet.documents.test_command import Command, command
from scoresheet.errors import Malformed
from scoresheet.run import junit

_NOTHING_COLLECTED = 5
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """The work is right or wrong, for that reason."""

    success: bool
    detail: str | None = None
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None


@dataclass(frozen=True, slots=True)
class Crash:
    """The tests said nothing."""

    detail: str


def of_pytest(oracle: Oracle, exit_code: int | None, report: bytes | None) -> Verdict | Crash:
    """The verdict of a run of pytest that ended by itself.

    Right is: exit 0, at least one case passed, none failed, and every expected one passed. Skipped and expectedly
    failed cases are no passes, and nothing collected is none either.
    """
    if exit_code == _NOTHING_COLLECTED:
        return Verdict(False, "no test was collected", 0, 0, 0)
    if exit_code not in (0, 1, 2):
        return Crash(f"the test command {_end(exit_code)}")
    if report is None:
        return Crash(f"the test command {_end(exit_code)} without a report")
    try:
        cases = junit.cases(report)
    except Malformed as error:
        return Crash(error.what)
    passed, failed, skipped = (sum(case.outcome == kind for case in cases) for kind in ("passed", "failed", "skipped"))
    counts = f"{passed} passed, {failed} failed, {skipped} skipped"
    missing = junit.missing(oracle.expected_ids, cases)
    if exit_code == 0 and passed and not failed and not missing:
        return Verdict(True, None, passed, failed, skipped)
    if failed:
        first = ", ".join(f"{case.classname}::{case.name}" for case in cases if case.outcome == "failed")
        detail = f"{counts}: {first[:200]}"
    elif not passed:
        detail = f"no test passed: {counts}"
    elif missing:
        detail = f"expected tests did not pass: {', '.join(missing[:_SHOWN])}" + (
            f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        )
    else:
        detail = f"{counts}, but the test command {_end(exit_code)}"
    return Verdict(False, detail, passed, failed, skipped)


def of_exit(exit_code: int | None) -> Verdict | Crash:
    """The verdict of any other command that ended by itself: its exit status."""
    if exit_code == 0:
        return Verdict(True)
    if exit_code is None or exit_code < 0 or exit_code in (126, 127):
        return Crash(f"the test command {_end(exit_code)}")
    return Verdict(False, f"the test command {_end(exit_code)}")


def paths_named(words: Sequence[str], paths: Sequence[bytes]) -> bool:
    """Whether one of the words is a file or folder among `paths`, or a test in one."""
    folders = set(paths) | {
        b"/".join(path.split(b"/")[:depth]) for path in paths for depth in range(1, path.count(b"/") + 1)
    }
    return any(
        not word.startswith("-") and word.partition("::")[0].rstrip("/").removeprefix("./").encode() in folders
        for word in words
    )


def _end(exit_code: int | None) -> str:
    if exit_code is None:
        return "was ended"
    return f"died of signal {-exit_code}" if exit_code < 0 else f"ended with exit {exit_code}"


__all__ = ["Command", "Crash", "Verdict", "command", "of_exit", "of_pytest", "paths_named"]
