"""Path and query of a request target, in the one form that is compared (docs/formats, Fingerprints). Pure."""

import re
from urllib.parse import unquote_to_bytes

from scoresheet.canonical import JsonValue

Pairs = list[tuple[JsonValue, JsonValue]]
"""`[name, value]` pairs; a name or value is text, `{"raw": text}` when its escapes are not UTF-8, or (value) `None`."""

_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_LONE = re.compile("[\ud800-\udfff]")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")  # RFC 3986 §2.3


def split(target: str) -> tuple[str, list[JsonValue]]:
    """The compared path, and the query's pairs, of a target as sent."""
    path, mark, query = target.partition("?")
    return normal_path(path), sorted_pairs(query.encode("utf-8", "surrogateescape")) if mark else []


def normal_path(path: str) -> str:
    """`path` with escapes of unreserved characters decoded and all others upper-case; `""` becomes `/`.

    Trailing slash, `;params`, `//` and dot segments are kept: servers tell them apart.
    """
    if "%" in path:
        path = _ESCAPE.sub(_normal_escape, path)
    return text(path) or "/"


def sorted_pairs(encoded: bytes) -> list[JsonValue]:
    """The pairs of a query or a form, stably sorted by the UTF-8 bytes of the name."""
    found = [list(pair) for pair in pairs(encoded)]
    found.sort(key=lambda pair: _sort_key(pair[0]))
    return found


def pairs(encoded: bytes) -> Pairs:
    """The pairs of a query or a form as they stand: `flag` is `("flag", None)`, `flag=` is `("flag", "")`."""
    found: Pairs = []
    for part in encoded.split(b"&"):
        if part:
            name, equals, value = part.partition(b"=")
            found.append((_decoded(name), _decoded(value) if equals else None))
    return found


def text(possibly_broken: str) -> str:
    """The same text, with bytes that were not UTF-8 (held as lone surrogates) written as `%XX`."""
    if possibly_broken.isascii():
        return possibly_broken
    return _LONE.sub(lambda found: f"%{ord(found[0]) & 0xFF:02X}", possibly_broken)


def _normal_escape(found: re.Match[str]) -> str:
    character = chr(int(found[0][1:], 16))
    return character if character in _UNRESERVED else found[0].upper()


def _decoded(part: bytes) -> JsonValue:
    plain = part.replace(b"+", b" ")
    try:
        return (unquote_to_bytes(plain) if b"%" in plain else plain).decode()
    except UnicodeDecodeError:
        raw = text(part.decode("utf-8", "surrogateescape"))
        return {"raw": _ESCAPE.sub(lambda found: found[0].upper(), raw)}


def _sort_key(name: JsonValue) -> bytes:
    return (name["raw"] if isinstance(name, dict) else name).encode()  # type: ignore[no-any-return]  # text either way
