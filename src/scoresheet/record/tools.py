"""Tools that traffic shows: templates of paths, and schemas of the arguments that were sent. Pure.

The result depends on the set of requests, not on their order: a pack recorded task by task, in any order, ends with
the same files. A path segment is a parameter when it looks like an id, or when several values of it were answered
alike (JSON with mostly the same members); what differs in its answers is another endpoint.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scoresheet import canonical, json_pointer
from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import CALL, Request, Response, Tool
from scoresheet.pack import body as bodies
from scoresheet.pack import fingerprint, target
from scoresheet.pack.toolbox import Toolbox
from scoresheet.record.exchange import media_type, readable

VARYING = ("accept", "range")
"""Headers that freezing wants in `vary` when they tell two recordings apart."""

_ID = re.compile(
    r"""(?x)
      -?\d+
    | [0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}
    | (?=[a-fA-F]*\d)[0-9a-fA-F]{8,}
    | \d{4}-\d{2}(?:-\d{2})?(?:[T_][\d:.Z+-]+)?
    | [A-Za-z]{1,12}[_:~-]\d[\w-]*
    | (?=[A-Za-z]*\d)[A-Za-z]{1,12}_[A-Za-z0-9]{6,}
    | (?!v\d)[A-Za-z]{1,4}\d{2,}
    | (?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_-]{16,}
    | [^@/\s]+@[^@/\s]+\.[A-Za-z]{2,}
    """
)
_EXTENSION = re.compile(r"(.+?)(\.[A-Za-z][A-Za-z0-9]{0,7})")
_SLOT = re.compile(r"\{[^{}/]*\}")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ALIKE = 0.5
"""Share of members that two answers must have in common to be of one endpoint."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One recorded request, as far as tools are concerned."""

    request: Request
    """As it is kept."""
    members: frozenset[str] | None = None
    """Top-level members of a JSON answer that succeeded; `None` when that tells nothing."""
    sent: Request | None = None
    """Before redaction, when that is known: types come from it, no value is kept."""

    @classmethod
    def of(cls, request: Request, response: Response, sent: Request | None = None) -> "Observation":
        """The observation of one call."""
        return cls(request, _members(response), sent)


@dataclass(frozen=True, slots=True)
class _Sent:
    """The arguments of one request, before they have types: texts from path, query and form, values from JSON."""

    texts: Mapping[str, tuple[str | None, ...]]
    values: Mapping[str, JsonValue]
    readable: bool


def infer(
    seen: Iterable[Observation], tools: Iterable[Tool], ignored: Mapping[Request, Sequence[str]]
) -> tuple[Tool, ...]:
    """The tools after this traffic, by name: those that are not `inferred` unchanged but for their `ignore`, the
    inferred ones made anew from all of it. `ignored` adds `ignore` rules to the tool of a request.
    """
    observations = tuple(seen)
    known = tuple(tools)
    fixed = [tool for tool in known if not tool.inferred]
    owned = Toolbox(fixed)
    called = [each for each in observations if each.request.method != CALL]  # a call by name shows no path
    free = [each for each in called if owned.rules_for(each.request)[0] is None]
    made: list[Tool] = []
    templates = sorted(_templates(free), key=lambda found: (found[0], found[1], found[2]))
    taken = {tool.name for tool in fixed}
    before = {_place(tool): tool for tool in known if tool.inferred}
    names = {tool.name for tool in before.values()} | taken
    for upstream, method, path, members in templates:
        old = before.get((upstream, method, _SLOT.sub("{}", path)))
        made.append(_tool(upstream, method, path, members, old, names))
        names.add(made[-1].name)
    return _with_rules(fixed + made, observations, ignored)


def of_calls(name: str, arguments: Iterable[JsonValue]) -> Tool:
    """A tool without HTTP that only its calls show: every call's arguments fit its schema."""
    schema: JsonValue = None
    for value in arguments:
        own = _value_schema(value)
        schema = own if schema is None else _union(schema, own)
    members = {"name": name, "description": "known from its calls only"}
    return Tool.from_value(members if schema is None else members | {"inputSchema": schema}, f"tools/{name}.json")


def unfit(tools: Iterable[Tool], requests: Iterable[Request]) -> Iterator[tuple[Request, str]]:
    """Requests whose arguments the schema of their own tool refuses, and why."""
    import jsonschema_rs

    toolbox = Toolbox(tools)
    validators = {
        name: jsonschema_rs.Draft202012Validator(tool.input_schema)
        for name, tool in toolbox.by_name.items()
        if tool.input_schema is not None
    }
    for request in requests:
        found = toolbox.find(request)
        if found is not None and found[0].name in validators:
            errors = [error.message for error in validators[found[0].name].iter_errors(found[1])]
            if errors:
                yield request, f"{found[0].name}: {errors[0]}"


