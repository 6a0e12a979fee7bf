"""WireMock mappings that stand for one request each: exact URL, exact body. Pure.

A mapping that matches by pattern answers requests that nobody recorded: it is left out. Scenarios become scenarios of
the task, and an order of the answers where what leads to a state was left out. Of mappings for one request, WireMock
answers by priority, then by the newest: the others are left out.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import HeaderPairs
from scoresheet.errors import Malformed
from scoresheet.record.exchange import header
from scoresheet.record.importers.intake import Intake, Source, pairs
from scoresheet.record.importers.literal import members
from scoresheet.record.importers.shape import LeftOut, duration, json_of, json_text, obj, rows, text, whole
from scoresheet.record.importers.vcr import base64_of

_PLAIN_PATTERN = re.compile(r"[A-Za-z0-9/_~%=&:,-]*")
"""A regular expression that matches one text: itself."""
_FAULTS = frozenset({"CONNECTION_RESET_BY_PEER", "EMPTY_RESPONSE"})
"""Both end the connection before an answer."""
_KNOWN = frozenset({"method", "url", "urlPath", "urlPattern", "urlPathPattern", "queryParameters", "headers",
                    "bodyPatterns", "scheme", "host", "port", "urlPathTemplate"})  # fmt: skip
_LOOSE = {"ignoreArrayOrder": True, "ignoreExtraElements": True}
"""What WireMock's recorder writes beside every JSON body, which is the recorded one."""
_STARTED = "Started"
_MEND = "record the call itself"


@dataclass(frozen=True, slots=True)
class _Stub:
    where: str
    url: str
    method: str
    sent: tuple[HeaderPairs, bytes]
    mapping: dict[str, Any]
    priority: int
    place: int
    source: Source


def read_all(sources: Sequence[Source], intake: Intake) -> None:
    """Take the mappings of all files, which are one service's. Raises `Malformed`, and `Usage` when it has no host."""
    stubs: list[_Stub] = []
    for source in sources:
        document = json_of(source.data, source.name)
        mappings = document.get("mappings") if isinstance(document, dict) else document
        if isinstance(document, dict) and "request" in document:
            mappings = [document]
        if not isinstance(mappings, list):
            raise Malformed("not WireMock mappings: neither mappings nor a request", source.name)
        for place, mapping in enumerate(mappings):
            where = f"{source.name}#/mappings/{place}" if len(mappings) > 1 else source.name
            with intake.entry(where):
                stubs.append(_stub(where, obj(mapping, "the mapping"), len(stubs), source, intake))
    intake.first_state = _STARTED
    for stub in _ordered(stubs, intake):
        with intake.entry(stub.where):
            _take(stub, intake)
            scenario, needs, leads = _scenario(stub)
            if scenario:
                intake.state(stub.where, scenario, needs, leads)


def _stub(where: str, mapping: dict[str, Any], place: int, source: Source, intake: Intake) -> _Stub:
    request = obj(mapping.get("request"), "request")
    odd = sorted(request.keys() - _KNOWN)
    if odd:
        raise LeftOut("import-pattern", f"it matches by {odd[0]}: no one request is known", _MEND)
    method = text(request.get("method", "ANY"), "request.method")
    if method.upper() == "ANY":
        raise LeftOut("import-pattern", "it matches any method: no one request is known", _MEND)
    host = intake.hosts.only()
    if method.upper() in ("POST", "PUT", "PATCH") and not request.get("bodyPatterns"):
        raise LeftOut("import-pattern", "it matches any body: no one request is known", _MEND)
    extra, body = _body(request, intake)
    headers = tuple(_exact(request.get("headers"), "header", intake))
    if not header(headers, "content-type"):
        headers += extra
    scheme = request.get("scheme") if isinstance(request.get("scheme"), str) else "http"
    priority = whole(mapping.get("priority"))
    url = f"{scheme}://{host.authority}{host.base}{_path(request, intake)}"
    return _Stub(
        where, url, method.upper(), (headers, body), mapping, 5 if priority is None else priority, place, source
    )


def _path(request: dict[str, Any], intake: Intake) -> str:
    for name in ("url", "urlPath", "urlPattern", "urlPathPattern"):
        if name in request:
            path = text(request[name], f"request.{name}")
            if name.endswith("Pattern") and not _PLAIN_PATTERN.fullmatch(path):
                raise LeftOut("import-pattern", f"it matches by {name}: no one request is known", _MEND)
            query = urlencode(_exact(request.get("queryParameters"), "query parameter", intake), quote_via=quote)
            if not path.startswith("/"):
                raise LeftOut("import-shape", f"request.{name} is no path")
            if name.startswith("urlPath") and not query:
                intake.change("a mapping for any query was taken for the request without one")
            return f"{path}{'&' if '?' in path else '?'}{query}" if query else path
    raise LeftOut("import-pattern", "it matches any URL: no one request is known", _MEND)


def _exact(matchers: Any, which: str, intake: Intake) -> list[tuple[str, str]]:
    found = []
    for name, matcher in (matchers or {}).items() if isinstance(matchers or {}, dict) else ():
        if (
            isinstance(matcher, dict)
            and set(matcher) <= {"equalTo", "caseInsensitive"}
            and not matcher.get("caseInsensitive")
        ):
            found.append((str(name), text(matcher.get("equalTo"), f"the {which}'s equalTo")))
        elif isinstance(matcher, dict) and set(matcher) == {"hasExactly"}:  # as its recorder writes a query
            for each in rows(matcher["hasExactly"]):
                found += _exact({name: each}, which, intake)
        elif which == "header":
            intake.change("a pattern of a header does not count")
        else:
            raise LeftOut("import-pattern", f"it matches a {which} by pattern: no one request is known", _MEND)
    return found


