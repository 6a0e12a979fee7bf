"""The strict YAML reader: what it reads, what it refuses, and where it says so."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet import yaml12


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: no", {"a": "no"}),
        ("a: on", {"a": "on"}),
        ("a: 010", {"a": "010"}),
        ("a: 0o17", {"a": "0o17"}),
        ("a: 0x1F", {"a": "0x1F"}),
        ("a: 1:30", {"a": "1:30"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: 2026-11-30", {"a": "2026-11-30"}),
        ("a: 1e3", {"a": 1000.0}),
        ("a: -0.5", {"a": -0.5}),
        ("a: 0", {"a": 0}),
        ("a: true", {"a": True}),
        ("a: ~", {"a": None}),
        ("a:", {"a": None}),
        ("a: 'true'", {"a": "true"}),
        ('a: "1"', {"a": "1"}),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("a: [1, {b: c}]", {"a": [1, {"b": "c"}]}),
        ("1: a", {"1": "a"}),
        ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
        ("--- \na: 1\n", {"a": 1}),
        ("[1, 2]", [1, 2]),
    ],
)
def test_scalars_are_read_by_their_text(text, value):
    assert yaml12.load(text.encode()).value == value


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("a: 1\nb: 2\na: 3\n", "key 'a' is given twice, first at 1:1", "3:1"),
        ("a: &x 1\nb: *x\n", "anchors are not allowed", "1:4"),
        ("a: *x\n", "aliases are not allowed", "1:4"),
        ("a: {b: 1}\n<<: {c: 2}\n", "merge keys are not allowed", "2:1"),
        ("a: !!str 1\n", "tag tag:yaml.org,2002:str is not allowed", "1:4"),
        ("%YAML 1.1\n---\na: 1\n", "directives are not allowed", "1:1"),
        ("a: 1\n---\nb: 2\n", "a second document follows", "2:1"),
        ("\ufeffa: 1\n", "a byte order mark stands before the text", "1:1"),
        ("", "the document is empty", "1:1"),
        ("# only a comment\n", "the document is empty", "1:1"),
        ("a: .nan", ".nan is not a JSON number", "1:4"),
        ("a: -.inf", "-.inf is not a JSON number", "1:4"),
        ("a: 1e999", "1e999 is too large for a number", "1:4"),
        ("? [a]\n: 1\n", "a key must be a string", "1:3"),
        ("a:\n\tb: 1\n", "found character that cannot start any token", "2:1"),
        ("a: [1, 2\n", "did not find expected ',' or ']'", "2:1"),
        ("[" * 34 + "]" * 34, "nested more than 32 levels deep", "1:34"),
        ("a: \x01", "a character that YAML does not allow: control characters are not allowed", "1:4"),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_place(text, what, where):
    with pytest.raises(yaml12.YamlError) as caught:
        yaml12.load(text.encode())

    assert (caught.value.what, caught.value.where) == (what, where)


def test_bytes_that_are_not_utf8_are_refused_with_their_place():
    with pytest.raises(yaml12.YamlError, match="not UTF-8 — 2:4"):
        yaml12.load(b"a: 1\nb: \xff\n")


def test_a_large_document_is_refused_before_it_is_read():
    with pytest.raises(yaml12.YamlError, match="larger than 256 KiB"):
        yaml12.load(b"a" * (yaml12.MAX_BYTES + 1))


def test_three_thousand_brackets_are_an_error_and_no_crash():
    with pytest.raises(yaml12.YamlError, match="nested more than 32 levels deep"):
        yaml12.load(b"[" * 3000)


def test_every_value_and_key_knows_where_it_stands():
    located = yaml12.load(b"a:\n  - x\n  - b/c: 1\n")

    assert located.places["/a/1/b~1c"] == (3, 10)
    assert located.keys["/a/1/b~1c"] == (3, 5)
    assert located.place("/a/1/absent/deeper") == "3:5"


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_nothing_but_a_yaml_error_comes_out(text):
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    with suppress(yaml12.YamlError):
        yaml12.load(data)
