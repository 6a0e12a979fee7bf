from fractions import Fraction

import pytest

from scoresheet.documents.decisions import ShareOfRuns
from scoresheet.publish import block
from scoresheet.publish.admissible import Card, Evidence
from scoresheet.publish.outcomes import fold
from scoresheet.publish.page import model
from scoresheet.publish.report import build
from tests.publish import runs
from tests.publish.page import pages


def report(passed=runs.A, repeats=5, evidence=None, **more):
    plan = runs.plan(len(passed), repeats, **more)
    rows = [
        pages.row(f"t{task:02}", repeat, int(repeat < count))
        for task, count in enumerate(passed)
        for repeat in range(repeats)
    ]
    outcomes = fold(plan, rows)
    return build(plan, outcomes, evidence or Evidence(confounds=(), baselines=runs.baselines()), "f" * 64)


def page(**more):
    return model.page(report(**more), "careful", runs.plan())


def test_the_sheet_is_the_twelve_lines_of_every_report_in_their_order():
    found = page()
    assert [entry.key for entry in found.sheet] == [
        "protocol", "manifest_sha256", "timeout_s", "retries", "seed", "repeats_per_task", "success_mean",
        "success_ci95", "unauthorized_rate", "timeout_rate", "live_network", "excluded",
    ]  # fmt: skip


def test_every_line_of_the_block_is_somewhere_on_the_page():
    given = report(evidence=Evidence(confounds=("2026-09-22T10:00:00Z human: loud",), baselines=runs.baselines()))
    found = model.page(given, "careful", runs.plan())
    values = {entry.value for part in (found.sheet, found.more, found.cost, found.negative) for entry in part}
    values |= {entry.value for entry in (*found.table, *found.declared)} | {*found.notes}
    for key, value in block.entries(given):
        if key in ("pass_at_k", "pass_hat_k"):
            assert all(f"k={k} {(at if key == 'pass_at_k' else hat):.4f}" in value for k, at, hat in found.curve)
        elif key == "decision":
            assert value.partition(" = ")[2] in values
        else:
            assert value in values, key
    assert found.confounds == ("2026-09-22T10:00:00Z human: loud",)


def test_a_draft_says_why_and_a_log_that_is_not_there_is_not_an_empty_one():
    found = page(evidence=Evidence())
    assert found.draft
    assert any("no protocol card" in reason for reason in found.reasons)
    assert found.confounds is None
    assert page().confounds == ()
    assert found.attended == "not known: no complete card says"


def test_every_share_stands_with_its_interval_or_its_bound_or_says_that_it_has_none():
    marks = {mark.name: mark for mark in page().marks}
    assert marks["success_mean"].text == "0.7333 [0.4552, 0.8948]"
    assert marks["success_mean"].kind == "interval"
    assert marks["finished under the budget"].kind == "interval"
    assert marks["unauthorized_rate"].kind == "point"
    assert "without an interval" in marks["unauthorized_rate"].about
    assert (marks["null baseline"].value, marks["null baseline"].kind) == (0.0, "reference")
    assert marks["oracle baseline"].value == 1.0
    assert "holdout pass@1" not in marks


def test_a_rate_that_never_was_seen_stands_with_the_bound_of_its_true_rate():
    marks = {mark.name: mark for mark in page(passed=(5,) * 12).marks}
    assert marks["timeout_rate"].text == "0.0000 (< 0.2210)"
    assert (marks["timeout_rate"].low, marks["timeout_rate"].high) == (0.0, 0.221)
    always = model._rate("unauthorized_rate", 1.0, 0.221, "about")
    assert (always.text, always.low, always.high) == ("1.0000 (>= 0.7790)", 0.779, 1.0)


def test_under_five_tasks_no_interval_is_drawn():
    mark = page(passed=(5, 0, 3)).marks[0]
    assert (mark.kind, mark.low, mark.text) == ("point", None, "0.5333 none (3 tasks)")


def test_with_retries_nothing_goes_by_the_plain_name():
    found = page(retries=2, manifest={"retries": 2})
    assert found.marks[0].name == "success_after_2_retries_mean"
    assert not [entry for entry in (*found.sheet, *found.more) if entry.key == "success_mean"]
    assert found.why_no_curve is not None
    assert found.curve == ()


