"""The MCP door, spoken to as the two ages of the protocol do: raw HTTP, byte by byte."""

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.task import Call
from scoresheet.documents.tool import MCP_ERROR, MCP_RESULT, Tool
from scoresheet.replay import mcp
from scoresheet.replay.http import MCP_DOOR, EpisodeView, ReplayServer
from scoresheet.replay.journal import CallJournal
from scoresheet.replay.session import Session, Tape
from tests.replay.recordings import call, tape, tool

STATELESS = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
RESULT = '{ "content" : [{"type":"text","text":"caf\\u00e9 \\/ 1.0"}],\n  "structuredContent": {"b": 1.50, "a": 2}}'
ECHO = Tool.model_validate(
    {
        "name": "echo",
        "title": "Echo",
        "description": "Says it again.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "ignore": ["/json/nonce"],
    }
)
PAY = tool("pay", {"type": "object", "properties": {"amount": {"type": "integer"}}}, method="POST", path="/pay")


def over_mcp(name: str, arguments: Any, result: Any, media: str = MCP_RESULT, **more: Any) -> Call:
    text = result if isinstance(result, str) else json.dumps(result)
    headers = (("Content-Type", media),)
    return call("CALL", name, arguments, upstream="", text=text, response_headers=headers, **more)


TAPE = tape(
    over_mcp("echo", {"text": "hi"}, RESULT),
    over_mcp("echo", {"text": "bad"}, {"content": [{"type": "text", "text": "no"}], "isError": True}),
    over_mcp("echo", {"text": "broken"}, {"code": -32602, "message": "no such tool"}, MCP_ERROR, status=400),
    over_mcp("echo", {"text": "twice"}, {"content": [{"type": "text", "text": "1"}]}),
    over_mcp("echo", {"text": "twice"}, {"content": [{"type": "text", "text": "2"}]}),
    call("POST", "/pay", {"amount": 12}, text='{"paid":true}'),
    call("POST", "/pay", {"amount": 99}, text="too much", status=422),
    call("POST", "/pay", {"amount": 1}, response_base64="iVBORw==", response_headers=(("Content-Type", "image/png"),)),
    call("POST", "/pay", {"amount": 2}, text="", fault="timeout"),
    over_mcp("mcp/initialize", {}, {"serverInfo": {"name": "shop", "version": "7"}, "instructions": "Be kind."}),
    over_mcp("mcp/resources/list", {}, {"resources": [{"uri": "a://b", "name": "b"}]}),
    over_mcp("mcp/resources/read", {"uri": "a://b"}, {"contents": [{"uri": "a://b", "blob": "AA=="}]}),
    tools=(ECHO, PAY),
)


