"""One request and its answer, as they crossed the recording proxy. Pure."""

import gzip
import zlib
from dataclasses import dataclass

from scoresheet.documents.tool import HeaderPairs, Request, Response
from scoresheet.pack import body as bodies


@dataclass(frozen=True, slots=True)
class Exchange:
    """A recorded call, in the order in which the requests arrived."""

    request: Request
    response: Response


def header(headers: HeaderPairs, name: str) -> str:
    """The value of a header, its repetitions joined by `, `; `""` when it is absent."""
    wanted = name.lower()
    return ", ".join(value for key, value in headers if key.lower() == wanted)


def media_type(headers: HeaderPairs) -> str:
    """`Content-Type` in lower case, without its parameters."""
    return bodies.media_type(header(headers, "content-type"))


def codings(headers: HeaderPairs) -> tuple[str, ...]:
    """The Content-Encodings in the order they were applied, `identity` left out."""
    names = (name.strip().lower() for name in header(headers, "content-encoding").split(","))
    return tuple(name for name in names if name not in ("", "identity"))


def readable(headers: HeaderPairs, body: bytes) -> bytes | None:
    """The body with its Content-Encoding undone; `None` when that can't be done here."""
    return bodies.readable(Request("", "GET", "/", headers, body)) if body else body


def readable_start(headers: HeaderPairs, body: bytes) -> bytes | None:
    """As much as can be read of a body that was cut short; `None` when nothing can be known of it."""
    match codings(headers):
        case ():
            return body
        case ("gzip" | "x-gzip" | "deflate",):
            try:
                return zlib.decompressobj(wbits=47).decompress(body, bodies.MAX_DECODED)
            except zlib.error:
                return None
        case _:
            return None


def encoded(headers: HeaderPairs, body: bytes) -> bytes | None:
    """A body with the Content-Encoding of `headers` applied again; `None` for a coding that can't be written here."""
    for coding in codings(headers):
        match coding:
            case "gzip" | "x-gzip":
                body = gzip.compress(body, mtime=0)
            case "deflate":
                body = zlib.compress(body)
            case _:
                return None
    return body