def _with_rules(
    tools: Sequence[Tool], observations: Sequence[Observation], ignored: Mapping[Request, Sequence[str]]
) -> tuple[Tool, ...]:
    toolbox = Toolbox(tools)
    ignore: dict[str, set[str]] = defaultdict(set)
    vary: dict[str, set[str]] = defaultdict(set)
    for request, rules in ignored.items():
        tool = toolbox.rules_for(request)[0]
        if tool is not None:
            ignore[tool.name].update(rules)
    told_apart: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in observations:
        tool, varying, rules = toolbox.rules_for(each.request)
        if tool is not None and tool.http is not None:
            digest = fingerprint.v2(each.request, varying, (*rules, *sorted(ignore[tool.name])))
            for name in VARYING:
                told_apart[tool.name, digest][name].add(each.request.header(name))
    for (tool_name, _), values in told_apart.items():
        vary[tool_name].update(name for name, found in values.items() if len(found) > 1)
    return tuple(
        _widened(tool, ignore[tool.name], vary[tool.name]) for tool in sorted(tools, key=lambda tool: tool.name)
    )


def _widened(tool: Tool, ignore: set[str], vary: set[str]) -> Tool:
    value = tool.as_json()
    if not ignore <= set(tool.ignore):
        value["ignore"] = sorted({*tool.ignore, *ignore})
    if tool.http is not None and not vary <= set(tool.http.vary):
        value["http"]["vary"] = sorted({*tool.http.vary, *vary})
    if tool.inferred and value.get("ignore") and isinstance(value.get("inputSchema"), dict):
        value["inputSchema"] = _loosened(value["inputSchema"], value["ignore"])
    return Tool.from_value(value, f"tools/{tool.name}.json")


def _loosened(schema: dict[str, JsonValue], ignore: Sequence[str]) -> dict[str, JsonValue]:
    """The schema, with no demand on members that do not count."""
    free = {json_pointer.name(rule.split("/")[2]) for rule in ignore if rule.count("/") == 2}
    properties = {
        name: {"description": "A credential: it is not compared."} if name in free else property_
        for name, property_ in schema.get("properties", {}).items()
    }
    required = [name for name in schema.get("required", []) if name not in free]
    loose = {key: value for key, value in schema.items() if key != "required"} | {"properties": properties}
    return loose | ({"required": required} if required else {})


def _place(tool: Tool) -> tuple[str, str, str]:
    assert tool.http is not None  # an inferred tool was seen over HTTP
    return tool.http.upstream, tool.http.method, _SLOT.sub("{}", tool.http.path)


# Templates


_Key = tuple[str, ...]
"""Segments of a path; `{}` stands for a parameter and may have an extension behind it."""


def _templates(observations: Sequence[Observation]) -> Iterator[tuple[str, str, str, tuple[Observation, ...]]]:
    """Upstream, method, path template and the observations of every endpoint."""
    groups: dict[tuple[str, str, int], list[tuple[_Key, Observation]]] = defaultdict(list)
    for each in observations:
        request = each.request
        segments = target.normal_path(request.target.partition("?")[0]).split("/")
        key = tuple(_slotted(segment) for segment in segments)
        groups[request.upstream, request.method.upper(), len(key)].append((key, each))
    for (upstream, method, _), found in groups.items():
        merged = _merge(found)
        for key, members in merged.items():
            yield upstream, method, _named(key, members), tuple(members)


def _slotted(segment: str) -> str:
    if _ID.fullmatch(segment):
        return "{}"
    parts = _EXTENSION.fullmatch(segment)
    return "{}" + parts[2] if parts and _ID.fullmatch(parts[1]) else segment.replace("{", "%7B").replace("}", "%7D")


def _merge(found: Sequence[tuple[_Key, Observation]]) -> dict[_Key, list[Observation]]:
    """Endpoint → its observations: keys that differ in one literal segment and were answered alike become one."""
    merged: dict[_Key, list[Observation]] = defaultdict(list)
    for key, each in found:
        merged[key].append(each)
    for place in reversed(range(len(found[0][0]))):
        siblings: dict[tuple[_Key, str], list[_Key]] = defaultdict(list)
        for key in sorted(merged):
            if key[place] and not _SLOT.search(key[place]):
                parts = _EXTENSION.fullmatch(key[place])
                slot = "{}" + parts[2] if parts else "{}"
                siblings[(*key[:place], slot, *key[place + 1 :]), slot].append(key)
        for (slotted, _), keys in siblings.items():
            known = {slotted: merged[slotted]} if slotted in merged else {}
            joined = [key for key in _alike({key: merged[key] for key in keys} | known) if key != slotted]
            if slotted in merged or joined:
                silent = [key for key in keys if not any(each.members is not None for each in merged[key])]
                for key in dict.fromkeys((*joined, *silent)):
                    merged[slotted] += merged.pop(key)
    return merged


