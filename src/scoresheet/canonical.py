"""JSON that is hashed: strict in, canonical bytes out. The only door for it.

`loads` refuses what two parsers read differently: duplicate keys, NaN and Infinity, numbers that overflow, lone
surrogates, more than `MAX_DEPTH` levels, a byte order mark, text that is not UTF-8. Integers keep every digit.

`jcs` writes RFC 8785 with one extension, stated in docs/formats: a literal without `.` or `e` is an exact integer of
any size. `v1_text` writes the text that `tool-replay-v1` hashes. Pure.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, cast

import orjson

from scoresheet.errors import Malformed

JsonValue = Any
"""None, bool, int, float, str, list or dict with string keys: JSON's edge, the one place where `Any` is meant."""

MAX_DEPTH = 100
MOST_DIGITS = 300
"""Of an integer in a file that people or scoresheet write: a float can still hold it. What an API said has no bound."""
_DIGITS = 4000
"""Python refuses to convert more than 4,300 digits at once, a guard against slow input: larger ones go by parts."""
_LARGE = 10**_DIGITS
_ASTRAL = re.compile(rb"[\xf0-\xf4]").search
_HIGH_BMP = re.compile(rb"[\xee\xef]").search
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]").search
_UNLIKE_PYTHON = re.compile(rb"(?:^|[:\n]) *-?(?:0\.0000|[0-9][0-9.]*e)").search
_PRETTY = (
    orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS
)
_UNLIKE_JCS = re.compile(rb"[:,\[]-?[0-9]+(?:\.0[,\]}]|\.0000|(?:\.[0-9]+)?e)").search
"""A double that orjson may write otherwise than RFC 8785 does: integral, below 1e-5, or with an exponent, which is also
how orjson shows an integer that it could not hold. A string that looks like one only costs time."""


class JsonError(Malformed):
    """Bytes that are not strict JSON; `where` is `line:column` when it is known."""


def loads(data: bytes | str, most_digits: int | None = None) -> JsonValue:
    """The value of strict JSON text; floats stay floats, integers are exact, and of `most_digits` where that is given.

    Raises `JsonError` and nothing else.
    """
    if isinstance(data, bytes):
        quick = _reread(data) or _quick(data)
        if quick is not None:
            return quick[0]
    return _parse(data, most_digits)[0]  # which is asked for every integer beyond 64 bits


def jcs(value: JsonValue) -> bytes:
    """RFC 8785 bytes of a value that `loads` could have given (docs/formats; vectors/fingerprint_v2.json).

    Raises `JsonError` for NaN, infinities, lone surrogates and values that are not JSON.
    """
    parts: list[str] = []
    _write(value, parts, 0)
    try:
        return "".join(parts).encode()
    except UnicodeEncodeError as error:
        raise JsonError("a string holds a lone surrogate, which UTF-8 cannot carry") from error


def jcs_of(data: bytes) -> bytes:
    """`jcs(loads(data))`, many times faster for everyday documents."""
    quick = _quick(data)
    if quick is not None:
        return quick[1]
    value, plain = _parse(data)
    return jcs_fast(value) if plain else jcs(value)


def _reread(data: bytes) -> tuple[JsonValue] | None:
    """The value by orjson, when orjson writes it back byte for byte, on one line or indented, as our own files are.

    Then nothing was lost in reading: a member given twice or a number that was not held would be written otherwise.
    """
    if data[:1] not in (b"{", b"[") or data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        return None
    option = orjson.OPT_APPEND_NEWLINE if data[-1:] == b"\n" else 0
    if data[1:2] == b"\n":
        option |= orjson.OPT_INDENT_2
    try:
        value = orjson.loads(data)
        return (value,) if orjson.dumps(value, option=option) == data else None
    except (orjson.JSONDecodeError, TypeError):
        return None  # `_parse` says what is wrong


