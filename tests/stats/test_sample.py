from fractions import Fraction as F

import pytest

from scoresheet.stats.sample import sample


def test_tasks_are_in_the_order_of_the_bytes_of_their_names():
    found = sample({"é": [1], "z": [1], "Z": [0], "a": [1], "😀": [0], "\uffee": [1]})
    assert found.names == ("Z", "a", "z", "é", "\uffee", "😀")


def test_every_task_weighs_the_same_however_often_it_was_repeated():
    found = sample({"a": [1, 1, 0], "b": [1, 0]})
    assert (found.scale, found.totals, found.weights) == (6, (4, 3), (1, 1))
    assert found.mean == F(7, 12)
    assert found.repeats == (2, 3)


def test_a_unit_is_what_stands_for_one():
    found = sample({"a": [250], "b": [1000]}, unit=1000)
    assert found.mean == F(5, 8)
    assert not found.binary
    assert sample({"a": [0], "b": [1000]}, unit=1000).binary


def test_a_cluster_that_is_called_as_a_task_is_not_that_task():
    found = sample({"a": [1], "b": [0], "c": [1]}, {"b": "a", "c": "a"})
    assert found.names == ("a", "a")
    assert (found.totals, found.weights, found.tasks) == ((1, 1), (2, 1), 3)


@pytest.mark.parametrize("values", [{}, {"a": []}, {"a": [1], "b": []}])
def test_nothing_is_no_sample(values):
    with pytest.raises(ValueError, match="sample"):
        sample(values)
