"""MCP conversations, as they were heard between a client and its server, into calls and tools. Pure.

A result is kept as the literal text that the server sent. What a client reads without calling, lists and what the
server tells of itself, is kept once.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # there since Python 2, and in no stub
from typing import Any, Literal

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import CALL, MCP_ERROR, MCP_RESULT, Request, Response, Tool
from scoresheet.errors import Finding, Malformed, Refused
from scoresheet.pack import mcp_calls
from scoresheet.record.exchange import Exchange, header, media_type, readable

_JSON = (("Content-Type", "application/json"),)
_INFO = "io.modelcontextprotocol/serverInfo"
_SPACE = " \t\r\n"
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Line:
    """One JSON-RPC message, as it crossed."""

    by: Literal["client", "server"]
    at_ms: float
    text: bytes
    channel: str
    """Requests and answers of one channel belong together by their ids."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a recording heard."""

    exchanges: tuple[Exchange, ...]
    tools: tuple[Tool, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    method: str
    params: dict[str, JsonValue]
    at_ms: float


def heard(lines: Iterable[Line]) -> Heard:
    """The calls in the order in which they were asked, the tools that were listed or called, and warnings."""
    listener = _Listener()
    for line in lines:
        listener.hear(line)
    return listener.heard()


def lines_of(exchanges: Sequence[Exchange]) -> list[Line]:
    """The messages of HTTP exchanges with a streamable HTTP server, each exchange a channel of its own."""
    found: list[Line] = []
    for place, exchange in enumerate(exchanges):
        if exchange.request.method != "POST":
            continue
        channel = f"http {place}"
        found.append(Line("client", 0.0, exchange.request.body, channel))
        body = readable(exchange.response.headers, exchange.response.body) or b""
        answers = _events(body) if media_type(exchange.response.headers) == "text/event-stream" else [body]
        found += [Line("server", exchange.response.latency_ms, text, channel) for text in answers if text.strip()]
    return found


def secrets_of(exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    """Credentials that a client showed to an MCP server in its headers: the calls hold none of those headers."""
    values = [header(exchange.request.headers, "authorization") for exchange in exchanges]
    return tuple({value.rpartition(" ")[2] for value in values if len(value) > 12})


def members(text: str) -> dict[str, str]:
    """Member → literal text of its value, of a JSON object. Raises `ValueError`."""
    found: dict[str, str] = {}
    place = _after_space(text, 0)
    if text[place : place + 1] != "{":
        raise ValueError("not an object")
    place = _after_space(text, place + 1)
    while text[place : place + 1] != "}":
        if text[place : place + 1] != '"':
            raise ValueError("not an object")
        name, place = scanstring(text, place + 1, True)
        place = _after_space(text, place)
        if text[place : place + 1] != ":":
            raise ValueError("not an object")
        start = _after_space(text, place + 1)
        _, place = _decode(text, start)
        found[name] = text[start:place]
        place = _after_space(text, place)
        if text[place : place + 1] == ",":
            place = _after_space(text, place + 1)
    return found


class _Listener:
    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], tuple[int, _Asked]] = {}
        self._kept: dict[int, Exchange] = {}
        self._asked = 0
        self._once: set[tuple[str, bytes]] = set()
        self._tools: dict[str, Tool] = {}
        self._called: dict[str, None] = {}
        self._findings: dict[str, Finding] = {}

    def hear(self, line: Line) -> None:
        if not line.text.strip():
            return
        try:
            message = canonical.loads(line.text)
            parts = members(line.text.decode()) if isinstance(message, dict) else {}
        except (Malformed, JSONDecodeError, ValueError, RecursionError):
            what = f"the {line.by} sent what is no strict JSON: {line.text[:80]!r}"
            self._find("record-mcp-line", what, "what it says is not recorded")
            return
        if not isinstance(message, dict):
            self._find("record-mcp-batch", "messages in batches are not recorded", "MCP has dropped them")
            return
        match line.by, "method" in message, "id" in message:
            case "client", True, True:
                params = message.get("params")
                asked = _Asked(str(message["method"]), params if isinstance(params, dict) else {}, line.at_ms)
                self._waiting[line.channel, parts["id"]] = self._asked, asked
                self._asked += 1
            case "server", True, True:
                what = f"the server asked its client ({message['method']}): a replay never asks"
                self._find("record-mcp-asked", what, "look whether the recorded results are what you want to test")
            case "server", False, True:
                found = self._waiting.pop((line.channel, parts["id"]), None)
                if found is not None:
                    place, asked = found
                    self._answered(place, asked, parts, message, line.at_ms)

    def heard(self) -> Heard:
        for _, asked in self._waiting.values():
            if asked.method == "tools/call" or asked.method in mcp_calls.READS:
                what = f"{asked.method} {asked.params.get('name') or asked.params.get('uri') or ''} got no answer"
                self._find("record-mcp-unanswered", what, "the task lacks that call")
        for name in self._called:
            if name not in self._tools:
                self._tools[name] = _tool({"name": name})
                what = f"the tool {name} was called and never listed: nothing is known of its arguments"
                self._find("record-mcp-unlisted", what, "let the command list the tools")
        exchanges = tuple(self._kept[place] for place in sorted(self._kept))
        return Heard(exchanges, tuple(self._tools.values()), tuple(self._findings.values()))

    def _answered(
        self, place: int, asked: _Asked, parts: Mapping[str, str], message: Mapping[str, Any], at_ms: float
    ) -> None:
        latency = round(max(0.0, at_ms - asked.at_ms), 3)
        result = message.get("result")
        match asked.method:
            case "tools/list" if isinstance(result, dict):
                for value in result.get("tools", ()):
                    tool = _tool(value)
                    self._tools[tool.name] = tool
            case "initialize" | "server/discover" if isinstance(result, dict):
                self._keep_once(place, mcp_calls.HELLO, b"{}", canonical.jcs(_hello(result)).decode(), latency)
            case "tools/call":
                name, arguments = asked.params.get("name"), asked.params.get("arguments")
                body = canonical.jcs({} if arguments is None else arguments)
                self._called[str(name)] = None
                self._keep(place, str(name), body, parts, latency)
            case method if method in mcp_calls.LISTS and isinstance(result, dict):
                self._keep_once(place, method, mcp_calls.body_of(asked.params), parts["result"], latency)
            case method if method in mcp_calls.READS:
                self._keep(place, mcp_calls.name_of(method), mcp_calls.body_of(asked.params), parts, latency)

    def _keep(self, place: int, name: str, body: bytes, parts: Mapping[str, str], latency: float) -> None:
        media, text = (MCP_RESULT, parts["result"]) if "result" in parts else (MCP_ERROR, parts.get("error", "{}"))
        status = 200 if media == MCP_RESULT else 400
        response = Response(status, (("Content-Type", media),), text.encode(), latency)
        self._kept[place] = Exchange(Request("", CALL, name, _JSON, body), response)

    def _keep_once(self, place: int, method: str, body: bytes, text: str, latency: float) -> None:
        if (method, body) not in self._once:
            self._once.add((method, body))
            self._keep(place, mcp_calls.name_of(method), body, {"result": text}, latency)

    def _find(self, rule: str, what: str, mend: str) -> None:
        self._findings.setdefault(rule + what, Finding(rule, "mcp", what, mend, "warning"))


def _hello(result: Mapping[str, Any]) -> dict[str, JsonValue]:
    told = {name: result[name] for name in ("capabilities", "serverInfo", "instructions") if name in result}
    meta = result.get("_meta")
    if "serverInfo" not in told and isinstance(meta, dict) and _INFO in meta:
        told["serverInfo"] = meta[_INFO]
    return told


def _tool(value: JsonValue) -> Tool:
    name = value.get("name") if isinstance(value, dict) else None
    where = f"tools/{name}.json"
    if isinstance(name, str) and ("/" in name or "\\" in name or name.startswith(".")):
        what = f"the tool's name {name!r} can't name a file"
        raise Refused(what, [Finding("record-tool-name", where, what, "rename it in the server")], where)
    return Tool.from_value(value, where)


def _events(body: bytes) -> list[bytes]:
    """The data of each event of a stream (WHATWG HTML, 9.2.6)."""
    found: list[bytes] = []
    data: list[bytes] = []
    for line in (*body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            found.append(b"\n".join(data))
            data = []
    return found


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in _SPACE:
        place += 1
    return place
