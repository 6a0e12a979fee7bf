"""MCP's JSON-RPC as values: the bytes of a POST become a protocol reply or a call; an answer becomes bytes. Pure.

Both ages of the protocol are spoken, told apart by each request itself: the handshake (`initialize`, up to 2025-11-25)
and the stateless one (2026-07-28: `server/discover`, an envelope in `params._meta`). No session is kept: an episode is
one. A recorded result is put into its envelope as the literal text that was recorded, never read and written again.
"""

import base64
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from scoresheet import __version__, canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import MCP_ERROR, MCP_RESULT, HeaderPairs, Request, Response, Tool
from scoresheet.pack import body as bodies
from scoresheet.pack import mcp_calls
from scoresheet.replay import mcp_headers
from scoresheet.replay.session import Found, Miss, Tape

PATH = "/mcp"
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = ("2026-07-28",)
PAGE = 100
"""Tools of one page of `tools/list`."""

UNRECORDED = -32090
"""Error code of a call that was not recorded; `data` is what the other doors answer."""
OVER_CAP = b'{"code":-32091,"message":"no more tool calls","data":{"error":"tool_cap"}}'
"""The JSON text of the error of a call more than the cap."""
ACCEPTED = b'{"content":[{"type":"text","text":"{\\"accepted\\":true}"}],"isError":false}'
"""The result of `submit_answer`."""
_PARSE, _INVALID, _NO_METHOD, _PARAMS = -32700, -32600, -32601, -32602
_HEADERS, _VERSION = -32020, -32022
_STATUS = {_PARSE: 400, _INVALID: 400, _PARAMS: 400, _HEADERS: 400, _VERSION: 400, _NO_METHOD: 404}
"""HTTP status of an error in the stateless age."""

