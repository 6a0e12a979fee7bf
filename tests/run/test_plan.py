from typing import Any

import pytest

from scoresheet.documents.row import Row, episode_seed
from scoresheet.documents.run_plan import AgentIdentity, Host, PlannedTask, QuotedManifest, RunLimits, RunPlan
from scoresheet.run.plan import Episode, Progress, differences, episodes

DIGEST = "ab" * 32


def row(task_id="t1", repeat=0, attempt=0, success=0, exit_reason="completed") -> Row:
    return Row(
        manifest_sha256=DIGEST, task_id=task_id, repeat=repeat, attempt=attempt, episode_seed=1, success=success,
        schema_ok=1, unauthorized=0, timeout=0, exit_reason=exit_reason, elapsed_s=0.1, cpu_s=0.1,
        recorded_latency_ms=0, tool_calls=0, repeated_calls=0, isolation="proved", started_at="", host="h",
    )  # fmt: skip


def plan(**changes: Any) -> RunPlan:
    values: dict[str, Any] = {
        "pack": "p",
        "manifest_sha256": DIGEST,
        "manifest": QuotedManifest(protocol="tool-replay-v1", timeout_s=30, retries=0, seed=7),
        "tasks": (PlannedTask(task_id="a"), PlannedTask(task_id="b")),
        "repeats": 5,
        "repeats_from": "default",
        "retries": 0,
        "seed": 7,
        "limits": RunLimits(wall_clock_s=30),
        "jobs": 1,
        "isolation": "bwrap",
        "agent": AgentIdentity(kind="null", spec="null", sha256=DIGEST),
        "seat": "s",
        "versions": {},
        "host": Host(label="h", system="Linux", python="3.11", cores=2),
        "started_at": "2026-01-01T00:00:00Z",
    }
    return RunPlan(**(values | changes))


def test_episodes_come_task_by_task_with_their_own_seeds():
    found = list(episodes(("a", "b"), 2, 7))
    assert [(e.task_id, e.repeat, e.attempt) for e in found] == [("a", 0, 0), ("a", 1, 0), ("b", 0, 0), ("b", 1, 0)]
    assert [e.seed for e in found] == [episode_seed(7, t, r) for t in "ab" for r in (0, 1)]
    assert len({e.seed for e in found}) == 4


def test_the_folder_of_an_episode_names_task_repeat_and_attempt():
    assert Episode("a", 2, 1, 0).folder == "episodes/a/2.1"


def test_without_rows_every_episode_remains():
    whole = list(episodes(("a", "b"), 2, 7))
    assert list(Progress(0).remaining(whole)) == whole


def test_a_finished_episode_does_not_remain():
    progress = Progress(0)
    progress.add(row("a", 0, success=0))
    progress.add(row("b", 1, success=1))
    assert [(e.task_id, e.repeat) for e in progress.remaining(episodes(("a", "b"), 2, 7))] == [("a", 1), ("b", 0)]


def test_a_harness_error_remains_and_gets_the_next_attempt_number():
    progress = Progress(0)
    progress.add(row("a", 0, 0, exit_reason="harness_error"))
    assert [(e.repeat, e.attempt) for e in progress.remaining(episodes(("a",), 1, 7))] == [(0, 1)]
    progress.add(row("a", 0, 1, success=1))
    assert list(progress.remaining(episodes(("a",), 1, 7))) == []


@pytest.mark.parametrize(
    ("retries", "successes", "done"),
    [(0, [0], True), (1, [0], False), (1, [0, 0], True), (2, [0, 1], True), (2, [1], True), (2, [0, 0], False)],
)
def test_retries_are_spent_only_on_episodes_that_did_not_succeed(retries, successes, done):
    progress = Progress(retries)
    for attempt, success in enumerate(successes):
        attempts = progress.add(row("a", 0, attempt, success))
    assert attempts.done(retries) is done


def test_an_interrupted_retry_goes_on_with_its_next_attempt():
    progress = Progress(2)
    progress.add(row("a", 0, 0, 0))
    progress.add(row("a", 1, 0, 1))
    assert [(e.repeat, e.attempt) for e in progress.remaining(episodes(("a",), 2, 7))] == [(0, 1)]


def test_a_harness_error_does_not_spend_the_retry_budget():
    progress = Progress(1)
    progress.add(row("a", 0, 0, 0))
    progress.add(row("a", 0, 1, 0, "harness_error"))
    assert not progress.add(row("a", 0, 2, 0)).done(2)
    assert progress.episodes["a", 0].done(1)


def test_a_row_that_waits_for_a_human_is_not_tried_again():
    progress = Progress(3)
    assert progress.add(row("a", success=None)).done(3)


def test_the_same_plan_may_be_resumed_on_another_seat_with_other_jobs():
    assert differences(plan(), plan(seat="other", jobs=4, started_at="2027-01-01T00:00:00Z")) == ()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"manifest_sha256": "cd" * 32}, "manifest_sha256"),
        ({"agent": AgentIdentity(kind="null", spec="null", sha256="cd" * 32)}, "agent.sha256"),
        ({"seed": 8}, "seed"),
        ({"repeats": 4}, "repeats"),
        ({"retries": 1}, "retries"),
        ({"limits": RunLimits(wall_clock_s=29)}, "limits.wall_clock_s"),
        ({"limits": RunLimits(wall_clock_s=30, max_tool_calls=3)}, "limits.max_tool_calls"),
        ({"isolation": "none"}, "isolation"),
        ({"tasks": (PlannedTask(task_id="a"),)}, "tasks"),
    ],
)
def test_each_decisive_change_is_named_with_both_values(changes, field):
    (found,) = differences(plan(), plan(**changes))
    assert found.field == field
    assert str(found.recorded) in str(found)
    assert str(found.asked) in str(found)


def test_a_plan_survives_its_file():
    assert RunPlan.from_bytes(plan().text(), "run.json") == plan()
    assert plan().planned == 10
