"""nock's recordings of Node programs: the JSON of `nockBack` and of `recorder.play()` with `output_objects`. Pure.

nock reads a body as JSON when it can, and writes bytes as hexadecimal digits: in an answer it says so, in a request it
does not. What a body was is told by its length then, or the entry is left out; it is never guessed.
"""

from typing import Any

from scoresheet.documents.tool import HeaderPairs
from scoresheet.errors import Malformed
from scoresheet.record.exchange import codings, header, media_type
from scoresheet.record.importers.intake import Intake, Source
from scoresheet.record.importers.shape import LeftOut, json_of, json_text, obj, text, whole
from scoresheet.record.importers.vcr import headers_of

_OBJECTS = "record with `nock.recorder.rec({output_objects: true})`, or with nockBack"
_AGAIN = "the fixture was edited, or recorded without bodies: record it again"
_TEXTUAL = ("text/", "application/json", "application/x-www-form-urlencoded", "application/xml")


def read(source: Source, intake: Intake) -> None:
    """Take the definitions of a fixture, in their order. Raises `Malformed`."""
    value = json_of(source.data, source.name)
    if not isinstance(value, list) or not all(isinstance(each, dict) and "scope" in each for each in value):
        raise Malformed("not a recording of nock: a list of objects with a scope each", source.name, _OBJECTS)
    for place, entry in enumerate(value):
        where = f"{source.name}#/{place}"
        with intake.entry(where):
            _definition(where, obj(entry, "the definition"), intake)


def _definition(where: str, entry: dict[str, Any], intake: Intake) -> None:
    url = text(entry.get("scope"), "scope") + text(entry.get("path"), "path")
    intake.wanted(url)
    if entry.get("options"):
        raise LeftOut("import-pattern", "its options let it match other requests too")
    method = text(entry.get("method"), "method")
    sent, answered = headers_of(entry.get("reqheaders"), intake), _answered(entry, intake)
    status = whole(entry.get("status"))
    asked = _asked(entry.get("body"), sent, intake)
    if asked and not header(sent, "content-type") and not isinstance(entry.get("body"), str):
        sent = (*sent, ("Content-Type", "application/json"))
        intake.change("Content-Type of a request supplied: nock kept no headers, but read the body as JSON")
    body, plain = _told(entry, answered, intake)
    empty = method.upper() == "HEAD" or status in (204, 304)
    for which, headers, found in (("request", sent, asked), ("answer", answered, body)):
        length = header(headers, "content-length")
        if not found and not (which == "answer" and empty) and length.isdecimal() and length.strip("0"):
            raise LeftOut("import-body-missing", f"the {which}'s body ({length} bytes) is not in the file", _AGAIN)
    intake.http(where, method, url, (sent, asked), status, (answered, body), plain=plain)


def _answered(entry: dict[str, Any], intake: Intake) -> HeaderPairs:
    raw = entry.get("rawHeaders")
    if isinstance(raw, list) and len(raw) % 2 == 0 and all(isinstance(each, str) for each in raw):
        return tuple(zip(raw[::2], raw[1::2], strict=True))  # name, value, name, value
    return headers_of(entry.get("headers") if raw is None else raw, intake)


def _told(entry: dict[str, Any], headers: HeaderPairs, intake: Intake) -> tuple[bytes, bool]:
    """The answer's body, and whether it was stored with its Content-Encoding undone."""
    written = entry.get("response")
    if entry.get("responseIsBinary") is True:
        return _hex(text(written, "a binary response"), "answer"), False
    if codings(headers) and isinstance(written, list):  # chunks as they crossed the wire
        return _hex("".join(text(each, "a chunk of the response") for each in written), "answer"), False
    if isinstance(written, str):
        return _of_text(written, headers, "answer", intake), True
    return _of_value(written, "answer", intake), True


def _asked(written: Any, headers: HeaderPairs, intake: Intake) -> bytes:
    if codings(headers) and isinstance(written, list):
        return _hex("".join(text(each, "a chunk of the body") for each in written), "request")
    if not isinstance(written, str):
        return _of_value(written, "request", intake)
    try:
        packed = bytes.fromhex(written) if written.isascii() and not written.strip("0123456789abcdef") else b""
    except ValueError:  # an odd number of digits
        packed = b""
    if not packed:
        return _of_text(written, headers, "request", intake)
    length = header(headers, "content-length")
    if length == str(len(packed)):
        return packed
    if length == str(len(written)) or media_type(headers).startswith(_TEXTUAL):
        return written.encode()
    what = "the request's body is hexadecimal digits, which nock writes for bytes as for text"
    raise LeftOut("import-encoding", what, _AGAIN)


def _of_text(written: str, headers: HeaderPairs, which: str, intake: Intake) -> bytes:
    """Text is text, but where it was JSON: then it was read, and was a JSON text or no JSON at all."""
    plain = written.encode()
    media = media_type(headers)
    if not written or not (media == "application/json" or media.endswith("+json")):
        return plain
    quoted, length = json_text(written), header(headers, "content-length")
    if length == str(len(plain)):
        return plain
    if length == str(len(quoted)):
        return _of_value(written, which, intake)
    what = f"the {which}'s body is a JSON text or no JSON: nock writes both alike, and no length tells"
    raise LeftOut("import-encoding", what, _AGAIN)


def _of_value(value: Any, which: str, intake: Intake) -> bytes:
    if value is None:
        return b""
    intake.change(f"the {which}'s body was written anew as JSON: its value is kept, its bytes are not")
    return json_text(value)


def _hex(digits: str, which: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError as error:
        what = f"the {which}'s body is said to be hexadecimal digits, and is not"
        raise LeftOut("import-encoding", what, _AGAIN) from error