_META = "io.modelcontextprotocol/"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Method → the param that the header Mcp-Name repeats."""
_ROUTING = frozenset({"mcp-protocol-version", "mcp-method", "mcp-name"})
_EMPTY_IN_HANDSHAKE = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
_CACHEABLE = frozenset({*mcp_calls.LISTS, "tools/list", "resources/read", "server/discover"})
_QUICK = 1 << 53
_LOCAL = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True, slots=True)
class Envelope:
    """How the answer of one request is wrapped."""

    id: bytes
    """The request's id, as JSON text."""
    method: str
    stateless: bool
    stream: bool
    """The client takes event streams only."""

    def result(self, text: bytes) -> "Reply":
        """The reply that holds a result, its JSON text as it is; what the stateless age asks for is put before it."""
        if self.stateless:
            text = _completed(text, self.method)
        return self._reply(200, b'{"jsonrpc":"2.0","id":' + self.id + b',"result":' + text + b"}")

    def error(self, text: bytes, status: int = 200, fault: str = "") -> "Reply":
        """The reply that holds an error, as JSON text."""
        return self._reply(status, b'{"jsonrpc":"2.0","id":' + self.id + b',"error":' + text + b"}", fault)

    def failed(self, code: int, message: str, data: JsonValue = None, fault: str = "") -> "Reply":
        """The reply of an error of our own."""
        value: dict[str, JsonValue] = {"code": code, "message": message}
        if data is not None:
            value["data"] = data
        status = _STATUS.get(code, 200) if self.stateless or code in (_PARSE, _INVALID) else 200
        return self.error(orjson.dumps(value), status, fault)

    def _reply(self, status: int, text: bytes, fault: str = "") -> "Reply":
        if not self.stream:
            return Reply(status, text, fault=fault)
        return Reply(status, _event(text), "text/event-stream", fault=fault)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the protocol itself answers: no call."""

    status: int
    body: bytes = b""
    media: str = "application/json"
    fault: str = ""
    """What was wrong with the request, when it was none that MCP knows: for the journal."""
    allow: str = ""


@dataclass(frozen=True, slots=True)
class Listen:
    """A stream that stays open: `subscriptions/listen`. Nothing ever changes here, so nothing follows `first`."""

    first: bytes


@dataclass(frozen=True, slots=True)
class Ask:
    """A call: the recorded answer goes into the envelope."""

    envelope: Envelope
    name: str
    """The tool, or `mcp/<method>`."""
    arguments: bytes


Read = Reply | Listen | Ask
_NOBODY = Envelope(b"null", "", False, False)


class Surface:
    """What one task's server offers: made once for a tape, shared by its episodes."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._declared = {
            name: found
            for name in tape.listed
            if (found := mcp_headers.declared(described(tape.tool(name))["inputSchema"]))
        }
        """Tool → its arguments that headers repeat in the stateless age."""
        self._pages = _pages([described(tape.tool(name)) for name in tape.listed])
        told = self._recorded(mcp_calls.HELLO, {})
        hello = orjson.loads(told) if told is not None else {}
        known = hello.get("capabilities")
        capabilities: dict[str, JsonValue] = {"tools": {}}
        for name in ("resources", "prompts", "completions", "logging"):
            if isinstance(known, dict) and name in known:
                capabilities[name] = {}
        for method, member in mcp_calls.LISTS.items():
            if self._recorded(method, {}) is not None:
                capabilities["prompts" if member == "prompts" else "resources"] = {}
        self._hello: dict[str, JsonValue] = {
            "capabilities": capabilities,
            "serverInfo": hello.get("serverInfo") or {"name": "scoresheet", "version": __version__},
        }
        if hello.get("instructions"):
            self._hello["instructions"] = hello["instructions"]

    def read(self, request: Request) -> Read:
        """What a request at the door is."""
        head = _head(request.headers)
        refused = _unreadable(request, head)
        if refused is not None:
            return refused
        stream, version = head.stream, head.version
        try:
            message = canonical.loads(request.body)
        except canonical.JsonError as error:
            return _not_strict(request.body, stream, error.what)
        if not isinstance(message, dict):
            what = "the body must be one JSON-RPC message"
            return _NOBODY.failed(_INVALID, what, fault=what)
        method, number, params = message.get("method"), message.get("id"), message.get("params")
        if message.get("jsonrpc") != "2.0" or not (method is None or isinstance(method, str)):
            what = "the body is no JSON-RPC 2.0 message"
            return _NOBODY.failed(_INVALID, what, fault=what)
        if method is None or "id" not in message:  # a notification, or an answer to a request that was never made
            return Reply(202)
        if isinstance(number, bool) or not isinstance(number, str | int):
            what = "the id must be a string or an integer"
            return _NOBODY.failed(_INVALID, what, fault=what)
        params = {} if params is None else params
        meta = params.get("_meta") if isinstance(params, dict) else None
        stateless = (version not in ("", *HANDSHAKE)) or (isinstance(meta, dict) and f"{_META}protocolVersion" in meta)
        envelope = Envelope(_text_of(number), method, stateless, stream)
        if not isinstance(params, dict):
            return envelope.failed(_PARAMS, "params must be an object")
        if stateless:
            rejected = _misrouted(envelope, request, method, params, meta)
            if rejected is None and method == "tools/call" and (wanted := self._declared.get(str(params.get("name")))):
                said_otherwise = mcp_headers.contradiction(wanted, params.get("arguments"), request.headers)
                rejected = envelope.failed(_HEADERS, said_otherwise) if said_otherwise else None
            return rejected or self._stateless(envelope, method, params)
        return self._handshake(envelope, method, params)

    def _handshake(self, envelope: Envelope, method: str, params: dict[str, JsonValue]) -> Read:
        if method == "initialize":
            asked = params.get("protocolVersion")
            version = asked if asked in HANDSHAKE else HANDSHAKE[-1]
            return envelope.result(orjson.dumps({"protocolVersion": version, **self._hello}))
        if method in _EMPTY_IN_HANDSHAKE:
            return envelope.result(b"{}")
        return self._common(envelope, method, params)

    def _stateless(self, envelope: Envelope, method: str, params: dict[str, JsonValue]) -> Read:
        if method == "server/discover":
            return envelope.result(orjson.dumps({"supportedVersions": list(STATELESS), **self._hello}))
        if method == "subscriptions/listen":
            wanted = params.get("notifications")
            meta = {f"{_META}subscriptionId": orjson.loads(envelope.id)}
            told: dict[str, JsonValue] = {"_meta": meta, "notifications": {}}
            if not isinstance(wanted, dict):
                return envelope.failed(_PARAMS, "notifications must be an object")
            message = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": told}
            return Listen(_event(orjson.dumps(message)))
        return self._common(envelope, method, params)

    def _common(self, envelope: Envelope, method: str, params: dict[str, JsonValue]) -> Read:
        match method:
            case "tools/call":
                name = params.get("name")
                if not isinstance(name, str) or not name:
                    return envelope.failed(_PARAMS, "tools/call needs the name of a tool")
                arguments = params.get("arguments")
                return Ask(envelope, name, canonical.jcs_again({} if arguments is None else arguments))
            case "tools/list":
                page = self._pages.get(str(params.get("cursor") or ""))
                return envelope.failed(_PARAMS, "no such cursor") if page is None else envelope.result(page)
            case _ if method in mcp_calls.LISTS:
                text = self._recorded(method, params)
                return envelope.result(text or b'{"%b":[]}' % mcp_calls.LISTS[method].encode())
            case _ if method in mcp_calls.READS:
                return Ask(envelope, mcp_calls.name_of(method), mcp_calls.body_of(params))
        return envelope.failed(_NO_METHOD, f"no method {method[:100]!r} here")

    def _recorded(self, method: str, params: dict[str, JsonValue]) -> bytes | None:
        """A recorded result that is read without being a call: lists, and what the server told of itself."""
        looked = self._tape.look_call(mcp_calls.name_of(method), mcp_calls.body_of(params))
        if not isinstance(looked, Found) or not looked.hits:
            return None
        first = looked.hits[0].recorded.response()
        return first.body if _media(first) == MCP_RESULT and _is_object(first.body) else None


