"""Whether a run's figures may be called a score. Pure: evidence in, every unmet condition out.

What nobody looked at is not met: `None` is never taken for a yes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scoresheet.documents.baselines import Baselines
from scoresheet.documents.manifest import Exclusion
from scoresheet.documents.prices import PriceTable
from scoresheet.documents.receipt import ChainedReceipt
from scoresheet.documents.run_plan import PlannedTask, RunPlan
from scoresheet.errors import Finding
from scoresheet.publish.outcome import State
from scoresheet.publish.outcomes import Outcomes
from scoresheet.run.judgments import Judgments


@dataclass(frozen=True, slots=True)
class Card:
    """What admissibility needs of a protocol card that was read and judged."""

    sha256: str
    faults: tuple[str, ...]
    """Findings of the card's rules; empty when it is complete."""
    holdout: frozenset[str]
    attended: bool
    train_like: frozenset[str] = frozenset()
    """Tasks that run and are shown apart; they enter no figure."""
    repeats: int | None = None
    tie_margin: float | None = None
    excluded: tuple[Exclusion, ...] | None = None
    """What a v1 manifest can't hold; `None`: the card says nothing."""
    upstreams: Mapping[str, str] | None = None
    primary: str | None = None
    """What the card declares to be reported; `None` when it is not complete."""
    secondary: tuple[str, ...] = ()
    human_minutes: float | None = None
    """Its estimate, a task."""
    git_sha: str | None = None
    fixture_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What lies in the run directory beside the rows."""

    card: Card | None = None
    receipts: Mapping[str, ChainedReceipt] | None = None
    """Task id → its latest receipt; `None`: there is no receipts file."""
    receipts_head: str | None = None
    """Digest of the last line and count of lines."""
    baselines: Baselines | None = None
    confounds: tuple[str, ...] | None = None
    """Entries of the confound log as people read them, which may be none; `None`: there is no log."""
    judgments: Judgments | None = None
    """Decisions of human judges; `None`: there is no judgments file."""
    prices: PriceTable | None = None
    """By which the tokens are priced; `None`: nobody gave one."""
    findings: tuple[Finding, ...] = ()
    """What is wrong with the files themselves."""
    torn: int = 0
    """Bytes of a last line of rows.jsonl that was never finished."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One unmet condition."""

    rule: str
    text: str
    incomplete: bool = False
    """True when resuming the run (or judging) can mend it."""
    file: bool = False
    """True when a file of the run is not what the run wrote."""

    def __str__(self) -> str:
        return f"{self.text} [{self.rule}]"


def reasons(plan: RunPlan, outcomes: Outcomes, evidence: Evidence) -> tuple[Reason, ...]:
    """Every condition that is not met, in the order of docs/formats; empty when the run is admissible."""
    found: list[Reason] = []
    found += _pack(plan, evidence.card)
    found += _card(plan, evidence.card)
    found += _receipts(plan, evidence)
    found += _episodes(plan, outcomes, evidence)
    if evidence.torn:
        text = f"rows.jsonl ends in a torn line of {evidence.torn} bytes: the runner was killed; `run --resume` cuts it"
        found.append(Reason("rows-torn", text, incomplete=True))
    found += [
        Reason(finding.rule, f"{finding.where}: {finding.what}", file=True)
        for finding in (*outcomes.findings, *evidence.findings)
    ]
    found += _isolation(outcomes)
    found += _baselines(plan, evidence.baselines)
    if evidence.confounds is None:
        text = "no confound log (confounds.jsonl): it may be empty, not absent"
        found.append(Reason("report-confounds", text, file=True))
    return tuple(found)


def _pack(plan: RunPlan, card: Card | None) -> list[Reason]:
    found = []
    if not plan.pack_verified:
        found.append(Reason("report-pack", "run.json does not say that the pack's bytes matched its manifest"))
    if plan.pack_tasks is not None and len(plan.tasks) < plan.pack_tasks:
        found.append(
            Reason("report-subset", f"only {len(plan.tasks)} of the pack's {plan.pack_tasks} tasks were chosen")
        )
    declared, by = plan.manifest.repeats, "manifest"
    if declared is None and card is not None:
        declared, by = card.repeats, "card"
    if declared is not None and plan.repeats != declared:
        found.append(Reason("report-repeats", f"repeats is {plan.repeats}, the {by} declares {declared}"))
    for name, ran, pinned in (
        ("retries", plan.retries, plan.manifest.retries),
        ("seed", plan.seed, plan.manifest.seed),
    ):
        if ran != pinned:
            found.append(Reason(f"report-{name}", f"the run had {name} {ran}, the manifest pins {pinned}"))
    return found


