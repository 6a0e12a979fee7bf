"""The MCP door and an unmodified client of the official SDK: both ages, over HTTP and through `scoresheet-mcp`."""

import asyncio
import importlib.resources
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters

from scoresheet.sandbox.spec import executable
from tests.replay.recordings import tape, tool
from tests.replay.test_mcp import RESULT, TAPE, Door, over_mcp, serving

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
