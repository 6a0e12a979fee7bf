import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet import json_pointer

# RFC 6901 §5
EXAMPLES = {
    "": (),
    "/foo": ("foo",),
    "/foo/0": ("foo", 0),
    "/": ("",),
    "/a~1b": ("a/b",),
    "/c%d": ("c%d",),
    "/e^f": ("e^f",),
    "/g|h": ("g|h",),
    "/i\\j": ("i\\j",),
    '/k"l': ('k"l',),
    "/ ": (" ",),
    "/m~0n": ("m~n",),
}


@pytest.mark.parametrize(("text", "path"), EXAMPLES.items())
def test_a_path_is_written_as_the_standard_shows_it(text, path):
    assert json_pointer.of(path) == text
    assert [json_pointer.name(step) for step in text.split("/")[1:]] == [str(part) for part in path]


def test_a_tilde_is_read_last():
    assert json_pointer.name("~01") == "~1"
    assert json_pointer.step("~1") == "~01"


@given(st.text())
def test_a_name_survives_its_step(name):
    assert json_pointer.name(json_pointer.step(name)) == name
    assert "/" not in json_pointer.step(name)
