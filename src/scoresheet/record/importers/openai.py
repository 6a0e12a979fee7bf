"""Tool calls in OpenAI transcripts: chat messages and items of the Responses API, as JSON or JSON lines. Pure."""

from collections.abc import Iterator
from typing import Any

from scoresheet.errors import Malformed
from scoresheet.record.importers.calls import Calls, arguments_of, describe, words
from scoresheet.record.importers.intake import Intake, Source
from scoresheet.record.importers.shape import LeftOut, json_of, rows

_SHAPES = "a list of messages, {messages, tools}, {input, tools}, or lines of these"


def read(source: Source, intake: Intake) -> None:
    """Take the calls that have a result. Raises `Malformed`."""
    calls = Calls(intake)
    found = False
    for where, document in _documents(source):
        talk = document if isinstance(document, list) else None
        if isinstance(document, dict):
            asked = document.get("request")
            inner = asked.get("body") if isinstance(asked, dict) else None
            for holder in (document, asked, inner, document.get("body")):
                if isinstance(holder, dict):
                    talk = talk or _talk(holder)
                    describe(f"{where}#/tools", holder.get("tools", holder.get("functions")), intake)
            talk = _with_answers(document, talk)
        if not isinstance(talk, list):
            raise Malformed("not a transcript of OpenAI's APIs", where, f"known are {_SHAPES}")
        found = True
        for place, message in enumerate(rows(talk)):
            with intake.entry(f"{where}#/{place}"):
                _message(f"{where}#/{place}", message, calls, intake)
    if not found:
        raise Malformed("the file holds no transcript", source.name, f"known are {_SHAPES}")
    calls.finish()


def _documents(source: Source) -> Iterator[tuple[str, Any]]:
    lines = [line for line in source.data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    many = len(lines) > 1 and all(
        line.lstrip()[:1] in (b"{", b"[") and line.rstrip()[-1:] in (b"}", b"]") for line in lines
    )
    if not many:
        yield source.name, json_of(source.data, source.name)
        return
    documents = [
        (f"{source.name}:{number}", json_of(line, f"{source.name}:{number}")) for number, line in enumerate(lines, 1)
    ]
    if all(isinstance(value, dict) and ("role" in value or "call_id" in value) for _, value in documents):
        yield source.name, [value for _, value in documents]
    else:
        yield from documents


def _talk(holder: dict[str, Any]) -> list[Any] | None:
    for name in ("messages", "input", "items"):
        value = holder.get(name)
        if isinstance(value, list):
            return value
        if isinstance(value, str) and name == "input":
            return [{"role": "user", "content": value}]
    return None


def _with_answers(document: dict[str, Any], talk: list[Any] | None) -> list[Any] | None:
    """The talk, and what the model then answered: `choices`, `output`."""
    answer = document.get("response", document)
    if not isinstance(answer, dict):
        return talk
    answer = answer.get("body", answer)
    more = []
    if isinstance(answer, dict):
        more = [choice.get("message") for choice in rows(answer.get("choices"))] + list(rows(answer.get("output")))
    return [*(talk or ()), *more] if talk is not None or more else None


def _message(where: str, message: dict[str, Any], calls: Calls, intake: Intake) -> None:
    role, kind = message.get("role"), message.get("type")
    if role == "user" and not intake.prompt:
        intake.prompt = words(message.get("content"))
    for call in rows(message.get("tool_calls")):
        function = call.get("function")
        if not isinstance(function, dict):
            intake.leave_out(
                where, "import-tool", f"a call of the type {str(call.get('type'))[:40]!r} is no function's"
            )
            continue
        with intake.entry(where):
            calls.made(where, call.get("id"), function.get("name"), arguments_of(function.get("arguments")))
    if isinstance(message.get("function_call"), dict):  # before tools had ids: the next message answers
        call = message["function_call"]
        calls.made(where, f"\x00{call.get('name')}", call.get("name"), arguments_of(call.get("arguments")))
    if kind == "function_call":
        calls.made(where, message.get("call_id"), message.get("name"), arguments_of(message.get("arguments")))
    elif kind in ("custom_tool_call", "computer_call", "local_shell_call", "mcp_call"):
        raise LeftOut("import-tool", f"a {kind} is no call of a function")
    number = message.get("call_id", message.get("tool_call_id"))
    if role == "function":
        number = f"\x00{message.get('name')}"
    if role in ("tool", "function") or kind == "function_call_output":
        content = message.get("output") if kind == "function_call_output" else message.get("content")
        if not calls.answered(number, content):
            raise LeftOut(
                "import-no-request", "a result whose call is not in this file, or has arguments that are not JSON"
            )
