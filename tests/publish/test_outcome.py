"""The columns of `Episodes` hold what was put there, whatever it is, and each view shows its own part of it."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.publish.outcome import Episodes, Field, Grid, Numbers, Outcome
from tests.publish.runs import plan

GRID = Grid(plan(tasks=3, repeats=4))
WHOLE = st.one_of(st.integers(0, 300), st.integers(0, 1 << 70))
MAYBE = st.none() | WHOLE


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    drawn: dict[str, Any] = {
        name: draw(MAYBE if default is None else st.booleans() if default is False else WHOLE)
        for name, default in Outcome._field_defaults.items()
        if name not in ("state", "exit_reason", "limit")
    }
    reason, limit = draw(st.sampled_from(("completed", "timeout", ""))), draw(st.sampled_from((None, "memory", "")))
    return Outcome("", 0, "scored", exit_reason=reason, limit=limit)._replace(**drawn)


@given(st.lists(st.tuples(st.integers(0, len(GRID) - 1), outcomes()), max_size=30))
def test_what_was_put_last_is_read_and_the_rest_is_missing(puts: list[tuple[int, Outcome]]):
    episodes = Episodes(GRID)
    plain = [Outcome(*GRID.name(at)) for at in range(len(GRID))]
    for at, outcome in puts:
        task_id, repeat = GRID.name(at)
        plain[at] = outcome._replace(task_id=task_id, repeat=repeat)
        episodes.put(at, plain[at])
    assert [*episodes] == plain
    assert [type(each.proved) for each in episodes] == [bool] * len(plain)
    assert [episodes.at(at) for at in range(len(plain))] == plain
    assert (episodes[-1], episodes[2:5], len(episodes)) == (plain[-1], tuple(plain[2:5]), len(plain))
    for field in get_args(Field):
        assert [*episodes.each(field)] == [getattr(outcome, field) for outcome in plain]
    assert {task: [*repeats] for task, repeats in episodes.tasks()} == {
        task: [outcome for outcome in plain if outcome.task_id == task] for task in GRID.task_ids
    }


def test_a_view_holds_the_tasks_that_were_asked_for_in_their_order():
    episodes = Episodes(GRID)
    first, _, last = GRID.task_ids
    episodes.put(0, Outcome(first, 0, "scored", tool_calls=3))
    some = episodes.of([last, first, "unplanned"])
    assert [outcome.task_id for outcome in some] == [first] * 4 + [last] * 4
    assert (len(some), some[0].tool_calls, some[4].task_id) == (8, 3, last)
    assert [*some.each("tool_calls")] == [3, *[0] * 7]
    assert [task for task, _ in some.tasks()] == [first, last]
    with pytest.raises(IndexError):
        some[8]


def test_an_episode_is_found_by_name():
    episodes = Episodes(GRID)
    assert episodes.find(GRID.task_ids[1], 2) == Outcome(GRID.task_ids[1], 2)
    assert episodes.find(GRID.task_ids[1], 4) is None
    assert episodes.find("unplanned", 0) is None
    assert [GRID.find(*GRID.name(at)) for at in range(len(GRID))] == [*range(len(GRID))]


def test_numbers_take_as_many_bytes_as_the_largest_needs():
    few, many = Numbers(1000), Numbers(1000, None)
    few.put(7, 0)
    assert (few.width, many.width) == (0, 0)
    few.put(7, 255)
    many.put(7, 254)
    assert (few.width, many.width) == (1, 1)
    few.put(8, 256)
    many.put(8, 1 << 33)
    assert (few.width, many.width) == (4, 8)
    assert [few.get(at) for at in (6, 7, 8)] == [0, 255, 256]
    assert [many.get(at) for at in (6, 7, 8)] == [None, 254, 1 << 33]
