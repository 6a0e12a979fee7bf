"""Says after a run why episodes failed, most frequent reason first, and where to look at one of each."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from scoresheet.cli.app import say
from scoresheet.errors import counted

if TYPE_CHECKING:
    from scoresheet.documents.row import Row

_MOST_TOLD = 3


def say_failures(out: Path) -> None:
    """On stderr, of the attempts that the run in `out` holds. What agents wrote is made harmless to a terminal."""
    from scoresheet.gate.output import plain
    from scoresheet.run import journal

    first: dict[str, Path] = {}
    count: Counter[str] = Counter()
    for row in journal.read_rows(out / journal.ROWS):
        if row.success == 0:
            why = reason(row)
            count[why] += 1
            first.setdefault(why, out / "episodes" / row.task_id / f"{row.repeat}.{row.attempt}")
    for why, number in count.most_common(_MOST_TOLD):
        say(f"failed: {counted(number, 'attempt')}: {plain(why)} — {first[why]}")
    if len(count) > _MOST_TOLD:
        more = count.total() - sum(number for _, number in count.most_common(_MOST_TOLD))
        say(f"failed: {counted(more, 'more attempt')}, for {counted(len(count) - _MOST_TOLD, 'other reason')}")


def reason(row: "Row") -> str:
    """Why that attempt is no success, in one sentence."""
    if row.detail is not None:
        return row.detail
    if row.mismatches:
        missed = row.mismatches[0]
        return f"a call that is not recorded ({missed.kind}): {missed.method} {missed.path}"
    if row.exit_reason == "completed":
        return "its answer is not what is expected"
    return row.exit_reason if row.limit is None else f"{row.exit_reason}: {row.limit}"
