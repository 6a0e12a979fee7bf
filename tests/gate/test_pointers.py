"""Where in a document a byte stands."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.gate.pointers import pointers
from tests import strategies


@pytest.mark.parametrize(
    ("text", "pointer"),
    [('{"a": "@"}', "/a"), ('["x", "@"]', "/1"), ('{"a": [{}, {"b/c~": "@"}]}', "/a/1/b~1c~0"), ("@", ""),
     ('{"a": 1}\n{"b": "@"}', ""), ('{"a": {"x": [1, 2]}, "b": "@"}', "/b"),
     ('{"a": ["x,]}", "@"', "/a/1"), ("]@", "")],
)  # fmt: skip
def test_pointers(text, pointer):
    assert pointers(text.encode(), [text.index("@")]) == [pointer]


@given(strategies.json_values, st.integers(0, 300))
def test_any_value_beside_it_changes_nothing(value, indent):
    text = json.dumps({"before": value, "here": [value, {"k": "@mark@"}], "after": value}, indent=indent % 4 or None)
    assert pointers(text.encode(), [text.encode().index(b"@mark@")]) == ["/here/1/k"]
