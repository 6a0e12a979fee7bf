"""The leaks of one file's bytes, in whatever wrapping: archives, compressions, encodings, escapes, recordings. Pure.

What is wrapped is unwrapped, within bounds, and searched again. What can't be unwrapped (encrypted, damaged, of a kind
that is not known here, over a bound) is said, never passed over.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scoresheet.gate import leak_rules, unwrap
from scoresheet.gate.escapes import Layer, origins, unescaped
from scoresheet.gate.leak_rules import Kind, Leak
from scoresheet.gate.pointers import pointers

MOST_FINDINGS = 2000
"""Findings of one file that are kept: more make the file unknown."""

_LEVELS = 3
_AUTHORS = re.compile(
    r"(?i)(?:.*[/!])?(?:authors?|contributors?|maintainers?|codeowners|copying|copyright|licen[cs]e|notice|thanks|credits"
    r"|\.mailmap|pkg-info|metadata)(?:[.-](?:md|txt|rst|mit|apache|bsd))?"
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A leak, and where a person finds it."""

    path: str
    """Of the file; what stands inside an archive after `!`."""
    line: int
    """From 1; 0 when it stands in the file's name."""
    pointer: str
    """JSON pointer, in JSON files; else `""`."""
    rule: str
    kind: Kind
    match_sha256: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that could not be searched, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Content:
    """What one file holds."""

    findings: tuple[Placed, ...]
    unknown: tuple[Unknown, ...]


def search(data: bytes, path: str) -> Content:
    """The leaks of a file, its name included, and what of it could not be searched."""
    work = _Work()
    work.name(path, path)
    work.blob(data, path, 0)
    return Content(tuple(dict.fromkeys(work.findings)), tuple(dict.fromkeys(work.unknown)))


def shown(text: str) -> str:
    """A text fit for people: a leak in it is masked, and what is not printable is escaped."""
    data = text.encode("utf-8", "surrogateescape")
    for leak in reversed(leak_rules.leaks(data)):
        data = data[: leak.start] + b"*" * 6 + data[leak.end :]
    plain = data.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in plain)


class _Work:
    """One pass over a file."""

    def __init__(self, bounds: unwrap.Bounds | None = None) -> None:
        self.findings: list[Placed] = []
        self.unknown: list[Unknown] = []
        self.bounds = unwrap.Bounds() if bounds is None else bounds

    def name(self, name: str, path: str) -> None:
        """Search the name of a file or of an archive's member."""
        for leak in leak_rules.leaks(name.encode("utf-8", "surrogateescape")):
            self._add(Placed(shown(path), 0, "", leak.rule, leak.kind, leak.match_sha256))

    def blob(self, data: bytes, path: str, depth: int) -> None:
        """Search `data`, and everything wrapped in it."""
        for piece in unwrap.pieces(data, self.bounds, depth):
            match piece:
                case unwrap.Unreadable(reason, name):
                    self._unknown(f"{path}!{name}" if name else path, reason)
                case unwrap.Piece("", inner):
                    self.blob(inner, path, depth + 1)
                case unwrap.Piece(name, inner):
                    self.name(name, f"{path}!{name}")
                    self.blob(inner, f"{path}!{name}", depth + 1)
        if unwrap.is_compressed(data):
            return
        text = unwrap.as_utf8(data)
        if text is not None:
            self._text(text, path, depth)
        self._text(data, path, depth, wide=text is None)

    def _text(self, data: bytes, path: str, depth: int, wide: bool = True) -> None:
        authors = _AUTHORS.fullmatch(path) is not None
        found: list[tuple[int, Leak | Placed]] = [(leak.start, leak) for leak in self._leaks(data, path, authors)]
        chain: list[Layer] = []
        view = data
        while len(chain) < _LEVELS and (layer := unescaped(view)) is not None:
            chain.append(layer)
            view = layer.plain
            leaks = self._leaks(view, path, authors)
            found += zip(origins(chain, [leak.start for leak in leaks]), leaks, strict=True)
        found += self._hidden(data, [], path, depth, wide)
        if chain:
            found += self._hidden(view, chain, path, depth, wide)
        self._place(data, path, found)
        if b'_base64"' in data and b'"calls"' in data:
            self._recording(data, path, depth)

    def _leaks(self, data: bytes, path: str, authors: bool) -> tuple[Leak, ...]:
        leaks = leak_rules.leaks(data, authors, MOST_FINDINGS)
        if len(leaks) > MOST_FINDINGS:
            self._too_many(path)
        return leaks

    def _hidden(
        self, data: bytes, chain: list[Layer], path: str, depth: int, wide: bool
    ) -> Iterator[tuple[int, Placed]]:
        """The leaks in base64 and UTF-16 that stand within other bytes."""
        for origin, inner in unwrap.hidden(data, wide):
            if not self.bounds.is_new(inner):
                continue
            if depth >= unwrap.DEEPEST:
                self._unknown(path, f"wrapped more than {unwrap.DEEPEST} times")
                return
            work = _Work(self.bounds)
            work.blob(inner, path, depth + 1)
            self.unknown += work.unknown
            if work.findings:
                (start,) = origins(chain, [origin])
                yield from ((start, each) for each in work.findings)

    def _recording(self, data: bytes, path: str, depth: int) -> None:
        """Bodies in base64 whose Content-Encoding only their headers tell."""
        for pointer, body in unwrap.recorded(data):
            if isinstance(body, str):
                self._unknown(f"{path}#{pointer}", body)
            elif self.bounds.is_new(body):
                work = _Work(self.bounds)
                work.blob(body, path, depth + 1)
                self.unknown += work.unknown
                line = data.count(b"\n", 0, max(0, data.find(b'_base64"'))) + 1
                for each in work.findings:
                    self._add(Placed(each.path, line, pointer, each.rule, each.kind, each.match_sha256))

    def _place(self, data: bytes, path: str, found: list[tuple[int, Leak | Placed]]) -> None:
        if not found:
            return
        found.sort(key=lambda each: each[0])
        places = pointers(data, [origin for origin, _ in found])
        place = shown(path)
        inside = {(each.rule, each.match_sha256) for each in self.findings}  # of an archive: not again as raw bytes
        line, last = 1, 0
        for (origin, leak), pointer in zip(found, places, strict=True):
            line += data.count(b"\n", last, origin)
            last = origin
            if (leak.rule, leak.match_sha256) not in inside:
                self._add(Placed(place, line, shown(pointer), leak.rule, leak.kind, leak.match_sha256))

    def _add(self, placed: Placed) -> None:
        if len(self.findings) >= MOST_FINDINGS:
            self._too_many(placed.path)
        else:
            self.findings.append(placed)

    def _too_many(self, path: str) -> None:
        reason = f"more than {MOST_FINDINGS:,} findings: the rest is not listed"
        if not self.unknown or self.unknown[-1].reason != reason:
            self._unknown(path, reason)

    def _unknown(self, path: str, reason: str) -> None:
        self.unknown.append(Unknown(shown(path), reason))
