"""The tools of a pack, and the way between a tool's arguments and its request (docs/formats, Tools and HTTP). Pure.

Forwards, arguments become the HTTP request that the recording holds. Backwards, the most literal template that fits a
request names the tool. Arguments are not judged here: replay does that against the tool's schema.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import quote, unquote

from scoresheet import canonical, json_pointer
from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import CALL, Request, Tool
from scoresheet.errors import Malformed
from scoresheet.pack import body, target

IN_QUERY = frozenset({"GET", "HEAD", "DELETE"})
"""Methods whose arguments go to the query instead of a JSON body."""
_JSON = (("Content-Type", "application/json"),)
_NAME = re.compile(r"\{([^{}/]+)\}")
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class _Template:
    tool: Tool
    pattern: re.Pattern[str]
    names: tuple[str, ...]
    literal: tuple[int, tuple[bool, ...]]
    """How literal it is: count of literal characters, then which segments are literal, from the left."""


@dataclass(slots=True)
class _Node:
    literal: "dict[str, _Node]" = field(default_factory=dict)
    patterned: "dict[str, tuple[re.Pattern[str], _Node]]" = field(default_factory=dict)
    ends: list[_Template] = field(default_factory=list)


class Toolbox:
    """The tools of one pack. Looking up costs the same whatever their number."""

    __slots__ = ("_remembered", "_roots", "by_name")

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Raises `Malformed` when two tools have one name."""
        by_name: dict[str, Tool] = {}
        self._roots: dict[tuple[str, str], _Node] = {}
        self._remembered: dict[tuple[str, str, str], _Template | None] = {}
        for tool in tools:
            if tool.name in by_name:
                raise Malformed(f"two tools are called {tool.name!r}", mend="give every tool its own name")
            by_name[tool.name] = tool
            if tool.http is not None:
                self._add(tool)
        self.by_name: Mapping[str, Tool] = MappingProxyType(by_name)

    def request_for(self, tool: Tool, arguments: Mapping[str, JsonValue]) -> Request:
        """The request that calling `tool` with `arguments` makes.

        Raises `Malformed` when an argument of the path is missing, or `arguments` are not JSON.
        """
        binding = tool.http
        if binding is None:
            return Request("", CALL, tool.name, _JSON, canonical.jcs(dict(arguments)))
        names = _NAME.findall(binding.path)
        missing = [name for name in names if name not in arguments]
        if missing:
            raise Malformed(f"the argument {missing[0]!r} is part of the path and is missing", tool.name)
        path = _NAME.sub(lambda found: quote(_text(arguments[found[1]]), safe=""), binding.path)
        rest = {name: value for name, value in arguments.items() if name not in names}
        method = binding.method.upper()
        if method in IN_QUERY:
            query = "&".join(_query(rest))
            return Request(binding.upstream, method, f"{path}?{query}" if query else path)
        if not rest and not _properties(tool).keys() - set(names):
            return Request(binding.upstream, method, path)  # a tool that has nothing to put into a body
        return Request(binding.upstream, method, path, _JSON, canonical.jcs(rest))

    def find(self, request: Request) -> tuple[Tool, JsonValue] | None:
        """The tool that a request calls, and its arguments; `None` when it calls none.

        The arguments of a readable request are an object. They are `None` for a body that can't be read as the tool's
        arguments, and any other JSON value when that was sent: no schema of a tool accepts these.
        """
        if _is_call(request):
            tool = self.by_name.get(request.target)
            return None if tool is None else (tool, _json(request.body) if request.body else {})
        template = self._template(request)
        if template is None:
            return None
        path = target.normal_path(request.target.partition("?")[0])
        found = template.pattern.fullmatch(path)
        assert found is not None
        properties = _properties(template.tool)
        values = zip(template.names, found.groups(), strict=True)
        arguments: dict[str, JsonValue] = {
            name: _coerced(unquote(value), properties.get(name), template.tool) for name, value in values
        }
        query = request.target.partition("?")[2].encode("utf-8", "surrogateescape")
        arguments |= _from_pairs(target.pairs(query), properties, template.tool)
        if not request.body:
            return template.tool, arguments
        sent = _from_body(request, properties, template.tool)
        return template.tool, arguments | sent if isinstance(sent, dict) else sent

    def rules_for(self, request: Request) -> tuple[Tool | None, tuple[str, ...], tuple[str, ...]]:
        """The tool that a request calls, and that tool's `vary` and `ignore` for the fingerprint."""
        if _is_call(request):
            tool = self.by_name.get(request.target)
            return (None, (), ()) if tool is None else (tool, (), tuple(tool.ignore))
        template = self._template(request)
        if template is None:
            return None, (), ()
        tool = template.tool
        return tool, () if tool.http is None else tuple(tool.http.vary), tuple(tool.ignore)

    def _add(self, tool: Tool) -> None:
        assert tool.http is not None
        path = target.normal_path(tool.http.path)
        node = self._roots.setdefault((tool.http.upstream, tool.http.method.upper()), _Node())
        for segment in path.split("/"):
            if _NAME.search(segment):
                pattern = _pattern(segment)
                node = node.patterned.setdefault(pattern.pattern, (pattern, _Node()))[1]
            else:
                node = node.literal.setdefault(segment, _Node())
        literal = len(_NAME.sub("", path)), tuple(not _NAME.search(segment) for segment in path.split("/"))
        node.ends.append(_Template(tool, _pattern(path), tuple(_NAME.findall(path)), literal))

    def _template(self, request: Request) -> _Template | None:
        if not self._roots:
            return None
        key = request.upstream, request.method.upper(), request.target.partition("?")[0]
        try:
            return self._remembered[key]
        except KeyError:
            segments = target.normal_path(key[2]).split("/")
            ends = [end for root in self._starts(key[0], key[1]) for end in _ends(root, segments, 0)]
            best = max(ends, key=lambda end: end.literal, default=None)
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = best
            return best

    def _starts(self, upstream: str, method: str) -> tuple[_Node, ...]:
        if upstream:
            root = self._roots.get((upstream, method))
            return () if root is None else (root,)
        return tuple(root for (_, known), root in self._roots.items() if known == method)  # v1 knows no upstreams


