"""Betamax cassettes (JSON) and Ruby VCR's (YAML): `http_interactions`. Pure."""

from collections.abc import Mapping
from typing import Any

from scoresheet.errors import Malformed
from scoresheet.record.exchange import header
from scoresheet.record.importers.intake import Intake, Source
from scoresheet.record.importers.shape import LeftOut, obj, text, whole
from scoresheet.record.importers.vcr import base64_of, document, headers_of

_AGAIN = "the recorder was told to leave bodies out: record it again with them"


def read(source: Source, intake: Intake) -> None:
    """Take the interactions of a cassette, in their order. Raises `Malformed`."""
    cassette = document(source)
    entries = cassette.get("http_interactions") if isinstance(cassette, dict) else None
    if not isinstance(entries, list):
        mend = (
            "VCR.py writes this: import it as vcr" if isinstance(cassette, dict) and "interactions" in cassette else ""
        )
        raise Malformed("not a cassette of Betamax or Ruby's VCR: it has no http_interactions", source.name, mend)
    for place, entry in enumerate(entries):
        where = f"{source.name}#/http_interactions/{place}"
        with intake.entry(where):
            _interaction(where, obj(entry, "the interaction"), intake)


def _interaction(where: str, entry: dict[str, Any], intake: Intake) -> None:
    request, response = obj(entry.get("request"), "request"), obj(entry.get("response"), "response")
    url = text(request.get("uri"), "request.uri")
    intake.wanted(url)
    sent, answered = headers_of(request.get("headers"), intake), headers_of(response.get("headers"), intake)
    status = response.get("status", response.get("status_code"))
    code = whole(status.get("code") if isinstance(status, dict) else status)
    method = text(request.get("method"), "request.method")
    asked, _ = _body(request, "request")
    body, plain = _body(response, "answer")
    length = header(answered, "content-length")
    if not body and method.upper() != "HEAD" and code not in (204, 304) and length.isdecimal() and length.strip("0"):
        raise LeftOut("import-body-missing", f"the answer's body ({length} bytes) is not in the file", _AGAIN)
    intake.http(where, method, url, (sent, asked), code, (answered, body), plain=plain)


def _body(message: Mapping[str, Any], which: str) -> tuple[bytes, bool]:
    """The bytes, and whether they were stored as text, so with their Content-Encoding undone."""
    body = message.get("body")
    if isinstance(body, str):
        return body.encode(), True
    held = obj(body, f"the {which}'s body")
    if held.get("base64_string"):
        return base64_of(held["base64_string"], which), False
    written = held.get("string")
    if isinstance(written, bytes):
        return written, False
    encoding = held.get("encoding")
    if written is None:
        raise LeftOut("import-body-missing", f"the {which}'s body is not in the file", _AGAIN)
    plain = text(written, f"the {which}'s body")
    if plain.isascii() or not isinstance(encoding, str) or encoding.upper() in ("UTF-8", "ASCII-8BIT", "US-ASCII"):
        return plain.encode(), True
    try:
        return plain.encode(encoding), True
    except (LookupError, ValueError) as error:
        raise LeftOut("import-encoding", f"the {which}'s body is said to be {encoding[:40]!r}, and is not") from error
