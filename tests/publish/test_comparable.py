"""What may stand side by side: every field that differs is named, with both sides."""

from dataclasses import replace

import pytest

from scoresheet.documents.run_plan import RunLimits
from scoresheet.publish.admissible import Card
from scoresheet.publish.comparable import differences, labelled, same_rows
from tests.publish import runs
from tests.publish.compared import C, agent, entrant, entrants
from tests.publish.runs import A, B

HOLDOUT = frozenset(f"t{number:02}" for number in range(11))
CARD = Card("c" * 64, (), HOLDOUT, attended=False)


def test_runs_that_differ_in_the_agent_alone_are_comparable():
    assert differences(entrants(entrant(A), entrant(B, "hasty"), entrant(C, "third"))) == ()


@pytest.mark.parametrize(
    ("field", "change", "values"),
    [
        ("manifest_sha256", {"manifest_sha256": "b" * 64}, (runs.PACK, "b" * 64)),
        ("protocol", {"manifest": {"protocol": "tool-replay-v1"}}, ("tool-replay-v2", "tool-replay-v1")),
        ("timeout_s", {"manifest": {"timeout_s": 30.5}}, ("30", "30.5")),
        ("retries", {"retries": 1}, ("0", "1")),
        ("repeats", {"repeats": 4}, ("5", "4")),
        ("seed", {"seed": 7}, (str(runs.SEED), "7")),
        ("interval", {"interval": "rows-v1"}, ("cluster", "rows-v1")),
        ("isolation", {"isolation": "none"}, ("denied", "not_isolated")),
        ("isolation", {"model_endpoints": ("api.example:443",)}, ("denied", "model_endpoint_only")),
        ("controls.max_tool_calls", {"limits": RunLimits(wall_clock_s=30, max_tool_calls=9)}, ("none", "9")),
        ("controls.wall_clock_s", {"limits": RunLimits(wall_clock_s=30.0000001)}, ("30", "30.0000001")),
        (
            "controls.memory_bytes",
            {"limits": RunLimits(wall_clock_s=30, memory_bytes=10**9 + 1)},
            ("none", "1000000001"),
        ),
        ("controls.on_mismatch", {"manifest": {"on_mismatch": "continue"}}, ("stop", "continue")),
        ("controls.on_exhausted", {"manifest": {"on_exhausted": "refuse"}}, ("last", "refuse")),
    ],
)
def test_a_field_that_differs_is_named_with_both_sides(field, change, values):
    found = differences(entrants(entrant(A), entrant((1,) * 12, "hasty", **change)))
    named = {each.field: (each.first, each.first_value, each.second, each.second_value) for each in found}
    assert named[field] == ("A", values[0], "B", values[1])
    assert set(named) - {field} <= {"isolation"}


def test_every_run_is_held_against_the_first():
    found = differences(entrants(entrant(A), entrant(B, "hasty", seed=7), entrant(C, "third", retries=1)))
    assert [(each.field, each.first, each.second) for each in found] == [("seed", "A", "B"), ("retries", "A", "C")]


def test_thirty_seconds_are_thirty_seconds_however_they_are_written():
    assert differences(entrants(entrant(A), entrant(B, manifest={"timeout_s": 30.0}))) == ()


def test_other_tasks_are_named():
    more = entrant((*B, 3), "hasty")
    (found,) = differences(entrants(entrant(A), more))
    assert (found.field, found.first_value, found.second_value) == ("tasks", "12 tasks", "13 tasks, t12 is its own")


def test_the_same_tasks_in_other_clusters_are_other_tasks():
    (found,) = differences(entrants(entrant(A), entrant(B, "hasty", clusters=lambda number: "repo")))
    assert found.field == "tasks"
    listed = ", ".join(f"t{number:02} in cluster repo" for number in range(5))
    assert found.second_value == f"12 tasks, {listed}, 7 more"
    assert found.first_value.startswith("12 tasks, t00 in cluster none, ")


def test_only_tasks_of_the_holdout_are_compared():
    one, other = entrant(A, card=CARD), entrant((*B, 0), "hasty", card=CARD)
    assert differences(entrants(one, other)) == ()
    assert [task.task_id for task in other.tasks] == sorted(HOLDOUT)
    assert len(other.episodes) == 55


def test_another_card_is_another_measurement():
    (found,) = differences(entrants(entrant(A, card=CARD), entrant(B, "hasty", card=replace(CARD, sha256="d" * 64))))
    assert (found.field, found.first_value, found.second_value) == ("card_sha256", "c" * 64, "d" * 64)


def test_a_baseline_needs_only_the_same_pack_and_tasks_and_claims_nothing():
    null = entrant((0,) * 12, "null", agent=agent("null", "null"), repeats=1, isolation="none")
    assert null.baseline
    assert null.unmet == ()
    assert differences(entrants(null, entrant(A), entrant(B, "hasty"))) == ()
    (found,) = differences(entrants(null, entrant(A, manifest_sha256="b" * 64), entrant(B, manifest_sha256="b" * 64)))
    assert (found.field, found.first, found.second) == ("manifest_sha256", "B", "A")


def test_one_run_given_twice_is_seen():
    one = entrant(A)
    assert [(a.label, b.label) for a, b in same_rows(entrants(one, entrant(B, "hasty"), one))] == [("A", "C")]


def test_labels_go_on_past_z():
    assert [each.label for each in labelled([entrant(A)] * 28)][24:] == ["Y", "Z", "R27", "R28"]
