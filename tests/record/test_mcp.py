"""What was heard between an MCP client and its server, as calls and tools."""

import json
from typing import Any

import pytest

from scoresheet.documents.tool import MCP_ERROR, MCP_RESULT, Request, Response
from scoresheet.errors import Refused
from scoresheet.record.exchange import Exchange
from scoresheet.record.mcp import Line, heard, lines_of, members, secrets_of

TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"b": {}, "a": {}}}, "title": "Echo"}


def ask(number: Any, method: str, params: Any = None, at: float = 0.0, channel: str = "one") -> Line:
    message = {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})}
    return Line("client", at, json.dumps(message).encode(), channel)


def say(number: Any, result: Any, at: float = 5.0, channel: str = "one", member: str = "result") -> Line:
    text = result if isinstance(result, str) else json.dumps(result)
    line = f'{{"jsonrpc": "2.0", "id": {json.dumps(number)}, "{member}": {text}}}'
    return Line("server", at, line.encode(), channel)


def test_a_call_keeps_the_literal_text_of_its_result() -> None:
    text = '{ "content": [{"type": "text", "text": "caf\\u00e9 \\/"}], "x": 1.50 }'
    params = {"name": "echo", "arguments": {"b": 1, "a": 2}, "_meta": {"progressToken": 1}}
    (exchange,) = heard([ask(1, "tools/call", params), say(1, text, 12.5)]).exchanges
    request, response = exchange.request, exchange.response
    assert (request.method, request.target, request.body) == ("CALL", "echo", b'{"a":2,"b":1}')
    assert (response.status, response.body, response.latency_ms) == (200, text.encode(), 12.5)
    assert response.headers == (("Content-Type", MCP_RESULT),)


def test_an_error_is_kept_as_one() -> None:
    lines = [ask("a", "tools/call", {"name": "echo"}), say("a", {"code": -32602, "message": "no"}, member="error")]
    (exchange,) = heard(lines).exchanges
    assert (exchange.response.status, exchange.response.headers) == (400, (("Content-Type", MCP_ERROR),))
    assert exchange.request.body == b"{}"


def test_tools_are_taken_from_every_page_in_their_order() -> None:
    second = TOOL | {"name": "add"}
    lines = [
        ask(1, "tools/list"),
        say(1, {"tools": [TOOL], "nextCursor": "2"}),
        ask(2, "tools/list", {"cursor": "2"}),
        say(2, {"tools": [second]}),
        ask(3, "tools/list"),
        say(3, {"tools": [TOOL | {"title": "New"}], "nextCursor": "2"}),
    ]
    tools = heard(lines).tools
    assert [tool.as_json() for tool in tools] == [TOOL | {"title": "New"}, second]


def test_what_is_read_without_calling_is_kept_once() -> None:
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    }
    lines = [
        ask(0, "initialize", {"protocolVersion": "2025-11-25"}),
        say(0, hello),
        ask(1, "resources/list"),
        say(1, {"resources": []}),
        ask(2, "resources/list", {}),
        say(2, {"resources": [{"uri": "late"}]}),
        ask(3, "resources/read", {"uri": "a"}),
        say(3, {"contents": []}),
        ask(4, "resources/read", {"uri": "a"}),
        say(4, {"contents": [1]}),
    ]
    found = [(each.request.target, each.response.body) for each in heard(lines).exchanges]
    assert found[0] == ("mcp/initialize", b'{"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}')
    assert found[1:] == [
        ("mcp/resources/list", b'{"resources": []}'),
        ("mcp/resources/read", b'{"contents": []}'),
        ("mcp/resources/read", b'{"contents": [1]}'),
    ]


def test_ids_belong_to_their_channel_and_calls_stand_in_the_order_of_asking() -> None:
    lines = [
        ask(1, "tools/call", {"name": "slow"}, channel="one"),
        ask(1, "tools/call", {"name": "fast"}, channel="two"),
        say(1, {"content": ["fast"]}, channel="two"),
        say(1, {"content": ["slow"]}, channel="one"),
    ]
    found = [(each.request.target, json.loads(each.response.body)) for each in heard(lines).exchanges]
    assert found == [("slow", {"content": ["slow"]}), ("fast", {"content": ["fast"]})]


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ([ask(1, "tools/call", {"name": "echo"})], "record-mcp-unanswered"),
        ([ask(1, "tools/call", {"name": "echo"}), say(1, {})], "record-mcp-unlisted"),
        ([Line("server", 0, b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}', "")], "record-mcp-asked"),
        ([Line("client", 0, b"[]", "")], "record-mcp-batch"),
        ([Line("server", 0, b"Starting server...", "")], "record-mcp-line"),
    ],
)
def test_what_a_replay_will_lack_is_said(lines: list[Line], rule: str) -> None:
    assert rule in [finding.rule for finding in heard(lines).findings]


def test_a_tool_whose_name_can_be_no_file_is_refused() -> None:
    with pytest.raises(Refused, match="can't name a file"):
        heard([ask(1, "tools/list"), say(1, {"tools": [{"name": "../x"}]})])


def test_http_exchanges_give_their_messages_events_among_them() -> None:
    call = ask(1, "tools/call", {"name": "echo"}).text
    events = b": ping\r\n\r\nevent: message\r\ndata: " + say(9, {}).text + b"\r\n\r\ndata: " + say(1, {"a": 1}).text
    stream = Response(200, (("content-type", "text/event-stream"),), events, 3.0)
    sent = (("authorization", "Bearer abcdefghijklmnop"),)
    exchanges = [
        Exchange(Request("SCORESHEET_MCP_URL", "GET", "/mcp"), stream),
        Exchange(Request("SCORESHEET_MCP_URL", "POST", "/mcp", sent, call), stream),
    ]
    (exchange,) = heard(lines_of(exchanges)).exchanges
    assert (exchange.response.body, exchange.response.latency_ms) == (b'{"a": 1}', 3.0)
    assert secrets_of(exchanges) == ("abcdefghijklmnop",)


@pytest.mark.parametrize("text", ["", "[]", '{"a" 1}', "{a: 1}", '{"a": }', '{"a": 1'])
def test_members_of_what_is_no_object_are_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # json raises its own kinds
        members(text)


def test_members_are_literal_texts() -> None:
    assert members(' { "a\\u0062" : 1.50 , "c":[ 1 ,2],"d":"x\\/"} ') == {"ab": "1.50", "c": "[ 1 ,2]", "d": '"x\\/"'}
