"""HAR 1.2, as browsers and proxies write it (http://www.softwareishard.com/blog/har-12-spec/). Pure.

A body that is missing or was cut leaves its entry out: sizes in the file and in the headers tell. Their meanings
differ: `content.size` is the decoded size for browsers, the size on the wire for mitmproxy.
"""

import base64
import binascii
import json
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus

from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import HeaderPairs
from scoresheet.errors import Malformed
from scoresheet.record.exchange import codings, header, readable
from scoresheet.record.importers.intake import Intake, Source
from scoresheet.record.importers.shape import LeftOut, duration, json_of, obj, rows, text, whole

_CHARSET = re.compile(r"(?i);\s*charset\s*=\s*\"?([\w.:-]+)")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_AGAIN = "record it again with bodies (in a browser: “Save all as HAR with content”)"


def read(source: Source, intake: Intake) -> None:
    """Take the entries of a HAR file, in the order in which they started. Raises `Malformed`."""
    document = json_of(source.data, source.name)
    log = document.get("log") if isinstance(document, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(log, dict) or not isinstance(entries, list):
        raise Malformed(
            "not a HAR file: it has no log.entries", source.name, "give a file that a recorder saved as HAR"
        )
    creator = log.get("creator")
    maker = str(creator.get("name", "")) if isinstance(creator, dict) else ""
    for place in _ordered(entries):
        where = f"{source.name}#/log/entries/{place}"
        with intake.entry(where):
            _entry(where, obj(entries[place], "the entry"), maker, intake)


def _ordered(entries: list[JsonValue]) -> list[int]:
    """Places of the entries by their start; as they stand when one does not say it."""
    starts: list[datetime] = []
    for entry in entries:
        try:
            start = datetime.fromisoformat(entry["startedDateTime"])
        except (KeyError, TypeError, ValueError):
            return list(range(len(entries)))
        starts.append(start if start.tzinfo else start.replace(tzinfo=UTC))
    return sorted(range(len(entries)), key=lambda place: starts[place])


def _entry(where: str, entry: dict[str, Any], maker: str, intake: Intake) -> None:
    request, response = obj(entry.get("request"), "request"), obj(entry.get("response"), "response")
    method = text(request.get("method"), "request.method")
    status = whole(response.get("status"))
    url = _url(request, intake)
    intake.wanted(url)
    if entry.get("_webSocketMessages"):
        raise LeftOut("import-no-replay", "a WebSocket can't be replayed")
    sent = _headers(request, intake)
    answered = _headers(response, intake)
    if not status:  # its body is missing too, but that is not the reason
        intake.http(where, method, url, (sent, b""), status, (answered, b""))
        return
    asked = _request_body(method, request, sent, intake)
    body = _response_body(method, status, response, answered, maker, intake)
    if entry.get("_fromCache"):
        intake.change("the answer came from the browser's cache")
    if status == 304:
        intake.change("an answer is 304: the client had it in a cache that an agent may not have")
    intake.http(where, method, url, (sent, asked), status, (answered, body), duration(entry.get("time")), plain=True)


def _url(request: dict[str, Any], intake: Intake) -> str:
    url = text(request.get("url"), "request.url")
    query = [(str(each.get("name", "")), str(each.get("value", ""))) for each in rows(request.get("queryString"))]
    if "?" in url or not query:
        return url
    intake.change("the query was taken from queryString: the URL had none")
    plain, mark, fragment = url.partition("#")
    return plain + "?" + "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in query) + mark + fragment


def _headers(message: dict[str, Any], intake: Intake) -> HeaderPairs:
    found: list[tuple[str, str]] = []
    for each in rows(message.get("headers")):
        name, value = each.get("name"), each.get("value")
        values: list[Any] = value if isinstance(value, list) else [value]  # Polly.JS writes lists
        if not isinstance(name, str) or not all(isinstance(one, str) for one in values):
            intake.change("a header that is no text was left out")
            continue
        found += [(name, one) for one in values]
    return tuple(found)


# Requests


def _request_body(method: str, request: dict[str, Any], headers: HeaderPairs, intake: Intake) -> bytes:
    posted = request.get("postData")
    size = whole(request.get("bodySize"))
    length = header(headers, "content-length")
    stated = int(length) if length.isdecimal() and len(length) < 19 else None
    if not isinstance(posted, dict) or (posted.get("text") is None and not posted.get("params")):
        if isinstance(posted, dict) and posted.get("_file"):
            raise LeftOut("import-body-missing", "the request's body lies in another file", _AGAIN)
        chunked = bool(header(headers, "transfer-encoding"))
        unknown = size is None and stated is None and method.upper() in _WITH_BODY and header(headers, "content-type")
        if size or stated or (chunked and size is None) or unknown:
            expected = f" ({size or stated} bytes)" if size or stated else ""
            raise LeftOut("import-body-missing", f"the request's body{expected} is not in the file", _AGAIN)
        return b""
    if posted.get("text") is None:
        return _form(posted, size if size is not None else stated, headers, intake)
    written = text(posted["text"], "request.postData.text")
    encoding = posted.get("encoding", posted.get("_encoding"))
    if encoding == "base64":
        return _whole_request(_base64(written, "request"), size, stated, headers)
    if isinstance(encoding, str) and encoding:
        raise LeftOut("import-encoding", f"the request's body is in an unknown encoding, {encoding!r}")
    known = [each for each in (size, stated) if each is not None]
    if not written.isascii() and not any(len(written.encode()) == each for each in known):
        narrow = _latin(written)
        if narrow is not None and len(narrow) in known:  # proxies write binary bodies so
            return narrow
    if "\ufffd" in written and len(written.encode()) not in known:
        what = "the request's body holds bytes that its recorder replaced by U+FFFD"
        raise LeftOut("import-body-cut", what, "record it with a tool that writes binary bodies as base64")
    return _whole_request(written.encode(), size, stated, headers)


def _whole_request(body: bytes, size: int | None, stated: int | None, headers: HeaderPairs) -> bytes:
    expected = max(size or 0, stated or 0)
    if len(body) < expected and not (codings(headers) and body):
        raise LeftOut("import-body-cut", f"the request's body has {len(body)} bytes of {expected}", _AGAIN)
    return body


def _form(posted: dict[str, Any], size: int | None, headers: HeaderPairs, intake: Intake) -> bytes:
    media = str(posted.get("mimeType") or header(headers, "content-type")).partition(";")[0].strip().lower()
    if media != "application/x-www-form-urlencoded":
        what = f"the request's body ({media or 'of no type'}) is given as parameters, from which it can't be rebuilt"
        raise LeftOut("import-body-missing", what, _AGAIN)
    params = [(str(each.get("name", "")), str(each.get("value", ""))) for each in rows(posted.get("params"))]
    decoded = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in params).encode()
    raw = "&".join(f"{name}={value}" for name, value in params).encode()
    candidates = [raw, decoded] if b"%" in raw or b"+" in raw else [decoded]
    if size:
        fitting = [each for each in candidates if len(each) == size]
        if not fitting:
            what = f"the request's form can't be rebuilt from its parameters to its {size} bytes"
            raise LeftOut("import-body-cut", what, _AGAIN)
        candidates = fitting
    elif len(candidates) > 1:
        raise LeftOut("import-body-cut", "it is not said whether the form's parameters are encoded", _AGAIN)
    intake.change("the form was rebuilt from its parameters")
    return candidates[0]