def _body(request: dict[str, Any], intake: Intake) -> tuple[HeaderPairs, bytes]:
    patterns = list(rows(request.get("bodyPatterns")))
    if not patterns:
        return (), b""
    if len(patterns) > 1:
        raise LeftOut("import-pattern", "it matches a body by several patterns: no one request is known", _MEND)
    match patterns[0]:
        case {"equalToJson": expected, **more} if more == _LOOSE or not any(more.values()):
            if more == _LOOSE:
                intake.change(
                    "a JSON body with more members, or in another order, is not answered as it is by WireMock"
                )
            body = expected.encode() if isinstance(expected, str) else json_text(expected)
            if b"${json-unit" in body:
                raise LeftOut("import-pattern", "its body holds placeholders: no one request is known", _MEND)
            return (("Content-Type", "application/json"),), body
        case {"equalTo": str(expected), **more} if not any(more.values()):
            return (), expected.encode()
        case {"binaryEqualTo": expected, **more} if not any(more.values()):
            return (), base64_of(expected, "request")
    raise LeftOut("import-pattern", "it matches a body by pattern: no one request is known", _MEND)


def _ordered(stubs: list[_Stub], intake: Intake) -> list[_Stub]:
    """Every stub that would be answered: by scenario state, else the first of each request."""
    depth: dict[str, dict[str, int]] = defaultdict(lambda: {_STARTED: 0})
    for _ in range(len(stubs)):
        for stub in stubs:
            scenario, needs, leads = _scenario(stub)
            if scenario and leads and needs in depth[scenario]:
                depth[scenario].setdefault(leads, depth[scenario][needs] + 1)
    groups: dict[Any, list[_Stub]] = defaultdict(list)
    for stub in stubs:
        scenario, needs, _ = _scenario(stub)
        groups[stub.method, stub.url, stub.sent, scenario and (scenario, needs)].append(stub)
    kept: list[_Stub] = []
    for group in groups.values():
        first, *others = sorted(group, key=lambda stub: (stub.priority, -stub.place))
        kept.append(first)
        for stub in others:
            intake.leave_out(stub.where, "import-shadowed", "another mapping answers this request before it")

    def place(stub: _Stub) -> tuple[int, int]:
        scenario, needs, _ = _scenario(stub)
        if not scenario:
            return 0, stub.place
        return depth[scenario].get(needs or _STARTED, len(stubs)), stub.place

    return sorted(kept, key=place)


def _scenario(stub: _Stub) -> tuple[str | None, str | None, str | None]:
    names = ("scenarioName", "requiredScenarioState", "newScenarioState")
    scenario, needs, leads = (value if isinstance(value := stub.mapping.get(name), str) else None for name in names)
    return scenario, needs, leads


def _take(stub: _Stub, intake: Intake) -> None:
    response = obj(stub.mapping.get("response"), "response")
    fault = response.get("fault")
    if fault is not None and fault not in _FAULTS:
        raise LeftOut("import-fault", f"the fault {str(fault)[:40]!r} can't be replayed")
    if response.get("proxyBaseUrl"):
        raise LeftOut("import-no-answer", "it asks another service: no answer is in the file")
    status = whole(response.get("status", 200))
    headers = pairs(
        (str(name), [str(each) for each in value] if isinstance(value, list) else str(value))
        for name, value in obj(response.get("headers") or {}, "response.headers").items()
    )
    body, kind = _answer(response, stub.source)
    if b"{{" in body and "response-template" in str(response.get("transformers", "")):
        raise LeftOut("import-template", "its answer is a template: what it would say is not known", _MEND)
    if kind and not any(name.lower() == "content-type" for name, _ in headers):
        headers = (*headers, ("Content-Type", kind))
    took = duration(response.get("fixedDelayMilliseconds"))
    if fault is not None:
        intake.fault(stub.where, stub.method, stub.url, stub.sent, "connection_reset", took)
    else:
        intake.http(stub.where, stub.method, stub.url, stub.sent, status, (headers, body), took, plain=True)


def _answer(response: dict[str, Any], source: Source) -> tuple[bytes, str]:
    if "jsonBody" in response:
        return _as_written(source, response["jsonBody"]), "application/json"
    if "base64Body" in response:
        return base64_of(response["base64Body"], "answer"), ""
    if "bodyFileName" in response:
        name = text(response["bodyFileName"], "bodyFileName")
        found = source.beside.get(name.removeprefix("./"))
        if found is None:
            mend = "give the folder that holds mappings and __files"
            raise LeftOut("import-body-missing", f"the file {name[:120]!r} is not in __files", mend)
        return found, ""
    return text(response.get("body") or "", "response.body").encode(), ""


def _as_written(source: Source, value: JsonValue) -> bytes:
    """The text of a lone mapping's jsonBody as it stands; else its value, written anew."""
    whole_text = source.data.removeprefix(b"\xef\xbb\xbf").decode()
    try:
        begin, _ = members(whole_text)["response"]
        first, last = members(whole_text, begin)["jsonBody"]
    except (LeftOut, KeyError):
        return json_text(value)
    return whole_text[first:last].encode()
