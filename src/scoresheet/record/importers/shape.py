"""Values in other tools' files, looked at with suspicion: what has the wrong shape leaves its entry out. Pure."""

import json
from collections.abc import Iterator
from typing import Any

from scoresheet.canonical import JsonValue
from scoresheet.errors import Malformed

MAX_BYTES = 256 << 20
"""Of one file: larger ones are refused unread."""
_MAX_NODES = 20_000_000
_MAX_DEPTH = 200
"""Levels of a value: no format needs so many, and walking deeper ones would end by chance."""
_BOM = b"\xef\xbb\xbf"


class LeftOut(Exception):
    """One entry of a file can't be carried over; the others can."""

    def __init__(self, rule: str, what: str, mend: str = "") -> None:
        super().__init__(what)
        self.rule, self.what, self.mend = rule, what, mend


def json_of(data: bytes, where: str) -> JsonValue:
    """The value of a JSON file of another tool. Raises `Malformed`.

    A byte order mark is passed over and a lone surrogate is left to the entry that holds it; duplicate members, NaN
    and numbers beyond all bounds are refused, for a reader can only guess what was meant.
    """
    try:
        text = data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        mend = "save it as UTF-8" if data[:2] not in (b"\xff\xfe", b"\xfe\xff") else "it is UTF-16: save it as UTF-8"
        raise Malformed(f"not UTF-8 at byte {error.start}", where, mend) from error
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}:{error.colno}"
        mend = "the file is cut short: save it again" if error.pos >= len(text.rstrip()) else ""
        raise Malformed(f"not JSON: {error.msg}", place, mend) from error
    except RecursionError:
        raise Malformed("nested too deeply", where) from None
    except ValueError as error:  # a number of thousands of digits, and the two hooks
        raise Malformed(f"not JSON that can be relied on: {error}", where) from error
    if _deeper(value, _MAX_DEPTH):
        raise Malformed("nested too deeply", where)
    return value


def _deeper(value: JsonValue, levels: int) -> bool:
    level: list[JsonValue] = [value]
    for _ in range(levels):
        below = (item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list))
        level = [part for parts in below for part in parts if isinstance(part, dict | list)]
        if not level:
            return False
    return True


def _once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the member {twice!r} is given twice")
    return members


def _no_number(text: str) -> JsonValue:
    raise ValueError(f"{text} is no JSON number")


def json_text(value: Any) -> bytes:
    """A value as compact JSON. Raises `LeftOut` for what JSON can't hold."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise LeftOut("import-shape", f"a body holds what JSON can't: {error}") from error


def bounded(value: Any, where: str) -> Any:
    """`value`, when walking it ends: aliases of YAML can make a small file endless. Raises `Malformed`."""
    sizes: dict[int, int] = {}
    open_: set[int] = set()

    def size(node: Any, depth: int) -> int:
        if not isinstance(node, dict | list | tuple):
            return 1
        if id(node) in open_ or depth > _MAX_DEPTH:
            raise Malformed("a value that holds itself, or is nested too deeply", where)
        if id(node) not in sizes:
            open_.add(id(node))
            parts = node.values() if isinstance(node, dict) else node
            sizes[id(node)] = 1 + sum(size(part, depth + 1) for part in parts)
            open_.discard(id(node))
            if sizes[id(node)] > _MAX_NODES:
                raise Malformed("aliases make this file endless", where, "write the values out")
        return sizes[id(node)]

    size(value, 0)
    return value


def obj(value: Any, what: str) -> dict[str, Any]:
    """`value` as an object. Raises `LeftOut`."""
    if not isinstance(value, dict):
        raise LeftOut("import-shape", f"{what} is missing or not an object")
    return value


def text(value: Any, what: str) -> str:
    """`value` as text. Raises `LeftOut`."""
    if not isinstance(value, str):
        raise LeftOut("import-shape", f"{what} is missing or not text")
    return value


def rows(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list; nothing of anything else."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def whole(value: Any) -> int | None:
    """`value` as a count of zero or more; `None` for what is none (-1 stands for "unknown" in HAR)."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def duration(value: Any) -> float:
    """`value` as milliseconds; 0 when it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
        return float(value)
    return 0.0