# Answers


def _response_body(
    method: str, status: int, response: dict[str, Any], headers: HeaderPairs, maker: str, intake: Intake
) -> bytes:
    if method.upper() == "HEAD" or status in (204, 304) or status < 200:
        return b""  # no body is sent with these; what a browser shows is its cache's
    content = response.get("content")
    content = content if isinstance(content, dict) else {}
    written = content.get("text")
    size = whole(content.get("size"))
    if written is None or written == "":
        return _no_body(content, response, headers, written is not None)
    body = _decoded(text(written, "response.content.text"), content, headers, size)
    if codings(headers) and readable(headers, body) is not None:
        return body  # as it crossed the wire: its coding ends where the body ends
    length = header(headers, "content-length")
    if not codings(headers) and length == str(len(body)):
        return body  # whatever content.size counts
    if size is not None and len(body) < size and not _explained(len(body), content, size, maker):
        if not (isinstance(written, str) and len(written) == size and content.get("encoding") != "base64"):
            raise LeftOut("import-body-cut", f"the answer's body has {len(body)} bytes of {size}", _AGAIN)
        intake.change("content.size counts characters, not bytes")
    if not codings(headers) and length.isdecimal() and len(length) < 19 and int(length) > len(body):
        what = f"the answer's body has {len(body)} bytes, its Content-Length says {length}"
        raise LeftOut("import-body-cut", what, _AGAIN)
    return body