def _is_call(request: Request) -> bool:
    return request.method == CALL and not request.upstream


def _pattern(path: str) -> re.Pattern[str]:
    pieces = _NAME.split(path)
    return re.compile("".join("([^/]+)" if place % 2 else re.escape(piece) for place, piece in enumerate(pieces)))


def _ends(node: _Node, segments: list[str], depth: int) -> Iterable[_Template]:
    if depth == len(segments):
        yield from node.ends
        return
    below = node.literal.get(segments[depth])
    if below is not None:
        yield from _ends(below, segments, depth + 1)
    for pattern, patterned in node.patterned.values():
        if pattern.fullmatch(segments[depth]):
            yield from _ends(patterned, segments, depth + 1)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else canonical.jcs(value).decode()


def _query(arguments: Mapping[str, JsonValue]) -> Iterable[str]:
    for name, value in arguments.items():
        key = quote(name, safe="")
        for item in value if isinstance(value, list | tuple) else (value,):
            yield key if item is None else f"{key}={quote(_text(item), safe='')}"


def _json(data: bytes) -> JsonValue:
    try:
        return canonical.loads(data)
    except canonical.JsonError:
        return None


def _from_body(request: Request, properties: Mapping[str, JsonValue], tool: Tool) -> JsonValue:
    data = body.readable(request)
    if data is None:
        return None
    media = body.media_type(request.header("content-type"))
    if body.is_json(media):
        return _json(data)
    if media == "application/x-www-form-urlencoded":
        return _from_pairs(target.pairs(data), properties, tool)
    return None


def _from_pairs(pairs: target.Pairs, properties: Mapping[str, JsonValue], tool: Tool) -> dict[str, JsonValue]:
    values: dict[str, list[JsonValue]] = {}
    for name, value in pairs:
        values.setdefault(_plain(name), []).append(value if value is None else _plain(value))
    arguments: dict[str, JsonValue] = {}
    for name, found in values.items():
        schema = properties.get(name)
        types = _types(schema, tool)
        if "array" in types:
            items = _resolved(schema, tool).get("items")
            arguments[name] = [_coerced(value, items, tool) for value in found]
        elif len(found) > 1:
            arguments[name] = [_coerced(value, schema, tool) for value in found]  # the schema will refuse the list
        else:
            arguments[name] = _coerced(found[0], schema, tool)
    return arguments


def _plain(part: JsonValue) -> str:
    return str(part["raw"] if isinstance(part, dict) else part)


def _properties(tool: Tool) -> Mapping[str, JsonValue]:
    properties = _resolved(tool.input_schema, tool).get("properties")
    return properties if isinstance(properties, dict) else {}


def _resolved(schema: JsonValue, tool: Tool) -> dict[str, JsonValue]:
    for _ in range(16):  # a chain of references; a ring of them ends here too
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        found: JsonValue = tool.input_schema
        for part in reference[2:].split("/"):
            found = found.get(json_pointer.name(part)) if isinstance(found, dict) else None
        schema = found
    return {}


def _types(schema: JsonValue, tool: Tool, depth: int = 0) -> frozenset[str]:
    resolved = _resolved(schema, tool)
    declared = resolved.get("type")
    if isinstance(declared, str):
        return frozenset({declared})
    if isinstance(declared, list):
        return frozenset(name for name in declared if isinstance(name, str))
    choices = resolved.get("anyOf") or resolved.get("oneOf")
    if isinstance(choices, list) and depth < 8:
        return frozenset().union(*(_types(choice, tool, depth + 1) for choice in choices))
    values = resolved.get("enum")
    if isinstance(values, list):
        return frozenset(_NAMES.get(type(value), "object") for value in values)
    return frozenset()


_NAMES: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _coerced(value: str | None, schema: JsonValue, tool: Tool) -> JsonValue:
    """`value` as the schema's type, when it is spelt so; else the text, which the schema will judge."""
    types = _types(schema, tool)
    if value is None:
        return None if "null" in types else True if "boolean" in types else ""
    if "boolean" in types and value in ("true", "false"):
        return value == "true"
    if ("integer" in types and _INTEGER.fullmatch(value)) or ("number" in types and _NUMBER.fullmatch(value)):
        return _json(value.encode())
    if "null" in types and "string" not in types and value in ("", "null"):
        return None
    if "object" in types and value.startswith("{"):
        found = _json(value.encode())
        return value if found is None else found
    return value
