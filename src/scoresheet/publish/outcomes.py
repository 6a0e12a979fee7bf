"""Which attempt of every planned episode counts, and everything that is wrong with the rows. Pure.

Planned episodes are the denominators: what is missing, pending or was lost by our own failure is not a success.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from scoresheet.documents.prices import PriceTable
from scoresheet.documents.row import Row, episode_seed
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Finding
from scoresheet.publish.outcome import Episodes, Grid, Numbers, Outcome, State
from scoresheet.stats import bill

Kind = Literal["frozen test changed", "grading surface touched"]


@dataclass(frozen=True, slots=True)
class Touched:
    """Something that an agent did to what grades it."""

    task_id: str
    kind: Kind
    what: str
    attempts: tuple[tuple[int, int], ...]
    """(repeat, attempt) of each."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Every planned episode, in order of (task_id's bytes, repeat), and what the rows hold besides."""

    episodes: Episodes
    findings: tuple[Finding, ...]
    models: tuple[str, ...]
    unchecked_tools: tuple[str, ...]
    """Tools whose arguments could not be checked."""
    harness_errors: int
    """Attempts that were lost by our own failure, reruns included."""
    touched: tuple[Touched, ...] = ()
    """Of every attempt of every task, counted or not."""
    unpriced: tuple[str, ...] = ()
    """Models that answered and that the price table does not name."""
    untold: int = 0
    """Calls whose tokens nobody told."""
    model_misses: int = 0
    """Attempts that asked a replayed model what its recording does not hold."""
    ignored: tuple[tuple[str, int], ...] = ()
    """Tool and `ignore` rule → calls in which it took something out before matching."""

    def count(self, state: State) -> int:
        """Episodes in that state."""
        return sum(each == state for each in self.episodes.each("state"))

    @property
    def complete(self) -> bool:
        """True when every planned episode is scored."""
        return all(each == "scored" for each in self.episodes.each("state"))

    @property
    def exit_reasons(self) -> dict[str, int]:
        """Exit reason of the attempt that counts → episodes, the most frequent first."""
        counts = Counter(self.episodes.each("exit_reason"))
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, slots=True)
class _Attempt:
    number: int
    line: int
    outcome: Outcome


