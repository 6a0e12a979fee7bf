"""How requests of MCP stand in a pack."""

import pytest

from scoresheet.documents.tool import CALL, Request
from scoresheet.pack import fingerprint
from scoresheet.pack.mcp_calls import HELLO, LISTS, READS, body_of, name_of


@pytest.mark.parametrize("method", [*sorted(LISTS), *sorted(READS), HELLO])
def test_a_reserved_name_is_no_name_that_a_tool_can_have(method: str) -> None:
    assert "/" in name_of(method)
    assert name_of(method) == f"mcp/{method}"


@pytest.mark.parametrize(
    ("params", "body"),
    [
        (None, b"{}"),
        ([], b"{}"),
        ({"cursor": None}, b"{}"),
        ({"cursor": "2"}, b'{"cursor":"2"}'),
        ({"name": "p", "arguments": {}, "_meta": {"progressToken": 1}}, b'{"name":"p"}'),
        ({"uri": "a", "requestState": "s", "inputResponses": {}, "task": {"ttl": 1}}, b'{"uri":"a"}'),
        ({"name": "p", "arguments": {"b": 1, "a": 2.0}}, b'{"arguments":{"a":2,"b":1},"name":"p"}'),
    ],
)
def test_what_belongs_to_one_request_is_no_part_of_the_call(params: object, body: bytes) -> None:
    assert body_of(params) == body


def test_a_read_is_fingerprinted_as_any_call_by_name() -> None:
    asked = Request("", CALL, name_of("resources/read"), (), b'{"uri": "a"}')
    recorded = Request("", CALL, name_of("resources/read"), (("Content-Type", "application/json"),), b'{"uri":"a"}')
    assert fingerprint.v2(asked) == fingerprint.v2(recorded)
    assert fingerprint.canonical(asked).text.startswith(b'{"body":["json",{"uri":"a"}],"method":"CALL","path":"mcp/re')
