"""Runs side by side, as `scoresheet compare --json` prints them. Pure.

Figures are decimal numbers of 4 places, the ends of intervals rounded outward. A tie is `equivalent` or `unresolved`,
and stands as one.
"""

from typing import Annotated, Literal

from pydantic import Field

from scoresheet.documents.decisions import Count, Ends, NoInterval, Positive, Share
from scoresheet.documents.manifest import Protocol
from scoresheet.documents.model import Many, Sha256, TaskId, ToolDocument, indented
from scoresheet.documents.report import NotDeclared

Verdict = Literal["better", "worse", "equivalent", "unresolved"]
Label = Annotated[str, Field(pattern=r"^([A-Z]|R[0-9]+)$")]


class ComparedRun(ToolDocument):
    """One of the runs."""

    rule = "comparison"
    label: Label
    """A, B… in the order of the command line."""
    name: str
    """Of the run's folder or file."""
    agent: str
    agent_sha256: Sha256
    seat: str | None
    host: str
    rows_sha256: Sha256
    draft: bool
    confounds: Count | None
    """Entries of its confound log; `null`: there is no log."""
    baseline: bool
    """True: a built-in agent of the pack's own check. It is shown, and never ranked."""
    successes: Count
    planned: Positive
    mean: Share
    """Of the primary metric, as are interval and ranks."""
    ci95: Ends | NoInterval
    interval_method: str
    best_rank: Positive | None
    """The best rank that the data allow; `null` for a baseline, and when there is nobody to rank against."""
    worst_rank: Positive | None


class ComparedPair(ToolDocument):
    """First run minus second, task by task."""

    rule = "comparison"
    first: Label
    second: Label
    difference: float
    ci95: Ends | None
    """What the verdict rests on: with three runs or more simultaneous, all pairs at once. `null` under 5 tasks."""
    interval_method: str
    verdict: Verdict
    tie: bool
    single_ci95: Ends | None
    """The interval of this pair alone."""
    single_method: str
    sign_flip_p: Share
    """Exact, of this pair alone: a cross-check that decides nothing."""
    sign_flip_exact: str
    """The same as a fraction."""
    holm_p: Share | None
    """Of the paired t test, adjusted for all pairs; `null` for two runs."""
    different: Count
    """Tasks (or clusters) with a difference."""
    clusters: Count
    mde: float | None
    """Smallest true gap that 80 % of such pairs would show, for this pair alone; `null` without an interval."""


class ComparedMetric(ToolDocument):
    """One rate of every run, and every pair."""

    rule = "comparison"
    metric: str
    higher_is_better: bool
    primary: bool
    """False: not adjusted for multiplicity, and nobody is ranked by it."""
    method: str
    means: Many[Share]
    """One a run, in their order."""
    pairs: Many[ComparedPair]


class CostRatio(ToolDocument):
    """First run over second."""

    rule = "comparison"
    ratio: float
    low: float | None
    high: float | None
    """`null` beside a low end: unbounded."""
    verdict: Literal["less", "more", "unresolved"]
    method: str


class ComparedTokens(ToolDocument):
    """What a pair cost: a ratio below 1 says that the first spent less."""

    rule = "comparison"
    first: Label
    second: Label
    geometric: CostRatio | None
    """Paired geometric mean of the tasks' tokens: the ratio to compare by."""
    why_no_geometric: str | None
    per_success: CostRatio | None
    """Of the whole bills, failures included; `null`: one of the two is undefined."""


class TokenAxis(ToolDocument):
    """Tokens; nothing here is part of success."""

    rule = "comparison"
    totals: Many[Count]
    """One a run, in their order."""
    per_success: Many[str]
    """Whole bill over successes, failures included, with its interval; one a run."""
    pairs: Many[ComparedTokens]


class RunMoney(ToolDocument):
    """What one run's tokens cost by the price table that it was given; amounts are decimal text."""

    rule = "comparison"
    run: Label
    currency: str | None
    prices_date: str | None
    prices_sha256: Sha256 | None
    """Of the price table; all three `null` without one."""
    total: str | None
    """Exact. `null` when not all of it is known: `why_not` says why."""
    per_success: str | None
    """Whole bill over successes, failures included, with its interval."""
    why_not: str | None


class ComparedMoney(ToolDocument):
    """What a pair cost in money: a ratio below 1 says that the first was cheaper."""

    rule = "comparison"
    first: Label
    second: Label
    geometric: CostRatio | None
    """Paired geometric mean of what the tasks cost: the ratio to compare by."""
    per_success: CostRatio | None
    """Of the whole bills, failures included; `null`: one of the two is undefined."""
    why_not: str | None
    """Why there is no `geometric`: a bill that is not whole, two price tables, a task that costs nothing."""


class MoneyAxis(ToolDocument):
    """Money; nothing here is part of success."""

    rule = "comparison"
    bills: Many[RunMoney]
    """One a run that may be ranked, in their order."""
    pairs: Many[ComparedMoney]


class ComparedTask(ToolDocument):
    """One task: so many of its repeats succeeded in each run."""

    rule = "comparison"
    task_id: TaskId
    successes: Many[Count]
    """One a run, in their order."""
    planned: Many[Positive]


class Comparison(ToolDocument):
    """`scoresheet-comparison/1`."""

    rule = "comparison"
    format: Literal["scoresheet-comparison/1"] = "scoresheet-comparison/1"
    comparable: Literal[True] = True
    draft: bool
    """True: a run is not admissible; `reasons` says why."""
    reading: str
    protocol: Protocol
    manifest_sha256: Sha256
    card_sha256: Sha256 | None
    timeout_s: float | int
    retries: Count
    seed: Count
    repeats: Positive
    live_network: str
    tasks: Positive
    tie_margin: float | NotDeclared
    runs: Many[ComparedRun]
    metrics: Many[ComparedMetric]
    """The primary one first."""
    tokens: TokenAxis | None
    why_no_tokens: str | None
    cost: MoneyAxis | None
    why_no_cost: str | None
    """Set when no run has a price table."""
    per_task: Many[ComparedTask]
    notes: Many[str]
    reasons: Many[str]
    """Unmet conditions of admissibility, each with its run."""

    def text(self) -> str:
        """The JSON document, members in their order, with a final newline."""
        return indented(self)


class FieldDifference(ToolDocument):
    """A field in which two runs are not the same."""

    rule = "comparison"
    field: str
    first: Label
    first_value: str
    second: Label
    second_value: str


class NotComparable(ToolDocument):
    """What `compare --json` prints instead of figures."""

    rule = "comparison"
    format: Literal["scoresheet-comparison/1"] = "scoresheet-comparison/1"
    comparable: Literal[False] = False
    differences: Many[FieldDifference]
    """Empty when the runs are alike and one is not admissible."""
    reasons: Many[str]

    def text(self) -> str:
        """The JSON document, members in their order, with a final newline."""
        return indented(self)
