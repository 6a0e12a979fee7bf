"""The attempts of a run as the list of episodes shows them, in 64 bytes each: there may be very many. Pure."""

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import get_args

from scoresheet.documents.row import ExitReason, Row
from scoresheet.publish.page.model import FATES, Fate


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt as the list of episodes shows it; the rest of it is read when it is asked for."""

    task_id: str
    repeat: int
    attempt: int
    fate: Fate
    exit_reason: str
    tool_calls: int
    misses: int
    offset: int
    """Of its line in rows.jsonl, and the line's length."""
    length: int
    of: int = 1
    """Attempts that there are at its repeat."""


class Attempts:
    """Every attempt, in order of the task ids' bytes, then repeat and attempt; each is made as it is read."""

    __slots__ = ("_count", "_of_task")

    def __init__(self) -> None:
        self._count = 0
        self._of_task: dict[str, array[int]] = {}

    def add(self, row: Row, fate: Fate, offset: int, length: int) -> None:
        """Take the row of an attempt."""
        numbers = self._of_task.setdefault(row.task_id, array("Q"))
        numbers.extend((row.repeat, row.attempt, _FATES.index(fate), _REASONS.index(row.exit_reason)))
        numbers.extend((row.tool_calls, len(row.mismatches), offset, length))
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Attempt]:
        return chain.from_iterable(self.tasks())

    def tasks(self) -> Iterator[tuple[Attempt, ...]]:
        """The attempts of one task after another."""
        for task_id in sorted(self._of_task, key=str.encode):
            numbers = self._of_task[task_id].tolist()
            each = sorted(zip(*(numbers[place::_EACH] for place in range(_EACH)), strict=True))
            tries = Counter(repeat for repeat, *_ in each)
            yield tuple(
                Attempt(task_id, repeat, attempt, _FATES[fate], _REASONS[why], calls, misses, at, size, tries[repeat])
                for repeat, attempt, fate, why, calls, misses, at, size in each
            )


_FATES = tuple(FATES)
_REASONS: tuple[str, ...] = get_args(ExitReason)
_EACH = 8
"""Numbers that are kept of an attempt."""
