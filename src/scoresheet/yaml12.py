"""The JSON-shaped part of YAML 1.2, with line and column of every value.

Plain scalars are read by the text of the core schema (YAML 1.2.2 §10.3.2), and what YAML 1.1 and 1.2 read differently
stays text: `no`, `on`, `010`, `0o17`, `1:30`, `1_000`. Refused with their place: duplicate keys, anchors, aliases,
merge keys, tags, directives, a second document, a byte order mark, more than `MAX_DEPTH` levels or `MAX_BYTES`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from scoresheet import json_pointer
from scoresheet.canonical import MOST_DIGITS, JsonValue
from scoresheet.errors import Malformed

MAX_DEPTH = 32
MAX_BYTES = 256 * 1024

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, JsonValue] = {
    **dict.fromkeys(("null", "Null", "NULL", "~", "")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

Place = tuple[int, int]
"""Line and column, counted from 1."""


class YamlError(Malformed):
    """Text that is not the JSON-shaped part of YAML 1.2; `where` is `line:column`."""


@dataclass(frozen=True, slots=True)
class Located:
    """A value, and where each part of it stands."""

    value: JsonValue
    places: Mapping[str, Place]
    """JSON pointer (RFC 6901) → place of the value; `""` is the document."""
    keys: Mapping[str, Place]
    """JSON pointer → place of the key."""

    def place(self, pointer: str) -> str:
        """`line:column` of the nearest thing that stands in the text: the value, else what would hold it."""
        while pointer not in self.places and pointer:
            pointer = pointer.rpartition("/")[0]
        line, column = self.places.get(pointer, (1, 1))
        return f"{line}:{column}"


def load(data: bytes) -> Located:
    """The one document in `data`. Raises `YamlError` and nothing else."""
    if len(data) > MAX_BYTES:
        raise YamlError(f"larger than {MAX_BYTES // 1024} KiB", "1:1")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise YamlError("not UTF-8", f"{line}:{column}") from error
    if text.startswith("\ufeff"):
        raise YamlError("a byte order mark stands before the text", "1:1", "save the file as UTF-8 without BOM")
    loader = yaml.CSafeLoader(text)
    try:
        reader = _Reader(_events(loader))
        return reader.document()
    except yaml.MarkedYAMLError as error:
        what = error.problem or "not YAML"
        if "nesting depth" in what:  # libyaml's own guard, which may come first
            what = f"nested more than {MAX_DEPTH} levels deep"
        mend = "indent with spaces, not tabs" if "that cannot start any token" in what else ""
        raise YamlError(what, _place(error.problem_mark or error.context_mark), mend) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position] if isinstance(error.position, int) else ""
        where = f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        raise YamlError(f"a character that YAML does not allow: {error.reason}", where) from error
    finally:
        loader.dispose()


def _events(loader: "yaml.CSafeLoader") -> Iterator[yaml.Event]:
    while (event := loader.get_event()) is not None:
        yield event


def _place(mark: Any) -> str:  # a mark of the Python or of the C parser: they share no type
    return f"{mark.line + 1}:{mark.column + 1}" if mark else ""


def _at(event: yaml.Event) -> Place:
    mark: Any = event.start_mark
    return mark.line + 1, mark.column + 1


def _refuse(what: str, event: yaml.Event, mend: str = "") -> YamlError:
    return YamlError(what, _place(event.start_mark), mend)


class _Reader:
    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._places: dict[str, Place] = {}
        self._keys: dict[str, Place] = {}

    def document(self) -> Located:
        next(self._events)  # the start of the stream
        start = next(self._events)
        if isinstance(start, yaml.StreamEndEvent):
            raise YamlError("the document is empty", "1:1")
        if isinstance(start, yaml.DocumentStartEvent) and (start.version or start.tags):
            raise _refuse("directives are not allowed", start, "remove the line that begins with %")
        value = self._value(next(self._events), "", 0)
        next(self._events)  # the end of the document
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise _refuse("a second document follows", after, "one file holds one document: remove what follows `---`")
        return Located(value, self._places, self._keys)

    def _value(self, event: yaml.Event, pointer: str, depth: int) -> JsonValue:
        self._plainly_written(event)
        if depth > MAX_DEPTH:
            raise _refuse(f"nested more than {MAX_DEPTH} levels deep", event)
        self._places[pointer] = _at(event)
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[JsonValue] = []
            while not isinstance(item := next(self._events), yaml.SequenceEndEvent):
                items.append(self._value(item, f"{pointer}/{len(items)}", depth + 1))
            return items
        members: dict[str, JsonValue] = {}
        while not isinstance(key := next(self._events), yaml.MappingEndEvent):
            name = self._key(key)
            below = f"{pointer}/{json_pointer.step(name)}"
            if name in members:
                line, column = self._keys[below]
                raise _refuse(f"key {name!r} is given twice, first at {line}:{column}", key, "keep one of them")
            self._keys[below] = _at(key)
            members[name] = self._value(next(self._events), below, depth + 1)
        return members

    def _key(self, event: yaml.Event) -> str:
        self._plainly_written(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise _refuse("a key must be a string", event)
        if event.value == "<<" and not event.style:
            raise _refuse("merge keys are not allowed", event, "write the members out")
        return str(event.value)

    def _plainly_written(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise _refuse("aliases are not allowed", event, "write the value out")
        if getattr(event, "anchor", None):
            raise _refuse("anchors are not allowed", event, "write the value out where it is used")
        if tag := getattr(event, "tag", None):
            raise _refuse(f"tag {tag} is not allowed", event, "remove the tag")


def _scalar(event: yaml.ScalarEvent) -> JsonValue:
    text: str = event.value
    if event.style:  # quoted, or a block: always text
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        if len(text) > MOST_DIGITS:
            what = f"an integer of {len(text)} digits, but {MOST_DIGITS} are the most here"
            raise _refuse(what, event, "write the number that it is meant to be, or text in quotes")
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if number - number == 0:
            return number
        raise _refuse(f"{text} is too large for a number", event)
    if _NOT_JSON.fullmatch(text):
        raise _refuse(f"{text} is not a JSON number", event, "write a finite number, or text in quotes")
    return text