def _quick(data: bytes) -> tuple[JsonValue, bytes] | None:
    """The value and its RFC 8785 text by orjson, when that is sure to be what the strict reading gives.

    An object or array, no `u` escape, no more brackets than levels are allowed: then what orjson reads and writes back
    can differ from the strict reading only by a member given twice, which loses a colon, or by numbers.
    """
    if data[:1] not in (b"{", b"[") or b"\\u" in data or data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        return None
    try:
        value = orjson.loads(data)
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONDecodeError, TypeError):
        return None  # `_parse` says what is wrong
    if data.count(b":") != text.count(b":") or _UNLIKE_JCS(text):
        return None
    return None if not text.isascii() and _HIGH_BMP(text) and _ASTRAL(text) else (value, text)


def jcs_fast(value: JsonValue) -> bytes:
    """`jcs(value)` for a value whose floats are all plain (see `_Numbers`): orjson's text is then RFC 8785's."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer beyond 64 bits, or a value that `jcs` names properly
        return jcs(value)
    # orjson sorts keys by code point, RFC 8785 by UTF-16 unit: they differ only where both ranges meet
    return jcs(value) if not text.isascii() and _HIGH_BMP(text) and _ASTRAL(text) else text


def jcs_again(value: JsonValue) -> bytes:
    """`jcs(value)` for a value that `loads` gave, whatever its numbers: quick where orjson's text is RFC 8785's."""
    if not isinstance(value, dict | list):
        return jcs(value)
    text = jcs_fast(value)
    return jcs(value) if _UNLIKE_JCS(text) else text


def v1_text(value: JsonValue) -> bytes:
    """The text that `tool-replay-v1` hashes: sorted keys, ASCII escapes, Python's float repr (fingerprint_v1.json)."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise JsonError(f"the value is not JSON: {error}") from error


def pretty(value: JsonValue) -> bytes:
    """The layout of manifests and reports: keys sorted, indent 2, ASCII, final newline (manifest_v1.json)."""
    try:  # Python indents by itself, slowly; orjson's text is the same but for what is looked for here
        text = orjson.dumps(value, option=_PRETTY)
    except TypeError:
        text = b"null"
    if b"null" in text or not text.isascii() or b"\x7f" in text or _UNLIKE_PYTHON(text):  # NaN becomes null
        text = json.dumps(value, sort_keys=True, indent=2, allow_nan=False).encode()
    return text + b"\n"


def line(value: JsonValue) -> bytes:
    """One compact UTF-8 line with a final newline, members in their own order: journals and receipts."""
    try:
        return orjson.dumps(value) + b"\n"
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


class _Numbers:
    """Decoder hooks of one parse, and whether all its floats are plain: orjson then writes RFC 8785's text."""

    __slots__ = ("plain",)

    def __init__(self) -> None:
        self.plain = True

    def float(self, text: str) -> float:
        number = float(text)
        if number - number != 0:
            raise JsonError(f"{text} is too large for a JSON number")
        if -1e-5 < number < 1e-5 or number.is_integer():
            self.plain = False  # 0.0, 1.0, 1e21, 1e-6: orjson and RFC 8785 write these differently
        return number


def integer(text: str) -> int:
    """The integer of any size that a JSON literal says."""
    if len(text) <= _DIGITS:
        return int(text)
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text)
    number = 0
    for start in range(0, len(digits), _DIGITS):
        part = digits[start : start + _DIGITS]
        number = number * 10 ** len(part) + int(part)
    return sign * number


def _constant(text: str) -> float:
    raise JsonError(f"{text} is not JSON")


def _members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # add() gives None: falsy
        raise JsonError(f"key {twice!r} is given twice")
    return members


