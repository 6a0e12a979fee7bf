"""Tools that an OpenAPI 3.x description names: one for each operation. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from scoresheet import json_pointer
from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import Tool
from scoresheet.errors import Malformed

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_REFERENCE = "#/components/schemas/"


def tools(document: JsonValue, upstream: str, base: str = "", where: str = "") -> tuple[Tool, ...]:
    """The tools of an OpenAPI document, whose requests go to `upstream`.

    `base` is the path of the upstream's address: it is taken off the paths. Raises `Malformed`.
    """
    if not isinstance(document, dict) or not str(document.get("openapi", "")).startswith("3."):
        raise Malformed("not an OpenAPI 3.x document", where, "give a description that says `openapi: 3.…`")
    try:
        return _tools(document, upstream, base, where)
    except (
        TypeError,
        AttributeError,
        KeyError,
        ValueError,
        RecursionError,
    ) as error:  # a list where an object belongs, and so on
        raise Malformed(
            f"not a valid OpenAPI document: {error}", where, "check it against OpenAPI's own schema"
        ) from error


def _tools(document: dict[str, Any], upstream: str, base: str, where: str) -> tuple[Tool, ...]:
    spec = _Description(document, where)
    servers = document.get("servers")
    server = servers[0].get("url", "") if isinstance(servers, list) and servers else ""
    prefix = urlsplit(server).path.rstrip("/")
    found: dict[str, Tool] = {}
    for path, method, item, operation in spec.operations():
        full = prefix + path
        full = full.removeprefix(base) if base else full
        tool = spec.tool(full or "/", method, item, operation, upstream)
        if tool.name in found:
            raise Malformed(
                f"two operations are called {tool.name!r}", where, "give every operation its own operationId"
            )
        found[tool.name] = tool
    return tuple(found.values())


class _Description:
    """An OpenAPI document, with its references followed."""

    def __init__(self, document: dict[str, Any], where: str) -> None:
        self.document = document
        self.where = where

    def operations(self) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
        """Path, method, path item and operation."""
        for path, item in self._object(self.document.get("paths")).items():
            item = self.followed(item)
            for method in METHODS:
                if method in item:
                    yield path, method.upper(), item, self._object(item[method])

    def tool(
        self, path: str, method: str, item: Mapping[str, Any], operation: Mapping[str, Any], upstream: str
    ) -> Tool:
        """The tool of one operation."""
        properties: dict[str, JsonValue] = {}
        required: set[str] = set()
        for parameter in self._parameters(item, operation):
            if parameter.get("in") in ("path", "query"):
                name = parameter["name"]
                schema = dict(self._object(parameter.get("schema")))
                if parameter.get("description"):
                    schema.setdefault("description", parameter["description"])
                properties[name] = schema
                if parameter.get("required") or parameter["in"] == "path":
                    required.add(name)
        whole = self._body(operation, properties, required)
        schema = {"type": "object", "properties": properties}
        if whole is None:
            schema["additionalProperties"] = False
        else:
            schema["allOf"] = [whole]
        if required:
            schema["required"] = sorted(required)
        name = operation.get("operationId") or f"{method.lower()}_{path}"
        value = {
            "name": re.sub(r"[^A-Za-z0-9.-]+", "_", name).strip("_")[:128],
            "description": "\n\n".join(filter(None, (operation.get("summary"), operation.get("description")))),
            "inputSchema": self._closed(schema),
            "http": {"upstream": upstream, "method": method, "path": path},
        }
        if method in ("GET", "HEAD"):
            value["annotations"] = {"readOnlyHint": True}
        return Tool.from_value(value, f"{self.where}#{path}")

    def _parameters(self, item: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        own = {}
        for parameter in (*item.get("parameters", ()), *operation.get("parameters", ())):
            parameter = self.followed(parameter)
            if not isinstance(parameter.get("name"), str):
                raise Malformed("a parameter has no name", self.where)
            own[parameter.get("name"), parameter.get("in")] = parameter  # the operation's own wins (OpenAPI §4.8.10)
        yield from own.values()

    def _body(self, operation: Mapping[str, Any], properties: dict[str, JsonValue], required: set[str]) -> JsonValue:
        """Take in the members of the request body; a schema to add whole when its members can't be listed."""
        body = self.followed(operation.get("requestBody", {}))
        content = self._object(body.get("content"))
        media = next((name for name in content if "json" in name or name.endswith("x-www-form-urlencoded")), None)
        schema = content[media].get("schema") if media else None
        if not isinstance(schema, dict):
            return None
        found: dict[str, JsonValue] = {}
        needed: set[str] = set()
        if not self._members(schema, found, needed, 0):
            return schema
        for name, member in found.items():
            properties.setdefault(name, member)
        if body.get("required"):
            required |= needed
        return None

    def _members(self, schema: Mapping[str, Any], found: dict[str, JsonValue], needed: set[str], depth: int) -> bool:
        schema = self.followed(schema)
        parts: Sequence[Any] = schema.get("allOf", ())
        if depth > 16 or "oneOf" in schema or "anyOf" in schema or not ("properties" in schema or parts):
            return False
        if schema.get("additionalProperties") not in (None, False):
            return False
        found.update(schema.get("properties", {}))
        needed.update(schema.get("required", ()))
        return all(self._members(part, found, needed, depth + 1) for part in parts)

    def _closed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema with every component that it refers to under its own `$defs`, as JSON Schema 2020-12."""
        definitions: dict[str, Any] = {}
        waiting: list[str] = []
        closed: dict[str, Any] = self._moved(schema, waiting)
        while waiting:
            name = waiting.pop()
            if name not in definitions:
                definitions[name] = True
                definitions[name] = self._moved(self.followed({"$ref": _REFERENCE + name}), waiting)
        return closed | {"$defs": definitions} if definitions else closed

    def _moved(self, value: JsonValue, waiting: list[str]) -> Any:
        match value:
            case {"$ref": str(reference), **others}:
                name = reference.removeprefix(_REFERENCE)
                if reference.startswith(_REFERENCE) and "/" not in name:
                    waiting.append(name)
                    return {"$ref": f"#/$defs/{name}", **self._moved(others, waiting)}
                return self._moved({**self.followed(value), **others}, waiting)
            case dict():
                moved = {key: self._moved(item, waiting) for key, item in value.items()}
                return _of_2020(moved) if "type" in moved else moved
            case list():
                return [self._moved(item, waiting) for item in value]
            case _:
                return value

    def followed(self, value: JsonValue) -> dict[str, Any]:
        """`value`, or what its `$ref` refers to inside the document. Raises `Malformed`."""
        for _ in range(32):
            if not (isinstance(value, dict) and isinstance(value.get("$ref"), str)):
                return self._object(value)
            reference = value["$ref"]
            if not reference.startswith("#/"):
                mend = "bundle the description into one file"
                raise Malformed(f"{reference} is outside the document, and nothing is fetched", self.where, mend)
            value = self.document
            for part in reference[2:].split("/"):
                part = json_pointer.name(part)
                if not isinstance(value, dict) or part not in value:
                    raise Malformed(f"{reference} refers to nothing", self.where)
                value = value[part]
        raise Malformed("references go round in a ring", self.where)

    def _object(self, value: JsonValue) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise Malformed("the document has a value where an object belongs", self.where)
        return value


def _of_2020(schema: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.0's own words in JSON Schema 2020-12: `nullable`, boolean exclusive bounds."""
    if not isinstance(schema["type"], str):
        return schema
    new = dict(schema)
    if new.pop("nullable", False) is True:
        new["type"] = [schema["type"], "null"]
        if isinstance(new.get("enum"), list) and None not in new["enum"]:
            new["enum"] = [*new["enum"], None]
    for bound in ("Minimum", "Maximum"):
        if isinstance(new.get(f"exclusive{bound}"), bool):
            exclusive = new.pop(f"exclusive{bound}")
            if exclusive and bound.lower() in new:
                new[f"exclusive{bound}"] = new.pop(bound.lower())
    return new
