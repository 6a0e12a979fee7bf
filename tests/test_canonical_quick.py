"""The quick ways of `canonical` give what its careful ways give, faults included."""

import json
import math
import struct

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from scoresheet import canonical
from scoresheet.canonical import JsonError, jcs, jcs_of, loads
from tests.strategies import json_values, spelt

_PIECES = [
    *'{}[],:" \n',
    *("0", "1", "-0", "1.0", "12.5", "1e2", "1e400", "0.00001", "0.000001", "-", "1e-7", "99999999999999999999"),
    *("true", "null", "NaN", "Infinity", '"a"', '"b"', '"a:b"', '"\\u0061"', '"\\ud800"', '"\\n"', '"\\\\"'),
    *('"é"', '"😀"', '"דּ"', '"1.0"', '"[1.0,"', '{"a":1,"a":2}', '{"a":', "[1,", "]"),
]


@st.composite
def nearly_json(draw):
    """Text out of JSON's pieces, mostly broken."""
    return "".join(draw(st.lists(st.sampled_from(_PIECES), max_size=12))).encode()


def careful(data):
    return jcs(canonical._parse(data)[0])


def outcome(way, data):
    try:
        return way(data)
    except JsonError as error:
        return error.what


@given(nearly_json() | nearly_json().map(lambda text: b"[" + text + b"]") | st.binary(max_size=30))
@settings(max_examples=2000)
def test_broken_and_whole_text_have_one_outcome(text):
    assert outcome(jcs_of, text) == outcome(careful, text) == outcome(lambda data: jcs(loads(data)), text)


@given(spelt())
@settings(max_examples=400)
def test_every_spelling_of_a_value_has_one_text(spelling):
    value, text = spelling
    assert jcs_of(text) == careful(text) == jcs(value)


@given(nearly_json() | nearly_json().map(lambda text: b"[" + text + b"]"))
@settings(max_examples=1000)
def test_what_was_read_is_written_again_quickly_as_carefully(text):
    try:
        value = loads(text)
    except JsonError:
        return
    assert canonical.jcs_again(value) == jcs(value)


@given(json_values)
@settings(max_examples=400)
def test_any_value_that_was_read_is_written_again_as_carefully(value):
    value = loads(jcs(value))
    assert canonical.jcs_again(value) == jcs(value)


@given(st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack(">d", bits.to_bytes(8, "big"))[0]))
@settings(max_examples=2000)
def test_every_double_is_written_as_rfc8785_writes_it(value):
    if math.isfinite(value):
        assert jcs_of(f"[{value!r}]".encode()) == rfc8785.dumps([value]) == jcs([value]) == canonical.jcs_again([value])


def test_powers_of_ten_are_written_as_rfc8785_writes_them():
    for exponent in range(-330, 309):
        for digits in ("1", "-1.5", "0", "123456789.5"):
            number = f"{digits}e{exponent if digits != '123456789.5' else exponent - 9}"
            assert jcs_of(f'{{"n":{number}}}'.encode()) == rfc8785.dumps({"n": float(number)})


@pytest.mark.parametrize(
    "text",
    [b'{"a":1,"a":2}', b'{"a:b":1,"a:b":2}', b'{"a":{"b":1,"b":1}}', b'{"a":1,"\\u0061":2}', b'{"a":":","a":1}'],
)
def test_a_member_given_twice_is_never_lost(text):
    with pytest.raises(JsonError, match="given twice"):
        jcs_of(text)
    with pytest.raises(JsonError, match="given twice"):
        loads(text)


@pytest.mark.parametrize("digits", [19, 20, 400, 4000, 4001, 4300, 4301, 5000, 12_345])
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_of_any_size_keeps_every_digit(digits, sign):
    text = f'{{"n":[{sign}{"1234567890" * (digits // 10 + 1):.{digits}}]}}'.encode()
    assert jcs_of(text) == jcs(loads(text)) == text


@given(json_values)
@settings(max_examples=400)
def test_pretty_text_is_pythons(value):
    assert canonical.pretty(value) == json.dumps(value, sort_keys=True, indent=2).encode() + b"\n"


@pytest.mark.parametrize("value", [1e16, {"a": 1e-05}, [1e22, "\x7f"], {"a": [None, "1e5"]}, {}, [], {"a": {}}, 10**30])
def test_pretty_text_is_pythons_where_orjsons_is_not(value):
    assert canonical.pretty(value) == json.dumps(value, sort_keys=True, indent=2).encode() + b"\n"


def test_pretty_refuses_nan():
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical.pretty({"a": math.nan})


@given(json_values)
@settings(max_examples=400)
def test_what_we_wrote_is_read_as_the_careful_reading_reads_it(value):
    for text in (canonical.line({"a": value}), canonical.pretty({"a": value}), canonical.line([value])[:-1]):
        assert repr(loads(text)) == repr(canonical._parse(text)[0])


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "inside",
    ['"a":1,"a":1', '"a":99999999999999999999', '"a":-9223372036854775809', '"a":1e3', '"a":-0', '"a":1.50', '"a":NaN'],
)
def test_a_document_that_reads_back_otherwise_is_read_carefully(inside, indent):
    pieces = inside.replace(":", ": ").replace(",", ",\n  ")
    text = (f"{{{inside}}}" if indent is None else f"{{\n  {pieces}\n}}\n").encode()
    assert outcome(lambda data: repr(loads(data)), text) == outcome(lambda data: repr(canonical._parse(data)[0]), text)


def test_a_hundred_and_one_levels_are_refused_also_where_orjson_would_read_them():
    text = canonical.line(json.loads("[" * 101 + "]" * 101))
    with pytest.raises(JsonError, match="nested"):
        loads(text)
