"""Where the rows of a run stand in rows.jsonl, in few bytes each: there may be very many. Pure."""

import re
from array import array
from dataclasses import dataclass, field

from scoresheet.documents.row import Row
from scoresheet.publish.outcome import Grid, Numbers

_FIRST = re.compile(r"episodes/([^/]+)/(0|[1-9][0-9]{0,17})\.0", re.ASCII)


@dataclass(slots=True)
class RowPlaces:
    """Entries, counted from 0 in the order of the rows."""

    grid: Grid
    first: Numbers = field(init=False)
    """Planned episode → which entry of the arrays is that of its first attempt, from 1; 0: none."""
    others: dict[str, int] = field(default_factory=dict)
    """Folder of any other attempt → its entry, from 1."""
    numbers: "array[int]" = field(default_factory=lambda: array("L"))
    offsets: "array[int]" = field(default_factory=lambda: array("Q"))
    sizes: "array[int]" = field(default_factory=lambda: array("L"))
    seen: bytearray = field(default_factory=bytearray)
    """1: the row was held against what lies in its folder."""

    def __post_init__(self) -> None:
        self.first = Numbers(len(self.grid))

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, row: Row, number: int, offset: int, size: int) -> None:
        """Take the place of a row; of two with one folder the first counts."""
        entry = len(self.numbers) + 1
        at = None if row.attempt else self.grid.find(row.task_id, row.repeat)
        if at is None:
            if self.others.setdefault(folder_of(row), entry) != entry:
                return
        elif self.first.get(at):
            return
        else:
            self.first.put(at, entry)
        self.numbers.append(number)
        self.offsets.append(offset)
        self.sizes.append(size)
        self.seen.append(0)

    def find(self, folder: str) -> int | None:
        """The entry of the row whose files lie in `folder`; `None` when no row says so."""
        entry = self.others.get(folder)
        if entry is None and (match := _FIRST.fullmatch(folder)):
            at = self.grid.find(match[1], int(match[2]))
            entry = None if at is None else self.first.get(at)
        return entry - 1 if entry else None


def folder_of(row: Row) -> str:
    """Where the files of the attempt lie, below the run."""
    return f"episodes/{row.task_id}/{row.repeat}.{row.attempt}"
