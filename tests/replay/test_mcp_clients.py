"""The MCP door and an unmodified client of the official SDK: both ages, over HTTP and through `scoresheet-mcp`."""

import asyncio
import importlib.resources
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, MCPError, StdioServerParameters
from mcp.shared.inbound import mcp_param_headers, validate_mcp_param_headers, x_mcp_header_map

from scoresheet.replay.mcp_headers import contradiction, declared
from scoresheet.sandbox.spec import executable
from tests.replay.recordings import tape, tool
from tests.replay.test_mcp import RESULT, TAPE, Door, over_mcp, serving
from tests.replay.test_mcp_headers import SCHEMA

IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
LINK = {"type": "resource_link", "uri": "a://b", "name": "b"}
BLOB = {"type": "resource", "resource": {"uri": "a://c", "mimeType": "application/x", "blob": "AAE="}}
KINDS = tape(
    over_mcp("show", {}, {"content": [IMAGE, AUDIO, LINK, BLOB], "isError": False, "_meta": {"own": 1}}),
    over_mcp("mcp/prompts/list", {}, {"prompts": [{"name": "p"}]}),
    over_mcp("mcp/prompts/get", {"name": "p"}, {"messages": [{"role": "user", "content": IMAGE}]}),
    tools=(tool("show", {"type": "object"}),),
)


@pytest.fixture(params=["http", "stdio"])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    def target(door: Door) -> Any:
        address = f"http://127.0.0.1:{door.port}/mcp"
        if request.param == "http":
            return address
        program = tmp_path / "it's a folder" / "scoresheet-mcp"
        program.parent.mkdir()
        source = importlib.resources.files("scoresheet.sandbox.inside") / "mcp_stdio.py"
        program.write_bytes(executable(source.read_bytes(), sys.executable))
        program.chmod(0o755)
        return StdioServerParameters(command=str(program), args=[], env={"SCORESHEET_MCP_URL": address})

    return target


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
def test_the_sdk_gets_what_was_recorded(way: Any, mode: Any, tmp_path: Path) -> None:
    async def talk(target: Any) -> None:
        async with Client(target, mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert [each.name for each in tools] == ["echo", "pay"]
            assert tools[0].output_schema == {"type": "object"}
            said = await client.call_tool("echo", {"text": "hi"})
            assert said.content[0].text == "café / 1.0"
            assert said.structured_content == {"b": 1.5, "a": 2}
            assert (await client.call_tool("pay", {"amount": 99})).is_error
            assert [str(each.uri) for each in (await client.list_resources()).resources] == ["a://b"]
            assert (await client.read_resource("a://b")).contents[0].blob == "AA=="
            with pytest.raises(MCPError, match=r"unrecorded call: echo \(no_match\)"):
                await client.call_tool("echo", {"text": "never"})

    with serving(tmp_path) as door:
        asyncio.run(talk(way(door)))
    assert [each.outcome for each in door.calls] == ["hit", "hit", "hit", "miss"]
    assert RESULT in {recorded.call.response_bytes for found in TAPE.sequences.values() for recorded in found}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_images_sounds_links_and_blobs_arrive_as_they_were(way: Any, mode: Any, tmp_path: Path) -> None:
    async def talk(target: Any) -> None:
        async with Client(target, mode=mode) as client:
            result = await client.call_tool("show", {})
            shown = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in result.content]
            assert shown == [IMAGE, AUDIO, LINK, BLOB]
            assert result.meta == {"own": 1}
            prompt = await client.get_prompt("p")
            assert prompt.messages[0].content.data == IMAGE["data"]

    with serving(tmp_path, KINDS) as door:
        asyncio.run(talk(way(door)))


REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
ROUTED = tape(
    over_mcp("sql", {"region": "Zürich", "query": "1"}, {"content": [{"type": "text", "text": "one"}]}),
    tools=(*(tool(f"t{n}", {"type": "object"}) for n in range(120)), tool("sql", REGION)),
)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("listed", [True, False])
def test_arguments_that_a_header_repeats_are_checked_and_no_hindrance(
    way: Any, mode: Any, listed: bool, tmp_path: Path
) -> None:
    """Over HTTP the SDK repeats them, over stdio `scoresheet-mcp` does: without them the call would be refused."""

    async def talk(target: Any) -> None:
        async with Client(target, mode=mode) as client:
            if listed:
                cursor = (await client.list_tools()).next_cursor
                await client.list_tools(cursor=cursor)
            told = await client.call_tool("sql", {"region": "Zürich", "query": "1"})
            assert told.content[0].text == "one"

    with serving(tmp_path, ROUTED) as door:
        asyncio.run(talk(way(door)))
        assert [each.outcome for each in door.calls] == ["hit"]


def test_a_header_that_says_something_else_than_the_body_is_refused_and_is_no_call(tmp_path: Path) -> None:
    with serving(tmp_path, ROUTED) as door:
        params = {"name": "sql", "arguments": {"region": "eu", "query": "1"}}
        status, answer = door.new("tools/call", params, Mcp_Param_Region="us")
        assert (status, answer["error"]["code"]) == (400, -32020)
        assert door.new("tools/call", params, Mcp_Param_Region="eu")[1]["error"]["code"] == -32090  # unrecorded
        assert door.new("tools/call", {"name": "t1", "arguments": {}}, Mcp_Param_Region="us")[0] == 200
    assert [each.outcome for each in door.calls] == ["miss", "miss"]


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=8), st.sampled_from([1.0, 2.5, [], {}, "=?base64?YQ==?="])
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("region", "count", "dry"), values)), st.booleans())
def test_what_the_sdks_client_sends_is_taken_and_what_its_server_refuses_is_refused(
    arguments: dict[str, Any], changed: bool
) -> None:
    headers = mcp_param_headers(x_mcp_header_map(SCHEMA), arguments)
    if changed and headers:
        name = next(iter(headers))
        headers[name] = headers[name] + "x" if headers[name] else "x"
    refused = validate_mcp_param_headers(SCHEMA, arguments, headers)
    assert (contradiction(declared(SCHEMA), arguments, tuple(headers.items())) is None) == (refused is None)
