"""Two states of a workspace → one patch: deterministic, safe for any bytes, and `git apply` takes it. Pure.

Made by ourselves, and not by git: what an agent leaves (attributes, filters, a repository) then has no say in it.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scoresheet.run import lines

PATCH = "patch.diff"
"""In an episode's folder: what the agent left in its workspace."""
_CONTEXT = 3
_LOOKED_AT = 8000
"""Bytes in which a NUL makes a file binary, as in git."""
_LONGEST = 1 << 20
"""Lines of a text; a longer one is shown as bytes."""
_STORED = 65535
_NOTHING = b"/dev/null"


@dataclass(frozen=True, slots=True)
class File:
    """A regular file."""

    content: bytes
    exec: bool = False

    @property
    def mode(self) -> bytes:
        """As git writes it."""
        return b"100755" if self.exec else b"100644"


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link: what it says, which nobody followed."""

    target: bytes

    @property
    def content(self) -> bytes:
        """What git stores of a link."""
        return self.target

    @property
    def mode(self) -> bytes:
        """As git writes it."""
        return b"120000"


Entry = File | Link


@dataclass(frozen=True, slots=True)
class Change:
    """One path that is not what it was: `None` on a side is nothing there."""

    path: bytes
    before: Entry | None
    after: Entry | None


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch and its size."""

    text: bytes
    lines: int
    """Lines added and removed; a binary file, and one of which only the mode changed, counts as 1."""

    @property
    def sha256(self) -> str:
        """The digest of the text."""
        return hashlib.sha256(self.text).hexdigest()


def patch(changes: Iterable[Change]) -> Patch:
    """The unified diff of all changes, sorted by path."""
    parts: list[bytes] = []
    total = 0
    for change in sorted(changes, key=lambda change: change.path):
        for one in _steps(change):
            text, count = _file(one)
            parts.append(text)
            total += count
    return Patch(b"".join(parts), total)


def _steps(change: Change) -> tuple[Change, ...]:
    """A file that became a link (or back) goes and comes, as git says it."""
    before, after = change.before, change.after
    if before is not None and after is not None and type(before) is not type(after):
        return Change(change.path, before, None), Change(change.path, None, after)
    return (change,)


def _file(change: Change) -> tuple[bytes, int]:
    before, after = change.before, change.after
    assert before is not None or after is not None
    old = b"" if before is None else before.content
    new = b"" if after is None else after.content
    head = [b"diff --git %s %s\n" % (named(b"a/", change.path), named(b"b/", change.path))]
    if before is None:
        assert after is not None
        head.append(b"new file mode %s\n" % after.mode)
    elif after is None:
        head.append(b"deleted file mode %s\n" % before.mode)
    elif before.mode != after.mode:
        head.append(b"old mode %s\nnew mode %s\n" % (before.mode, after.mode))
    if old == new and before is not None and after is not None:
        return b"".join(head), 1
    same_mode = b" " + after.mode if before is not None and after is not None and before.mode == after.mode else b""
    head.append(b"index %s..%s%s\n" % (_blob(before), _blob(after), same_mode))
    if old == new:  # an empty file came or went
        return b"".join(head), 1
    if _binary(old) or _binary(new):
        return b"".join((*head, b"GIT binary patch\nliteral %d\n" % len(new), _encoded(new), b"\n")), 1
    head.append(b"--- %s\n" % (_NOTHING if before is None else _marked(named(b"a/", change.path))))
    head.append(b"+++ %s\n" % (_NOTHING if after is None else _marked(named(b"b/", change.path))))
    body, count = _hunks(lines_of(old), lines_of(new))
    return b"".join((*head, *body)), count


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[list[bytes], int]:
    made: list[bytes] = []
    total = 0
    found = lines.regions(old, new)
    at = 0
    while at < len(found):
        end = at + 1
        while end < len(found) and found[end].a0 - found[end - 1].a1 <= 2 * _CONTEXT:
            end += 1
        group = found[at:end]
        at = end
        a0 = max(0, group[0].a0 - _CONTEXT)
        b0 = max(0, group[0].b0 - _CONTEXT)
        a1 = min(len(old), group[-1].a1 + _CONTEXT)
        b1 = min(len(new), group[-1].b1 + _CONTEXT)
        made.append(b"@@ -%s +%s @@\n" % (_range(a0, a1), _range(b0, b1)))
        here = a0
        for part in group:
            made += [_line(b" ", line) for line in old[here : part.a0]]
            made += [_line(b"-", line) for line in old[part.a0 : part.a1]]
            made += [_line(b"+", line) for line in new[part.b0 : part.b1]]
            total += part.a1 - part.a0 + part.b1 - part.b0
            here = part.a1
        made += [_line(b" ", line) for line in old[here:a1]]
    return made, total


def _range(start: int, end: int) -> bytes:
    count = end - start
    first = start + 1 if count else start
    return b"%d" % first if count == 1 else b"%d,%d" % (first, count)


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"


def lines_of(content: bytes) -> list[bytes]:
    """The lines, each with its end; the last may lack one."""
    parts = content.split(b"\n")
    last = parts.pop()
    return [part + b"\n" for part in parts] + ([last] if last else [])


def _binary(content: bytes) -> bool:
    return b"\0" in content[:_LOOKED_AT] or content.count(b"\n") > _LONGEST


def _blob(entry: Entry | None) -> bytes:
    if entry is None:
        return b"0" * 40
    content = entry.content
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest().encode()


def named(side: bytes, path: bytes) -> bytes:
    """The path as git writes it: in quotes, with escapes, when it holds anything that could be misread."""
    whole = side + path
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in whole):
        return whole
    letters = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}
    quoted = (letters.get(byte) or (bytes((byte,)) if 0x20 <= byte < 0x7F else b"\\%03o" % byte) for byte in whole)
    return b'"' + b"".join(quoted) + b'"'


def _marked(name: bytes) -> bytes:
    """A tab ends a name that holds a space, else what follows the space would count as a time."""
    return name + b"\t" if b" " in name and not name.startswith(b'"') else name


def _encoded(content: bytes) -> bytes:
    """Base 85 of a zlib stream of stored blocks: the same bytes whatever zlib is installed."""
    blocks = [content[at : at + _STORED] for at in range(0, len(content), _STORED)] or [b""]
    stream = bytearray(b"\x78\x01")
    for number, block in enumerate(blocks, 1):
        stream += bytes((number == len(blocks),))
        stream += len(block).to_bytes(2, "little") + (len(block) ^ 0xFFFF).to_bytes(2, "little") + block
    stream += zlib.adler32(content).to_bytes(4, "big")
    made = []
    for at in range(0, len(stream), 52):
        part = bytes(stream[at : at + 52])
        size = len(part)
        made.append(bytes((size + 64 if size <= 26 else size + 70,)) + base64.b85encode(part, pad=True) + b"\n")
    return b"".join(made)
