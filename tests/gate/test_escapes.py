"""Escapes undone, and the way back."""

import json
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scoresheet.gate.escapes import origins, unescaped
from tests import strategies


@pytest.mark.parametrize("text", ["plain", "", "a & b", "100 % of it", "back\\slash at the end \\"])
def test_text_without_escapes_has_no_layer(text):
    assert unescaped(text.encode()) is None


@given(strategies.text)
def test_json_and_urls_are_undone(text):
    for written in (json.dumps(text), quote(text)):
        layer = unescaped(written.encode())
        if layer is not None:
            assert text in layer.plain.decode() or "%" in text or "\\" in text or "&" in text


@example([("\\n", 398)])  # between what stands around one escape and what stands around the next
@example([("\\n", 798)])
@example([("\\n", 801)])
@given(
    st.lists(st.tuples(st.sampled_from(["\\n", "\\u00e9", "%41", "&quot;", "\\\\", "x" * 1000]), st.integers(0, 900)))
)
def test_every_mark_is_placed_where_it_stood(parts):
    text = b""
    marks: list[int] = []
    for escape, blanks in parts:
        text += escape.encode() + b" " * blanks
        marks.append(len(text))
        text += b"@@@\\n"
    layer = unescaped(text)
    if layer is not None:
        found = [at for at in range(len(layer.plain)) if layer.plain.startswith(b"@@@", at)]
        assert origins([layer], found) == marks


def test_two_layers_lead_back_to_the_first_text():
    text = json.dumps([json.dumps({"a": "x\ny", "b": "@@@"})]).encode()
    one = unescaped(text)
    assert one is not None
    two = unescaped(one.plain)
    assert two is not None
    assert origins([one, two], [two.plain.index(b"@@@")]) == [text.index(b"@@@")]
