"""Calls of tools in transcripts: made with an id, answered under it. Pure."""

import json
from dataclasses import dataclass, field
from typing import Any

from scoresheet import canonical
from scoresheet.record.importers.intake import Intake
from scoresheet.record.importers.shape import LeftOut, obj, rows, text

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class _Made:
    where: str
    name: Any
    arguments: Any


@dataclass(slots=True)
class Calls:
    """The calls of one transcript, in the order in which they were made."""

    intake: Intake
    _made: dict[str, _Made] = field(default_factory=dict)
    _answered: dict[str, bytes | LeftOut] = field(default_factory=dict)
    _unnamed: int = 0

    def made(self, where: str, number: Any, name: Any, arguments: Any) -> str:
        """A call; gives its id. One that was told before, in a longer transcript of the same talk, counts once."""
        key = number if isinstance(number, str) and number else f"\x00{where}"
        call = _Made(where, name, arguments)
        old = self._made.get(key)
        if old is not None and (old.name, old.arguments) == (name, arguments):
            self.intake.change("a call that the file tells again counts once")
        elif old is not None:
            self._flush(key)
            self._made[key] = call
        else:
            self._made[key] = call
        return key

    def answered(self, number: Any, content: Any) -> bool:
        """The result of a call; whether there is such a call."""
        if not isinstance(number, str) or number not in self._made:
            return False
        if number not in self._answered:
            try:
                self._answered[number] = result(content)
            except LeftOut as error:
                self._answered[number] = error
            except canonical.JsonError as error:
                self._answered[number] = LeftOut("import-shape", f"its result holds what JSON can't: {error.what}")
            except UnicodeEncodeError:
                what = "its result holds half of a character (a lone surrogate)"
                self._answered[number] = LeftOut("import-text", what)
        return True

    def finish(self) -> None:
        """Take every call that was answered; leave the others out, and say so."""
        for key in list(self._made):
            self._flush(key)

    def _flush(self, key: str) -> None:
        call = self._made.pop(key)
        with self.intake.entry(call.where):
            found = self._answered.pop(key, None)
            if found is None:
                raise LeftOut("import-no-answer", f"the call of {str(call.name)[:80]} has no result in this file")
            if isinstance(found, LeftOut):
                raise found
            self.intake.call(call.where, call.name, call.arguments, found, media(found))


def result(content: Any) -> bytes:
    """The text of a tool's result. Raises `LeftOut` for what is not all text."""
    match content:
        case str():
            return content.encode()
        case list():
            parts = []
            for part in content:
                kind = part.get("type") if isinstance(part, dict) else None
                if isinstance(part, str):
                    parts.append(part)
                elif kind in ("text", "input_text", "output_text"):
                    parts.append(text(part.get("text"), "the text of a part"))
                else:
                    raise LeftOut("import-not-text", f"the result holds {str(kind)[:40]!r}, which is not text")
            return "".join(parts).encode()
        case dict():
            return canonical.jcs(content)
    raise LeftOut("import-no-answer", "the call has no result in this file")


def media(body: bytes) -> str:
    """JSON when it is JSON, else text."""
    try:
        canonical.loads(body)
    except canonical.JsonError:
        return TEXT
    return JSON


def arguments_of(value: Any) -> Any:
    """The arguments of a call, given as JSON text or as a value. Raises `LeftOut`."""
    if isinstance(value, str):
        try:
            return canonical.loads(value) if value.strip() else {}
        except canonical.JsonError as error:
            what = f"the arguments are not JSON: {error.what}"
            raise LeftOut("import-arguments", what, "the model wrote them so: no tool was called by them") from error
    return {} if value is None else value


def describe(where: str, tools: Any, intake: Intake) -> None:
    """Take the tools that a request to a model offers: `{type: function, function: {…}}`, or the same flat."""
    for each in rows(tools):
        with intake.entry(where):
            if each.get("type", "function") != "function":
                raise LeftOut(
                    "import-tool", f"a tool of the type {str(each['type'])[:40]!r} is run by the model's host"
                )
            function = obj(each.get("function", each), "the function")
            schema = function.get("parameters", function.get("inputSchema", function.get("input_schema")))
            tool = {"name": function.get("name"), "description": function.get("description") or ""}
            intake.tool(where, tool if schema is None else tool | {"inputSchema": json.loads(json.dumps(schema))})


def words(content: Any) -> str:
    """The text of a message, as far as it is text."""
    if isinstance(content, str):
        return content.strip()
    return "\n".join(str(part["text"]) for part in rows(content) if isinstance(part.get("text"), str)).strip()
