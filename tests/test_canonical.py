import json
import math

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from scoresheet import canonical
from scoresheet.canonical import MAX_DEPTH, JsonError, jcs, jcs_fast, jcs_of, loads
from tests.strategies import doubles, json_values, spelt

REFUSED = {
    "a key given twice": b'{"a": 1, "a": 1}',
    "a key given twice, deep": b'[{"x": {"a": 1, "b": 2, "a": 3}}]',
    "a key given twice by an escape": b'{"a": 1, "\\u0061": 2}',
    "NaN": b"[NaN]",
    "Infinity": b"Infinity",
    "minus Infinity": b"[-Infinity]",
    "a number that overflows": b"[1e999]",
    "a lone high surrogate": b'"\\ud800"',
    "a lone low surrogate in a key": b'{"\\udc00": 1}',
    "surrogates the wrong way round": b'"\\udc00\\ud800"',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "bytes that are not UTF-8": b'"\xff"',
    "an overlong form": b'"\xc0\xaf"',
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "nothing": b"",
    "spaces": b"  ",
    "two values": b"1 2",
    "a comma too many": b"[1,]",
    "a leading zero": b"[01]",
    "a plus sign": b"[+1]",
    "no digit before the point": b"[.5]",
    "no digit after the point": b"[1.]",
    "hexadecimal": b"[0x10]",
    "a control character in a string": b'"\x01"',
    "a newline in a string": b'"a\nb"',
    "single quotes": b"{'a': 1}",
    "a comment": b"[1] // one",
    "no-break space between": b"[1,\xc2\xa02]",
    "too many levels": b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    "far too many levels": b"[" * 100_000,
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_what_two_parsers_read_differently_is_refused(data):
    with pytest.raises(JsonError):
        loads(data)
    with pytest.raises(JsonError):
        jcs_of(data)


def test_a_refusal_says_what_and_where():
    with pytest.raises(JsonError, match="key 'a' is given twice"):
        loads(b'{"a": 1, "a": 2}')
    with pytest.raises(JsonError) as caught:
        loads(b'{"a": 1,\n "b": }')
    assert caught.value.where == "2:7"


def test_a_hundred_levels_are_read():
    deep = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert jcs_of(deep) == deep


TEXTS = {
    "keys in order of UTF-16": (b'{"\xf0\x9f\x98\x80": 1, "\xef\xac\xb3": 2}', '{"😀":1,"\ufb33":2}'),
    "a whole double is an integer": (b"[1.0, 1e2, -0.0, 0e5]", "[1,100,0,0]"),
    "small and large doubles": (b"[1e-7, 1E21, 1e20, 0.000001]", "[1e-7,1e+21,100000000000000000000,0.000001]"),
    "integers keep every digit": (b"[12345678901234567890123]", "[12345678901234567890123]"),
    "a literal with an exponent is a double": (b"[12345678901234567890.0]", "[12345678901234567000]"),
    "short escapes": (b'"\\u0008\\u0009\\u000a\\u000c\\u000d\\u0022\\u005c\\u002f"', '"\\b\\t\\n\\f\\r\\"\\\\/"'),
    "other controls": (b'"\\u0000\\u001f\\u007f"', '"\\u0000\\u001f\x7f"'),
    "a pair of surrogates": (b'"\\ud83d\\ude00"', '"😀"'),
    "true is not 1": (b'{"a":true,"b":1}', '{"a":true,"b":1}'),
}


@pytest.mark.parametrize(("data", "text"), TEXTS.values(), ids=TEXTS)
def test_the_canonical_text_is_as_documented(data, text):
    assert jcs_of(data).decode() == text
    assert jcs(loads(data)).decode() == text


@given(spelt())
def test_how_a_value_is_written_never_changes_its_text(pair):
    value, data = pair
    assert jcs_of(data) == jcs(value)


@given(spelt())
def test_the_fast_text_is_the_slow_one(pair):
    _, data = pair
    assert jcs_of(data) == jcs(loads(data))


@given(json_values)
def test_canonical_text_reads_back_to_itself(value):
    text = jcs(value)
    assert jcs_of(text) == text
    assert jcs(loads(text)) == text


@given(json_values, json_values)
def test_two_values_have_one_text_only_when_they_are_equal(one, other):
    def plain(value):  # 1 and 1.0 are one number, True and 1 are not
        match value:
            case bool() | None | str():
                return (type(value).__name__, value)
            case int() | float():
                return ("number", float(value)) if isinstance(value, float) else ("number", value)
            case list():
                return ("list", tuple(map(plain, value)))
            case _:
                return ("dict", frozenset((key, plain(item)) for key, item in value.items()))

    if jcs(one) == jcs(other):
        assert plain(one) == plain(other)


def within_rfc(value):
    """Whether RFC 8785 itself can hold the value: no integer beyond 2^53."""
    match value:
        case bool() | None | str() | float():
            return True
        case int():
            return abs(value) < 2**53
        case list():
            return all(map(within_rfc, value))
        case _:
            return all(map(within_rfc, value.values()))


@given(json_values.filter(within_rfc))
def test_the_text_is_that_of_another_implementation_of_rfc_8785(value):
    assert jcs(value) == rfc8785.dumps(value)


@given(doubles)
def test_a_double_reads_back_to_the_same_double(number):
    assert float(jcs(number)) == number


@given(st.integers())
def test_an_integer_of_any_size_keeps_its_digits(number):
    assert jcs(number) == str(number).encode()
    assert jcs_of(b"[%d]" % number) == b"[%d]" % number


def test_an_integer_beyond_what_python_converts_at_once_keeps_its_digits():
    digits = b"-" + b"9" * 12_345
    assert jcs_of(b"[" + digits + b"]") == b"[" + digits + b"]"
    for text in (digits.decode(), digits + b" ", b'["\\ud83d\\ude00",' + digits + b"]"):
        assert canonical.loads(text) in (-(10**12_345 - 1), ["\U0001f600", -(10**12_345 - 1)])
    with pytest.raises(JsonError, match="lone surrogate"):
        canonical.loads(b'["\\ud83d",' + digits + b"]")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "\ud800", {1: 2}, {"\udfff": 1}, b"x", {1, 2}])
def test_what_is_not_json_has_no_text(value):
    for write in (jcs, canonical.v1_text):
        if write is jcs or not isinstance(value, str | dict):
            with pytest.raises(JsonError):
                write(value)


@given(st.dictionaries(st.text("abc", max_size=3), st.integers(-(2**70), 2**70), max_size=5))
def test_plain_values_take_the_fast_way_to_the_same_text(value):
    assert jcs_fast(value) == jcs(value)


@given(json_values)
def test_the_v1_text_is_what_python_writes(value):
    text = canonical.v1_text(value)
    assert text.isascii()
    assert text == json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def test_under_v1_an_integer_and_its_double_differ():
    assert canonical.v1_text([1]) != canonical.v1_text([1.0])


@given(json_values)
def test_pretty_and_line_end_in_one_newline_and_read_back(value):
    for text in (canonical.pretty(value), canonical.line(value)):
        assert text.endswith(b"\n")
        assert text.count(b"\n\n") == 0
        assert json.loads(text) == json.loads(json.dumps(value))


@given(st.dictionaries(st.text(max_size=3), st.integers(), min_size=1))
def test_a_line_is_one_line_and_keeps_the_order_of_its_members(value):
    try:
        text = canonical.line(value)
    except UnicodeEncodeError:  # a lone surrogate: never came through `loads`
        return
    assert text.count(b"\n") == 1
    assert list(json.loads(text)) == list(value)
