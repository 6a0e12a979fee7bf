"""Escapes of JSON, URLs and HTML undone, and the way back to where they stood. Pure."""

import bisect
import re
from dataclasses import dataclass

_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\[\"'\\/bfnrt]"
    rb"|%[0-9A-Fa-f]{2}|&(?:quot|amp|lt|gt|#39|#x27|#34|#64|#x40);"
)
_PLAIN = {
    b'\\"': b'"', b"\\'": b"'", b"\\\\": b"\\", b"\\/": b"/", b"\\b": b"\b", b"\\f": b"\f", b"\\n": b"\n",
    b"\\r": b"\r", b"\\t": b"\t", b"&quot;": b'"', b"&amp;": b"&", b"&lt;": b"<", b"&gt;": b">", b"&#39;": b"'",
    b"&#x27;": b"'", b"&#34;": b'"', b"&#64;": b"@", b"&#x40;": b"@",
}  # fmt: skip
_AROUND = 400
"""Bytes on both sides of an escape that are searched together with it."""
_BETWEEN = b"\0\n\0"


@dataclass(frozen=True, slots=True)
class Layer:
    """The parts of a text that hold escapes of JSON, URLs or HTML, with these undone, once."""

    text: bytes
    spans: tuple[tuple[int, int], ...]
    """Where the parts stand in `text`."""
    starts: tuple[int, ...]
    """Where they stand in `plain`."""
    plain: bytes

    def origins(self, offsets: list[int]) -> list[int]:
        """Offsets in `plain`, in order, as offsets in `text`."""
        found: list[int] = []
        part = -1
        shifts: list[tuple[int, int]] = []
        for offset in offsets:
            if part < 0 or (part + 1 < len(self.starts) and offset >= self.starts[part + 1]):
                part = bisect.bisect_right(self.starts, offset) - 1
                shifts = self._shifts(part)
            place = bisect.bisect_right(shifts, (offset, 1 << 62)) - 1
            found.append(offset + shifts[place][1])
        return found

    def _shifts(self, part: int) -> list[tuple[int, int]]:
        """Places in `plain`, and what must be added from there on."""
        (low, high), start = self.spans[part], self.starts[part]
        shift = low - start
        shifts = [(start, shift)]
        for match in _ESCAPE.finditer(self.text, low, high):
            shift += len(match[0]) - len(_undo(match))
            shifts.append((match.end() - shift, shift))
        return shifts


def unescaped(text: bytes) -> Layer | None:
    """What stands around escapes, with these undone; `None` when there are none."""
    if not any(sign in text for sign in (b"\\", b"%", b"&")):
        return None
    spans: list[tuple[int, int]] = []
    low = high = -1
    for match in _ESCAPE.finditer(text):
        if high < 0 or match.start() - _AROUND > high:
            if high >= 0:
                spans.append((low, high))
            low = max(match.start() - _AROUND, 0)
        high = match.end() + _AROUND
    if high < 0:
        return None
    spans.append((low, min(high, len(text))))
    parts = [_ESCAPE.sub(_undo, text[start:end]) for start, end in spans]
    starts: list[int] = []
    at = 0
    for part in parts:
        starts.append(at)
        at += len(part) + len(_BETWEEN)
    return Layer(text, tuple(spans), tuple(starts), _BETWEEN.join(parts))


def _undo(match: re.Match[bytes]) -> bytes:
    text = match[0]
    plain = _PLAIN.get(text)
    if plain is not None:
        return plain
    if text[:1] == b"%" or text[:2] == b"\\x":
        return bytes((int(text[-2:], 16),))
    if len(text) == 12:
        return bytes.fromhex((text[2:6] + text[8:]).decode()).decode("utf-16-be").encode()
    return chr(int(text[2:], 16)).encode("utf-8", "replace")


def origins(chain: list[Layer], offsets: list[int]) -> list[int]:
    """Offsets in the last layer's text, in order, as offsets in what the chain of layers began with."""
    for layer in reversed(chain):
        offsets = layer.origins(offsets)
    return offsets
