"""A patch read back, file by file: its lines counted, and what it makes of the files that it was made from. Pure.

Only what `patch` writes is taken: whatever is read is written again and compared, so that nothing can be said twice.
"""

import base64
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scoresheet.errors import Malformed
from scoresheet.run.patch import Change, Entry, File, Link, lines_of, named, patch

_LARGEST = 64 << 20
"""Bytes of one file."""
_ENDLESS = b"\\ No newline at end of file\n"
_HUNK = re.compile(rb"@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@\n")
_MODE = re.compile(rb"(new file mode|deleted file mode|old mode|new mode) (100644|100755|120000)\n")
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)")
_LETTERS = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that follow each other: sign and line of each."""

    start: int
    """Line of the old file at which it begins, from 0."""
    lines: tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """What a patch says of one file."""

    path: bytes
    raw: bytes
    modes: tuple[tuple[bytes, bytes], ...]
    """(`new file mode` and so on, mode)."""
    hunks: tuple[Hunk, ...] = ()
    literal: bytes | None = None
    """All of the new file, where it is binary."""

    @property
    def lines(self) -> int:
        """Lines added and removed, counted as `Patch.lines` is."""
        return sum(sign != b" " for hunk in self.hunks for sign, _ in hunk.lines) or 1

    def change(self, before: Entry | None) -> Change:
        """The change of the file that was `before`. Raises `Malformed` when the patch was not made from it."""
        modes = dict(self.modes)
        mode = modes.get(b"new file mode") or modes.get(b"new mode") or (before.mode if before is not None else b"")
        after: Entry | None = None
        if b"deleted file mode" not in modes:
            content = self._content(b"" if before is None else before.content)
            after = Link(content) if mode == b"120000" else File(content, mode == b"100755")
        change = Change(self.path, before, after)
        if change.before == change.after or patch((change,)).text != self.raw:
            raise Malformed(f"{self.path.decode('utf-8', 'backslashreplace')}: not a patch of the file that was there")
        return change

    def _content(self, old: bytes) -> bytes:
        if self.literal is not None:
            return self.literal
        lines = lines_of(old)
        made: list[bytes] = []
        at = 0
        for hunk in self.hunks:
            made += lines[at : hunk.start]
            made += [line for sign, line in hunk.lines if sign != b"-"]
            at = max(at, hunk.start) + sum(sign != b"+" for sign, _ in hunk.lines)
        return b"".join((*made, *lines[at:]))


def sections(lines: Iterable[bytes]) -> Iterator[Section]:
    """What a patch says, file by file, from its lines. Raises `Malformed`, with the line, for what is none."""
    reader = _Reader(lines)
    while reader.line:
        yield reader.section()


class _Reader:
    """The lines of a patch, one ahead."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._number = 0
        self._raw: list[bytes] = []
        self._size = 0
        self.line = b""
        """The next one; empty at the end."""
        self._step()

    def section(self) -> Section:
        """The next file's."""
        self._raw, self._size = [], 0
        path = self._path(self._take())
        modes = []
        while match := _MODE.fullmatch(self.line):
            modes.append((match[1], match[2]))
            self._take()
        hunks: list[Hunk] = []
        literal = None
        if self.line.startswith(b"index "):
            self._take()
            if self.line == b"GIT binary patch\n":
                self._take()
                literal = self._literal()
            elif self.line.startswith(b"--- "):
                self._take()
                if not self._take().startswith(b"+++ "):
                    raise self._fault()
                while self.line.startswith(b"@@ "):
                    hunks.append(self._hunk())
                if not hunks:
                    raise self._fault()
        if self.line and not self.line.startswith(b"diff --git "):
            raise self._fault()
        return Section(path, b"".join(self._raw), tuple(modes), tuple(hunks), literal)

    def _path(self, line: bytes) -> bytes:
        both = line.removeprefix(b"diff --git ").removesuffix(b"\n")
        first = both[: len(both) // 2]
        if first.startswith(b'"'):
            first = _ESCAPED.sub(_letter, first[1:-1])
        path = first.removeprefix(b"a/")
        if line != b"diff --git %s %s\n" % (named(b"a/", path), named(b"b/", path)):
            raise self._fault()
        return path

    def _hunk(self) -> Hunk:
        match = _HUNK.fullmatch(self._take())
        if match is None:
            raise self._fault()
        first, old, new = int(match[1]), int(match[2] or 1), int(match[4] or 1)
        found = []
        while old or new:
            line = self._take()
            sign, line = line[:1], line[1:]
            old -= sign in b" -"
            new -= sign in b" +"
            if sign not in (b" ", b"-", b"+") or old < 0 or new < 0:
                raise self._fault()
            if self.line == _ENDLESS:
                self._take()
                line = line.removesuffix(b"\n")
            found.append((sign, line))
        if not found:
            raise self._fault()
        return Hunk(first - bool(int(match[2] or 1)), tuple(found))

    def _literal(self) -> bytes:
        size = self._take().removeprefix(b"literal ").strip()
        if not size.isdigit() or len(size) > 9 or int(size) > _LARGEST:
            raise self._fault()
        stream = []
        try:
            while (line := self._take()) != b"\n":
                length = line[0] - (64 if line[:1].isupper() else 70)
                stream.append(base64.b85decode(line[1:].removesuffix(b"\n"))[:length])
            return zlib.decompressobj().decompress(b"".join(stream), int(size) + 1)
        except (ValueError, zlib.error) as error:
            raise self._fault() from error

    def _take(self) -> bytes:
        line = self.line
        self._raw.append(line)
        self._size += len(line)
        if not line.endswith(b"\n") or self._size > 4 * _LARGEST:
            raise self._fault()
        self._step()
        return line

    def _step(self) -> None:
        self.line = next(self._lines, b"")
        self._number += 1

    def _fault(self) -> Malformed:
        return Malformed("no line of a patch", f"line {self._number}")


def _letter(match: re.Match[bytes]) -> bytes:
    text = match[1]
    return bytes((int(text, 8) & 0xFF,)) if len(text) == 3 else bytes((_LETTERS.get(text, text[0]),))
