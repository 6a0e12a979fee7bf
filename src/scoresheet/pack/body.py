"""What a request body is, tagged by its media type: none, json, form, multipart or bytes. Pure.

Never raises: a body that is not what its headers say is `["bytes", media type, sha256]` of the bytes as sent.
"""

import re
import zlib
from collections.abc import Callable

from scoresheet import canonical, digest
from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import Request
from scoresheet.pack import target

MAX_DECODED = 64 << 20
"""Bytes that a Content-Encoding may unfold to; more counts as a broken encoding."""

_BOUNDARY = re.compile(r';\s*boundary=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))', re.IGNORECASE)
_PARAMETER = re.compile(r';\s*(name|filename\*?)=(?:"((?:[^"\\]|\\.)*)"|([^;\s"]*))', re.IGNORECASE)


class _Broken(Exception):
    """The bytes are not what the headers say: they are compared as bytes."""


def media_type(content_type: str) -> str:
    """`content_type` without its parameters, lower-cased."""
    return content_type.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Whether `media` is JSON: `application/json` or a `+json` type."""
    return media == "application/json" or media.endswith("+json")


def tagged(request: Request) -> list[JsonValue]:
    """The body as a tagged list (docs/formats, Fingerprints)."""
    if not request.body:
        return ["none"]
    content_type = request.header("content-type")
    media = media_type(content_type)
    try:
        data = decoded(request)
        if not data:
            return ["none"]
        if is_json(media):
            return ["json", canonical.loads(data)]
        if media == "application/x-www-form-urlencoded":
            return ["form", target.sorted_pairs(data)]
        if media == "multipart/form-data":
            return ["multipart", _parts(content_type, data)]
    except (_Broken, canonical.JsonError):
        data = request.body
    return as_bytes(media, data)


def as_bytes(media: str, data: bytes) -> list[JsonValue]:
    """The tag of a body that is compared byte for byte."""
    return ["bytes", target.text(media), digest.of(data)]


def readable(request: Request) -> bytes | None:
    """The body with its Content-Encoding undone, or `None` when the encoding is broken."""
    try:
        return decoded(request)
    except _Broken:
        return None


def decoded(request: Request) -> bytes:
    """The body with its Content-Encoding undone. Raises `_Broken`."""
    data = request.body
    codings = request.header("content-encoding").lower()
    for coding in reversed(codings.split(",") if codings else ()):
        undo = _CODINGS.get(coding.strip())
        if undo is None:
            raise _Broken
        data = undo(data)
    return data


def _gzip(data: bytes) -> bytes:
    members: list[bytes] = []
    room = MAX_DECODED
    while data:
        member = zlib.decompressobj(wbits=31)
        members.append(_inflate(member.decompress, data, room))
        if not member.eof:
            raise _Broken
        room -= len(members[-1])
        data = member.unused_data
    return b"".join(members)


def _deflate(data: bytes) -> bytes:
    for wbits in (15, -15):  # RFC 9110 §8.4.1.2: zlib's wrapper is right, some send the bare stream
        stream = zlib.decompressobj(wbits=wbits)
        try:
            plain = _inflate(stream.decompress, data, MAX_DECODED)
        except _Broken:
            continue
        if stream.eof and not stream.unused_data:
            return plain
    raise _Broken


def _inflate(decompress: Callable[[bytes, int], bytes], data: bytes, room: int) -> bytes:
    try:
        plain = decompress(data, room + 1)
    except zlib.error as error:
        raise _Broken from error
    if len(plain) > room:
        raise _Broken
    return plain


_CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    "identity": lambda data: data,
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
}
"""Those of the standard library: with a coding that only some hosts can undo, two hosts would disagree."""


def _parts(content_type: str, data: bytes) -> list[JsonValue]:
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise _Broken
    boundary = found[2] or re.sub(r"\\(.)", r"\1", found[1])
    pieces = (b"\r\n" + data).split(b"\r\n--" + boundary.encode("utf-8", "surrogateescape"))
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise _Broken
    return [_part(piece) for piece in pieces[1:-1]]


def _part(piece: bytes) -> JsonValue:
    opening, end_of_line, rest = piece.partition(b"\r\n")  # the rest of the delimiter line: only padding
    if not end_of_line or opening.strip(b" \t"):
        raise _Broken
    if rest.startswith(b"\r\n"):
        head, content = b"", rest[2:]
    else:
        head, blank, content = rest.partition(b"\r\n\r\n")
        if not blank:
            raise _Broken
    try:
        headers = dict(reversed([_header(line) for line in head.decode().split("\r\n") if line]))
    except UnicodeDecodeError as error:
        raise _Broken from error
    names: dict[str, str] = {}
    for key, quoted, bare in _PARAMETER.findall(headers.get("content-disposition", "")):
        names.setdefault(key.lower(), re.sub(r"\\(.)", r"\1", quoted) or bare)
    return {
        "name": names.get("name"),
        "filename": names.get("filename", names.get("filename*")),
        "type": media_type(headers["content-type"]) if "content-type" in headers else None,
        "sha256": digest.of(content),
    }


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()
