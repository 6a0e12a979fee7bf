"""JSON pointers: where in a document a value stands. RFC 6901. Pure."""

from collections.abc import Iterable


def step(name: str | int) -> str:
    """A member's name, or an item's place, as it stands in a pointer (§3)."""
    return str(name).replace("~", "~0").replace("/", "~1")


def name(step: str) -> str:
    """The member's name that a step of a pointer means (§4)."""
    return step.replace("~1", "/").replace("~0", "~")


def of(path: Iterable[str | int]) -> str:
    """The pointer that leads along these names and places; the whole document has the empty one."""
    return "".join(f"/{step(part)}" for part in path)
