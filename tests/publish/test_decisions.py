"""Every row of the decision table: its value, or why there is none."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scoresheet.documents.receipt import ChainedReceipt
from scoresheet.documents.report import Report
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import PlannedTask, RunPlan
from scoresheet.gate.decisions import FORBIDDEN, TABLE
from scoresheet.publish import block, decisions
from scoresheet.publish.admissible import Card, Evidence
from scoresheet.publish.outcomes import fold
from scoresheet.publish.report import build
from tests.publish.runs import A, B, baselines, plan, receipt, row, rows

TASKS = frozenset(task.task_id for task in plan().tasks)
CARD = Card(
    "c" * 64,
    (),
    TASKS,
    attended=False,
    primary="holdout pass@1 with frozen tests",
    secondary=("patch size in changed lines", "count of test-file diffs", "timeout_rate", "beauty"),
    human_minutes=12.5,
    git_sha="59d430a9506458e4b8a45fa6426d376dcf3eec17",
    fixture_hash="sha256:" + "e" * 64,
)


def judged(task_id: str, kind: str = "pytest", leaf: str = "score") -> ChainedReceipt:
    return receipt(task_id, leaf, oracle_kind=kind, mutation_scope="workspace")


EVIDENCE = Evidence(
    card=CARD,
    receipts={task: judged(task) for task in TASKS},
    baselines=baselines(),
    confounds=(),
)


def coded(passed: tuple[int, ...] = B, repeats: int = 5, **more: Any) -> list[Row]:
    """Rows of workspace tasks: a patch of 3 lines where it passed, of 1 where not, and 1,200 tokens each."""
    found = []
    for one in rows(passed, repeats):
        measured: dict[str, Any] = {
            "patch_lines": 3 if one.success else 1,
            "patch_sha256": "d" * 64,
            "tests_identical": 1,
            "test_files_changed": 0,
            "tokens_in": 1000,
            "tokens_out": 200,
        }
        found.append(one.model_copy(update=measured | more))
    return found


def report(the_rows: list[Row], evidence: Evidence = EVIDENCE, the_plan: RunPlan | None = None) -> Report:
    the_plan = the_plan or plan()
    return build(the_plan, fold(the_plan, the_rows), evidence, "f" * 64)


def test_the_cards_primary_is_told_first_then_its_secondaries():
    found = report(coded())
    assert found.primary is not None
    assert found.primary.name == "holdout pass@1 with frozen tests"
    assert found.primary.text == "0.5333 [0.3000, 0.7500], 32 of 60 planned episodes"
    assert [each.text for each in found.secondary] == [
        "median 3 (3 of passing ones), at most 3, mean 2.0667, 60 patches",
        "0 frozen test files changed or removed, 0 added",
        "0.0000",
        "not computed: a report holds no figure of that name",
    ]
    lines = block.text(found).splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("figures_sha256: "))
    assert lines[place + 1] == "primary: holdout pass@1 with frozen tests = " + found.primary.text
    assert lines[place + 2].startswith("secondary: patch size in changed lines = median 3")


@pytest.mark.parametrize("decision", TABLE, ids=lambda each: each.question)
def test_every_row_of_the_table_has_a_line_in_every_report(decision):
    for found in (report(coded()), report(rows(A)), report([], Evidence()), report(rows(A), the_plan=plan(retries=2))):
        text, page = block.text(found), block.markdown(found)
        for name in (decision.primary, decision.secondary):
            assert f"decision: {name} = " in text
            assert f"decision: {name} = " in page


def test_what_a_run_can_not_give_says_why():
    bare = decisions.texts(report(rows(A), Evidence()).decisions)
    assert bare["holdout pass@1 with frozen tests"] == "not computed: no receipt says which tasks frozen tests judge"
    assert bare["patch size in changed lines"] == "not computed: no episode has a workspace"
    assert "60 of 60 planned episodes count no tokens" in bare["tokens + wall clock per passing task"]
    assert bare["share of runs that leave tests/ byte-identical"] == "not computed: no agent saw frozen tests"
    assert bare["count of test-file diffs"] == "not computed: no agent saw frozen tests"
    assert bare["validator exit code on the card"] == "1"
    assert bare["git sha + fixture hash"] == "not computed: there is no protocol card"
    uncarded = report(coded(), replace(EVIDENCE, card=None)).decisions
    assert uncarded.land_a_fix.why_not == "no complete card says which tasks are held out"
    replayed = replace(EVIDENCE, receipts={task: judged(task, "match") for task in TASKS})
    assert report(coded(), replayed).decisions.land_a_fix.why_not == "no task is judged by frozen tests"
    retried = report(coded(), the_plan=plan(retries=2))
    assert retried.decisions.land_a_fix.why_not == "with 2 retries a success is not of one attempt"
    assert retried.pass_k.why_not == "with 2 retries a success is not of one attempt"
    faulty = replace(EVIDENCE, card=replace(CARD, faults=("suite.git_sha is empty",), git_sha=None))
    assert report(coded(), faulty).decisions.replayable.why_not == "the card is not complete"


def test_only_tasks_that_frozen_tests_judge_are_in_pass_at_1():
    mixed = {task: judged(task, "pytest" if task in ("t00", "t01") else "human") for task in TASKS}
    found = report(coded(), replace(EVIDENCE, receipts=mixed)).decisions.land_a_fix
    assert found.pass_at_1 is not None
    assert (found.tasks, found.pass_at_1.count, found.pass_at_1.planned, found.pass_at_1.ci95) == (
        2, 9, 10, "none (2 tasks)",
    )  # fmt: skip


def test_the_bill_holds_the_failures_too():
    found = report(coded()).decisions.cheaper_than_human
    assert found.tokens is not None
    assert (found.tokens.total, found.tokens.successes, found.tokens.per_success) == (72000, 32, 2250.0)
    assert found.wall_clock_s is not None
    assert (found.wall_clock_s.total, found.wall_clock_s.per_success) == (15.0, 0.4688)
    assert found.human_minutes_per_task_estimate == 12.5
    text = decisions.texts(report(coded()).decisions)["human-minutes estimate, labelled as estimate"]
    assert text == "12.5 a task (an estimate of the card's, not measured)"


def test_the_golden_cost_per_success_is_unbounded_where_under_five_tasks_pass():
    """docs/statistics, G7: costs (1200, 3400, 800, 15000, 2100), successes (5, 3, 4, 0, 2)."""
    costs, passed = (1200, 3400, 800, 15000, 2100), (5, 3, 4, 0, 2)
    there = [one.model_copy(update={"tokens_in": costs[int(one.task_id[1:])] // 5}) for one in rows(passed)]
    tokens = report(there, Evidence(), plan(5)).decisions.cheaper_than_human.tokens
    assert tokens is not None
    assert (tokens.total, tokens.successes, tokens.per_success, tokens.high) == (22500, 14, 1607.1429, None)
    assert tokens.text.startswith("1607.1429 (>= ")
    assert tokens.text.endswith(", upper unbounded)")


def test_the_golden_cost_per_success_has_both_ends_where_the_data_bound_it():
    """docs/statistics, G8: 14000/29, the exact ends 4100/19 and 3550/3."""
    costs, passed = (900, 1500, 1100, 4000, 700, 2500, 1300, 2000), (5, 4, 5, 1, 5, 3, 4, 2)
    there = [one.model_copy(update={"tokens_in": costs[int(one.task_id[1:])] // 5}) for one in rows(passed)]
    tokens = report(there, Evidence(), plan(8)).decisions.cheaper_than_human.tokens
    assert tokens is not None
    assert tokens.per_success == 482.7586
    assert tokens.low == pytest.approx(4100 / 19, rel=0.05)
    assert tokens.high == pytest.approx(3550 / 3, rel=0.05)


def test_nothing_passed_is_undefined_and_few_tasks_have_no_interval():
    none = report(coded((0,) * 12)).decisions.cheaper_than_human.tokens
    assert none is not None
    assert (none.per_success, none.text) == (None, "undefined (0 passing)")
    few = report(coded((1, 2), 2), Evidence(), plan(2, 2)).decisions.cheaper_than_human.tokens
    assert few is not None
    assert few.text == "1600.0000, no interval"


def test_a_bill_with_a_hole_is_no_bill():
    found = report(coded()[:-2]).decisions.cheaper_than_human
    assert found.tokens is None
    assert found.why_no_tokens == "2 of 60 planned episodes count no tokens"
    assert found.why_no_wall_clock == "2 of 60 planned episodes have no time of the agent's"


def test_every_attempt_is_on_the_bill_but_not_our_failures():
    twice = [row("t00", 0, 0, tokens_in=10), row("t00", 0, 1, attempt=1, tokens_in=5)]
    retried = report(twice, Evidence(), plan(1, 1, retries=1)).decisions.cheaper_than_human
    assert retried.tokens is not None
    assert retried.wall_clock_s is not None
    assert (retried.tokens.total, retried.wall_clock_s.total) == (15, 0.5)
    lost = [row("t00", 0, 0, exit_reason="harness_error", elapsed_s=9.0), row("t00", 0, 1, attempt=1, tokens_in=5)]
    rerun = report(lost, Evidence(), plan(1, 1)).decisions.cheaper_than_human
    assert rerun.tokens is not None
    assert rerun.wall_clock_s is not None
    assert (rerun.tokens.total, rerun.wall_clock_s.total) == (5, 0.25)


def test_tasks_of_one_cluster_are_resampled_together():
    tasks = tuple(PlannedTask(task_id=f"t{i:02}", cluster_id=f"repo-{i // 4}") for i in range(12))
    tokens = report(coded(), the_plan=plan().model_copy(update={"tasks": tasks})).decisions.cheaper_than_human.tokens
    assert tokens is not None
    assert tokens.text == "2250.0000, no interval"  # three clusters


def test_an_agent_that_edits_tests_is_seen_in_the_share_and_the_count():
    edited = [
        one.model_copy(update={"tests_identical": 0, "test_files_changed": 2}) if one.repeat == 0 else one
        for one in coded()
    ]
    found = report(edited).decisions.leaves_tests_alone
    assert found.byte_identical is not None
    assert (found.byte_identical.count, found.byte_identical.planned, found.test_file_diffs) == (48, 60, 24)
    assert found.byte_identical.share == 0.8


def test_an_episode_that_is_missing_left_no_tests_identical():
    found = report(coded()[:-2]).decisions.leaves_tests_alone
    assert found.byte_identical is not None
    assert (found.byte_identical.count, found.byte_identical.planned) == (58, 60)


def test_every_reason_for_not_finishing_is_apart():
    ends: list[dict[str, Any]] = [
        {"exit_reason": "timeout", "timeout": 1, "limit": "wall_clock"},
        {"exit_reason": "tool_cap", "limit": "tool_calls"},
        {"exit_reason": "model_error"},
        {"exit_reason": "mismatch", "unauthorized": 1},
        {"exit_reason": "agent_error", "limit": "memory"},
        {"exit_reason": "harness_error"},
        {"exit_reason": "agent_error"},  # ended by itself, if not well
    ]
    there = [row("t00", number, 0, **end) for number, end in enumerate(ends)] + [row("t00", 7, 1)]
    budget = report(there, Evidence(), plan(1, 9)).decisions.under_budget
    assert (budget.finished.count, budget.finished.planned) == (2, 9)
    assert (budget.timeout, budget.tool_cap, budget.model_error) == (1, 1, 1)
    assert budget.other == {"harness_error": 1, "limit of memory": 1, "mismatch": 1, "missing": 1}


def test_pass_at_k_and_pass_hat_k_are_there_for_every_k():
    """docs/statistics: the pack (5, 5, 4, 2, 0, 5) of 5."""
    found = report(rows((5, 5, 4, 2, 0, 5)), Evidence(), plan(6)).pass_k
    assert [each.k for each in found.of] == [1, 2, 3, 4, 5]
    assert [each.pass_at_k for each in found.of] == [0.7, 0.7833, 0.8167, 0.8333, 0.8333]
    assert [each.pass_hat_k for each in found.of] == [0.7, 0.6167, 0.5667, 0.5333, 0.5]
    assert not found.identical
    assert report(rows((5, 0, 5)), Evidence(), plan(3)).pass_k.identical


def test_a_task_that_was_not_run_is_in_every_denominator():
    found = report(rows((5, 5, 4, 2, 0, 5))[:-5], Evidence(), plan(6))
    assert found.pass_k.of[0].pass_at_k == found.success_mean == 0.5333


def test_the_whole_vector_stands_in_the_report():
    there = coded((1, 2), 2, tests_identical=0, test_files_changed=1)
    first = report(there, Evidence(), plan(2, 2)).per_task[0]
    assert (first.success, first.patch_lines, first.tests_identical) == ((1, 0), (3, 1), (0, 0))
    assert (first.tokens, first.test_files_changed, first.tool_calls) == ((1200, 1200), (1, 1), (2, 2))
    assert report(rows((1, 2), 2), Evidence(), plan(2, 2)).per_task[0].patch_lines == ()
    waits = report([row("t00", 0, None)], Evidence(), plan(1, 2)).per_task[0]
    assert waits.success == (None, None)


def test_the_digest_covers_patches_but_no_clock():
    one = report(coded())
    slower = [each.model_copy(update={"elapsed_s": 7.5}) for each in coded()]
    assert report(slower).figures_sha256 == one.figures_sha256
    assert report(slower).decisions != one.decisions
    longer = [coded()[0].model_copy(update={"patch_lines": 9}), *coded()[1:]]
    assert report(longer).figures_sha256 != one.figures_sha256
    cut = {"exit_reason": "timeout", "timeout": 1, "success": 0}
    late = [coded()[0].model_copy(update=cut), *coded()[1:]]
    later = [coded()[0].model_copy(update=cut | {"patch_lines": 9}), *coded()[1:]]
    assert report(late).figures_sha256 == report(later).figures_sha256  # what the clock cut is the clock's


def test_the_json_report_holds_all_of_it_and_reads_back():
    found = report(coded())
    document = json.loads(found.text())
    assert set(document["decisions"]) == {
        "land_a_fix", "cheaper_than_human", "leaves_tests_alone", "under_budget", "replayable",
    }  # fmt: skip
    assert Report.from_bytes(found.text(), "report.json") == found


@pytest.mark.parametrize("name", sorted(FORBIDDEN))
def test_no_output_has_a_name_that_the_table_forbids(name):
    for found in (report(coded()), report(rows(A)), report(rows(A), the_plan=plan(retries=2)), report([], Evidence())):
        for output in (block.text(found), block.markdown(found), found.text()):
            assert name not in output.lower()


@pytest.mark.parametrize("name", sorted(FORBIDDEN))
def test_no_help_has_a_name_that_the_table_forbids(name):
    page = Path(__file__).parents[2] / "docs" / "commands.md"  # what every --help prints, held by tests/test_shape.py
    assert name not in page.read_text(encoding="utf-8").lower()


@pytest.mark.parametrize("decision", TABLE, ids=lambda each: each.question)
def test_any_row_can_be_the_cards_primary(decision):
    card = replace(CARD, primary=decision.primary, secondary=(decision.secondary, "success_mean"))
    found = report(coded(), replace(EVIDENCE, card=card))
    assert found.primary is not None
    assert not found.primary.text.startswith("not computed")
    assert not any(each.text.startswith("not computed") for each in found.secondary)
