"""What did not work, and what a run can't tell: the section that stands in every report. Pure."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal, get_args

from scoresheet.documents.baselines import Baseline
from scoresheet.documents.decisions import Gap, NegativeResults, NotRun, Tampering
from scoresheet.documents.row import ExitReason
from scoresheet.documents.run_plan import RunPlan
from scoresheet.publish.admissible import Evidence
from scoresheet.publish.figures import Figures
from scoresheet.publish.outcomes import Outcomes
from scoresheet.stats.rounding import nearest, upward

REASONS = (*get_args(ExitReason), "missing")


def negative(
    whole: tuple[RunPlan, Outcomes], counted: tuple[RunPlan, Outcomes], found: Figures, evidence: Evidence
) -> NegativeResults:
    """The section: of the `whole` run what was tampered with or not run, of the tasks that count the rest."""
    reasons = counted[1].exit_reasons
    return NegativeResults(
        never_solved=tuple(task.task_id for task in found.tasks if task.successes == 0),
        sometimes_solved=tuple(t.task_id for t in found.tasks if 0 < t.successes < len(t.repeats)),
        exit_reasons={reason: reasons.get(reason, 0) for reason in (*REASONS, *sorted(set(reasons) - set(REASONS)))},
        tampering=tuple(
            Tampering(
                task_id=each.task_id,
                kind=each.kind,
                what=each.what,
                attempts=tuple(f"{repeat}.{attempt}" for repeat, attempt in each.attempts),
            )
            for each in whole[1].touched
        ),
        not_run=tuple(_not_run(*whole, evidence)),
        gaps=tuple(_gaps(counted[0], found, evidence)),
        unseen_below=None if found.success.mde is None else float(upward(found.success.mde)),
    )


def _not_run(plan: RunPlan, outcomes: Outcomes, evidence: Evidence) -> Iterator[NotRun]:
    """Planned tasks that lack rows, then tasks that were triaged and not chosen."""
    receipts = evidence.receipts or {}
    missing = Counter(outcome.task_id for outcome in outcomes.episodes if outcome.state == "missing")
    planned = {task.task_id for task in plan.tasks}
    for task_id in (*sorted(missing, key=str.encode), *sorted(receipts.keys() - planned, key=str.encode)):
        receipt = receipts.get(task_id)
        if receipt is not None and receipt.leaf != "score":
            why = receipt.reason
        elif task_id not in planned:
            why = "not chosen for this run"
        elif plan.budget is not None and plan.budget.stopped is not None:
            why = f"the run stopped: {plan.budget.stopped}"
        elif missing[task_id] == plan.repeats:
            why = "never begun, or it left no row"
        else:
            why = "some of its episodes have no row"
        yield NotRun(
            task_id=task_id, leaf=receipt.leaf if receipt is not None else None, why=why, episodes=missing[task_id]
        )


def _gaps(plan: RunPlan, found: Figures, evidence: Evidence) -> Iterator[Gap]:
    both = evidence.baselines
    if both is None or both.manifest_sha256 != plan.manifest_sha256:
        return
    named: tuple[tuple[Literal["null baseline", "oracle baseline"], Baseline], ...] = (
        ("null baseline", both.null),
        ("oracle baseline", both.oracle),
    )
    for name, one in named:
        mean = Fraction(one.successes, one.episodes)
        ends = found.success_interval
        yield Gap(
            to=name,
            gap=float(nearest(found.success.mean - mean)),
            smaller_than_interval=None if ends is None else ends.low <= mean <= ends.high,
        )
