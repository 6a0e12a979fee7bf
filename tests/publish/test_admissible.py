"""Each unmet condition of admissibility is named; nothing that nobody looked at counts as met."""

from dataclasses import replace

import pytest

from scoresheet.publish.admissible import Card, Evidence, reasons
from scoresheet.publish.outcomes import fold
from tests.publish.runs import baselines, plan, receipt, refused, row, rows

CARD = "c" * 64
PLAN = plan(card_sha256=CARD)
TASKS = [task.task_id for task in PLAN.tasks]
OUTCOMES = fold(PLAN, rows())
SHEET = Card(CARD, (), frozenset(TASKS), attended=False)
RECEIPTS = {task: receipt(task) for task in TASKS}
FULL = Evidence(
    card=SHEET,
    receipts=RECEIPTS,
    receipts_head="d" * 64,
    baselines=baselines(),
    confounds=(),
)


def rules(evidence: Evidence = FULL, the_plan=PLAN, outcomes=OUTCOMES) -> list[str]:
    return [reason.rule for reason in reasons(the_plan, outcomes, evidence)]


def test_a_run_that_meets_every_condition_is_admissible():
    assert reasons(PLAN, OUTCOMES, FULL) == ()


def test_a_run_with_nothing_beside_its_rows_meets_none_of_them():
    assert rules(Evidence(), plan(pack_verified=False)) == [
        "report-pack",
        "report-card",
        "report-receipts",
        "report-baselines",
        "report-confounds",
    ]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"card": None}, "report-card"),
        ({"card": replace(SHEET, faults=("suite.git_sha is empty",))}, "report-card"),
        ({"card": replace(SHEET, sha256="e" * 64)}, "report-card"),
        ({"card": replace(SHEET, holdout=frozenset(TASKS[1:]))}, "report-holdout"),
        ({"card": replace(SHEET, holdout=frozenset([*TASKS, "t77"]))}, "report-holdout"),
        ({"receipts": None}, "report-receipts"),
        ({"receipts": {}}, "report-receipts"),
        ({"receipts": {**RECEIPTS, "t03": receipt("t03", "refresh")}}, "report-receipts"),
        ({"receipts": {**RECEIPTS, "t03": receipt("t03", runner_seat=None)}}, "report-receipts"),
        (
            {"receipts": {**RECEIPTS, "t03": receipt("t03", manifest_sha256="b" * 64)}},
            "report-receipts",
        ),
        ({"baselines": None}, "report-baselines"),
        ({"baselines": baselines(null=1)}, "report-baselines"),
        ({"baselines": baselines(oracle=11)}, "report-baselines"),
        ({"baselines": baselines().model_copy(update={"manifest_sha256": "b" * 64})}, "report-baselines"),
        ({"confounds": None}, "report-confounds"),
        ({"torn": 17}, "rows-torn"),
    ],
)
def test_one_unmet_condition_is_enough(change, rule):
    assert rule in rules(replace(FULL, **change))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"pack_verified": False}, "report-pack"),
        ({"pack_tasks": 13}, "report-subset"),
        ({"manifest": {"seed": 1}}, "report-seed"),
        ({"manifest": {"retries": 1}}, "report-retries"),
        ({"manifest": {"repeats": 9}}, "report-repeats"),
    ],
)
def test_a_run_that_departs_from_its_manifest_is_not_admissible(change, rule):
    assert rules(the_plan=plan(card_sha256=CARD, **change)) == [rule]


def test_one_stale_task_makes_the_report_inadmissible_not_the_pack_smaller():
    found = reasons(PLAN, OUTCOMES, replace(FULL, receipts={**RECEIPTS, "t03": receipt("t03", "refresh")}))
    assert [str(reason) for reason in found] == ["t03 has leaf refresh: the age is over the window [report-receipts]"]


@pytest.mark.parametrize(
    ("spoiled", "rule", "incomplete"),
    [
        ([], "report-missing", True),
        ([row("t11", 4, 0, exit_reason="harness_error")], "report-harness-error", True),
        ([row("t11", 4, None)], "report-pending", True),
        ([row("t11", 4, 1, isolation="not_isolated")], "report-isolation", False),
        ([row("t11", 4, 1), refused("t11", 4)], "rows-duplicate", False),
        ([row("t11", 4, 1), row("t12", 4, 1)], "rows-unplanned", False),
    ],
)
def test_one_spoiled_episode_is_named(spoiled, rule, incomplete):
    outcomes = fold(PLAN, (*rows()[:-1], *spoiled))
    found = reasons(PLAN, outcomes, FULL)
    assert [(reason.rule, reason.incomplete) for reason in found] == [(rule, incomplete)]
    assert "t11" in found[0].text or "t12" in found[0].text