@dataclass
class Door:
    port: int
    view: EpisodeView
    calls: list[CallRecord] = field(default_factory=list)
    client: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self.client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def send(self, body: bytes, method: str = "POST", path: str = "/mcp", **headers: str) -> tuple[int, bytes]:
        named = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.client.request(method, path, body or None, named)
        answer = self.client.getresponse()
        return answer.status, answer.read()

    def old(self, method: str, params: Any = None, **headers: str) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 7, "method": method, **({} if params is None else {"params": params})}
        status, body = self.send(json.dumps(message).encode(), **headers)
        assert status == 200, body
        return json.loads(body)

    def new(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> tuple[int, dict[str, Any]]:
        params = params or {}
        message = {"jsonrpc": "2.0", "id": "x", "method": method, "params": {"_meta": META, **params}}
        named = {"MCP_Protocol_Version": STATELESS, "Mcp_Method": method}
        if name := params.get("name") or params.get("uri"):
            named["Mcp_Name"] = name
        status, body = self.send(json.dumps(message).encode(), **(named | headers))
        return status, json.loads(body)


@contextlib.contextmanager
def serving(folder: Path, taped: Tape = TAPE, cap: int | None = None) -> Iterator[Door]:
    heard: list[CallRecord] = []
    with ReplayServer() as server, socket.create_server(("127.0.0.1", 0)) as listening:
        journal = CallJournal(folder / "calls.jsonl")
        with server.episode({MCP_DOOR: listening}, {}, Session(taped, cap), journal, on_call=heard.append) as view:
            door = Door(listening.getsockname()[1], view, heard)
            yield door
            door.client.close()


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with serving(tmp_path) as served:
        yield served


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_handshake_is_answered_in_the_version_that_was_asked_for(door: Door, version: str) -> None:
    result = door.old("initialize", {"protocolVersion": version, "capabilities": {}})["result"]
    assert result["protocolVersion"] == version
    assert result["serverInfo"] == {"name": "shop", "version": "7"}
    assert result["instructions"] == "Be kind."
    assert result["capabilities"] == {"tools": {}, "resources": {}}
    assert door.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') == (202, b"")
    assert door.old("ping")["result"] == {}
    assert door.old("logging/setLevel", {"level": "debug"})["result"] == {}
    assert door.calls == []


def test_a_handshake_in_an_unknown_version_gets_the_newest_that_has_one(door: Door) -> None:
    assert door.old("initialize", {"protocolVersion": "1999-01-01"})["result"]["protocolVersion"] == "2025-11-25"


def test_the_stateless_age_discovers_and_gets_what_its_results_must_have(door: Door) -> None:
    status, answer = door.new("server/discover")
    assert (status, answer["id"]) == (200, "x")
    assert answer["result"]["supportedVersions"] == [STATELESS]
    for method in ("server/discover", "tools/list", "resources/list", "prompts/list"):
        result = door.new(method)[1]["result"]
        assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")
    called = door.new("tools/call", {"name": "echo", "arguments": {"text": "hi"}})[1]["result"]
    assert called == {"resultType": "complete", **json.loads(RESULT)}


def test_tools_are_listed_as_their_files_are_without_what_is_ours(door: Door) -> None:
    echo, pay = door.old("tools/list")["result"]["tools"]
    assert echo == {name: value for name, value in ECHO.as_json().items() if name != "ignore"}
    assert sorted(pay) == ["inputSchema", "name"]


def test_a_result_is_the_recorded_text_byte_for_byte(door: Door) -> None:
    message = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}'
    assert door.send(message) == (200, b'{"jsonrpc":"2.0","id":1,"result":' + RESULT.encode() + b"}")
    status, body = door.send(message, Accept="text/event-stream")
    lines = RESULT.encode().replace(b"\n", b"\ndata: ")
    assert (status, body) == (200, b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":' + lines + b"}\n\n")


def test_errors_stay_what_they_were_recorded_as(door: Door) -> None:
    assert door.old("tools/call", {"name": "echo", "arguments": {"text": "bad"}})["result"]["isError"] is True
    answer = door.old("tools/call", {"name": "echo", "arguments": {"text": "broken"}})
    assert answer["error"] == {"code": -32602, "message": "no such tool"}


@pytest.mark.parametrize(
    ("amount", "content", "failed"),
    [
        (12, {"type": "text", "text": '{"paid":true}'}, False),
        (99, {"type": "text", "text": "too much"}, True),
        (1, {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}, False),
        (2, {"type": "text", "text": "the service gave no answer in time"}, True),
    ],
)
def test_a_tool_that_is_bound_to_http_answers_with_the_text_of_its_service(
    door: Door, amount: int, content: dict[str, str], failed: bool
) -> None:
    result = door.old("tools/call", {"name": "pay", "arguments": {"amount": amount}})["result"]
    assert result == {"content": [content], "isError": failed}
    assert (door.calls[0].method, door.calls[0].path, door.calls[0].tool) == ("CALL", "pay", "pay")


