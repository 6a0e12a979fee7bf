"""VCR.py cassettes, YAML and JSON (pytest-recording writes the same), of version 1 and of the time before it. Pure.

Bodies may be text, `!!binary`, `base64_string`, or a value under `parsed_body` (serializers of some projects).
Cassettes are edited, by filters and by hand: a length in a header proves nothing against a body that is there.
"""

import base64
import binascii
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from scoresheet.documents.tool import HeaderPairs
from scoresheet.errors import Malformed
from scoresheet.record.exchange import header
from scoresheet.record.importers.intake import Intake, Source
from scoresheet.record.importers.shape import LeftOut, bounded, json_of, json_text, obj, text, whole

_PORTS = {"http": 80, "https": 443}
_FILTERS = "filters of the recorder take bodies out: record it again without them"


def read(source: Source, intake: Intake) -> None:
    """Take the interactions of a cassette, in their order. Raises `Malformed`."""
    cassette = document(source)
    old = isinstance(cassette, list)
    entries = cassette if isinstance(cassette, list) else None
    if isinstance(cassette, dict):
        entries = cassette.get("interactions")
        if "http_interactions" in cassette:
            mend = "Betamax and Ruby's VCR write this: import it as betamax"
            raise Malformed("not a VCR.py cassette: it has http_interactions", source.name, mend)
        version = cassette.get("version", 1)
        if version != 1:
            raise Malformed(f"a cassette of version {version!r}; known are those of VCR.py up to 1", source.name)
    if not isinstance(entries, list):
        raise Malformed("not a VCR.py cassette: it has no interactions", source.name)
    for place, entry in enumerate(entries):
        where = f"{source.name}#{'' if old else '/interactions'}/{place}"
        with intake.entry(where):
            _interaction(where, obj(entry, "the interaction"), old, intake)


