import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.publish.outcome import Outcome
from scoresheet.publish.outcomes import Outcomes, fold
from tests.publish.runs import plan, refused, row, rows

SMALL = plan(tasks=2, repeats=2)


def folded(the_plan: RunPlan, *the_rows: Row) -> Outcomes:
    return fold(the_plan, the_rows)


def first(outcomes: Outcomes) -> Outcome:
    return outcomes.episodes[0]


def rules(outcomes: Outcomes) -> list[str]:
    return [finding.rule for finding in outcomes.findings]


def test_a_planned_episode_without_a_row_is_missing_and_no_success():
    found = folded(SMALL, row())
    assert [episode.state for episode in found.episodes] == ["scored", "missing", "missing", "missing"]
    assert not found.complete
    assert found.exit_reasons == {"missing": 3, "completed": 1}


def test_a_harness_error_is_never_scored_until_it_is_rerun():
    lost = row(success=0, exit_reason="harness_error")
    assert first(folded(SMALL, lost)).state == "harness_error"
    rerun = folded(SMALL, lost, row(attempt=1))
    assert (first(rerun).state, first(rerun).success, rerun.harness_errors) == ("scored", 1, 1)
    assert rules(rerun) == []


def test_an_agent_that_crashed_has_failed():
    found = folded(SMALL, row(success=0, exit_reason="agent_error", agent_exit=1))
    assert (first(found).state, first(found).success) == ("scored", 0)


def test_a_row_that_waits_for_a_human_is_pending():
    assert first(folded(SMALL, row(success=None))).state == "pending"


def test_with_retries_the_last_attempt_counts():
    retried = plan(tasks=2, repeats=2, retries=2)
    found = folded(retried, row(success=0), row(attempt=1, success=0), row(attempt=2))
    assert (first(found).success, first(found).attempts, rules(found)) == (1, 3, [])


def test_an_attempt_beyond_the_retry_budget_is_found_and_does_not_count():
    found = folded(SMALL, row(success=0), row(attempt=1, success=1))
    assert first(found).success == 0
    assert rules(found) == ["rows-attempts"]


def test_an_attempt_after_a_success_is_found_and_does_not_count():
    found = folded(plan(tasks=2, repeats=2, retries=1), row(success=1), row(attempt=1, success=0))
    assert first(found).success == 1
    assert rules(found) == ["rows-attempts"]


def test_an_attempt_that_is_there_twice_is_found_and_the_worse_one_counts():
    for both in ((row(success=0), row(success=1)), (row(success=1), row(success=0))):
        found = folded(SMALL, *both)
        assert first(found).success == 0
        assert rules(found) == ["rows-duplicate"]
        assert "t00 repeat 0 attempt 0 is there twice" in found.findings[0].what


def test_a_row_that_was_cut_out_leaves_a_gap_that_is_found():
    found = folded(plan(tasks=2, repeats=2, retries=2), row(attempt=0, success=0), row(attempt=2))
    assert rules(found) == ["rows-gap"]
    assert "lacks attempt 1" in found.findings[0].what


@pytest.mark.parametrize(
    ("stray", "rule"),
    [
        (row(manifest_sha256="b" * 64), "rows-pack"),
        (row("t99"), "rows-unplanned"),
        (row(repeat=2), "rows-unplanned"),
    ],
)
def test_a_row_that_does_not_belong_to_the_run_is_found_and_does_not_count(stray, rule):
    found = folded(SMALL, stray)
    assert rules(found) == [rule]
    assert found.findings[0].where == "rows.jsonl:1"
    assert found.count("missing") == 4


def test_a_row_of_another_seed_is_found():
    assert rules(folded(SMALL, row(episode_seed=1))) == ["rows-seed"]


@pytest.mark.parametrize("contradiction", [{"unauthorized": 1}, {"timeout": 1}, {"exit_reason": "agent_error"}])
def test_a_success_that_its_own_row_contradicts_is_found_and_is_none(contradiction):
    found = folded(SMALL, row(success=1, **contradiction))
    assert first(found).success == 0
    assert rules(found) == ["rows-contradiction"]


def test_isolation_must_be_proved_in_every_attempt_of_an_episode():
    lost = row(success=0, exit_reason="harness_error", isolation="not_proved")
    assert not first(folded(SMALL, lost, row(attempt=1))).proved
    assert first(folded(SMALL, row())).proved


def test_models_and_unchecked_tools_are_collected():
    found = folded(SMALL, row(models=("m2", "m1"), schema_unchecked=("lookup",)), row(repeat=1, models=("m1",)))
    assert (found.models, found.unchecked_tools) == (("m1", "m2"), ("lookup",))


@given(st.permutations(rows((2, 1, 0), repeats=3)))
def test_the_order_of_rows_does_not_matter(shuffled):
    the_plan = plan(tasks=3, repeats=3)
    assert folded(the_plan, *shuffled) == folded(the_plan, *rows((2, 1, 0), repeats=3))


def test_episodes_are_in_the_byte_order_of_their_tasks():
    assert [(e.task_id, e.repeat) for e in folded(SMALL, refused("t01", 1)).episodes] == [
        ("t00", 0),
        ("t00", 1),
        ("t01", 0),
        ("t01", 1),
    ]


def test_an_attempt_of_any_number_is_a_gap_found_at_once():
    found = folded(plan(1, 1), row(attempt=(1 << 63) - 1))
    assert [each.what for each in found.findings if each.rule == "rows-gap"] == ["t00 repeat 0 lacks attempt 0"]


def test_a_run_of_many_episodes_takes_few_bytes_each():
    many = plan(tasks=4, repeats=1000)
    rows_ = (row(f"t{task:02}", repeat, repeat % 2) for task in range(4) for repeat in range(1000))
    tracemalloc.start()
    try:
        found = fold(many, rows_)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.complete
    assert held / many.planned < 60  # an object for each would take ten times as much
