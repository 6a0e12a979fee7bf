"""What to do about a run that is not admissible: the reasons, grouped to a few commands. Pure.

Files first, then what goes on with the same run, then what the pack lacks, and last a new run where one is needed.
"""

from collections.abc import Sequence

from scoresheet.documents.run_plan import RunPlan
from scoresheet.publish.admissible import Reason

_RESUMED = {"report-missing", "report-harness-error", "rows-torn"}
_WHOLE = {"report-subset", "report-repeats", "report-retries", "report-seed", "report-holdout"}
"""Mended by nothing but a run of everything."""
_ANEW = {"report-card", "report-pack", "report-receipts", "report-isolation", "report-baselines", *_WHOLE}


def next_steps(reasons: Sequence[Reason], plan: RunPlan, run: str) -> tuple[str, ...]:
    """The steps, in their order, for the run in the folder (or bundle) that was named `run`."""
    rules = {reason.rule for reason in reasons}
    seat = plan.seat or "LABEL"
    steps: list[str] = []
    if any(reason.file for reason in reasons):
        return (  # the rest may follow from it
            f"put back the files that the run wrote: scoresheet verify {run} names what differs",
            f"then see what is left: scoresheet report {run}",
        )
    if rules & _RESUMED:
        steps.append(f"finish it: scoresheet run … --out {run} --resume, with the words that it was begun with")
    if "report-pending" in rules:
        steps.append(f"judge what waits: scoresheet judge {run}")
    if "report-card" in rules:
        steps.append("complete the card: scoresheet check PACK/card.yaml says what it lacks, line by line")
    if "report-pack" in rules:
        steps.append("check the pack: scoresheet check PACK says which files differ from its manifest")
    if "report-receipts" in rules:
        steps.append(f"see why tasks may not run: scoresheet triage PACK --seat {seat}")
    if "report-isolation" in rules:
        steps.append("mend the isolation: scoresheet doctor names the command")
    if "report-baselines" in rules:
        steps.append("see whether the pack is sound: scoresheet baseline PACK names the tasks that fail")
    if rules & _ANEW:
        whole = " with all tasks and as many repeats as are declared" if rules & _WHOLE else ""
        steps.append(f"run again{whole}: scoresheet run PACK --agent SPEC --seat {seat} --out DIR")
    return tuple(steps)