def document(source: Source) -> Any:
    """The value of a cassette, JSON or YAML. Raises `Malformed`."""
    if source.data.lstrip()[:1] in (b"{", b"[") and not source.name.endswith((".yaml", ".yml")):
        return json_of(source.data, source.name)
    import yaml

    try:
        value = yaml.load(source.data, _loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{source.name}:{mark.line + 1}:{mark.column + 1}" if mark is not None else source.name
        raise Malformed(f"not a YAML cassette: {error.problem}", place) from error
    except (yaml.YAMLError, ValueError, TypeError, AttributeError) as error:  # some constructors raise their own
        raise Malformed(f"not a YAML cassette: {' '.join(str(error).split())}", source.name) from error
    except RecursionError:
        raise Malformed("nested too deeply", source.name) from None
    return bounded(value, source.name)


@functools.cache
def _loader() -> Any:
    """YAML as VCR.py reads it, and the tags of cassettes from Python 2; nothing that runs code."""
    import yaml

    class Cassette(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # its base is chosen at run time
        """The loader of cassettes."""

    def plain(loader: Any, node: Any) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return loader.construct_scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_mapping(node, deep=True)

    def binary(loader: Any, node: Any) -> bytes:
        """Strictly: PyYAML's own passes over what is not base64, and a broken body would become a short one."""
        try:
            return base64.b64decode("".join(loader.construct_scalar(node).split()), validate=True)
        except ValueError as error:
            raise yaml.constructor.ConstructorError(
                None, None, f"!!binary is no base64: {error}", node.start_mark
            ) from error

    for name in ("tag:yaml.org,2002:binary", "!binary"):  # the second is Ruby's
        Cassette.add_constructor(name, binary)
    for name in ("unicode", "str", "tuple", "object:vcr.request.Request"):
        Cassette.add_constructor(f"tag:yaml.org,2002:python/{name}", plain)
    for module in ("__builtin__", "builtins"):
        Cassette.add_constructor(f"tag:yaml.org,2002:python/object/apply:{module}.frozenset", plain)
    return Cassette


def _interaction(where: str, entry: dict[str, Any], old: bool, intake: Intake) -> None:
    request, response = obj(entry.get("request"), "request"), obj(entry.get("response"), "response")
    url = _old_url(request) if "uri" not in request else text(request["uri"], "request.uri")
    intake.wanted(url)
    method = text(request.get("method"), "request.method")
    sent = headers_of(request.get("headers"), intake)
    answered = _old_headers(response, intake) if old else headers_of(response.get("headers"), intake)
    status = response.get("status", response.get("status_code"))
    code = whole(status.get("code") if isinstance(status, dict) else status)
    asked = _body(request, "request", intake)
    if asked is None:
        length = header(sent, "content-length")
        if length.isdecimal() and length.strip("0"):
            raise LeftOut("import-body-missing", f"the request's body ({length} bytes) is not in the file", _FILTERS)
        asked = b""
    body = _body(response, "answer", intake)
    length = header(answered, "content-length")
    empty = method.upper() == "HEAD" or code in (204, 304)
    if not body and not empty and length.isdecimal() and length.strip("0"):
        raise LeftOut("import-body-missing", f"the answer's body ({length} bytes) is not in the file", _FILTERS)
    if body is None and not empty:
        raise LeftOut("import-body-missing", "the file does not say what the answer's body was", _FILTERS)
    plain = not _stored_as_bytes(response)
    intake.http(where, method, url, (sent, asked), code, (answered, body or b""), plain=plain)


def _old_url(request: Mapping[str, Any]) -> str:
    scheme, host, path = (text(request.get(name), f"request.{name}") for name in ("protocol", "host", "path"))
    port = whole(request.get("port"))
    return f"{scheme}://{host}{'' if port in (None, _PORTS.get(scheme)) else f':{port}'}{path}"


def headers_of(headers: Any, intake: Intake) -> HeaderPairs:
    """Of a mapping to texts or lists of them; or pairs, as old cassettes have them."""
    if isinstance(headers, list) and len(headers) == 1 and isinstance(headers[0], list):
        headers = headers[0]  # the one argument of a frozenset
    items = headers.items() if isinstance(headers, dict) else headers or ()
    if not isinstance(items, Iterable) or isinstance(items, str | bytes):
        raise LeftOut("import-shape", "the headers are neither an object nor a list")
    found: list[tuple[str, str]] = []
    for item in items:
        name, value = item if isinstance(item, list | tuple) and len(item) == 2 else (None, None)
        for one in value if isinstance(value, list | tuple) else [value]:
            shown = one.decode("latin-1") if isinstance(one, bytes) else one
            if isinstance(shown, int | float) and not isinstance(shown, bool):
                shown = str(shown)
            if isinstance(name, str) and isinstance(shown, str):
                found.append((name, shown))
            else:
                intake.change("a header that is no text was left out")
    return tuple(found)


def _old_headers(response: Mapping[str, Any], intake: Intake) -> HeaderPairs:
    lines = response.get("headers")
    if not isinstance(lines, list):
        return headers_of(lines, intake)
    found: list[tuple[str, str]] = []
    for line in lines:
        shown = line.decode("latin-1") if isinstance(line, bytes) else str(line)
        name, colon, value = shown.partition(":")
        if colon:
            found.append((name.strip(), value.strip()))
        elif shown.strip():
            intake.change("a header that is no text was left out")
    return tuple(found)


def _body(message: Mapping[str, Any], which: str, intake: Intake) -> bytes | None:
    """The bytes of a body; `None` when the file holds none."""
    if "parsed_body" in message:
        intake.change(f"the {which}'s body was written anew from parsed_body: its value is kept, its bytes are not")
        value = message["parsed_body"]
        return value.encode() if isinstance(value, str) and not _is_json(message) else json_text(value)
    body = message.get("body", message.get("content"))
    if isinstance(body, dict):
        if "base64_string" in body:
            return base64_of(body["base64_string"], which)
        if "string" not in body:
            raise LeftOut("import-shape", f"the {which}'s body is neither text nor bytes")
        body = body["string"]
    match body:
        case None:
            return None
        case bytes():
            return body
        case str():
            return body.encode()
    raise LeftOut("import-shape", f"the {which}'s body is neither text nor bytes")


def _is_json(message: Mapping[str, Any]) -> bool:
    headers = message.get("headers")
    named = {str(name).lower(): str(value) for name, value in headers.items()} if isinstance(headers, dict) else {}
    return "json" in named.get("content-type", "json")


def _stored_as_bytes(response: Mapping[str, Any]) -> bool:
    """Whether the body stands in the file as bytes, and so perhaps as it came over the wire."""
    body = response.get("body", response.get("content"))
    return isinstance(body, bytes) or (
        isinstance(body, dict) and (isinstance(body.get("string"), bytes) or "base64_string" in body)
    )


def base64_of(written: Any, which: str) -> bytes:
    """The bytes of a `base64_string`. Raises `LeftOut`."""
    try:
        return base64.b64decode(text(written, "base64_string"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise LeftOut("import-encoding", f"the {which}'s body is said to be base64, and is not: {error}") from error
