"""One planned episode as it counts, and all of a run's in some thirty bytes each: there may be very many. Pure."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Literal, NamedTuple, overload

from scoresheet.documents.run_plan import RunPlan

State = Literal["scored", "pending", "harness_error", "missing"]


class Outcome(NamedTuple):
    """One episode as it counts."""

    task_id: str
    repeat: int
    state: State = "missing"
    success: int = 0
    schema_ok: int = 0
    unauthorized: int = 0
    timeout: int = 0
    exit_reason: str = "missing"
    attempts: int = 0
    recorded_latency_us: int = 0
    elapsed_us: int = 0
    cpu_us: int = 0
    tool_calls: int = 0
    repeated_calls: int = 0
    tokens: int | None = None
    """Of every attempt that the agent is answerable for, as are the bill's microseconds and what the tokens cost."""
    model_calls: int | None = None
    model_retries: int = 0
    model_door_retries: int = 0
    cost: int | None = None
    """In `bill.UNIT`; `None` when not all of it is known."""
    billed_us: int = 0
    limit: str | None = None
    """The limit that ended it."""
    patch_lines: int | None = None
    tests_identical: int | None = None
    test_files_changed: int | None = None
    tests_added: int = 0
    proved: bool = False
    """True when isolation was proved in every attempt of this episode."""


Field = Literal[
    "state", "success", "schema_ok", "unauthorized", "timeout", "exit_reason", "recorded_latency_us", "elapsed_us",
    "tool_calls", "repeated_calls", "tokens", "model_calls", "model_retries", "model_door_retries", "cost", "billed_us",
    "limit", "patch_lines", "tests_identical", "test_files_changed", "tests_added", "proved",
]  # fmt: skip
_PLACES = {name: place for place, name in enumerate(Outcome._fields[2:])}


class Grid:
    """The planned episodes as numbers from 0: task by task in order of the ids' bytes, repeat by repeat."""

    __slots__ = ("_numbers", "repeats", "task_ids")

    def __init__(self, plan: RunPlan) -> None:
        self.task_ids = tuple(sorted({task.task_id for task in plan.tasks}, key=str.encode))
        self.repeats = plan.repeats
        self._numbers = {task_id: number for number, task_id in enumerate(self.task_ids)}

    def __len__(self) -> int:
        return len(self.task_ids) * self.repeats

    def find(self, task_id: str, repeat: int) -> int | None:
        """Which one it is; `None` when it was not planned."""
        number = self._numbers.get(task_id)
        return None if number is None or not 0 <= repeat < self.repeats else number * self.repeats + repeat

    def name(self, at: int) -> tuple[str, int]:
        """Task and repeat."""
        number, repeat = divmod(at, self.repeats)
        return self.task_ids[number], repeat


class Numbers:
    """Whole numbers from 0, or `None`, one a planned episode: in as few bytes as the largest needs; none while all
    are the default, 0 or `None`."""

    __slots__ = ("_length", "_shift", "_values")

    def __init__(self, length: int, default: int | None = 0) -> None:
        self._length = length
        self._shift = int(default is None)  # `None` is kept as 0, and so 0 as 1
        self._values: array[int] | list[int] | None = None

    @property
    def width(self) -> int:
        """Bytes that one of them takes; 8 also where a value is larger, and then they take more."""
        return self._values.itemsize if isinstance(self._values, array) else 8 if self._values else 0

    def put(self, at: int, value: int | None) -> None:
        """Keep a value."""
        code = 0 if value is None else value + self._shift
        if self._values is None:
            if not code:
                return
            self._values = array("B", bytes(self._length))
        try:
            self._values[at] = code
        except OverflowError:
            self._values = _wider(self._values)
            self.put(at, value)

    def get(self, at: int) -> int | None:
        """The value of one."""
        code = 0 if self._values is None else self._values[at]
        return code if not self._shift else code - 1 if code else None

    def read(self, start: int, stop: int) -> Iterable[int | None]:
        """The values of some."""
        if self._values is None:
            return repeat(None if self._shift else 0, stop - start)
        some = self._values[start:stop]
        return (code - 1 if code else None for code in some) if self._shift else some