def answer_of(response: Response) -> tuple[bool, bytes]:
    """(is it a result, its JSON text), of a recorded answer: an MCP one as it is, an HTTP one as a tool's result."""
    media = _media(response)
    if response.fault is None and media in (MCP_RESULT, MCP_ERROR) and _is_object(response.body):
        return media == MCP_RESULT, response.body.strip()
    return True, orjson.dumps({"content": [_content(response)], "isError": _failed(response)})


def miss(answer: Miss, value: Mapping[str, JsonValue]) -> bytes:
    """The JSON text of the error that says that a call was not recorded; `value` is what the other doors answer."""
    message = f"unrecorded call: {answer.request.target[:200]} ({answer.kind})"
    return orjson.dumps({"code": UNRECORDED, "message": message, "data": value})


def described(tool: Tool) -> dict[str, JsonValue]:
    """A tool as `tools/list` shows it: its file, without what is ours.

    A tool that is bound to HTTP answers with the text of its service, so it declares no structured output: clients that
    prefer structured content over text would show their model something else than the others do.
    """
    ours = {"http", "ignore", "inferred"} | ({"outputSchema"} if tool.http is not None else set())
    shown = {name: value for name, value in tool.as_json().items() if name not in ours and value is not None}
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    shown["inputSchema"] = schema if schema.get("type") == "object" else {**schema, "type": "object"}
    return shown


def _pages(tools: Sequence[dict[str, JsonValue]]) -> dict[str, bytes]:
    """Cursor → page, the first under the empty one."""
    pages: dict[str, bytes] = {}
    for start in range(0, max(1, len(tools)), PAGE):
        value: dict[str, JsonValue] = {"tools": tools[start : start + PAGE]}
        if start + PAGE < len(tools):
            value["nextCursor"] = str(start + PAGE)
        pages[str(start) if start else ""] = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return pages


@dataclass(frozen=True, slots=True)
class _Head:
    """What the headers of a request say; a client sends the same ones again and again."""

    foreign: Reply | None
    """The refusal of a client that is not on this machine."""
    unfit: Reply | None
    """The refusal of a body, or of the client's own wish for the answer's form."""
    stream: bool
    """The client takes event streams only."""
    version: str


@functools.lru_cache(maxsize=256)
def _head(headers: HeaderPairs) -> _Head:
    request = Request("", "POST", PATH, headers)
    accept = request.header("accept").lower()
    foreign = unfit = None
    for header, place in (("host", request.header("host")), ("origin", request.header("origin").rpartition("//")[2])):
        if place and place.rpartition(":")[0] not in _LOCAL and place not in _LOCAL and foreign is None:
            foreign = _refused(403, f"the {header} {place[:100]!r} is not this machine")  # DNS rebinding
    if accept and not any(part in accept for part in ("application/json", "text/event-stream", "*/*", "application/*")):
        unfit = _refused(406, "the client must accept application/json or text/event-stream")
    elif bodies.media_type(request.header("content-type")) != "application/json":
        unfit = _refused(415, "the body must be application/json")
    stream = "event-stream" in accept and "json" not in accept and "*/*" not in accept
    return _Head(foreign, unfit, stream, _field(request, "mcp-protocol-version"))


def _unreadable(request: Request, head: _Head) -> Reply | None:
    """The reply to what is no POST of a JSON-RPC message by a local client."""
    if request.target != PATH and request.target.partition("?")[0].rstrip("/") != PATH:
        return _refused(404, f"MCP is spoken at {PATH}")
    if head.foreign is not None:
        return head.foreign
    if request.method != "POST":
        return Reply(405, orjson.dumps({"error": "no stream is offered: POST only"}), allow="POST")
    return head.unfit


def _text_of(number: str | int) -> bytes:
    """An id as JSON text."""
    if isinstance(number, int) and -_QUICK < number < _QUICK:
        return b"%d" % number
    return canonical.jcs(number)


