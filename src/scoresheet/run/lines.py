"""Which lines differ between two texts: small for small changes, bounded for any. Pure.

Myers 1986 (greedy, forward) up to `_MOST_EDITS`; beyond that the lines that are unique on both sides divide the text
(patience), and what is still too different is replaced whole. The result is always true, and the same everywhere.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_MOST_EDITS = 400


class Region(NamedTuple):
    """Lines `a0:a1` of the old text became lines `b0:b1` of the new one."""

    a0: int
    a1: int
    b0: int
    b1: int


def regions(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[Region, ...]:
    """What changed, in order; regions never touch each other."""
    number: dict[bytes, int] = {}
    a = [number.setdefault(line, len(number)) for line in old]
    b = [number.setdefault(line, len(number)) for line in new]
    found: list[Region] = []
    waiting = [Region(0, len(a), 0, len(b))]
    while waiting:
        part = _trimmed(a, b, waiting.pop())
        if part.a0 == part.a1 or part.b0 == part.b1:
            if part.a0 != part.a1 or part.b0 != part.b1:
                found.append(part)
            continue
        left, right = a[part.a0 : part.a1], b[part.b0 : part.b1]
        pairs = _myers(left, right)
        if pairs is None:
            pairs = _unique(left, right)
            if not pairs:
                found.append(part)
                continue
            waiting += _between(pairs, part)
        else:
            found += [gap for gap in _between(pairs, part) if gap.a0 != gap.a1 or gap.b0 != gap.b1]
    return _joined(sorted(found))


def _trimmed(a: Sequence[int], b: Sequence[int], part: Region) -> Region:
    a0, a1, b0, b1 = part
    while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
        a0, b0 = a0 + 1, b0 + 1
    while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
        a1, b1 = a1 - 1, b1 - 1
    return Region(a0, a1, b0, b1)


def _between(pairs: Sequence[tuple[int, int]], part: Region) -> list[Region]:
    """The gaps before, between and after pairs of equal lines (counted from the part's start)."""
    gaps = []
    a0, b0 = part.a0, part.b0
    for x, y in pairs:
        gaps.append(Region(a0, part.a0 + x, b0, part.b0 + y))
        a0, b0 = part.a0 + x + 1, part.b0 + y + 1
    gaps.append(Region(a0, part.a1, b0, part.b1))
    return gaps


def _myers(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int]] | None:
    """Pairs of equal lines on a shortest way from `a` to `b`; `None` when it has too many edits."""
    size_a, size_b = len(a), len(b)
    reached = {1: 0}
    trace: list[dict[int, int]] = []
    for edits in range(min(_MOST_EDITS, size_a + size_b) + 1):
        trace.append(dict(reached))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (
                diagonal != edits and reached.get(diagonal - 1, -1) < reached.get(diagonal + 1, -1)
            )
            x = reached[diagonal + 1] if down else reached[diagonal - 1] + 1
            y = x - diagonal
            while x < size_a and y < size_b and a[x] == b[y]:
                x, y = x + 1, y + 1
            reached[diagonal] = x
            if x >= size_a and y >= size_b:
                return _way(trace, size_a, size_b)
    return None


def _way(trace: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs = []
    for edits in range(len(trace) - 1, -1, -1):
        reached, diagonal = trace[edits], x - y
        down = diagonal == -edits or (
            diagonal != edits and reached.get(diagonal - 1, -1) < reached.get(diagonal + 1, -1)
        )
        before = diagonal + 1 if down else diagonal - 1
        from_x = reached[before] if edits else 0
        from_y = from_x - before if edits else 0
        while x > from_x and y > from_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = from_x, from_y
    return pairs[::-1]


def _unique(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of lines that are unique on both sides, as many as rise together."""
    in_a, in_b = Counter(a), Counter(b)
    place_b = {line: place for place, line in enumerate(b) if in_b[line] == 1 and in_a[line] == 1}
    shared = [(x, place_b[line]) for x, line in enumerate(a) if in_a[line] == 1 and line in place_b]
    tops: list[int] = []
    piles: list[int] = []
    back: list[int] = []
    for place, (_, y) in enumerate(shared):
        pile = bisect_left(tops, y)
        back.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(y)
            piles.append(place)
        else:
            tops[pile], piles[pile] = y, place
    rising = []
    at = piles[-1] if piles else -1
    while at >= 0:
        rising.append(shared[at])
        at = back[at]
    return rising[::-1]


def _joined(parts: Sequence[Region]) -> tuple[Region, ...]:
    joined: list[Region] = []
    for part in parts:
        if joined and joined[-1].a1 == part.a0 and joined[-1].b1 == part.b0:
            last = joined.pop()
            part = Region(last.a0, part.a1, last.b0, part.b1)
        joined.append(part)
    return tuple(joined)