def _wider(values: "array[int] | list[int]") -> "array[int] | list[int]":
    assert isinstance(values, array)
    wider = "BIQ".partition(values.typecode)[2][:1]
    return array(wider, values) if wider else list(values)


class _Words:
    """Values of which few are different, one a planned episode."""

    __slots__ = ("_codes", "_numbers", "_words")

    def __init__(self, length: int, default: object) -> None:
        self._codes: dict[object, int] = {default: 0}
        self._words: list[object] = [default]
        self._numbers = Numbers(length)

    def put(self, at: int, value: object) -> None:
        code = self._codes.setdefault(value, len(self._words))
        if code == len(self._words):
            self._words.append(value)
        self._numbers.put(at, code)

    def read(self, start: int, stop: int) -> Iterable[object]:
        words = self._words
        return [words[code or 0] for code in self._numbers.read(start, stop)]


_FEW = frozenset({"state", "exit_reason", "limit", "proved"})


def _column(name: str, length: int) -> Numbers | _Words:
    default: Any = Outcome._field_defaults[name]
    return _Words(length, default) if name in _FEW else Numbers(length, default)


class Episodes(Sequence[Outcome]):
    """The outcomes of a run, or of some of its tasks, in order of (task_id's bytes, repeat); each is made as it is
    read. `put` is for whoever makes them."""

    __slots__ = ("_columns", "_tasks", "grid")

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._tasks: Sequence[int] = range(len(grid.task_ids))
        self._columns = [_column(name, len(grid)) for name in Outcome._fields[2:]]

    def put(self, at: int, outcome: Outcome) -> None:
        """Keep the outcome of the episode `at` in the grid; what nobody put is missing."""
        for column, value in zip(self._columns, outcome[2:], strict=True):
            column.put(at, value)  # type: ignore[arg-type]  # the types of columns and of fields follow one list

    def at(self, at: int) -> Outcome:
        """The outcome of one planned episode by its number in the grid."""
        number, repeat = divmod(at, self.grid.repeats)
        return self._block(number, repeat, repeat + 1)[0]

    def find(self, task_id: str, repeat: int) -> Outcome | None:
        """The outcome of one repeat of a task; `None` when it was not planned."""
        at = self.grid.find(task_id, repeat)
        return None if at is None else self.at(at)

    def of(self, task_ids: Iterable[str]) -> "Episodes":
        """Those of some tasks; a view, not a copy."""
        wanted = set(task_ids)
        return self._some([number for number in self._tasks if self.grid.task_ids[number] in wanted])

    def each(self, field: Field) -> Iterator[Any]:
        """One field of every outcome, without making the rest of it."""
        column, repeats = self._columns[_PLACES[field]], self.grid.repeats
        return chain.from_iterable(column.read(number * repeats, (number + 1) * repeats) for number in self._tasks)

    def tasks(self) -> Iterator[tuple[str, "Episodes"]]:
        """Task by task: its id and the outcomes of its repeats."""
        for number in self._tasks:
            yield self.grid.task_ids[number], self._some((number,))

    def __len__(self) -> int:
        return len(self._tasks) * self.grid.repeats

    def __iter__(self) -> Iterator[Outcome]:
        for number in self._tasks:
            yield from self._block(number, 0, self.grid.repeats)

    @overload
    def __getitem__(self, index: int) -> Outcome: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Outcome, ...]: ...
    def __getitem__(self, index: int | slice) -> Outcome | tuple[Outcome, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(len(self))[index])
        number, repeat = divmod(range(len(self))[index], self.grid.repeats)
        return self._block(self._tasks[number], repeat, repeat + 1)[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Episodes) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def _some(self, tasks: Sequence[int]) -> "Episodes":
        found = object.__new__(Episodes)
        found.grid, found._tasks, found._columns = self.grid, tasks, self._columns
        return found

    def _block(self, number: int, first: int, stop: int) -> list[Outcome]:
        """Some repeats of one task."""
        start = number * self.grid.repeats
        columns = (column.read(start + first, start + stop) for column in self._columns)
        return [
            *map(Outcome._make, zip(repeat(self.grid.task_ids[number]), range(first, stop), *columns, strict=False))
        ]
