"""Headers in which a stateless MCP client repeats arguments of a tool call (`Mcp-Param-…`), against its body. Pure.

A tool's schema marks such an argument with `x-mcp-header`; whoever stands between may have decided by the header, so
one that says something else than the body is refused (MCP 2026-07-28, custom headers from tool parameters; SEP-2243).
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import HeaderPairs

MARK = "x-mcp-header"
PREFIX = "mcp-param-"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DECIMAL = re.compile(r"(-?[0-9]+)(?:\.0+)?")
_ONE = frozenset(
    {
        *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties"),
        *("not", "if", "then", "else", "contentSchema"),
    }
)
_SEVERAL = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})


@dataclass(frozen=True, slots=True)
class Declared:
    """An argument that a header repeats."""

    path: tuple[str, ...]
    """Names from the arguments down to it."""
    header: str
    """Lower case."""
    integer: bool


def declared(schema: JsonValue) -> tuple[Declared, ...]:
    """The headers that a tool's schema asks for; none when one of its marks is not valid, for then no client sends any.

    A mark is valid on an integer, a string or a boolean that is reached through `properties` alone, when it is a token
    that no other mark of the schema is.
    """
    found: dict[str, Declared] = {}
    for path, node in _positions(schema):
        if MARK not in node:
            continue
        name, kind = node[MARK], node.get("type")
        valid = isinstance(name, str) and _TOKEN.fullmatch(name) and kind in ("integer", "string", "boolean")
        header = f"{PREFIX}{name}".lower()
        if not path or not valid or header in found:
            return ()
        found[header] = Declared(path, header, kind == "integer")
    return tuple(found.values())


def contradiction(wanted: Sequence[Declared], arguments: JsonValue, headers: HeaderPairs) -> str | None:
    """What a call's headers say otherwise than its body; `None` when they agree."""
    sent: dict[str, list[str]] = {}
    for name, value in headers:
        if name.lower().startswith(PREFIX):
            sent.setdefault(name.lower(), []).append(value.strip(" \t"))
    for each in wanted:
        values = sent.get(each.header, [])
        value = _at(arguments, each.path)
        shown = None if value is None else _text(value)
        argument = ".".join(each.path)
        name = f"Mcp-Param-{each.header.removeprefix(PREFIX)}"
        if len(values) > 1:
            return f"{name} appears more than once"
        if not values:
            if shown is not None:
                return f"{name} is missing, and the body has the argument {argument}"
            continue
        if shown is None or not _agree(each, value, shown, decoded(values[0])):
            return f"{name} is not the argument {argument} of the body"
    return None


def decoded(value: str) -> str | None:
    """The text that a header stands for: `=?base64?…?=` holds what no header can; `None` when it is broken."""
    if not (value.startswith("=?base64?") and value.endswith("?=") and len(value) >= 11):
        return value
    try:
        data = base64.b64decode(value[9:-2], validate=True)
        return data.decode() if base64.b64encode(data).decode() == value[9:-2] else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def _agree(each: Declared, value: JsonValue, shown: str, text: str | None) -> bool:
    if text is None:
        return False
    number = _DECIMAL.fullmatch(text) if each.integer and not isinstance(value, bool) else None
    if number is not None and isinstance(value, int | float) and value == int(value):
        return len(number[1]) < 1000 and int(number[1]) == int(value)  # 42 and 42.0 are one number
    return text == shown


def _text(value: JsonValue) -> str | None:
    """A scalar as a client writes it; `None` for anything that has no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | float):
        return str(value)
    return str(value) if isinstance(value, int) and value.bit_length() < 4096 else None


def _at(arguments: JsonValue, path: Sequence[str]) -> JsonValue:
    for name in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(name)
    return arguments


def _positions(schema: JsonValue) -> Iterator[tuple[tuple[str, ...] | None, dict[str, JsonValue]]]:
    """Every schema inside a schema, with the names that lead to it through `properties` alone, else `None`."""
    waiting: list[tuple[tuple[str, ...] | None, JsonValue]] = [((), schema)]
    while waiting:
        path, node = waiting.pop()
        if not isinstance(node, dict):
            continue
        yield path, node
        for word, inner in node.items():
            if word == "properties" and isinstance(inner, dict):
                waiting += [(None if path is None else (*path, name), one) for name, one in inner.items()]
            elif word in _ONE:
                waiting.append((None, inner))
            elif word in _SEVERAL and isinstance(inner, list):
                waiting += [(None, one) for one in inner]
            elif word in _NAMED and isinstance(inner, dict):
                waiting += [(None, one) for one in inner.values()]
