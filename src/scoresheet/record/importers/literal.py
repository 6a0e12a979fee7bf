"""JSON whose parts are kept as the text that they were: what was recorded is not written anew. Pure."""

import json
from collections.abc import Iterator
from typing import Any

from scoresheet.record.importers.shape import LeftOut

_DECODER = json.JSONDecoder()
_BLANK = " \t\n\r"


def members(text: str, start: int = 0) -> dict[str, tuple[int, int]]:
    """Name → where its value begins and ends, of the object that begins at `start`. Raises `LeftOut`."""
    found: dict[str, tuple[int, int]] = {}
    try:
        place = _skip(text, _expect(text, _skip(text, start), "{"))
        while text[place] != "}":
            name, place = _DECODER.raw_decode(text, place)
            begin = _skip(text, _expect(text, _skip(text, place), ":"))
            _, end = _DECODER.raw_decode(text, begin)
            if name in found:
                raise LeftOut("import-shape", f"the member {name!r} is given twice")
            found[name] = begin, end
            place = _skip(text, end)
            if text[place] == ",":
                place = _skip(text, place + 1)
    except (ValueError, IndexError, RecursionError) as error:
        raise LeftOut("import-shape", f"not a JSON object: {error}") from error
    return found


def items(text: str, start: int = 0) -> Iterator[tuple[Any, str]]:
    """Every item of the list that begins at `start`, and its text. Raises `LeftOut`."""
    try:
        place = _skip(text, _expect(text, _skip(text, start), "["))
        while text[place] != "]":
            value, end = _DECODER.raw_decode(text, place)
            yield value, text[place:end]
            place = _skip(text, end)
            if text[place] == ",":
                place = _skip(text, place + 1)
    except (ValueError, IndexError, RecursionError) as error:
        raise LeftOut("import-shape", f"not a JSON list: {error}") from error


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in _BLANK:
        place += 1
    return place


def _expect(text: str, place: int, mark: str) -> int:
    if text[place] != mark:
        raise ValueError(f"{mark} expected")
    return place + 1
