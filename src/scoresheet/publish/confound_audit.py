"""Entries that scoresheet itself must have put into the confound log, by what card, plan and rows show. Pure."""

from collections.abc import Iterable, Iterator

from scoresheet.canonical import JsonValue
from scoresheet.documents.confound import Confound
from scoresheet.documents.pack_record import PackRecord
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Finding
from scoresheet.run.deviations import deviations

CONFOUNDS = "confounds.jsonl"


def findings(
    log: Iterable[Confound], card: JsonValue, plan: RunPlan, record: PackRecord | None, violated: Iterable[str]
) -> Iterator[Finding]:
    """What is missing in the log of a run that this version made; `violated`: controls that rows say were violated.

    What people wrote, and what nobody saw, no file tells.
    """
    own = [each for each in log if each.by == "scoresheet"]
    told = {(each.control, each.pinned, each.seen, each.text) for each in own if each.kind == "deviation"}
    for deviation in deviations(card, plan, record) if record is not None else ():
        if (deviation.control, deviation.pinned, deviation.seen, str(deviation)) not in told:
            yield _absent(f"that the run had {deviation.control} otherwise than the card pins it")
    seen = {each.control for each in own if each.kind == "deviation" and each.pinned is None}
    if plan.status == "finished":
        for control in sorted(set(violated) - seen):
            yield _absent(f"that {control} was violated, as the model's door saw")
    resumed = {each.at for each in own if each.kind == "resumed"}
    if (
        plan.status == "finished" and plan.resumed_at and plan.resumed_at[-1] not in resumed
    ):  # others may be killed first
        yield _absent(f"that the run was resumed at {plan.resumed_at[-1]}")
    for each in own:
        if each.kind == "resumed" and each.at not in plan.resumed_at:
            what = f"the log says that the run was resumed at {each.at}, which run.json does not know"
            yield Finding("audit-confounds", CONFOUNDS, what)


def _absent(what: str) -> Finding:
    return Finding("audit-confounds", CONFOUNDS, f"scoresheet wrote down {what}; the log does not say it")