def _explained(length: int, content: dict[str, Any], size: int, maker: str) -> bool:
    """Whether `size` is that of the bytes on the wire, as mitmproxy has it."""
    saved = content.get("compression")
    return maker == "mitmproxy" and isinstance(saved, int) and length == size + saved


def _no_body(content: dict[str, Any], response: dict[str, Any], headers: HeaderPairs, given: bool) -> bytes:
    """Empty, when the file says in one way or the other that the answer was."""
    size, on_wire = whole(content.get("size")), whole(response.get("bodySize"))
    length = header(headers, "content-length")
    streamed = "event-stream" in header(headers, "content-type").lower()
    if size or on_wire or (length and length != "0"):
        expected = size or on_wire or length
        raise LeftOut("import-body-missing", f"the answer's body ({expected} bytes) is not in the file", _AGAIN)
    if length == "0" or (size == 0 and (on_wire == 0 or given) and not streamed):
        return b""
    what = "the answer's stream was not kept" if streamed else "the file does not say what the answer's body was"
    raise LeftOut("import-body-missing", what, _AGAIN)


def _decoded(written: str, content: dict[str, Any], headers: HeaderPairs, size: int | None) -> bytes:
    encoding = content.get("encoding")
    if content.get("_isBinary") and encoding != "base64":
        return _hex(written)
    if encoding == "base64":
        return _base64(written, "answer")
    if isinstance(encoding, str) and encoding:
        raise LeftOut("import-encoding", f"the answer's body is in an unknown encoding, {encoding!r}")
    if written.isascii():
        return written.encode()
    found = _CHARSET.search(str(content.get("mimeType", ""))) or _CHARSET.search(header(headers, "content-type"))
    wide = written.encode()
    declared = _in_charset(written, found[1]) if found else None
    candidates = [each for each in (declared, wide, _latin(written)) if each is not None]
    sizes = [size] if size is not None else []
    length = header(headers, "content-length")
    if not codings(headers) and length.isdecimal():
        sizes.append(int(length[:18]))
    for each in candidates:
        if len(each) in sizes:
            return each
    if "\ufffd" in written:
        what = "the answer's body holds bytes that its recorder replaced by U+FFFD"
        raise LeftOut("import-body-cut", what, "record it with a tool that writes binary bodies as base64")
    return candidates[0]


def _in_charset(written: str, charset: str) -> bytes | None:
    try:
        return written.encode(charset)
    except (LookupError, UnicodeError, ValueError):
        return None


def _latin(written: str) -> bytes | None:
    try:
        return written.encode("latin-1")
    except UnicodeEncodeError:
        return None


def _base64(written: str, which: str) -> bytes:
    try:
        return base64.b64decode("".join(written.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise LeftOut("import-encoding", f"the {which}'s body is said to be base64, and is not: {error}") from error


def _hex(written: str) -> bytes:
    """Polly.JS: hexadecimal digits, or a JSON list of them, chunk by chunk."""
    try:
        chunks = json.loads(written) if written.startswith("[") else [written]
        return b"".join(bytes.fromhex(chunk) for chunk in chunks)
    except (ValueError, TypeError, RecursionError) as error:
        raise LeftOut("import-encoding", "the answer's body is said to be binary, but is not hexadecimal") from error
