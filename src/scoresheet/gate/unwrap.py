"""What is wrapped in bytes: compressed, archived, encoded, recorded. Bounded, and pure: everything stays in memory."""

import base64
import binascii
import bz2
import contextlib
import hashlib
import io
import json
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

DEEPEST = 4
"""Wrappings within wrappings that are undone."""
MOST_BYTES = 256 << 20
"""Bytes that one file may unfold to, all its wrappings together."""
MOST_MEMBERS = 20_000

_BITE = 1 << 16
_TAR_MAGIC = (257, b"ustar")
_UNREADABLE: tuple[tuple[bytes, str], ...] = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: it can't be undone here"),
    (b"Rar!\x1a\x07", "a RAR archive: it can't be undone here"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd: it can't be undone here"),
    (b"\x04\x22\x4d\x18", "compressed by lz4: it can't be undone here"),
    (b"LZIP", "compressed by lzip: it can't be undone here"),
    (b"\x1f\x9d", "compressed by compress: it can't be undone here"),
    (b"PAR1", "a Parquet file: its pages can't be undone here"),
    (b"PACK\0\0\0", "a git pack: give a checkout without its .git folder"),
    (b"Salted__", "encrypted by openssl"),
    (b"age-encryption.org/", "encrypted by age"),
    (b"$ANSIBLE_VAULT;", "encrypted by ansible-vault"),
    (b"-----BEGIN PGP MESSAGE-----", "encrypted by OpenPGP"),
    (b"-----BEGIN AGE ENCRYPTED FILE-----", "encrypted by age"),
    (b"\x03\xd9\xa2\x9a", "an encrypted KeePass file"),
    (b"\xfe\xed\xfe\xed", "an encrypted Java key store"),
    (b"LUKS\xba\xbe", "an encrypted volume"),
    (b"SQLite format 3\0", ""),
)
_BOMS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_WIDE = re.compile(rb"(?:[\x20-\x7e\t\r\n]\0){12,}")
_BASE64_SHAPE = bytes.maketrans(b"BCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_", b"A" * 65)
_SHORTEST = 40
_RUN = re.compile(rb"[A-Za-z0-9+/_-]{40,}(?:\r?\n[ \t]{0,12}[A-Za-z0-9+/_-]+)*={0,2}")
_HEX = re.compile(rb"[0-9A-Fa-f]{40,}+(?![A-Za-z0-9+/_-])")
_PRINTABLE = bytes(range(32, 127)) + b"\t\r\n"


@dataclass(slots=True)
class Bounds:
    """What one file may still unfold to."""

    room: int = MOST_BYTES
    members: int = MOST_MEMBERS
    seen: set[bytes] = field(default_factory=set)
    """Digests of what was hidden in text and has been searched."""

    def is_new(self, data: bytes) -> bool:
        """True the first time that these bytes are met."""
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if digest in self.seen:
            return False
        self.seen.add(digest)
        return True


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that was wrapped: its name in an archive, else `""`, and its bytes."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that could not be unwrapped, and where in an archive."""

    reason: str
    name: str = ""


Found = Piece | Unreadable


class _Full(Exception):
    """A bound is reached."""


def is_compressed(data: bytes) -> bool:
    """True when the bytes as they lie hold nothing to search: noise that only unwrapping makes readable."""
    return _kind(data) in ("gzip", "bz2", "xz")


def pieces(data: bytes, bounds: Bounds, depth: int) -> Iterator[Found]:
    """What `data` as a whole wraps, one layer."""
    for magic, reason in _UNREADABLE:
        if reason and data.startswith(magic):
            yield Unreadable(reason)
            return
    kind = _kind(data)
    if kind is None:
        return
    if depth >= DEEPEST:
        yield Unreadable(f"wrapped more than {DEEPEST} times")
        return
    try:
        match kind:
            case "zip":
                yield from _zip(data, bounds)
            case "tar":
                yield from _tar(data, bounds)
            case "pdf":
                yield from _pdf(data, bounds)
            case _:
                yield from _stream(kind, data, bounds)
    except _Full:
        yield Unreadable(f"unfolds to more than {MOST_BYTES >> 20} MiB or {MOST_MEMBERS:,} members")