@dataclass(slots=True)
class Ledger:
    """Folds rows into outcomes: `add` each row in any order, then `close`."""

    plan: RunPlan
    prices: PriceTable | None = None
    """By which the tokens are priced; `None`: they are not."""
    name: str = "rows.jsonl"
    """Of the file that the rows are read from."""
    _grid: Grid = field(init=False)
    _episodes: Episodes = field(init=False)
    """Where an episode has one plain attempt, its outcome."""
    _lines: Numbers = field(init=False)
    """The line of that one; 0: there is none."""
    _others: dict[int, list[_Attempt]] = field(default_factory=dict)
    """Every other attempt, and those that scoresheet lost."""
    _findings: list[Finding] = field(default_factory=list)
    _models: set[str] = field(default_factory=set)
    _unchecked: set[str] = field(default_factory=set)
    _ignored: Counter[str] = field(default_factory=Counter)
    _harness_errors: int = 0
    _model_misses: int = 0
    _unpriced: set[str] = field(default_factory=set)
    _untold: int = 0
    _tokens: int = 0
    _cost: int = 0
    _touched: dict[tuple[str, Kind, str], set[tuple[int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._grid = Grid(self.plan)
        self._episodes, self._lines = Episodes(self._grid), Numbers(len(self._grid))

    def add(self, row: Row, line: int) -> None:
        """Take the row of one line, counted from 1."""
        where = self._where(line)
        if row.manifest_sha256 != self.plan.manifest_sha256:
            self._find("rows-pack", where, f"the row is of another pack ({row.manifest_sha256[:12]}…)")
            return
        at = self._grid.find(row.task_id, row.repeat)
        if at is None:
            self._find("rows-unplanned", where, f"{row.task_id} repeat {row.repeat} was not planned")
            return
        if row.episode_seed != episode_seed(self.plan.seed, row.task_id, row.repeat):
            self._find("rows-seed", where, f"{row.task_id} repeat {row.repeat} ran with another seed than the plan's")
        outcome = _outcome(row, self.prices)
        if self.prices is not None and row.model_calls is not None and outcome.cost != _told(row):
            self._find("rows-cost", where, f"cost {row.cost} does not follow from its tokens and prices.yaml")
        if self.prices is None and self.plan.prices_sha256 is None and row.cost is not None:
            self._find("rows-cost", where, f"cost {row.cost} is told, though the run had no price table")
        self._unpriced.update(name for name in _unpriced(row, self.prices))
        self._untold += row.model_untold or 0
        self._tokens += (row.tokens_in or 0) + (row.tokens_out or 0)
        self._cost += _told(row) or 0
        if row.success == 1 and not outcome.success:
            self._find("rows-contradiction", where, f"{row.task_id} can't succeed with exit_reason {row.exit_reason}")
        if row.attempt or outcome.state == "harness_error" or self._lines.get(at) or at in self._others:
            self._others.setdefault(at, []).append(_Attempt(row.attempt, line, outcome))
        else:
            self._episodes.put(at, outcome)
            self._lines.put(at, line)
        self._models.update(row.models)
        self._unchecked.update(row.schema_unchecked)
        self._ignored.update(row.ignored)
        self._harness_errors += row.exit_reason == "harness_error"
        self._model_misses += bool(row.model_unrecorded)
        for kind, what in _tampering(row):
            self._touched.setdefault((row.task_id, kind, what), set()).add((row.repeat, row.attempt))

    def bad_line(self, finding: Finding) -> None:
        """Take note of a line that is no row."""
        self._findings.append(finding)

    def close(self) -> Outcomes:
        """The outcomes of all that was added."""
        self._check_budget()
        for at in sorted(self._others):
            self._episodes.put(at, self._resolve(at))
        touched = tuple(Touched(*key, tuple(sorted(self._touched[key]))) for key in sorted(self._touched))
        return Outcomes(
            self._episodes, tuple(self._findings), tuple(sorted(self._models)), tuple(sorted(self._unchecked)),
            self._harness_errors, touched, tuple(sorted(self._unpriced)), self._untold, self._model_misses,
            tuple(sorted(self._ignored.items())),
        )  # fmt: skip

    def _check_budget(self) -> None:
        """What a run spent is at least what its rows add up to; of one that was killed, nobody has counted it yet."""
        budget = self.plan.budget
        if budget is None or self.plan.status == "running":
            return
        if budget.spent_tokens < self._tokens:
            what = f"{budget.spent_tokens} tokens spent, but the rows tell of {self._tokens}"
            self._find("rows-budget", "run.json#/budget/spent_tokens", what)
        if budget.spent_cost is not None and bill.parsed(budget.spent_cost) < self._cost:
            what = f"{budget.spent_cost} spent, but the rows tell of {bill.text(self._cost)}"
            self._find("rows-budget", "run.json#/budget/spent_cost", what)

    def _resolve(self, at: int) -> Outcome:
        """The attempt that counts: the last one that the retry budget allows."""
        first = self._lines.get(at)
        plain = [_Attempt(0, first, self._episodes.at(at))] if first else []
        attempts = sorted((*plain, *self._others[at]), key=lambda attempt: attempt.number)
        task_id, repeat = self._grid.name(at)
        name = f"{task_id} repeat {repeat}"
        numbers = [attempt.number for attempt in attempts]
        for before, after in pairwise(attempts):
            if before.number == after.number:
                self._find("rows-duplicate", self._where(after.line), f"{name} attempt {after.number} is there twice")
        absent = next((place for place, number in enumerate(sorted(set(numbers))) if number != place), None)
        if absent is not None:
            self._find("rows-gap", self._where(attempts[-1].line), f"{name} lacks attempt {absent}")
        # of an attempt that is there twice the worse one counts: a copy can't better a score
        by_number: dict[int, _Attempt] = {}
        for attempt in attempts:
            kept = by_number.get(attempt.number)
            if kept is None or attempt.outcome.success < kept.outcome.success:
                by_number[attempt.number] = attempt
        counted: _Attempt | None = None
        scored = 0
        for attempt in by_number.values():
            if counted is not None and counted.outcome.state != "harness_error":
                if counted.outcome.success or counted.outcome.state == "pending":
                    self._find("rows-attempts", self._where(attempt.line), f"{name} was tried again after it had ended")
                    break
                if scored > self.plan.retries:
                    what = f"{name} has more attempts than {self.plan.retries} retries allow"
                    self._find("rows-attempts", self._where(attempt.line), what)
                    break
            counted = attempt
            scored += attempt.outcome.state != "harness_error"
        assert counted is not None
        proved = all(attempt.outcome.proved for attempt in attempts)
        paid = [attempt.outcome for attempt in by_number.values() if attempt.outcome.state != "harness_error"]
        counts = [outcome.tokens for outcome in paid if outcome.tokens is not None]
        costs = [outcome.cost for outcome in paid if outcome.cost is not None]
        return counted.outcome._replace(
            attempts=len(by_number),
            proved=proved,
            tokens=sum(counts) if paid and len(counts) == len(paid) else None,
            cost=sum(costs) if paid and len(costs) == len(paid) else None,
            billed_us=sum(outcome.elapsed_us for outcome in paid),
        )

    def _where(self, line: int) -> str:
        return f"{self.name}:{line}"

    def _find(self, rule: str, where: str, what: str) -> None:
        self._findings.append(Finding(rule, where, what))


def _told(row: Row) -> int | None:
    return None if row.cost is None else bill.parsed(row.cost)


def _unpriced(row: Row, prices: PriceTable | None) -> tuple[str, ...]:
    return () if prices is None else bill.bill(row.model_usage, prices).unpriced


def _cost(row: Row, prices: PriceTable | None) -> int | None:
    """What a row's tokens cost; `None` when not all of it is known."""
    if prices is None or row.model_calls is None or row.model_untold:
        return None
    return bill.bill(row.model_usage, prices).whole


def _outcome(row: Row, prices: PriceTable | None) -> Outcome:
    state: State = "scored"
    if row.exit_reason == "harness_error":
        state = "harness_error"
    elif row.success is None:
        state = "pending"
    elapsed_us = round(row.elapsed_s * 1_000_000)
    ended_well = row.exit_reason == "completed" and not row.unauthorized and not row.timeout
    tokens = None if row.tokens_in is None and row.tokens_out is None else (row.tokens_in or 0) + (row.tokens_out or 0)
    return Outcome(
        task_id=row.task_id,
        repeat=row.repeat,
        state=state,
        success=int(row.success == 1 and ended_well),
        schema_ok=row.schema_ok if state != "harness_error" else 0,
        unauthorized=row.unauthorized,
        timeout=row.timeout,
        exit_reason=row.exit_reason,
        recorded_latency_us=round(row.recorded_latency_ms * 1000),
        attempts=1,
        elapsed_us=elapsed_us,
        billed_us=elapsed_us,
        cpu_us=round(row.cpu_s * 1_000_000),
        tool_calls=row.tool_calls,
        repeated_calls=row.repeated_calls,
        tokens=tokens,
        model_calls=row.model_calls,
        model_retries=row.model_retries or 0,
        model_door_retries=row.model_door_retries or 0,
        cost=_cost(row, prices),
        limit=row.limit,
        patch_lines=row.patch_lines,
        tests_identical=row.tests_identical,
        test_files_changed=row.test_files_changed,
        tests_added=len(row.tests_added),
        proved=row.isolation == "proved",
    )


def _tampering(row: Row) -> Iterator[tuple[Kind, str]]:
    for path in row.tests_changed:
        yield "frozen test changed", path
    if row.tests_identical == 0 and not row.tests_changed:
        yield "frozen test changed", "which one is not recorded"
    for what in row.grading_surface:
        yield "grading surface touched", what


def fold(plan: RunPlan, rows: Iterable[Row], prices: PriceTable | None = None) -> Outcomes:
    """The outcomes of the rows of a run, in the order of their lines."""
    ledger = Ledger(plan, prices)
    for line, row in enumerate(rows, 1):
        ledger.add(row, line)
    return ledger.close()
