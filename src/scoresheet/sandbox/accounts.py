"""Unprivileged accounts for episodes that root starts: high ids of their own, without an entry anywhere. Pure."""

from dataclasses import dataclass

_LOW, _HIGH = 0x7000_0000, 0x7FFF_0000
"""Ids that no distribution gives out (systemd's table of uids: unused)."""
_SMALL = 2048


@dataclass(frozen=True, slots=True)
class Pool:
    """Ids from `first`, `size` of them."""

    first: int
    size: int


def pool(uid_map: str, gid_map: str) -> Pool | None:
    """The ids that this user namespace can give to episodes, from its /proc/self maps; `None` when it has none."""
    for first, size in ((_LOW, _HIGH - _LOW), (61184 + _SMALL, _SMALL), (40000, _SMALL), (2000, _SMALL)):
        if all(_holds(text, first, size) for text in (uid_map, gid_map)):
            return Pool(first, size)
    return None


def _holds(text: str, first: int, size: int) -> bool:
    extents = [tuple(map(int, line.split()))[::2] for line in text.splitlines() if line.strip()]
    return any(start <= first and first + size <= start + length for start, length in extents)