def test_sequences_caps_and_meta_hold_as_at_the_other_doors(tmp_path: Path) -> None:
    with serving(tmp_path, cap=3) as door:
        said = []
        for number in range(3):
            meta = {"progressToken": number}
            params = {"name": "echo", "arguments": {"text": "twice", "nonce": number}, "_meta": meta}
            said.append(door.old("tools/call", params)["result"]["content"][0]["text"])
        assert said == ["1", "2", "2"]
        over = door.old("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        assert over["error"]["data"] == {"error": "tool_cap"}
    assert [(each.outcome, each.repeat, each.via) for each in door.calls] == [
        ("hit", False, "mcp"),
        ("hit", False, "mcp"),
        ("hit", True, "mcp"),
        ("capped", False, "mcp"),
    ]


def test_an_unrecorded_call_is_the_mismatch_it_is_everywhere(door: Door) -> None:
    answer = door.old("tools/call", {"name": "echo", "arguments": {"text": 5}})
    assert answer["error"]["code"] == mcp.UNRECORDED
    assert answer["error"]["data"]["kind"] == "no_match"
    assert answer["error"]["data"]["difference"]
    for params in ({"name": "rm"}, {"name": "echo", "arguments": {"text": "hi", "text2": 1}}):
        assert "error" in door.old("tools/call", params)
    assert "error" in door.old("resources/read", {"uri": "a://c"})
    assert [(each.outcome, each.kind, each.path) for each in door.calls] == [
        ("miss", "no_match", "echo"),
        ("miss", "unknown_tool", "rm"),
        ("miss", "no_match", "echo"),
        ("miss", "no_match", "mcp/resources/read"),
    ]
    assert door.calls[0].schema_errors


def test_arguments_that_are_no_strict_json_are_a_miss_not_a_guess(door: Door) -> None:
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x","text":"hi"}}}'
    )
    assert json.loads(door.send(body)[1])["error"]["code"] == mcp.UNRECORDED
    assert (door.calls[0].outcome, door.calls[0].path) == ("miss", "echo")


def test_resources_that_were_recorded_are_replayed_and_lists_are_no_calls(door: Door) -> None:
    assert door.old("resources/list")["result"] == {"resources": [{"uri": "a://b", "name": "b"}]}
    assert door.old("prompts/list")["result"] == {"prompts": []}
    assert door.old("resources/templates/list")["result"] == {"resourceTemplates": []}
    assert door.old("resources/read", {"uri": "a://b"})["result"]["contents"][0]["blob"] == "AA=="
    assert door.new("resources/read", {"uri": "a://b"})[1]["result"]["ttlMs"] == 0
    assert [(each.outcome, each.path) for each in door.calls] == [("hit", "mcp/resources/read")] * 2


def test_many_tools_come_in_pages(tmp_path: Path) -> None:
    many = tuple(tool(f"t{number:03}", {"type": "object"}) for number in range(2 * mcp.PAGE + 1))
    with serving(tmp_path, tape(tools=many)) as door:
        names, cursor, pages = [], None, 0
        while pages == 0 or cursor:
            result = door.old("tools/list", {"cursor": cursor} if cursor else {})["result"]
            names += [each["name"] for each in result["tools"]]
            cursor, pages = result.get("nextCursor"), pages + 1
        assert (names, pages) == ([each.name for each in many], 3)
        assert door.old("tools/list", {"cursor": "elsewhere"})["error"]["code"] == -32602


def test_an_answer_may_be_submitted_as_a_tool_call(door: Door) -> None:
    assert "result" in door.old("tools/call", {"name": "submit_answer", "arguments": {"price": 12}})
    assert door.view.answer == b'{"price":12}'
    assert door.calls[0].outcome == "answer"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"Mcp_Method": "tools/call"}, -32020),
        ({"MCP_Protocol_Version": "2025-11-25"}, -32020),
        ({"Mcp_Name": "other"}, -32020),
        ({"MCP_Protocol_Version": "2030-01-01"}, -32020),
    ],
)
def test_headers_that_contradict_a_stateless_request_are_refused(door: Door, change: dict[str, str], code: int) -> None:
    status, answer = door.new("resources/read", {"uri": "a://b"}, **change)
    assert (status, answer["error"]["code"], door.calls) == (400, code, [])


def test_white_space_around_a_header_is_no_part_of_it_and_base64_stands_for_other_text(door: Door) -> None:
    params = {"name": "echo", "arguments": {"text": "hi"}}
    assert "result" in door.new("tools/call", params, Mcp_Name=" echo\t ")[1]
    assert "result" in door.new("tools/call", params, Mcp_Name="=?base64?ZWNobw==?=")[1]
    assert door.new("tools/call", params, Mcp_Name="=?base64?%%?=")[0] == 400


def test_a_version_that_is_not_spoken_is_answered_with_those_that_are(door: Door) -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    status, answer = door.new("tools/list", {"_meta": meta}, MCP_Protocol_Version="2030-01-01")
    assert (status, answer["error"]["code"]) == (400, -32022)
    assert answer["error"]["data"] == {"supported": [STATELESS], "requested": "2030-01-01"}


