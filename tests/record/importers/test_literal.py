"""JSON kept as text."""

import pytest

from scoresheet.record.importers.literal import items, members
from scoresheet.record.importers.shape import LeftOut


def test_members_are_found_as_they_were_written():
    text = ' {"a" : 1.10 , "b\\"c":{"d": [ 1,2 ]}, "e": "}"}'
    found = {name: text[begin:end] for name, (begin, end) in members(text).items()}
    assert found == {"a": "1.10", 'b"c': '{"d": [ 1,2 ]}', "e": '"}"'}


def test_items_are_found_as_they_were_written():
    assert list(items(' [1.0, {"a" :2} ,"]"]')) == [(1.0, "1.0"), ({"a": 2}, '{"a" :2}'), ("]", '"]"')]
    assert list(items("[]")) == []


@pytest.mark.parametrize(
    "text", ["", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,"a":2}', "[", "7", "{a:1}", '{"a": ' * 50_000]
)
def test_what_is_no_object_is_left_out(text):
    with pytest.raises(LeftOut):
        members(text)


@pytest.mark.parametrize("text", ["", "[1", "{}", "[" * 50_000])
def test_what_is_no_list_is_left_out(text):
    with pytest.raises(LeftOut):
        list(items(text))
