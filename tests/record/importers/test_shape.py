"""Suspicion towards other tools' values."""

import pytest

from scoresheet.errors import Malformed
from scoresheet.record.importers.shape import LeftOut, bounded, duration, json_of, json_text, obj, rows, text, whole


def test_a_byte_order_mark_and_half_a_character_are_passed_over():
    assert json_of(b'\xef\xbb\xbf{"a": "\\ud83d"}', "f") == {"a": "\ud83d"}


def test_faults_have_their_place_and_a_cut_file_is_called_cut():
    with pytest.raises(Malformed) as found:
        json_of(b'{\n  "a": [1, ', "f")
    assert found.value.where == "f:2:12"
    assert "cut short" in found.value.mend
    with pytest.raises(Malformed, match="UTF-8") as found:
        json_of("{}".encode("utf-16"), "f")
    assert "UTF-16" in found.value.mend


def test_what_json_cant_hold_is_left_out():
    for value in (float("nan"), {1, 2}, object()):
        with pytest.raises(LeftOut):
            json_text(value)


def test_values_that_never_end_are_refused():
    ring: list[object] = []
    ring.append(ring)
    with pytest.raises(Malformed, match="holds itself"):
        bounded(ring, "f")
    many: list[object] = ["x"]
    for _ in range(40):
        many = [many, many]
    with pytest.raises(Malformed, match="endless"):
        bounded(many, "f")
    assert bounded({"a": [1, (2,)]}, "f") == {"a": [1, (2,)]}


def test_wrong_shapes_are_left_out():
    with pytest.raises(LeftOut):
        obj([], "x")
    with pytest.raises(LeftOut):
        text(7, "x")
    assert list(rows([{"a": 1}, 7])) == [{"a": 1}]
    assert list(rows("x")) == []
    assert [whole(each) for each in (3, 3.0, -1, True, "3", None, 3.5)] == [3, 3, None, None, None, None, None]
    assert [duration(each) for each in (3, 2.5, -1, True, None, float("inf"))] == [3.0, 2.5, 0.0, 0.0, 0.0, 0.0]