@pytest.mark.parametrize(
    ("reason", "success", "fate"),
    [
        ("completed", 1, "success"),
        ("completed", 0, "wrong"),
        ("mismatch", 0, "unrecorded"),
        ("timeout", 0, "timeout"),
        ("tool_cap", 0, "stopped"),
        ("agent_error", 0, "error"),
        ("model_error", 0, "error"),
        ("completed", None, "pending"),
        ("harness_error", None, "lost"),
        ("missing", None, "lost"),
        ("from a later version", 0, "lost"),
    ],
)
def test_a_fate_is_of_exit_reason_and_success(reason, success, fate):
    assert model.fate(reason, success) == fate


def test_a_task_tells_its_repeats_in_their_order():
    tasks = {task.task_id: task for task in page().tasks}
    assert tasks["t03"].fates == ("success", "success", "stopped", "stopped", "stopped")
    assert tasks["t03"].told == "success ×2, stopped ×3"
    assert tasks["t11"].told == "success ×4, unrecorded"
    assert tasks["t11"].cells[0] == "4/5"
    totals = model.total(page().tasks)
    assert sum(totals.values()) == 60
    assert totals["success"] == sum(runs.A)
    assert totals["lost"] == 0


def test_exits_name_every_reason_also_those_that_never_came():
    exits = dict(page().exits)
    assert exits["completed"] == 44
    assert exits["harness_error"] == 0
    assert exits["missing"] == 0


def test_train_like_tasks_stand_apart_and_in_no_figure():
    card = Card(
        "c" * 64, (), frozenset(f"t{n:02}" for n in range(6)), False, train_like=frozenset({"t06", "t07", "t08"})
    )
    found = page(evidence=Evidence(card=card, confounds=(), baselines=runs.baselines()))
    assert found.apart is not None
    assert [mark.name for mark in found.apart.marks] == ["holdout", "train_like"]
    assert found.apart.marks[1].value == pytest.approx(float(Fraction(13, 15)))
    assert {task.task_id for task in found.apart.tasks} == {"t06", "t07", "t08"}
    assert {task.task_id for task in found.tasks} == card.holdout
    assert page().apart is None


def test_a_share_of_the_decision_table_stands_with_its_own_interval():
    share = ShareOfRuns(count=3, planned=6, share=0.5, ci95=(0.2, 0.8), interval_method="any")
    assert model._share("holdout pass@1", share, "of tasks").text == "0.5000 [0.2000, 0.8000]"


def test_cost_says_what_was_not_counted():
    cost = {entry.key: entry.value for entry in page().cost}
    assert cost["tokens_per_success"] == "not counted"
    assert cost["human minutes per task, an estimate"].startswith("not computed: ")
    latency = page().latency
    assert latency is not None
    assert latency.text == "40.5000 [40.5000, 40.5000]"


def test_a_model_s_calls_and_its_bill_stand_with_the_cost_and_nowhere_else():
    bill = {"model_calls": 12, "model_retries": 1, "model_door_retries": 0, "budget": "3 of 5 USD"}
    given = report()
    found = model.page(given.model_copy(update={"cost": given.cost.model_copy(update=bill)}), "careful", runs.plan())
    cost = {entry.key: entry.value for entry in found.cost}
    assert (cost["model_calls"], cost["budget"]) == ("12, 1 of them retries (0 by the door)", "3 of 5 USD")
    assert not {"model_calls", "budget", "tool_calls"} & {entry.key for entry in found.more}
    assert "model_calls" not in {entry.key for entry in page().cost}


def test_who_ran_it_where_and_when_is_told():
    ended = runs.plan(ended_at="2026-09-22T11:00:00Z", resumed_at=("2026-09-22T10:30:00Z",))
    assert [(entry.key, entry.value) for entry in model.page(report(), "careful", ended).ran] == [
        ("seat", "laptop-a"),
        ("host", "h1: Linux 6.1 x86_64, Python 3.11.7, 2 cores"),
        ("started", "2026-09-22T10:00:00Z"),
        ("resumed", "2026-09-22T10:30:00Z"),
        ("ended", "2026-09-22T11:00:00Z"),
        ("with", "scoresheet 0.1.0"),
    ]
    assert model.page(report(), "careful", runs.plan(seat=None)).ran[0].value == "none"
