"""Bodies that a client packed, unpacked within bounds. Pure (RFC 9110 §8.4.1).

What is unpacked here is what is judged, kept and sent on: whatever else could be read from the packed bytes, nobody
reads it.
"""

import zlib

from scoresheet.model.heads import CODINGS, MAX_BODY, Bad

_WINDOW = 32 << 20
"""What a zstd body may make its reader keep."""


def unpacked(coding: str, body: bytes, most: int = MAX_BODY) -> bytes:
    """The body without its content coding, one of `heads.CODINGS`. Raises `Bad`: broken, too large, or not known."""
    match coding:
        case "identity":
            return body
        case "gzip" | "x-gzip":
            plain = _inflated(body, most, 31)
        case "deflate":
            plain = _inflated(body, most, 47)
        case "zstd":
            plain = _zstd(body, most)
        case _:
            raise Bad(415, f"a body packed with {coding!r}: it can be {', '.join(CODINGS)}")
    if len(plain) > most:
        raise Bad(413, f"a body of more than {most} bytes, unpacked")
    return plain


def _inflated(body: bytes, most: int, window: int) -> bytes:
    unpacking = zlib.decompressobj(window)
    try:
        plain = unpacking.decompress(body, most + 1)
    except zlib.error as error:
        raise Bad(400, "a packed body that is broken") from error
    if len(plain) <= most and (not unpacking.eof or unpacking.unused_data):
        raise Bad(400, "a packed body that is broken")
    return plain


def _zstd(body: bytes, most: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        return _zstd_of_python(body, most)
    try:
        reading = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(body)
        return reading.read(most + 1)
    except zstandard.ZstdError as error:
        raise Bad(400, "a packed body that is broken") from error


def _zstd_of_python(body: bytes, most: int) -> bytes:
    """By the standard library, which has it from 3.14 on."""
    try:
        from compression import zstd
    except ImportError:
        raise Bad(415, "a body packed with zstd, for which scoresheet[zstd] is not installed") from None
    options = {zstd.DecompressionParameter.window_log_max: _WINDOW.bit_length() - 1}
    unpacking = zstd.ZstdDecompressor(options=options)
    try:
        plain: bytes = unpacking.decompress(body, max_length=most + 1)
    except zstd.ZstdError as error:
        raise Bad(400, "a packed body that is broken") from error
    return plain