def _refused(status: int, what: str) -> Reply:
    value = {"jsonrpc": "2.0", "id": None, "error": {"code": _INVALID, "message": what}}
    return Reply(status, orjson.dumps(value), fault=what)


def _not_strict(body: bytes, stream: bool, what: str) -> Read:
    """What can be done with a body that the strict reader refuses: a tool call in it is one that nothing answers."""
    try:
        message = json.loads(body)
        number, name = message["id"], message["params"]["name"]
        called = message["method"] == "tools/call" and isinstance(name, str) and isinstance(number, str | int)
    except (ValueError, TypeError, KeyError, RecursionError):
        called = False
    if not called:
        return _NOBODY.failed(_PARSE, f"not strict JSON: {what}", fault=f"not strict JSON: {what}")
    return Ask(Envelope(canonical.jcs(number), "tools/call", False, stream), name, body)


def _misrouted(
    envelope: Envelope, request: Request, method: str, params: Mapping[str, JsonValue], meta: JsonValue
) -> Reply | None:
    """The rejection of a stateless request whose envelope or headers are not right."""
    needed = [f"{_META}{name}" for name in ("protocolVersion", "clientCapabilities")]
    missing = [name for name in needed if not isinstance(meta, dict) or name not in meta]
    if missing:
        return envelope.failed(_PARAMS, f"params._meta lacks {', '.join(missing)}")
    assert isinstance(meta, dict)
    names = [name.lower() for name, _ in request.headers if name.lower() in _ROUTING]
    if len(set(names)) < len(names):
        return envelope.failed(_HEADERS, "a routing header appears more than once")
    version = meta[needed[0]]
    if not isinstance(version, str):
        return envelope.failed(_PARAMS, f"{needed[0]} must be a string")
    if _field(request, "mcp-protocol-version") != version:
        return envelope.failed(_HEADERS, "MCP-Protocol-Version is not the protocol version of the envelope")
    if _field(request, "mcp-method") != method:
        return envelope.failed(_HEADERS, "Mcp-Method is not the method of the body")
    named = params.get(_NAMED[method]) if method in _NAMED else None
    if named is not None and mcp_headers.decoded(_field(request, "mcp-name")) != named:
        return envelope.failed(_HEADERS, f"Mcp-Name is not the {_NAMED[method]} of the body")
    if version not in STATELESS:
        data: JsonValue = {"supported": [*STATELESS], "requested": version}
        return envelope.failed(_VERSION, "Unsupported protocol version", data)
    return None


def _field(request: Request, name: str) -> str:
    return request.header(name).strip(" \t")  # RFC 9110 §5.5: white space around a value is none of it


def _completed(text: bytes, method: str) -> bytes:
    """A result with the members that the stateless age needs; the recorded ones stay as they are."""
    text = text.lstrip()
    members: dict[str, Any] = {"resultType": "complete"}
    if method in _CACHEABLE:
        members |= {"ttlMs": 0, "cacheScope": "private"}
    known = orjson.loads(text)
    lacking = b"".join(
        b'"%b":%b,' % (name.encode(), orjson.dumps(value)) for name, value in members.items() if name not in known
    )
    return b"{" + (lacking if known else lacking[:-1]) + text[1:]


def _event(text: bytes) -> bytes:
    lines = text.replace(b"\r", b" ").split(b"\n")
    return b"event: message\n" + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


def _media(response: Response) -> str:
    for name, value in response.headers:
        if name.lower() == "content-type":
            return bodies.media_type(value)
    return ""


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _failed(response: Response) -> bool:
    return response.status >= 400 or response.fault is not None


def _content(response: Response) -> dict[str, JsonValue]:
    """The body of an HTTP answer as a content block: text when it is UTF-8, else an image, a sound or a blob."""
    if response.fault is not None and not response.body:
        return {"type": "text", "text": _FAULTS[response.fault]}
    media = _media(response)
    body = bodies.readable(Request("", "GET", "/", response.headers, response.body)) if response.body else b""
    body = response.body if body is None else body
    try:
        return {"type": "text", "text": body.decode()}
    except UnicodeDecodeError:
        data = base64.b64encode(body).decode()
    kind = media.partition("/")[0]
    if kind in ("image", "audio"):
        return {"type": kind, "data": data, "mimeType": media}
    blob = {"uri": "body:", "mimeType": media or "application/octet-stream", "blob": data}
    return {"type": "resource", "resource": blob}


_FAULTS = {
    "connection_reset": "the service closed the connection",
    "timeout": "the service gave no answer in time",
    "truncated": "the service's answer was cut short",
}
