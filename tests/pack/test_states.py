"""What freezing says of a task's scenarios."""

import json

import pytest

from scoresheet.documents.task import CallState, Task
from scoresheet.errors import Refused
from scoresheet.pack import freezer, states
from scoresheet.pack.freeze import Settings
from tests.pack.packs import lay, v2_call, v2_task

OPEN = {"order": ["open", "cancelled"]}


def read(path="/orders/17", **state):
    return v2_call(path, state={"scenario": "order", **state})


def cancel(**state):
    return v2_call("/orders/17/cancel", request={"method": "POST"}, state={"scenario": "order", **state})


SOUND = (
    read(requires="open"),
    cancel(requires="open", sets="cancelled"),
    read(requires="cancelled"),
    cancel(requires="cancelled"),
)


def found(*calls, scenarios=OPEN):
    task = Task.from_bytes(v2_task("t", *calls, scenarios=scenarios), "t")
    return [(each.rule, each.where.removeprefix("tasks/t.json#")) for each in states.findings("tasks/t.json", task)]


def test_a_sound_scenario_and_a_task_without_one_break_no_rule():
    assert found(*SOUND) == []
    assert found(v2_call(), scenarios={}) == []


def test_a_cycle_is_as_good_as_a_chain():
    reopen = v2_call("/orders/17/reopen", state={"scenario": "order", "requires": "cancelled", "sets": "open"})
    assert found(*SOUND, reopen) == []


def test_what_requires_nothing_can_be_called_at_once():
    assert found(cancel(sets="cancelled"), read(requires="cancelled")) == []


@pytest.mark.parametrize(
    ("calls", "scenarios", "expected"),
    [
        ([read(requires="opne")], OPEN, [("task-state-undeclared", "/calls/0/state/requires")]),
        ([cancel(sets="gone")], OPEN, [("task-state-undeclared", "/calls/0/state/sets")]),
        ([cancel(sets="gone")], {}, [("task-state-undeclared", "/calls/0/state/scenario")]),
        ([read(requires="open")], OPEN, [("task-state-unreachable", "/scenarios/order/1")]),
        ([v2_call()], OPEN, [("task-scenario-unused", "/scenarios/order")]),
        (
            [read(requires="b"), cancel(requires="b", sets="c"), cancel(requires="c", sets="b")],
            {"order": ["a", "b", "c"]},
            [("task-state-unreachable", "/scenarios/order/1"), ("task-state-unreachable", "/scenarios/order/2")],
        ),
        (
            [*SOUND, v2_call("/orders/17", state={"scenario": "stock", "sets": "low"})],
            OPEN | {"stock": ["full", "low"]},
            [("task-state-mixed", "/calls/4/state/scenario")],
        ),
        ([*SOUND, v2_call("/orders/17")], OPEN, [("task-state-shadowed", "/calls/4")]),
    ],
    ids=["state", "set", "scenario", "unreached", "unused", "island", "mixed", "shadowed"],
)
def test_a_scenario_that_can_not_be_played_is_refused(calls, scenarios, expected):
    assert found(*calls, scenarios=scenarios) == expected


def test_what_clients_are_shown_without_a_call_has_no_state():
    listed = v2_call(
        "mcp/resources/list",
        request={"upstream": "", "method": "CALL", "body": {}},
        state={"scenario": "order", "requires": "cancelled"},
    )
    assert found(*SOUND, listed) == [("task-state-unasked", "/calls/4/state")]


def test_an_unlisted_order_of_calls_reaches_every_state_that_some_order_reaches():
    steps = [CallState(scenario="s", requires=a, sets=b) for a, b in (("c", "d"), ("b", "c"), ("a", "b"), ("x", "y"))]
    assert states.reachable("abcdxy", steps) == frozenset("abcd")


@pytest.mark.parametrize("bad", [{}, {"requires": ""}, {"sets": "a b"}])
def test_a_state_that_says_nothing_or_has_no_name_is_a_field_that_is_wrong(bad):
    with pytest.raises(Refused, match="not a valid task"):
        Task.from_bytes(v2_task("t", read(**bad), scenarios=OPEN), "t")


@pytest.mark.parametrize("bad", [{"order": []}, {"order": ["a", "b", "a"]}, {"or der": ["a"]}])
def test_a_scenario_without_states_or_with_one_twice_is_a_field_that_is_wrong(bad):
    with pytest.raises(Refused, match="not a valid task"):
        Task.from_bytes(v2_task("t", scenarios=bad), "t")


def test_states_are_frozen_as_v2_and_change_the_digest(tmp_path):
    plain = freezer.write(lay(tmp_path / "plain", {"t.json": v2_task("t", v2_call("/orders/17"))}))
    files = {"t.json": v2_task("t", *SOUND, scenarios=OPEN)}
    stated = freezer.write(lay(tmp_path / "stated", files))
    assert stated.protocol == "tool-replay-v2"
    assert stated.sha256 != plain.sha256
    again = freezer.write(lay(tmp_path / "again", files))
    assert again.sha256 == stated.sha256
    moved = {"t.json": v2_task("t", *SOUND, scenarios={"order": ["cancelled", "open"]})}
    with pytest.raises(Refused) as refused:  # begun elsewhere, nothing leads back
        freezer.write(lay(tmp_path / "moved", moved))
    assert {finding.rule for finding in refused.value.findings} == {"task-state-unreachable"}


def test_v1_can_hold_no_states(tmp_path):
    root = lay(tmp_path, {"t.json": v2_task("t", *SOUND, scenarios=OPEN)})
    with pytest.raises(Refused) as refused:
        freezer.write(root, Settings(protocol="tool-replay-v1"))
    assert "v1-field" in {finding.rule for finding in refused.value.findings}


def test_a_task_without_states_is_written_back_without_a_trace_of_them():
    text = json.loads(v2_task("t", v2_call()))
    assert Task.from_value(text, "t").as_json() == text
