import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet import canonical
from scoresheet.documents.tool import Request
from scoresheet.pack import fingerprint
from scoresheet.replay import difference
from tests.strategies import json_values

JSON = (("Content-Type", "application/json"),)
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)


def form(target="/a", body=b"", headers=JSON, method="POST", upstream="API", vary=()):
    return fingerprint.form(Request(upstream, method, target, headers, body), vary, ())


def lines(recorded, asked):
    return difference.lines(form(**recorded), form(**asked))


@pytest.mark.parametrize(
    ("recorded", "asked", "said"),
    [
        ({}, {}, ()),
        ({"upstream": "A", "method": "PUT"}, {"upstream": "B"}, (
            'upstream: recorded "A", asked "B"', 'method: recorded "PUT", asked "POST"')),
        ({"target": "/a?x=1&y=2"}, {"target": "/b?x=3"}, (
            'path: recorded "/a", asked "/b"',
            'query x: recorded "1", asked "3"', 'query y: recorded "2", asked nothing')),
        ({"target": "/a?x=1&x=2"}, {"target": "/a?x=2&x=1"}, ('query x: recorded "1", "2", asked "2", "1"',)),
        ({"headers": (*JSON, ("X-Who", "me")), "vary": ("x-who",)}, {"vary": ("x-who",)}, (
            'header x-who: recorded "me", asked ""',)),
        ({"body": b'{"a":1,"b":[1,2]}'}, {"body": b'{"a":1.0,"b":[1]}'}, ("body /b: recorded 2 items, asked 1",)),
        ({"body": b'{"a":1}'}, {"body": b'{"a":true}'}, ("body /a: recorded 1, asked true",)),
        ({"body": b'{"a/b":1}'}, {"body": b'{"a~b":1}'}, (
            "body /a~1b: recorded 1, asked nothing", "body /a~0b: recorded nothing, asked 1")),
        ({"body": b"1"}, {"body": b"2"}, ("body (whole): recorded 1, asked 2",)),
        ({"body": b"{}"}, {}, ("body: recorded JSON, asked no body",)),
        ({"body": b"a=1", "headers": FORM}, {"body": b"a=2", "headers": FORM}, ('form a: recorded "1", asked "2"',)),
    ],
)  # fmt: skip
def test_what_differs_is_told_line_by_line(recorded, asked, said):
    assert lines(recorded, asked) == said


def test_bytes_that_differ_are_told_as_bytes():
    (line,) = lines({"body": b"\xff", "headers": ()}, {"body": b"\xfe", "headers": ()})
    assert line.startswith("body: recorded [")


def test_a_long_value_is_cut_with_its_length():
    assert difference.cut("x" * 120) == "x" * 120
    assert difference.cut("x" * 121) == f"{'x' * 120}… (121 characters)"
    (line,) = lines({"body": b'{"a":"%b"}' % (b"x" * 500)}, {"body": b'{"a":1}'})
    assert line == f'body /a: recorded "{"x" * 119}… (502 characters), asked 1'


@given(json_values, json_values)
def test_there_is_a_line_exactly_where_two_bodies_are_not_the_same_request(recorded, asked):
    one, other = (Request("API", "POST", "/a", JSON, canonical.jcs(value)) for value in (recorded, asked))
    told = difference.lines(fingerprint.form(one, (), ()), fingerprint.form(other, (), ()))
    assert (told == ()) == (fingerprint.v2(one) == fingerprint.v2(other))


@given(st.text())
def test_what_is_cut_is_never_much_longer_than_a_line(text):
    assert len(difference.cut(text)) <= 150
