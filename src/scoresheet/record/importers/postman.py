"""Responses saved in Postman collections (v2.0, v2.1): each with the request that it answered. Pure.

Variables (`{{base}}`) are filled from the collection; a request with one that is not known is left out.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from scoresheet.documents.tool import HeaderPairs
from scoresheet.errors import Malformed
from scoresheet.record.importers.intake import Intake, Source
from scoresheet.record.importers.shape import LeftOut, duration, json_of, obj, rows, text, whole

_VARIABLE = re.compile(r"\{\{([^{}]+)\}\}")
_MAX_DEPTH = 64
_TYPES = {"json": "application/json", "xml": "application/xml", "html": "text/html", "javascript": "text/javascript"}


def read(source: Source, intake: Intake) -> None:
    """Take the saved responses, in their order. Raises `Malformed`."""
    document = json_of(source.data, source.name)
    if not isinstance(document, dict) or not isinstance(document.get("item"), list):
        raise Malformed("not a Postman collection of version 2: it has no item", source.name)
    variables = {
        str(each.get("key")): str(each["value"]) for each in rows(document.get("variable")) if each.get("value")
    }
    for where, item in _items(document["item"], source.name, 0):
        responses = item.get("response")
        if not (isinstance(responses, list) and responses):
            intake.leave_out(where, "import-no-answer", "no response was saved with this request")
        for number, response in enumerate(rows(responses)):
            place = f"{where}/response/{number}"
            with intake.entry(place):
                _response(place, item, response, variables, intake)


def _items(items: Any, where: str, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    if depth > _MAX_DEPTH:
        raise Malformed("folders are nested too deeply", where)
    for number, item in enumerate(items):
        if isinstance(item, dict):
            place = f"{where}{'#' if not depth else ''}/item/{number}"
            if isinstance(item.get("item"), list):
                yield from _items(item["item"], place, depth + 1)
            else:
                yield place, item


def _response(
    where: str, item: dict[str, Any], response: dict[str, Any], variables: Mapping[str, str], intake: Intake
) -> None:
    held = response.get("originalRequest")
    if not isinstance(held, dict):
        held = item.get("request")
        intake.change("a response names no request of its own: that of its item was taken")
    request = obj(held, "the request")
    headers = _headers(request.get("header"), variables)
    more, asked = _body(request.get("body"), variables)
    if more and not any(name.lower() == "content-type" for name, _ in headers):
        headers = (*headers, ("Content-Type", more))
    answered = _headers(response.get("header"), {})
    kind = _TYPES.get(str(response.get("_postman_previewlanguage")))
    body = response.get("body")
    if body is None and whole(response.get("code")) not in (204, 304):
        raise LeftOut("import-body-missing", "the response was saved without its body", "save it again in Postman")
    if kind and not any(name.lower() == "content-type" for name, _ in answered):
        answered = (*answered, ("Content-Type", kind))
    url = _url(request.get("url"), variables, intake)
    method = text(request.get("method", "GET"), "method")
    code, content = whole(response.get("code")), text(body or "", "the body").encode()
    took = duration(response.get("responseTime"))
    intake.http(where, method, url, (headers, asked), code, (answered, content), took, plain=True)


def _filled(value: Any, variables: Mapping[str, str]) -> str:
    filled = _VARIABLE.sub(lambda found: variables.get(found[1].strip(), found[0]), str(value))
    left = _VARIABLE.search(filled)
    if left:
        what = f"the variable {left[1][:60]!r} has no value in the collection"
        raise LeftOut("import-variable", what, "save the response with its values, or export the collection with them")
    return filled


def _url(url: Any, variables: Mapping[str, str], intake: Intake) -> str:
    own: dict[str, str] = {}
    raw = url
    if isinstance(url, dict):
        own = {str(each.get("key")): str(each.get("value") or "") for each in rows(url.get("variable"))}
        raw = url.get("raw")
    filled = _filled(text(raw, "the URL"), variables)
    for name, value in sorted(own.items(), key=lambda pair: -len(pair[0])):
        for spelling in (f"/:{name}", f"/{{{name}}}"):
            there = re.compile(re.escape(spelling) + r"(?=[/?#]|$)")
            filled = ("/" + quote(value)).join(there.split(filled))
    if "://" not in filled:
        filled = f"http://{filled}"
    if filled.partition("://")[2].startswith("/"):  # collections without a host
        host = intake.hosts.only()
        scheme, _, path = filled.partition("://")
        filled = f"{scheme}://{host.authority}{host.base}{path}"
    return filled


def _headers(headers: Any, variables: Mapping[str, str]) -> HeaderPairs:
    return tuple(
        (str(each.get("key")), _filled(each.get("value") or "", variables))
        for each in rows(headers)
        if not each.get("disabled")
    )


def _body(body: Any, variables: Mapping[str, str]) -> tuple[str, bytes]:
    """Content type, when the kind of body says it, and bytes."""
    if not isinstance(body, dict) or not body.get("mode"):
        return "", b""
    match body["mode"]:
        case "raw":
            options = body.get("options")
            raw = options.get("raw") if isinstance(options, dict) else None
            kind = _TYPES.get(str(raw.get("language"))) if isinstance(raw, dict) else None
            return kind or "", _filled(body.get("raw") or "", variables).encode()
        case "urlencoded":
            pairs = [each for each in rows(body.get("urlencoded")) if not each.get("disabled")]
            named = [
                (_filled(each.get("key", ""), variables), _filled(each.get("value") or "", variables)) for each in pairs
            ]
            form = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in named)
            return "application/x-www-form-urlencoded", form.encode()
        case "graphql":
            held = obj(body.get("graphql"), "the query")
            return "application/json", _graphql(held, variables)
    raise LeftOut("import-body-missing", f"a body of the mode {str(body['mode'])[:40]!r} is not in the file")


def _graphql(held: dict[str, Any], variables: Mapping[str, str]) -> bytes:
    query = {"query": _filled(held.get("query") or "", variables)}
    given = held.get("variables")
    if not given:
        return json.dumps(query).encode()
    try:
        return json.dumps(query | {"variables": json.loads(given) if isinstance(given, str) else given}).encode()
    except (ValueError, RecursionError) as error:
        raise LeftOut("import-shape", "the variables of the query are not JSON") from error
