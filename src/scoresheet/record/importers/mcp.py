"""Logs of MCP's JSON-RPC: one message a line, bare, in an envelope or behind a logger's words; or a list. Pure.

A request is paired with its answer by session and id. Results are kept as the literal text that was logged. Tools come
from `tools/list`; what else a server told is kept as docs/mcp says, so that a replay tells it again.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from scoresheet.documents.tool import MCP_ERROR, MCP_RESULT
from scoresheet.errors import Malformed
from scoresheet.pack import mcp_calls
from scoresheet.record.importers import literal
from scoresheet.record.importers.intake import Intake, Source
from scoresheet.record.importers.shape import LeftOut, json_of, json_text, obj

_OF_THE_SERVER = frozenset({"sampling/createMessage", "elicitation/create", "roots/list"})
_ANSWERED_ANYWAY = frozenset(
    {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen"}
)
_HELLO = ("initialize", "server/discover")
_TOLD = ("serverInfo", "instructions", "capabilities")
_DECODER = json.JSONDecoder()


@dataclass(slots=True)
class _Session:
    """Requests without an answer, by id: the client's and the server's."""

    asked: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    called_back: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Message:
    where: str
    value: dict[str, Any]
    text: str
    """The message as it stands in the file."""
    session: str
    from_server: bool | None


def read(source: Source, intake: Intake) -> None:
    """Take the calls of a log. Raises `Malformed`."""
    sessions: dict[str, _Session] = defaultdict(_Session)
    told: dict[str, bytes] = {}
    count = 0
    for message in _messages(source, intake):
        count += 1
        with intake.entry(message.where):
            _take(message, sessions[message.session], told, intake)
    if not count:
        raise Malformed("no JSON-RPC message in it", source.name, "give a log that holds both directions")
    for session in sessions.values():
        for where, request in session.asked.values():
            if request["method"] not in _ANSWERED_ANYWAY:
                intake.leave_out(where, "import-no-answer", f"{request['method'][:80]} was not answered in this log")


def _take(message: _Message, session: _Session, told: dict[str, bytes], intake: Intake) -> None:
    value = message.value
    method, number = value.get("method"), value.get("id")
    key = json.dumps(number)
    if isinstance(method, str):
        if "id" not in value:
            if method != "notifications/initialized":
                intake.change("a notification is not replayed")
        elif message.from_server or (message.from_server is None and method in _OF_THE_SERVER):
            session.called_back.add(key)
            raise LeftOut("import-no-replay", f"{method[:80]}: what a server asks of its client can't be replayed")
        else:
            if key in session.asked:
                where, request = session.asked[key]
                intake.leave_out(where, "import-no-answer", f"{request['method'][:80]} was not answered in this log")
            session.asked[key] = message.where, value
    elif message.from_server is False or (key in session.called_back and message.from_server is None):
        session.called_back.discard(key)  # the client's answer
    elif key in session.asked:
        where, request = session.asked.pop(key)
        with intake.entry(where):
            _answered(where, request, message, told, intake)
    elif "result" in value or "error" in value:
        raise LeftOut("import-no-request", "an answer to a request that is not in this log")


def _answered(where: str, request: dict[str, Any], message: _Message, told: dict[str, bytes], intake: Intake) -> None:
    method, params = request["method"], request.get("params")
    params = {} if params is None else obj(params, "params")
    spans = literal.members(message.text)
    good = "result" in spans
    if not good and "error" not in spans:
        raise LeftOut("import-no-answer", "the answer holds neither result nor error")
    begin, end = spans["result" if good else "error"]
    result = message.text[begin:end].encode()
    obj(message.value["result" if good else "error"], "the answer")
    media = MCP_RESULT if good else MCP_ERROR
    if method == "tools/call":
        if "[REDACTED]" in json.dumps(params.get("arguments"), ensure_ascii=False):
            raise LeftOut("import-redacted", "the arguments were redacted: no call could match them")
        intake.call(where, params.get("name"), params.get("arguments"), result, media)
    elif method in mcp_calls.READS:
        intake.call(where, mcp_calls.name_of(method), json.loads(mcp_calls.body_of(params)), result, media)
    elif not good:
        if method not in _ANSWERED_ANYWAY:
            raise LeftOut("import-no-replay", f"{method[:80]} failed: it is no call that a task could make")
    elif method == "tools/list":
        intake.listed = True
        for tool in message.value["result"].get("tools") or ():
            with intake.entry(where):
                intake.tool(where, tool)
    elif method in mcp_calls.LISTS:
        _once(where, mcp_calls.name_of(method), json.loads(mcp_calls.body_of(params)), result, told, intake)
    elif method in _HELLO:
        known = {name: part for name, part in message.value["result"].items() if name in _TOLD}
        _once(where, mcp_calls.name_of(mcp_calls.HELLO), {}, json_text(known), told, intake)
    elif method not in _ANSWERED_ANYWAY:
        raise LeftOut("import-no-replay", f"{method[:80]} can't be replayed")


def _once(where: str, name: str, params: Any, result: bytes, told: dict[str, bytes], intake: Intake) -> None:
    """What a server tells again and again is kept once."""
    key = f"{name} {json.dumps(params, sort_keys=True)}"
    if key not in told:
        told[key] = result
        intake.call(where, name, params, result, MCP_RESULT)
    elif told[key] != result:
        intake.change(f"{name.removeprefix(mcp_calls.PREFIX)} was answered differently later: the first answer counts")


# Messages


def _messages(source: Source, intake: Intake) -> Iterator[_Message]:
    text = source.data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if _is_document(text):
        json_of(source.data, source.name)  # to be refused as a whole when it is not sound
        yield from _listed(source.name, text, intake)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if "{" not in line:
            continue
        where = f"{source.name}:{number}"
        found = list(_in_line(line))
        if "\ufffd" in line and found:
            intake.leave_out(where, "import-text", "the line is not UTF-8")
            continue
        if not found and '"jsonrpc"' in line:
            intake.leave_out(where, "import-shape", "a JSON-RPC message that can't be read: cut, or not JSON")
        for envelope, whole in found:
            yield from _of(where, envelope, whole)


def _is_document(text: str) -> bool:
    """Whether the file is one JSON value over many lines, or one list."""
    start = text.lstrip()[:1]
    if start not in ("[", "{"):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return start == "[" and text.lstrip()[:2] != "[{" and "\n{" not in text
    return isinstance(value, list) or "jsonrpc" not in value


def _listed(name: str, text: str, intake: Intake) -> Iterator[_Message]:
    begin = 0
    if not text.lstrip().startswith("["):
        spans = literal.members(text)
        lists = [span for span in spans.values() if text[span[0]] == "["]
        if not lists:
            yield from _of(name, json.loads(text), text)
            return
        begin = max(lists, key=lambda span: span[1] - span[0])[0]
    for place, (value, whole) in enumerate(literal.items(text, begin)):
        if isinstance(value, dict):
            yield from _of(f"{name}#/{place}", value, whole)
        else:
            intake.leave_out(f"{name}#/{place}", "import-shape", "not a JSON-RPC message")


def _in_line(line: str) -> Iterator[tuple[Any, str]]:
    """The JSON values of a line that are a message or hold one: the first, behind whatever a logger wrote."""
    place = line.find("{")
    bracket = line.find("[{")
    if 0 <= bracket < place:
        place = bracket
    while place >= 0:
        try:
            value, end = _DECODER.raw_decode(line, place)
        except (ValueError, RecursionError):
            place = line.find("{", place + 1)
            if place > 4096:  # a logger's words are shorter
                return
            continue
        if isinstance(value, list):
            yield from ((item, text) for item, text in literal.items(line, place) if isinstance(item, dict))
        else:
            yield value, line[place:end]
        return


def _of(where: str, envelope: dict[str, Any], whole: str) -> Iterator[_Message]:
    """The messages in an envelope: itself, or one of its members, as a value or as text."""
    if "jsonrpc" in envelope:
        yield _Message(where, envelope, whole, "", None)
        return
    session = next((str(envelope[name]) for name in ("session", "session_id", "sessionId") if name in envelope), "")
    says = str(envelope.get("direction", envelope.get("from", envelope.get("source", "")))).lower()
    words = says.replace("->", " ").replace("_to_", " ").replace("→", " ").split()
    sender = words[0] if words else ""
    from_server = True if sender.startswith(("server", "recv", "in")) else None
    from_server = False if sender.startswith(("client", "sen", "out")) else from_server
    for name, value in envelope.items():
        if isinstance(value, dict) and "jsonrpc" in value:
            begin, end = literal.members(whole)[name]
            yield _Message(where, value, whole[begin:end], session, from_server)
            return
        if isinstance(value, str) and '"jsonrpc"' in value:
            try:
                inner = json.loads(value)
            except (ValueError, RecursionError):
                continue
            for item in inner if isinstance(inner, list) else [inner]:
                if isinstance(item, dict) and "jsonrpc" in item:
                    text = value if item is inner else json.dumps(item, ensure_ascii=False)
                    yield _Message(where, item, text, session, from_server)
            return