def as_utf8(data: bytes) -> bytes | None:
    """Text with a byte order mark, as UTF-8; `None` for everything else."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace")
    return None


def hidden(data: bytes, wide: bool = True) -> Iterator[tuple[int, bytes]]:
    """Base64 and UTF-16 (when `wide`) within other bytes: where it begins, and what it is."""
    yield from _base64_runs(data)
    if wide and b"\0" in data:
        for match in _WIDE.finditer(data):
            yield match.start(), match[0][::2]


def recorded(data: bytes) -> Iterator[tuple[str, bytes | str]]:
    """JSON pointer and bytes of every recorded body in base64, its Content-Encoding undone; or why it can't be."""
    try:
        task = json.loads(data)
    except (ValueError, RecursionError):
        return
    calls = task.get("calls") if isinstance(task, dict) else None
    for place, call in enumerate(calls if isinstance(calls, list) else ()):
        if not isinstance(call, dict):
            continue
        if isinstance(text := call.get("response_base64"), str):
            yield f"/calls/{place}/response_base64", _body(text, call.get("response_headers"), call.get("fault"))
        request = call.get("request")
        if isinstance(request, dict) and isinstance(text := request.get("body_base64"), str):
            yield f"/calls/{place}/request/body_base64", _body(text, request.get("headers"), None)


def _body(text: str, headers: Any, fault: Any) -> bytes | str:
    from scoresheet.documents.tool import Request  # costs every process of a scan what only recordings need
    from scoresheet.pack import body as bodies

    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return "not base64"
    pairs = tuple(
        (pair[0], pair[1])
        for pair in (headers if isinstance(headers, list) else ())
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], str)
    )
    plain = bodies.readable(Request("", "GET", "/", pairs, raw))
    if plain is not None:
        return plain
    if fault == "truncated":
        try:
            return zlib.decompressobj(wbits=47).decompress(raw, bodies.MAX_DECODED)
        except zlib.error:
            pass
    return "its Content-Encoding can't be undone"


def _kind(data: bytes) -> str | None:
    if data[:3] == b"\x1f\x8b\x08":
        return "gzip"
    if data[:3] == b"BZh" and data[4:10] == b"1AY&SY":
        return "bz2"
    if data[:6] == b"\xfd7zXZ\0":
        return "xz"
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08") or b"PK\x05\x06" in data[-65557:]:
        return "zip"
    if data[_TAR_MAGIC[0] : _TAR_MAGIC[0] + 5] == _TAR_MAGIC[1]:
        return "tar"
    if data[:5] == b"%PDF-":
        return "pdf"
    if len(data) > 8 and data[0] == 0x78 and (data[0] * 256 + data[1]) % 31 == 0 and not data[1] & 0x20:
        return "zlib"
    return None


def _stream(kind: str, data: bytes, bounds: Bounds) -> Iterator[Found]:
    plain = bytearray()
    rest = data
    trouble = ""
    while rest:
        stream: Any
        match kind:
            case "gzip":
                stream = zlib.decompressobj(wbits=31)
            case "zlib":
                stream = zlib.decompressobj()
            case "bz2":
                stream = bz2.BZ2Decompressor()
            case _:
                stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=128 << 20)
        before = len(plain)
        try:
            trouble = _bites(stream, rest, plain, bounds)
        except (zlib.error, OSError, EOFError, lzma.LZMAError) as error:
            if kind == "zlib" and len(plain) == before:
                return  # two bytes that only looked like it
            trouble = f"damaged {kind} data: {error}"
        if trouble or kind == "zlib" or not stream.eof:
            break
        rest = stream.unused_data.lstrip(b"\0")
        if rest and _kind(rest) != kind:
            yield Piece("", rest)
            break
    if plain or not trouble:
        yield Piece("", bytes(plain))
    if trouble:
        yield Unreadable(trouble)


