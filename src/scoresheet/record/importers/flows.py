"""mitmproxy's flow files, of format version 4 (mitmproxy 3) on: tnetstrings, one a flow. Pure.

The reader is small and bounded: lengths are checked against the bytes that are there before anything is built.
"""

import re
from collections.abc import Iterator
from typing import Any

from scoresheet.documents.tool import HeaderPairs
from scoresheet.errors import Malformed
from scoresheet.record.exchange import codings, header
from scoresheet.record.importers.intake import Intake, Source
from scoresheet.record.importers.shape import LeftOut, duration, obj, whole

FIRST, NEWEST = 4, 21
_MAX_DEPTH = 64
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s/@?#:\[\]]+)(?::\d{1,5})?")
_PORTS = {"http": 80, "https": 443}
_AGAIN = "mitmproxy does not keep the bodies of streamed flows: record again without stream_large_bodies"


def read(source: Source, intake: Intake) -> None:
    """Take the HTTP flows of a file, in their order. Raises `Malformed`."""
    place = 0
    number = 0
    while place < len(source.data):
        where = f"{source.name}#{number}"
        try:
            flow, place = _value(source.data, place, len(source.data), 0)
        except _BrokenError as error:
            mend = "a file that is still written to, or was cut, ends within a flow" if number else ""
            raise Malformed(f"not a flow file of mitmproxy: {error}", f"{where}, byte {place}", mend) from error
        with intake.entry(where):
            _flow(where, obj(flow, "the flow"), intake)
        number += 1
    if not number:
        raise Malformed("an empty file", source.name)


def _flow(where: str, flow: dict[str, Any], intake: Intake) -> None:
    version = flow.get("version")
    if not isinstance(version, int) or version < FIRST:
        mend = "open and save it with a mitmproxy of today"
        raise LeftOut("import-version", "a flow of a mitmproxy before 3", mend)
    if version > NEWEST:
        intake.change(f"a flow of format version {version}, newer than {NEWEST}: read by what is known")
    if flow.get("type") != "http":
        raise LeftOut("import-no-replay", f"a flow of the kind {str(flow.get('type'))[:20]!r} can't be replayed")
    if flow.get("websocket"):
        raise LeftOut("import-no-replay", "a WebSocket can't be replayed")
    request = obj(flow.get("request"), "request")
    sent = _headers(request)
    url = f"{_text(request.get('scheme')) or 'http'}://{_authority(request, sent)}{_text(request.get('path'))}"
    intake.wanted(url)
    if not isinstance(flow.get("response"), dict):
        raise LeftOut("import-no-answer", "no answer was recorded", "the request failed or was cancelled: record again")
    response = obj(flow.get("response"), "response")
    answered = _headers(response)
    method = _text(request.get("method"))
    status = whole(response.get("status_code"))
    asked = _body(request, sent, "request")
    bodyless = method.upper() == "HEAD" or status in (204, 304)
    body = b"" if bodyless else _body(response, answered, "answer")
    for message in (request, response):
        if message.get("trailers"):
            intake.change("trailers were left out")
    begun, ended = request.get("timestamp_start"), response.get("timestamp_end")
    took = ended - begun if isinstance(begun, float) and isinstance(ended, float) else 0.0
    intake.http(where, method, url, (sent, asked), status, (answered, body), duration(round(took * 1000, 3)))


def _authority(request: dict[str, Any], headers: HeaderPairs) -> str:
    """The host that the client named; else where the flow went."""
    for named in (_text(request.get("authority") or b""), header(headers, "host")):
        if _HOST.fullmatch(named):
            return named
    host, port = _text(request.get("host")), request.get("port")
    host = f"[{host}]" if ":" in host else host
    return host if port == _PORTS.get(_text(request.get("scheme"))) or not isinstance(port, int) else f"{host}:{port}"


def _body(message: dict[str, Any], headers: HeaderPairs, which: str) -> bytes:
    body = message.get("content")
    length = header(headers, "content-length")
    if body is None:
        raise LeftOut("import-body-missing", f"the {which}'s body is not in the file", _AGAIN)
    if not isinstance(body, bytes):
        raise LeftOut("import-shape", f"the {which}'s body is not bytes")
    if length.isdecimal() and len(length) < 19 and int(length) > len(body):
        what = f"the {which}'s body has {len(body)} bytes, its Content-Length says {length}"
        raise LeftOut("import-body-cut", what, _AGAIN)
    if not body and "chunked" in header(headers, "transfer-encoding").lower() and codings(headers):
        raise LeftOut("import-body-missing", f"the {which}'s body is not in the file", _AGAIN)
    return body


def _headers(message: dict[str, Any]) -> HeaderPairs:
    found = []
    for pair in message.get("headers") or ():
        if not isinstance(pair, list) or len(pair) != 2:
            raise LeftOut("import-shape", "a header is no pair")
        found.append((_text(pair[0]), _text(pair[1])))
    return tuple(found)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace") if _is_utf8(value) else value.decode("latin-1")
    if isinstance(value, str):
        return value
    raise LeftOut("import-shape", "a part of the flow is missing")


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


# Tnetstrings: LENGTH ":" BYTES TYPE


class _BrokenError(Exception):
    """Bytes that are no tnetstring."""


def _value(data: bytes, place: int, end: int, depth: int) -> tuple[Any, int]:
    """The value that begins at `place` and where the next one begins; nothing is read beyond `end`."""
    if depth > _MAX_DEPTH:
        raise _BrokenError("nested too deeply")
    colon = data.find(b":", place, min(end, place + 13))
    digits = data[place:colon] if colon >= 0 else b""
    if not digits.isdigit() or (len(digits) > 1 and digits.startswith(b"0")):
        raise _BrokenError("no length where a value begins")
    begin = colon + 1
    last = begin + int(digits)
    if last >= end:
        raise _BrokenError(f"a value of {int(digits)} bytes, of which {max(0, end - begin)} are there")
    return _typed(data, begin, last, depth), last + 1


def _typed(data: bytes, begin: int, last: int, depth: int) -> Any:
    match data[last : last + 1]:
        case b",":
            return data[begin:last]
        case b";":
            try:
                return data[begin:last].decode()
            except UnicodeDecodeError as error:
                raise _BrokenError("text that is not UTF-8") from error
        case b"#" | b"^" as kind:
            try:
                number = data[begin:last].decode("ascii")
                return int(number) if kind == b"#" and len(number) < 40 else float(number)
            except ValueError as error:
                raise _BrokenError("a number that is none") from error
        case b"!":
            return data[begin:last] == b"true"
        case b"~":
            return None
        case b"]":
            return list(_items(data, begin, last, depth))
        case b"}":
            items = iter(_items(data, begin, last, depth))
            return {_key(key): value for key, value in zip(items, items, strict=True)}
    raise _BrokenError("a value of an unknown type")


def _items(data: bytes, begin: int, last: int, depth: int) -> Iterator[Any]:
    while begin < last:
        item, begin = _value(data, begin, last, depth + 1)
        yield item


def _key(key: Any) -> str:
    if isinstance(key, bytes):
        key = key.decode("latin-1")
    if not isinstance(key, str):
        raise _BrokenError("a member whose name is no text")
    return key
