"""How two requests differ, in lines that a person can read. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scoresheet import canonical, json_pointer
from scoresheet.canonical import JsonValue

_SHOWN = 120
_KINDS = {
    "none": "no body",
    "json": "JSON",
    "form": "a form",
    "multipart": "a multipart form",
    "bytes": "bytes that are not JSON",
}


def lines(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Readable lines of how two canonical requests differ; the whole list, its length being their distance."""
    found = [
        f"{part}: recorded {_shown(recorded[part])}, asked {_shown(asked[part])}"
        for part in ("upstream", "method", "path")
        if recorded[part] != asked[part]
    ]
    found += _pairs("query", recorded["query"], asked["query"])
    found += _pairs("header", recorded["vary"], asked["vary"])
    (was, *old), (now, *new) = recorded["body"], asked["body"]
    if was != now:
        found.append(f"body: recorded {_KINDS[was]}, asked {_KINDS[now]}")
    elif was == "json":
        _walk("", old[0], new[0], found.append)
    elif was == "form":
        found += _pairs("form", old[0], new[0])
    elif old != new:
        found.append(f"body: recorded {_shown(old)}, asked {_shown(new)}")
    return tuple(found)


def _pairs(part: str, recorded: Sequence[Any], asked: Sequence[Any]) -> list[str]:
    if recorded == asked:
        return []
    old, new = _by_name(recorded), _by_name(asked)
    return [
        f"{part} {name}: recorded {_values(old.get(name))}, asked {_values(new.get(name))}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _by_name(pairs: Sequence[Any]) -> dict[str, list[Any]]:
    named: dict[str, list[Any]] = {}
    for name, value in pairs:
        named.setdefault(name if isinstance(name, str) else name["raw"], []).append(value)
    return named


def _values(values: list[Any] | None) -> str:
    if values is None:
        return "nothing"
    return ", ".join("no value" if value is None else _shown(value) for value in values)


def _walk(pointer: str, recorded: JsonValue, asked: JsonValue, say: Callable[[str], None]) -> None:
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for key in sorted({*recorded, *asked}):
            inner = f"{pointer}/{json_pointer.step(key)}"
            if key not in recorded:
                say(f"body {inner}: recorded nothing, asked {_shown(asked[key])}")
            elif key not in asked:
                say(f"body {inner}: recorded {_shown(recorded[key])}, asked nothing")
            else:
                _walk(inner, recorded[key], asked[key], say)
    elif isinstance(recorded, list) and isinstance(asked, list):
        for place, (old, new) in enumerate(zip(recorded, asked, strict=False)):
            _walk(f"{pointer}/{place}", old, new, say)
        if len(recorded) != len(asked):
            say(f"body {pointer or '/'}: recorded {len(recorded)} items, asked {len(asked)}")
    elif canonical.jcs(recorded) != canonical.jcs(asked):  # 1 is 1.0, true is not 1
        say(f"body {pointer or '(whole)'}: recorded {_shown(recorded)}, asked {_shown(asked)}")


def _shown(value: JsonValue) -> str:
    return cut(canonical.jcs(value).decode())


def cut(text: str) -> str:
    """The text, or its beginning and its length."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
