"""Hoverfly simulations (v3 to v5.2) whose pairs stand for one request each. Pure.

A pair that matches by glob, regular expression or a part of a body answers requests that nobody recorded: it is left
out. States become the order of the answers, as they stand.
"""

from typing import Any
from urllib.parse import quote

from scoresheet.errors import Malformed
from scoresheet.record.importers.intake import Intake, Source, pairs
from scoresheet.record.importers.shape import LeftOut, duration, json_of, obj, text, whole
from scoresheet.record.importers.vcr import base64_of

_MEND = "record the call itself"


def read(source: Source, intake: Intake) -> None:
    """Take the pairs of a simulation, in their order. Raises `Malformed`."""
    document = json_of(source.data, source.name)
    data = document.get("data") if isinstance(document, dict) else None
    entries = data.get("pairs") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise Malformed("not a Hoverfly simulation: it has no data.pairs", source.name)
    for place, pair in enumerate(entries):
        where = f"{source.name}#/data/pairs/{place}"
        with intake.entry(where):
            _pair(where, obj(pair, "the pair"), intake)


def _pair(where: str, pair: dict[str, Any], intake: Intake) -> None:
    request, response = obj(pair.get("request"), "request"), obj(pair.get("response"), "response")
    if response.get("templated"):
        raise LeftOut("import-template", "its answer is a template: what it would say is not known", _MEND)
    if request.get("requiresState") or response.get("transitionsState"):
        intake.change("a state became a place in the order of the answers")
    parts = {name: _exact(request.get(name), name) for name in ("method", "scheme", "destination", "path")}
    missing = [name for name in ("method", "destination", "path") if parts[name] is None]
    if missing:
        raise LeftOut("import-pattern", f"it matches any {missing[0]}: no one request is known", _MEND)
    body = _exact(request.get("body"), "body")
    if body is None and str(parts["method"]).upper() in ("POST", "PUT", "PATCH"):
        raise LeftOut("import-pattern", "it matches any body: no one request is known", _MEND)
    url = f"{parts['scheme'] or 'http'}://{parts['destination']}{parts['path']}{_query(request)}"
    sent = pairs((name, values) for name, values in _headers(request, intake))
    answer = text(response.get("body") or "", "response.body")
    content = base64_of(answer, "answer") if response.get("encodedBody") else answer.encode()
    answered = pairs(
        (str(name), [str(each) for each in values] if isinstance(values, list) else str(values))
        for name, values in obj(response.get("headers") or {}, "response.headers").items()
    )
    status, took = whole(response.get("status")), duration(response.get("fixedDelay"))
    plain = not response.get("encodedBody")
    intake.http(
        where,
        text(parts["method"], "method"),
        url,
        (sent, (body or "").encode()),
        status,
        (answered, content),
        took,
        plain,
    )


def _exact(matchers: Any, what: str) -> str | None:
    """The one text that a field must be; `None` when it may be any. Raises `LeftOut`."""
    if matchers is None or matchers == []:
        return None
    if isinstance(matchers, list) and len(matchers) == 1 and isinstance(matchers[0], dict):
        kind, value = matchers[0].get("matcher"), matchers[0].get("value")
        if isinstance(value, str) and (kind == "exact" or (kind == "json" and what == "body")):
            return value
    if isinstance(matchers, dict) and isinstance(matchers.get("exactMatch"), str):  # v3, v4
        return str(matchers["exactMatch"])
    raise LeftOut("import-pattern", f"it matches its {what} by pattern: no one request is known", _MEND)


def _query(request: dict[str, Any]) -> str:
    if request.get("deprecatedQuery"):
        return "?" + str(_exact(request["deprecatedQuery"], "query") or "")
    query = request.get("query")
    if not query:
        return ""
    if not isinstance(query, dict):
        raise LeftOut("import-shape", "request.query is not an object")
    if "exactMatch" in query:
        return "?" + str(query["exactMatch"])
    found = []
    for name, matchers in query.items():
        value = _exact(matchers, "query")
        found.append(f"{quote(str(name))}={quote(value or '')}")
    return "?" + "&".join(found)


def _headers(request: dict[str, Any], intake: Intake) -> list[tuple[str, str]]:
    found = []
    for name, matchers in obj(request.get("headers") or {}, "request.headers").items():
        try:
            value = _exact(matchers, "header")
        except LeftOut:
            intake.change("a pattern of a header does not count")
            continue
        if value is not None:
            found.append((str(name), value))
    return found
