"""What is not met is told with what to do, each step once, in the order in which it helps."""

from dataclasses import replace

import pytest

from scoresheet.publish.admissible import Card, Evidence, Reason, reasons
from scoresheet.publish.next_steps import next_steps
from scoresheet.publish.outcomes import fold
from tests.publish.runs import plan, rows

PLAN = plan(seat="laptop-a")
ANEW = "run again: scoresheet run PACK --agent SPEC --seat laptop-a --out DIR"
WHOLE = (
    "run again with all tasks and as many repeats as are declared: "
    "scoresheet run PACK --agent SPEC --seat laptop-a --out DIR"
)


@pytest.mark.parametrize(
    ("rules", "steps"),
    [
        ((), ()),
        (("report-missing",), ("finish it: scoresheet run … --out r --resume, with the words that it was begun with",)),
        (("report-missing", "rows-torn", "report-harness-error"), ("finish it",)),
        (("report-pending",), ("judge what waits: scoresheet judge r",)),
        (("report-card",), ("complete the card: scoresheet check PACK/card.yaml", ANEW)),
        (("report-card",) * 30, ("complete the card: ", ANEW)),
        (("report-subset", "report-repeats"), (WHOLE,)),
        (("report-holdout",), (WHOLE,)),
        (("report-pack",), ("check the pack: scoresheet check PACK", ANEW)),
        (("report-receipts",), ("see why tasks may not run: scoresheet triage PACK --seat laptop-a", ANEW)),
        (("report-isolation",), ("mend the isolation: scoresheet doctor", ANEW)),
        (("report-baselines",), ("see whether the pack is sound: scoresheet baseline PACK", ANEW)),
        (
            ("report-baselines", "report-isolation", "report-card", "report-missing", "report-seed"),
            ("finish it", "complete the card", "mend the isolation", "see whether the pack", WHOLE),
        ),
    ],
)
def test_each_step_is_told_once(rules, steps):
    found = next_steps([Reason(rule, f"text {number}") for number, rule in enumerate(rules)], PLAN, "r")
    assert len(found) == len(steps)
    for told, step in zip(found, steps, strict=True):
        assert told.startswith(step)


def test_a_file_that_was_changed_is_put_back_whatever_its_rule():
    for rule in ("report-card", "report-confounds", "judgments-torn", "rows-json"):
        found = next_steps([Reason("report-card", "none"), Reason(rule, "text", file=True)], PLAN, "r")
        assert found == (
            "put back the files that the run wrote: scoresheet verify r names what differs",
            "then see what is left: scoresheet report r",
        )


def test_without_a_seat_one_is_asked_for():
    assert "--seat LABEL" in next_steps([Reason("report-subset", "")], replace_seat(), "r")[0]


def replace_seat():
    return PLAN.model_copy(update={"seat": None})


def test_every_reason_that_there_is_leads_somewhere():
    card = Card("c" * 64, ("suite.git_sha is empty",), frozenset(), attended=False)
    bare = plan(pack_verified=False, pack_tasks=99, repeats=4)
    for evidence in (Evidence(), Evidence(card=card, torn=3), Evidence(card=replace(card, faults=()))):
        for reason in reasons(bare, fold(bare, rows()[:3]), evidence):
            assert next_steps([reason], PLAN, "r"), reason
