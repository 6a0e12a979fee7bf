"""The members of a report that answer the decision table, and its negative results. Pure.

Shares and their intervals are decimal numbers of 4 places, the ends rounded outward. A figure that a run can't give is
`null`, and the member beside it says why.
"""

from typing import Annotated, Literal

from pydantic import Field

from scoresheet.documents.model import Many, Sha256, TaskId, ToolDocument

Share = Annotated[float, Field(ge=0, le=1)]
Ends = Annotated[tuple[float, float], Field(strict=False)]
NoInterval = Annotated[str, Field(pattern=r"^none \([0-9]+ (tasks|clusters)\)$")]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


class NamedFigure(ToolDocument):
    """A figure that the card asks for."""

    rule = "report"
    name: str
    """As the card names it."""
    text: str
    """Its value, or `not computed: ` and why."""


class ShareOfRuns(ToolDocument):
    """So many of the planned episodes, and the mean of the task means."""

    rule = "report"
    count: Count
    planned: Positive
    share: Share
    ci95: Ends | NoInterval
    interval_method: str


class PatchSizes(ToolDocument):
    """Changed lines of patches, added and removed."""

    rule = "report"
    patches: Positive
    """Episodes with a workspace; each task's own numbers are in `per_task`."""
    median: float
    median_of_passing: float | None
    """`null`: nothing passed."""
    most: Count
    mean: float


class LandAFix(ToolDocument):
    """Can the agent land a fix at all?"""

    rule = "report"
    pass_at_1: ShareOfRuns | None
    """Of the holdout tasks that frozen tests judge."""
    why_not: str | None
    tasks: Count
    """Tasks that frozen tests judge."""
    patch_lines: PatchSizes | None
    why_no_patch_lines: str | None


class PerSuccess(ToolDocument):
    """Whole bill over successes, failures included; never the mean of what passed."""

    rule = "report"
    total: Count | float
    successes: Count
    per_success: float | None
    """`null`: undefined, nothing passed."""
    low: float | None
    high: float | None
    """`null` beside a low end: unbounded."""
    text: str


class CheaperThanHuman(ToolDocument):
    """Is it cheaper than a human here?"""

    rule = "report"
    tokens: PerSuccess | None
    why_no_tokens: str | None
    wall_clock_s: PerSuccess | None
    """Of this host; in no digest."""
    why_no_wall_clock: str | None
    human_minutes_per_task_estimate: float | None
    """An estimate from the card: nobody measured it."""
    why_no_estimate: str | None


class LeavesTestsAlone(ToolDocument):
    """Does it stop touching tests?"""

    rule = "report"
    byte_identical: ShareOfRuns | None
    """Episodes that left every frozen test that the agent saw as it was."""
    test_file_diffs: Count | None
    """Frozen test files changed or removed, over all episodes."""
    test_files_added: Count
    """Test files of the agent's own: its right."""
    why_not: str | None


class UnderBudget(ToolDocument):
    """Does it finish under the budget?"""

    rule = "report"
    finished: ShareOfRuns
    """Episodes whose agent ended by itself, right or wrong, before the wall clock and every other limit."""
    timeout: Count
    tool_cap: Count
    model_error: Count
    other: dict[str, int]
    """Every other reason for which an episode did not finish."""


class Replayable(ToolDocument):
    """Can another team replay it?"""

    rule = "report"
    validator_exit_code: Literal[0, 1]
    """Of `scoresheet check` on the card; 1 also when there is none."""
    git_sha: str | None
    fixture_hash: str | None
    why_not: str | None


class OfK(ToolDocument):
    """k attempts at a task, drawn without replacement from its repeats; the mean over tasks."""

    rule = "report"
    k: Positive
    pass_at_k: Share
    """At least one of k passes."""
    pass_hat_k: Share
    """All k pass."""


class PassK(ToolDocument):
    """pass@k and pass^k for every k up to the repeats."""

    rule = "report"
    of: Many[OfK]
    """Empty when they were not computed."""
    identical: bool
    """True when the repeats of every task ended alike: then k makes no difference."""
    why_not: str | None


class Decisions(ToolDocument):
    """The decision table, row by row; its figures are never averaged with each other."""

    rule = "report"
    land_a_fix: LandAFix
    cheaper_than_human: CheaperThanHuman
    leaves_tests_alone: LeavesTestsAlone
    under_budget: UnderBudget
    replayable: Replayable


class Tampering(ToolDocument):
    """Something that an agent did to what grades it."""

    rule = "report"
    task_id: TaskId
    kind: Literal["frozen test changed", "grading surface touched"]
    what: str
    attempts: Many[str]
    """`repeat.attempt` of each."""


class NotRun(ToolDocument):
    """A task of the pack of which episodes have no row."""

    rule = "report"
    task_id: TaskId
    leaf: str | None
    """`null`: no receipt says."""
    why: str
    episodes: Count
    """Planned episodes without a row; 0 for a task that was not chosen."""


class Gap(ToolDocument):
    """Success against a baseline of the same pack."""

    rule = "report"
    to: Literal["null baseline", "oracle baseline"]
    gap: float
    smaller_than_interval: bool | None
    """True: the interval reaches the baseline, so that the gap is no result; `null`: there is no interval."""


class NegativeResults(ToolDocument):
    """What did not work, and what this run can't tell; no option leaves it out."""

    rule = "report"
    never_solved: Many[TaskId]
    sometimes_solved: Many[TaskId]
    exit_reasons: dict[str, int]
    """Every one there is, those that never came, too."""
    tampering: Many[Tampering]
    """Of every attempt of every task."""
    not_run: Many[NotRun]
    gaps: Many[Gap]
    unseen_below: float | None
    """A true gap to another agent that is smaller would likely not show; `null`: none would."""


class HumanJudging(ToolDocument):
    """What people decided, blind."""

    rule = "report"
    judged: Count
    pending: Count
    judges: Many[str]
    judgments_head: Sha256
    """Digest of the last line of judgments.jsonl."""
    judgments_lines: Count