def _alike(siblings: Mapping[_Key, Sequence[Observation]]) -> list[_Key]:
    """The siblings whose answers have mostly the same members as another one's."""
    members = {
        key: frozenset[str]().union(*(each.members for each in seen if each.members)) for key, seen in siblings.items()
    }
    return [
        key
        for key, own in members.items()
        if own
        and any(
            other is not key and len(own & theirs) >= _ALIKE * len(own | theirs) for other, theirs in members.items()
        )
    ]


def _named(key: _Key, members: Sequence[Observation]) -> str:
    """The path template with names for its parameters."""
    taken = {name for each in members for name in _own_arguments(each.request)}
    names: list[str] = []
    segments = []
    for place, segment in enumerate(key):
        if _SLOT.search(segment):
            before = key[place - 1] if place else ""
            noun = "" if _SLOT.search(before) else _noun(before)
            plain = "_".join(filter(None, (noun, "id")))
            numbered = (plain, *(f"{plain}_{number}" for number in range(2, 99)))
            name = next(name for name in numbered if name not in taken and name not in names)
            names.append(name)
            segment = segment.replace("{}", f"{{{name}}}")
        segments.append(segment)
    return "/".join(segments)


def _noun(segment: str) -> str:
    word = re.sub(r"[^a-z0-9]+", "_", segment.lower()).strip("_")
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _own_arguments(request: Request) -> Iterator[str]:
    sent = _arguments(request, None)
    yield from sent.texts
    yield from sent.values


# Tools


def _tool(
    upstream: str, method: str, path: str, members: Sequence[Observation], old: Tool | None, taken: set[str]
) -> Tool:
    if old is not None and old.http is not None and not _clash(old.http.path, members):
        path = old.http.path
    schema = _schema(path, members)
    if old is not None:
        value = old.as_json()
        if schema is None:
            value.pop("inputSchema", None)
        elif isinstance(old.input_schema, dict):
            value["inputSchema"] = _merged_objects(old.input_schema, schema, required=schema.get("required", []))
        if path != value["http"]["path"]:
            value["http"]["path"] = path
            value["inputSchema"] = schema
        return Tool.from_value(value, f"tools/{old.name}.json")
    value = {
        "name": _tool_name(upstream, method, path, taken),
        "description": f"{method} {path}",
        "http": {"upstream": upstream, "method": method, "path": path},
        "inferred": True,
    }
    if method in ("GET", "HEAD"):
        value["annotations"] = {"readOnlyHint": True}
    if schema is not None:
        value["inputSchema"] = schema
    return Tool.from_value(value, "tools")


def _clash(path: str, members: Sequence[Observation]) -> bool:
    """Whether a parameter of the path has the name of an argument that came with it."""
    return not {found[1:-1] for found in _SLOT.findall(path)}.isdisjoint(
        name for each in members for name in _own_arguments(each.request)
    )


def _tool_name(upstream: str, method: str, path: str, taken: set[str]) -> str:
    words = [method.lower()]
    for segment in path.split("/"):
        stem = _EXTENSION.fullmatch(segment)
        word = stem[1] if stem else segment
        words.append(f"by_{word.strip('{}')}" if _SLOT.search(word) else re.sub(r"[^a-z0-9]+", "_", word.lower()))
    name = "_".join(filter(None, (word.strip("_") for word in words)))[:64].rstrip("_")
    candidates = [name, f"{upstream.lower()}_{name}"[:64], *(f"{name[:60]}_{n}" for n in range(2, 1000))]
    return next(candidate for candidate in candidates if candidate not in taken)


def _schema(path: str, members: Sequence[Observation]) -> dict[str, JsonValue] | None:
    """The schema that the arguments of every member fit; `None` when some are no arguments that can be read."""
    pattern = re.compile("([^/]+)".join(map(re.escape, _SLOT.split(path))))
    slots = [found[1:-1] for found in _SLOT.findall(path)]
    every: list[_Sent] = []
    counts: dict[str, int] = defaultdict(int)
    for each in members:
        kept = _arguments(each.request, (pattern, slots))
        sent = kept if each.sent is None else _arguments(each.sent, (pattern, slots))
        if not (kept.readable and sent.readable):
            return None
        every += [kept] if sent is kept else [kept, sent]
        for name in {*kept.texts, *kept.values}:
            counts[name] += 1
    properties: dict[str, JsonValue] = {}
    for name in sorted(counts):
        texts = [sent.texts[name] for sent in every if name in sent.texts]
        values = [sent.values[name] for sent in every if name in sent.values]
        found = [_text_schema(texts)] if texts else []
        found += [_value_schema(value) for value in values]
        merged = found[0]
        for more in found[1:]:
            merged = _union(merged, more)
        properties[name] = merged
    required = sorted(name for name, count in counts.items() if count == len(members))
    schema: dict[str, JsonValue] = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": required} if required else {})