def _bites(stream: Any, data: bytes, plain: bytearray, bounds: Bounds) -> str:
    """Unfold one stream into `plain`; what is wrong with it, or `""`."""
    feed = data
    while not stream.eof:
        bite = stream.decompress(feed, 1 << 20)
        bounds.room -= len(bite)
        if bounds.room < 0:
            raise _Full
        plain += bite
        feed = getattr(stream, "unconsumed_tail", b"")
        if not bite and not feed and not stream.eof:
            return "cut short"
    return ""


def _zip(data: bytes, bounds: Bounds) -> Iterator[Found]:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, UnicodeDecodeError, OverflowError):
        if data[:2] == b"PK":
            yield Unreadable("a damaged zip archive")
        return
    with archive:
        if archive.comment:
            yield Piece("", archive.comment)
        for info in archive.infolist():
            bounds.members -= 1
            if bounds.members < 0:
                raise _Full
            if info.is_dir():
                continue
            if info.flag_bits & 1:
                yield Unreadable("encrypted", info.filename)
                continue
            if info.file_size > bounds.room:
                yield Unreadable(f"unfolds to more than {MOST_BYTES >> 20} MiB", info.filename)
                continue
            try:
                with archive.open(info) as member:
                    plain = member.read(bounds.room + 1)
            except Exception as error:  # noqa: BLE001  # zipfile lets out whatever its decoders raise
                yield Unreadable(f"can't be unfolded: {type(error).__name__}", info.filename)
                continue
            bounds.room -= len(plain)
            if bounds.room < 0:
                raise _Full
            yield Piece(info.filename, plain)


def _tar(data: bytes, bounds: Bounds) -> Iterator[Found]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                bounds.members -= 1
                bounds.room -= max(0, member.size)
                if bounds.members < 0 or bounds.room < 0:
                    raise _Full
                if member.isfile():
                    file = archive.extractfile(member)
                    yield Piece(member.name, file.read() if file is not None else b"")
    except (tarfile.TarError, ValueError, OSError, EOFError, OverflowError, UnicodeError):
        yield Unreadable("a damaged tar archive")


def _pdf(data: bytes, bounds: Bounds) -> Iterator[Found]:
    if b"/Encrypt" in data:
        yield Unreadable("an encrypted PDF")
        return
    for match in re.finditer(rb"stream\r?\n(?=\x78)", data):
        plain = bytearray()
        with contextlib.suppress(zlib.error):
            _bites(zlib.decompressobj(), data[match.end() : match.end() + (16 << 20)], plain, bounds)
        if plain:
            yield Piece("", bytes(plain))


def _base64_runs(data: bytes) -> Iterator[tuple[int, bytes]]:
    shape = data.translate(_BASE64_SHAPE)
    needle = b"A" * _SHORTEST
    at = shape.find(needle)
    while at >= 0:
        match = _HEX.match(data, at)  # a hash
        if match is None:
            match = _RUN.match(data, at)
            assert match is not None
            plain = _decoded(match[0])
            if plain is not None:
                yield at, plain
        at = shape.find(needle, match.end())


def _decoded(run: bytes) -> bytes | None:
    """What a run of base64 says, if that is text or something wrapped."""
    text = run.translate(bytes.maketrans(b"-_", b"+/"), b"\r\n\t =")
    text = text[: len(text) - (len(text) % 4 == 1)]
    try:
        plain = binascii.a2b_base64(text + b"=" * (-len(text) % 4))
    except binascii.Error:
        return None
    if _kind(plain) or any(plain.startswith(magic) for magic, _ in (*_BOMS, *_UNREADABLE)):
        return plain
    odd = len(plain[:4096].translate(None, _PRINTABLE))
    if odd * 8 <= len(plain[:4096]) or len(plain) > 256:
        return plain
    return None
