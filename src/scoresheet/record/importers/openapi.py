"""Examples in OpenAPI 3 descriptions: a request and its answer under one name. Pure.

An example is no recording: no service ever answered so. Parameters, body and answer belong together when their examples
have one name; unnamed ones (`example`) belong together too. Tools come from the description (record/openapi).
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from scoresheet import canonical, json_pointer
from scoresheet.errors import Malformed
from scoresheet.record import openapi
from scoresheet.record.importers.intake import Intake, Source
from scoresheet.record.importers.shape import LeftOut, bounded, json_of, json_text, obj, rows
from scoresheet.record.importers.vcr import document

_UNNAMED = ""


def read(source: Source, intake: Intake) -> None:
    """Take the examples of a description, and its tools. Raises `Malformed`, and `Usage` when no host is named."""
    value = json_of(source.data, source.name) if source.name.endswith(".json") else document(source)
    try:
        spec = json.loads(json.dumps(bounded(value, source.name), default=str))  # numbers for keys, dates, become text
    except (TypeError, ValueError, RecursionError) as error:
        raise Malformed(f"not an OpenAPI description: {error}", source.name) from error
    host = intake.hosts.only()
    tools = {
        tool.http.path + " " + tool.http.method: tool
        for tool in openapi.tools(spec, host.name, host.base, source.name)
        if tool.http
    }
    reader = _Examples(spec, source.name)
    prefix = urlsplit(reader.server).path.rstrip("/")
    for path, item in obj(spec.get("paths") or {}, "paths").items():
        for method in openapi.METHODS:
            operation = reader.followed(item).get(method)
            if not isinstance(operation, dict):
                continue
            where = f"{source.name}#/paths/{json_pointer.step(path)}/{method}"
            kinds: set[str] = set()
            with intake.entry(where):
                kinds = _operation(
                    where, prefix + path, method.upper(), reader.followed(item), operation, reader, intake
                )
            name = f"{(prefix + path).removeprefix(host.base) or '/'} {method.upper()}"
            if len(kinds) > 1 and name in tools and (http := tools[name].http) is not None:
                tools[name] = tools[name].model_copy(update={"http": http.model_copy(update={"vary": ("accept",)})})
    for tool in tools.values():
        intake.tool_of_http(tool)


@dataclasses.dataclass(frozen=True, slots=True)
class _Examples:
    document: Mapping[str, Any]
    where: str

    @property
    def server(self) -> str:
        first = next(rows(self.document.get("servers")), {})
        return str(first.get("url", ""))

    def followed(self, value: Any) -> dict[str, Any]:
        """The object, or what its reference names in this document; `{}` when that is nothing."""
        for _ in range(32):
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                return value if isinstance(value, dict) else {}
            reference, value = value["$ref"], self.document
            for part in reference.removeprefix("#/").split("/"):
                value = value.get(json_pointer.name(part)) if isinstance(value, dict) else None
        return {}

    def of(self, holder: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Name and value of every example of a parameter or a media type."""
        if "example" in holder:
            yield _UNNAMED, holder["example"]
        for name, example in self.followed(holder.get("examples")).items():
            found = self.followed(example)
            if "value" in found:
                yield name, found["value"]

    def outside(self, holder: Mapping[str, Any]) -> bool:
        return any("externalValue" in self.followed(each) for each in self.followed(holder.get("examples")).values())


def _operation(
    where: str,
    path: str,
    method: str,
    item: dict[str, Any],
    operation: dict[str, Any],
    reader: _Examples,
    intake: Intake,
) -> set[str]:
    """Take the examples of one operation; the media types of their answers."""
    parameters: dict[tuple[Any, Any], dict[str, Any]] = {}
    for each in (*rows(item.get("parameters")), *rows(operation.get("parameters"))):
        parameter = reader.followed(each)
        own = parameters.get((parameter.get("name"), parameter.get("in")), {})
        parameters[parameter.get("name"), parameter.get("in")] = own | parameter
    bodies = {
        (name, media): value
        for media, content in reader.followed(reader.followed(operation.get("requestBody")).get("content")).items()
        for name, value in reader.of(reader.followed(content))
    }
    kinds: set[str] = set()
    for status, response in obj(operation.get("responses") or {}, "responses").items():
        answer = reader.followed(response)
        for media, content in reader.followed(answer.get("content")).items():
            held = reader.followed(content)
            if reader.outside(held):
                intake.leave_out(
                    f"{where}/responses/{status}", "import-body-missing", "an example lies in another file"
                )
            for name, value in reader.of(held):
                place = f"{where}/responses/{status}, {media}, example {name[:60] or 'without a name'}"
                with intake.entry(place):
                    target = _target(path, parameters, name, reader)
                    sent = _sent(name, bodies, reader, operation, media)
                    if not status.isdecimal():
                        raise LeftOut("import-shape", f"the status {status[:20]!r} is none")
                    host = intake.hosts.only()
                    body = _bytes(value, media)
                    url = f"https://{host.authority}{target}"
                    headers = (("Content-Type", media),)
                    intake.http(place, method, url, sent, int(status[:4]), (headers, body))
                    intake.change("an answer is an example: no service gave it")
                    kinds.add(media)
    return kinds


def _target(path: str, parameters: Mapping[Any, dict[str, Any]], name: str, reader: _Examples) -> str:
    query: list[tuple[str, str]] = []
    for (parameter, place), held in parameters.items():
        values = dict(reader.of(held))
        value = values.get(name, values.get(_UNNAMED))
        if value is None and (place == "path" or (place == "query" and held.get("required"))):
            raise LeftOut("import-example", f"the parameter {str(parameter)[:60]!r} has no example of this name")
        if place == "path":
            path = path.replace(f"{{{parameter}}}", quote(_plain(value), safe=""))
        elif place == "query" and value is not None:
            query += [(str(parameter), _plain(each)) for each in (value if isinstance(value, list) else [value])]
    return f"{path}?{urlencode(query, quote_via=quote)}" if query else path


def _sent(
    name: str, bodies: Mapping[tuple[str, str], Any], reader: _Examples, operation: dict[str, Any], media: str
) -> tuple[tuple[tuple[str, str], ...], bytes]:
    headers: tuple[tuple[str, str], ...] = (("Accept", media),)
    wanted = reader.followed(operation.get("requestBody"))
    if not wanted:
        return headers, b""
    for (own, kind), value in bodies.items():
        if own == name:
            return (*headers, ("Content-Type", kind)), _bytes(value, kind)
    if wanted.get("required") or bodies:
        raise LeftOut("import-example", "the request's body has no example of this name")
    return headers, b""


def _bytes(value: Any, media: str) -> bytes:
    if isinstance(value, str):
        if "json" not in media:
            return value.encode()
        try:
            canonical.loads(value)  # JSON written as a text, as people do
        except canonical.JsonError:
            return json_text(value)
        return value.encode()
    if "json" in media:
        return json_text(value)
    if "x-www-form-urlencoded" in media and isinstance(value, dict):
        return urlencode({name: _plain(each) for name, each in value.items()}).encode()
    raise LeftOut("import-example", f"the example is no text, and its type ({media[:60]}) is not JSON")


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