def _arguments(request: Request, template: tuple[re.Pattern[str], Sequence[str]] | None) -> _Sent:
    path, _, query = request.target.partition("?")
    texts: dict[str, list[str | None]] = defaultdict(list)
    if template is not None:
        found = template[0].fullmatch(target.normal_path(path))
        for name, value in zip(template[1], found.groups() if found else (), strict=False):
            texts[name].append(value)
    pairs = target.pairs(query.encode("utf-8", "surrogateescape"))
    values: dict[str, JsonValue] = {}
    plain = True
    if request.body:
        data = bodies.readable(request)
        media = bodies.media_type(request.header("content-type"))
        if data is not None and bodies.is_json(media):
            value = _json(data)
            plain = isinstance(value, dict)
            values = value if isinstance(value, dict) else {}
        elif data is not None and media == "application/x-www-form-urlencoded":
            pairs = pairs + target.pairs(data)
        else:
            plain = False
    for key, text in pairs:
        name = key if isinstance(key, str) else str(key)
        texts[name].append(text if text is None or isinstance(text, str) else str(text))
        plain = plain and isinstance(key, str)
    return _Sent({name: tuple(found) for name, found in texts.items()}, values, plain)


def _json(data: bytes) -> JsonValue:
    try:
        return canonical.loads(data)
    except canonical.JsonError:
        return None


def _text_schema(texts: Sequence[tuple[str | None, ...]]) -> JsonValue:
    flat = [text for found in texts for text in found]
    if all(text is None for text in flat):
        one: JsonValue = {"type": "boolean"}
    elif all(text is not None and _INTEGER.fullmatch(text) for text in flat):
        one = {"type": "integer"}
    elif all(text is not None and _NUMBER.fullmatch(text) for text in flat):
        one = {"type": "number"}
    elif all(text in ("true", "false") for text in flat):
        one = {"type": "boolean"}
    else:
        one = {"type": "string"}
    return {"type": "array", "items": one} if any(len(found) > 1 for found in texts) else one


def _value_schema(value: JsonValue) -> JsonValue:
    match value:
        case None:
            return {"type": "null"}
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "integer" if value.is_integer() else "number"}
        case str():
            return {"type": "string"}
        case list():
            schema: JsonValue = {"type": "array"}
            for item in value:
                items = _value_schema(item)
                schema["items"] = _union(schema["items"], items) if "items" in schema else items
            return schema
        case _:
            properties = {name: _value_schema(item) for name, item in value.items()}
            required = {"required": sorted(properties)} if properties else {}
            return {"type": "object", "properties": properties, **required}


def _union(one: JsonValue, other: JsonValue) -> JsonValue:
    """A schema that whatever fits one of the two fits; what people added to the first is kept."""
    if not one or not other:  # {} takes everything
        return one or other if one == other else {}
    types = sorted({*_types(one), *_types(other)})
    if not _types(one) or not _types(other):
        return one
    if "number" in types and "integer" in types:
        types.remove("integer")
    joined = {**other, **one, "type": types[0] if len(types) == 1 else types}
    if "properties" in one and "properties" in other:
        common = sorted({*one.get("required", [])} & {*other.get("required", [])})
        joined = _merged_objects(one, other, common) | {"type": joined["type"]}
    if "items" in one and "items" in other:
        joined["items"] = _union(one["items"], other["items"])
    return joined


def _merged_objects(
    one: dict[str, JsonValue], other: dict[str, JsonValue], required: Sequence[str]
) -> dict[str, JsonValue]:
    mine, theirs = one.get("properties", {}), other.get("properties", {})
    properties = {
        name: _union(mine[name], theirs[name]) if name in mine and name in theirs else mine.get(name, theirs.get(name))
        for name in sorted({*mine, *theirs})
    }
    joined = {key: value for key, value in {**other, **one}.items() if key != "required"} | {"properties": properties}
    return joined | ({"required": sorted(required)} if required else {})


def _types(schema: JsonValue) -> tuple[str, ...]:
    declared = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(declared, str):
        return (declared,)
    return tuple(declared) if isinstance(declared, list) else ()


def _members(response: Response) -> frozenset[str] | None:
    if response.fault is not None or not 200 <= response.status < 300:
        return None
    data = readable(response.headers, response.body)
    if data is None or not bodies.is_json(media_type(response.headers)):
        return None
    match _json(data):
        case dict() as value if value:
            return frozenset(value)
        case [dict() as first, *_]:
            return frozenset(f"[]{name}" for name in first)
        case _:
            return None