def test_methods_of_the_other_age_and_unknown_ones_are_not_found(door: Door) -> None:
    assert door.new("ping")[0] == 404
    assert door.new("initialize")[1]["error"]["code"] == -32601
    assert door.old("server/discover")["error"]["code"] == -32601
    assert door.old("tools/delete")["error"]["code"] == -32601
    assert door.calls == []


def test_a_subscription_is_acknowledged_stays_open_and_ends_with_the_episode(tmp_path: Path) -> None:
    with serving(tmp_path) as door:
        params = {"_meta": META, "notifications": {"toolsListChanged": True}}
        body = json.dumps({"jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen", "params": params})
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nMcp-Method: subscriptions/listen\r\nMCP-Protocol-Version: {STATELESS}\r\nContent-Length: {len(body)}\r\n\r\n"  # noqa: E501
        stream = socket.create_connection(("127.0.0.1", door.port), timeout=300)
        stream.sendall((head + body).encode())
        heard = stream.recv(65536)
        assert b"text/event-stream" in heard
        assert b"notifications/subscriptions/acknowledged" in heard
        stream.settimeout(0.2)
        with pytest.raises(TimeoutError):
            stream.recv(1)
        assert "result" in door.new("tools/list")[1]
        stream.settimeout(60)
    with contextlib.suppress(ConnectionResetError):
        assert stream.recv(1) == b""
    stream.close()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"method": "GET", "body": b""}, 405),
        ({"method": "DELETE", "body": b""}, 405),
        ({"path": "/other"}, 404),
        ({"Host": "evil.example.com"}, 403),
        ({"Origin": "http://evil.example.com"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Accept": "text/html"}, 406),
        ({"Content_Type": "text/plain"}, 415),
        ({"body": b"{"}, 400),
        ({"body": b"[]"}, 400),
        ({"body": b'{"jsonrpc":"2.0","id":true,"method":"ping"}'}, 400),
        ({"body": b'{"id":1,"method":"ping"}'}, 400),
        ({"body": b'{"jsonrpc":"2.0","id":1,"result":{}}'}, 202),
        ({"body": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'}, 202),
    ],
)
def test_what_is_no_request_of_a_local_client_is_refused(door: Door, request_: dict[str, Any], status: int) -> None:
    request_ = {"body": b'{"jsonrpc":"2.0","id":1,"method":"ping"}', **request_}
    assert door.send(**request_)[0] == status
    assert door.old("ping")["result"] == {}
    assert all(each.outcome == "malformed" for each in door.calls)


def test_pipelined_requests_are_answered_in_their_order(door: Door) -> None:
    message = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}'
    sent = b""
    for number in range(50):
        body = message % number
        sent += (
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % (len(body))
            + body
        )
    with socket.create_connection(("127.0.0.1", door.port), timeout=300) as raw:
        raw.sendall(sent)
        heard = b""
        while heard.count(b"structuredContent") < 50:
            heard += raw.recv(65536)
    places = [heard.index(b'"id":%d,' % number) for number in range(50)]
    assert places == sorted(places)


def test_what_a_server_holds_beside_tools_is_called_by_name_as_well(door: Door) -> None:
    looked = TAPE.look_call("mcp/resources/read", b'{"uri":"a://b"}')
    assert looked.hits[0].recorded.response().status == 200


def test_requests_that_one_recording_answers_are_each_in_the_journal_as_they_were(tmp_path: Path) -> None:
    nonces = [1, 2, 1, None, 2]
    with serving(tmp_path) as door:
        for nonce in nonces:
            arguments = {"text": "hi"} if nonce is None else {"text": "hi", "nonce": nonce}
            told = door.old("tools/call", {"name": "echo", "arguments": arguments})
            assert told["result"]["structuredContent"] == {"b": 1.5, "a": 2}
    bodies = [json.loads(str(each.body)) for each in door.calls]
    assert [body.get("nonce") for body in bodies] == nonces
    assert [each.ignored for each in door.calls] == [() if nonce is None else ("/json/nonce",) for nonce in nonces]