def _card(plan: RunPlan, card: Card | None) -> list[Reason]:
    if card is None:
        return [Reason("report-card", "no protocol card: a decimal without a sheet is an anecdote")]
    found = [Reason("report-card", f"the protocol card is not complete: {fault}") for fault in card.faults]
    if plan.card_sha256 != card.sha256:
        text = "the protocol card is not the one that the run began with"
        found.append(Reason("report-card", text, file=True))
    if card.faults:
        return found  # which tasks are held out is not known either
    split = card.holdout | card.train_like
    others = [task.task_id for task in plan.tasks if task.task_id not in split]
    if others:
        found.append(Reason("report-holdout", f"{_some(others)} ran, and are in no split of the card"))
    absent = sorted(card.holdout - {task.task_id for task in plan.tasks})
    if absent:
        found.append(Reason("report-holdout", f"the run leaves out {_some(absent)} of the card's holdout"))
    return found


def _receipts(plan: RunPlan, evidence: Evidence) -> list[Reason]:
    if evidence.receipts is None:
        return [Reason("report-receipts", "no receipts (receipts.jsonl): no task was triaged")]
    found = []
    for task in counted(plan, evidence.card):
        receipt = evidence.receipts.get(task.task_id)
        if receipt is None:
            found.append(Reason("report-receipts", f"{task.task_id} has no receipt"))
        elif receipt.manifest_sha256 != plan.manifest_sha256:
            found.append(Reason("report-receipts", f"the receipt of {task.task_id} is for another pack"))
        elif receipt.leaf != "score":
            found.append(Reason("report-receipts", f"{task.task_id} has leaf {receipt.leaf}: {receipt.reason}"))
        elif not receipt.runner_seat:
            found.append(Reason("report-receipts", f"{task.task_id} has no runner seat"))
    return found


def counted(plan: RunPlan, card: Card | None) -> tuple[PlannedTask, ...]:
    """The tasks that enter the figures: the card's holdout; without a card all of them, in a draft."""
    if card is None or not card.holdout:
        return plan.tasks
    return tuple(task for task in plan.tasks if task.task_id in card.holdout)


def _episodes(plan: RunPlan, outcomes: Outcomes, evidence: Evidence) -> list[Reason]:
    planned = plan.planned
    receipts = evidence.receipts or {}
    refused = {task_id for task_id, receipt in receipts.items() if receipt.leaf != "score"}
    found = []
    states: tuple[tuple[State, str], ...] = (
        ("missing", "have no row"),
        ("harness_error", "were lost by an error of scoresheet's own"),
        ("pending", "wait for a human's judgment (`scoresheet judge RUN`)"),
    )
    for state, what in states:
        if not outcomes.count(state):
            continue
        those = [  # of a task that was refused no episode is missing: its receipt is the reason
            f"{o.task_id}/{o.repeat}"
            for o in outcomes.episodes
            if o.state == state and not (state == "missing" and o.task_id in refused)
        ]
        if those:
            text = f"{len(those)} of {planned} planned episodes {what}: {_some(those)}"
            found.append(Reason(f"report-{state.replace('_', '-')}", text, incomplete=True))
    return found


def _isolation(outcomes: Outcomes) -> list[Reason]:
    if all(outcomes.episodes.each("proved")):
        return []
    unproved = [f"{o.task_id}/{o.repeat}" for o in outcomes.episodes if o.state != "missing" and not o.proved]
    if not unproved:
        return []
    text = f"isolation was not proved in {len(unproved)} of {len(outcomes.episodes)} episodes: {_some(unproved)}"
    return [Reason("report-isolation", text)]


def _baselines(plan: RunPlan, baselines: Baselines | None) -> list[Reason]:
    if baselines is None:
        return [Reason("report-baselines", "the baselines were not run (`scoresheet baseline PACK`)")]
    if baselines.manifest_sha256 != plan.manifest_sha256:
        return [Reason("report-baselines", "the baselines are of another pack")]
    return [
        Reason("report-baselines", f"the pack is defective: {one.agent} fails {_some(list(one.failing))}")
        for one in (baselines.null, baselines.oracle)
        if not one.sound
    ]


def _some(names: list[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