def _parse(data: bytes | str, most_digits: int | None = None) -> tuple[JsonValue, bool]:
    numbers = _Numbers()

    def bounded(number: str) -> int:
        if most_digits is None or len(number.lstrip("-")) <= most_digits:
            return integer(number)
        before = text[: text.find(number)]
        what = f"an integer of {len(number.lstrip('-'))} digits, but {most_digits} are the most here"
        where = f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        raise JsonError(what, where, "write the number that it is meant to be")

    if isinstance(data, str):
        text, raw = data, data.encode("utf-8", "surrogatepass")
    else:
        raw = data
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise JsonError(f"not UTF-8 at byte {error.start}") from error
    if text.startswith("\ufeff"):
        raise JsonError("a byte order mark stands before the JSON")
    decoder = json.JSONDecoder(
        object_pairs_hook=_members, parse_float=numbers.float, parse_int=bounded, parse_constant=_constant
    )
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise JsonError(error.msg, f"{error.lineno}:{error.colno}") from error
    except RecursionError:
        raise JsonError(f"nested more than {MAX_DEPTH} levels deep") from None
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise JsonError(f"nested more than {MAX_DEPTH} levels deep")
    if _SURROGATE_ESCAPE(raw) or isinstance(data, str):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise JsonError("a string holds a lone surrogate, which UTF-8 cannot carry") from error
        except ValueError:  # an integer of more digits than Python writes
            jcs(value)
    return value, numbers.plain


def _depth(value: JsonValue) -> int:
    deepest = 0
    level: list[JsonValue] = [value]
    while level:
        below: list[JsonValue] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            else:
                continue
        if any(isinstance(item, dict | list) for item in level):
            deepest += 1
        level = below
        if deepest > MAX_DEPTH:
            break
    return deepest


_quote = json.encoder.encode_basestring  # RFC 8785 §3.2.2.2: short escapes, \u00xx for other controls, the rest as is


def _write(value: JsonValue, parts: list[str], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise JsonError(f"nested more than {MAX_DEPTH} levels deep")
    match value:
        case str():
            parts.append(_quote(value))
        case None:
            parts.append("null")
        case bool():
            parts.append("true" if value else "false")
        case int():
            parts.append(_integer_text(value))
        case float():
            parts.append(number(value))
        case list() | tuple():
            _write_all("[", "]", ((None, item) for item in value), parts, depth)
        case dict():
            try:
                keys = sorted(value, key=_utf16)
            except (AttributeError, UnicodeEncodeError) as error:
                raise JsonError("an object has a key that is not a string of Unicode characters") from error
            _write_all("{", "}", ((key, value[key]) for key in keys), parts, depth)
        case _:
            raise JsonError(f"a {type(value).__name__} is not JSON")


def _write_all(
    start: str, end: str, items: Iterable[tuple[str | None, JsonValue]], parts: list[str], depth: int
) -> None:
    separator = start
    for key, item in items:
        parts.append(separator)
        if key is not None:
            parts.append(_quote(key) + ":")
        _write(item, parts, depth + 1)
        separator = ","
    parts.append(end if separator == "," else start + end)


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be")  # RFC 8785 §3.2.3: keys are ordered by UTF-16 code units


def _integer_text(value: int) -> str:
    if -_LARGE < value < _LARGE:
        return str(value)
    sign, value = ("-", -value) if value < 0 else ("", value)
    parts: list[str] = []
    while value:
        value, part = divmod(value, 10**_DIGITS)
        parts.append(str(part).rjust(_DIGITS, "0"))
    return sign + "".join(reversed(parts)).lstrip("0")


def number(value: float) -> str:
    """RFC 8785 §3.2.2.3: the text that ECMAScript gives a double (ECMA-262 §6.1.6.1.20)."""
    if value - value != 0:
        raise JsonError(f"{value!r} is not JSON")
    if value == 0:
        return "0"
    sign, value = ("-", -value) if value < 0 else ("", value)
    mantissa, _, exponent = repr(value).partition("e")  # repr gives the shortest digits that read back
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        text = digits.ljust(point, "0") if len(digits) <= point else f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        power = point - 1
        head = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
        text = f"{head}e{'+' if power > 0 else '-'}{abs(power)}"
    return sign + text


def as_object(value: JsonValue) -> dict[str, JsonValue]:
    """`value`, when it is an object. Raises `JsonError` when it is anything else."""
    if not isinstance(value, dict):
        raise JsonError("the document must be a JSON object")
    return cast("dict[str, JsonValue]", value)
