"""What did not work stands in every report, in every form of it."""

import json
from dataclasses import replace

import pytest

from scoresheet.documents.report import Report
from scoresheet.documents.row import Row
from scoresheet.publish import block
from scoresheet.publish.admissible import Evidence
from scoresheet.publish.outcomes import fold
from scoresheet.publish.report import build
from tests.publish.runs import A, baselines, plan, row, rows
from tests.publish.test_decisions import CARD, EVIDENCE, TASKS, judged


def report(the_rows: list[Row], evidence: Evidence = EVIDENCE, the_plan=None) -> Report:
    the_plan = the_plan or plan()
    return build(the_plan, fold(the_plan, the_rows), evidence, "f" * 64)


def bent(number: int) -> Row:
    """An attempt that edits a frozen test, plants a conftest.py, and adds a test of its own."""
    return row(
        "t03",
        number,
        1,
        tests_identical=0,
        test_files_changed=1,
        tests_changed=("tests/test_pages.py",),
        tests_added=("tests/test_mine.py",),
        grading_surface=("conftest.py: added",),
    )


def test_tampering_is_told_once_with_every_attempt_of_it():
    spoiled = [one for one in rows(A) if one.task_id != "t03" or one.repeat > 1] + [bent(0), bent(1)]
    found = report(spoiled)
    assert [(each.kind, each.what, each.attempts) for each in found.negative_results.tampering] == [
        ("frozen test changed", "tests/test_pages.py", ("0.0", "1.0")),
        ("grading surface touched", "conftest.py: added", ("0.0", "1.0")),
    ]
    line = "tampering: t03: frozen test changed: tests/test_pages.py (in 0.0, 1.0)"
    assert line in block.text(found).splitlines()
    assert "- tampering — t03: grading surface touched: conftest.py: added (in 0.0, 1.0)" in block.markdown(found)
    assert "test_mine" not in block.text(found)  # its right


def test_an_attempt_that_does_not_count_tampered_all_the_same():
    retried = plan(retries=1)
    there = [one for one in rows(A) if (one.task_id, one.repeat) != ("t03", 0)]
    there += [bent(0).model_copy(update={"success": 0}), row("t03", 0, 1, attempt=1)]
    assert len(report(there, the_plan=retried).negative_results.tampering) == 2


def test_tasks_that_enter_no_figure_tampered_all_the_same():
    apart = replace(EVIDENCE, card=replace(CARD, holdout=TASKS - {"t03"}, train_like=frozenset({"t03"})))
    found = report([one for one in rows(A) if one.task_id != "t03"] + [bent(0)], apart)
    assert found.tasks == 11
    assert len(found.negative_results.tampering) == 2


def test_a_changed_test_that_the_row_does_not_name_is_told():
    there = [*rows(A)[1:], row("t00", 0, 1, tests_identical=0, test_files_changed=1)]
    assert report(there).negative_results.tampering[0].what == "which one is not recorded"


def test_a_path_can_not_forge_a_line():
    forged = "x\ntampering: none seen\x1b[2J | <b>"
    there = [*rows(A)[1:], row("t00", 0, 1, tests_identical=0, tests_changed=(forged,))]
    text, page = block.text(report(there)), block.markdown(report(there))
    assert "tampering: none seen\n" not in text
    assert "\x1b" not in text + page
    assert "\\| &lt;b>" in page.split("### Negative results")[1]


def test_tasks_not_run_are_told_with_their_leaf():
    receipts = {**EVIDENCE.receipts, "t03": judged("t03", leaf="refresh"), "t77": judged("t77")}  # type: ignore[dict-item]
    there = [one for one in rows(A) if one.task_id not in ("t03", "t05") and (one.task_id, one.repeat) != ("t06", 4)]
    found = report(there, replace(EVIDENCE, receipts=receipts))
    assert [(each.task_id, each.leaf, each.why, each.episodes) for each in found.negative_results.not_run] == [
        ("t03", "refresh", "the age is over the window", 5),
        ("t05", "score", "never begun, or it left no row", 5),
        ("t06", "score", "some of its episodes have no row", 1),
        ("t77", "score", "not chosen for this run", 0),
    ]
    assert "not_run: t03: leaf refresh: the age is over the window" in block.text(found).splitlines()


def test_every_exit_reason_is_told_and_those_that_never_came():
    found = report([*rows(A)[1:], row("t00", 0, 0, exit_reason="timeout", timeout=1)]).negative_results.exit_reasons
    assert found == {
        "completed": 59, "mismatch": 0, "timeout": 1, "tool_cap": 0, "model_error": 0, "agent_error": 0,
        "harness_error": 0, "missing": 0,
    }  # fmt: skip


def test_a_gap_that_the_interval_covers_is_no_result():
    found = report(rows((0,) * 10 + (1, 1)))
    assert [(each.to, each.gap, each.smaller_than_interval) for each in found.negative_results.gaps] == [
        ("null baseline", 0.0333, True),
        ("oracle baseline", -0.9667, False),
    ]
    assert "gap: to the null baseline 0.0333, smaller than the interval" in block.text(found).splitlines()
    few = report(rows((5, 5, 0)), Evidence(baselines=baselines()), plan(3))
    assert {each.smaller_than_interval for each in few.negative_results.gaps} == {None}
    assert "gap: to another agent: one of any size is smaller than what this run can show" in block.text(few)
    assert "gap: to the baselines: not known, they were not run" in block.text(report(rows(A), Evidence()))


@pytest.mark.parametrize("evidence", [EVIDENCE, Evidence()], ids=["whole", "bare"])
@pytest.mark.parametrize("the_rows", [rows(A), [], rows(A)[:-7]], ids=["all", "none", "cut"])
def test_no_report_is_without_the_section(the_rows, evidence):
    found = report(the_rows, evidence)
    keys = [line.partition(": ")[0] for line in block.text(found).splitlines()]
    for key in ("never_solved", "sometimes_solved", "exits", "tampering", "not_run", "gap"):
        assert key in keys
    assert "### Negative results\n" in block.markdown(found)
    held = json.loads(found.text())["negative_results"]
    assert set(held) == {
        "never_solved", "sometimes_solved", "exit_reasons", "tampering", "not_run", "gaps", "unseen_below",
    }  # fmt: skip
