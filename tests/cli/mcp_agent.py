"""An MCP client of the official SDK: mcp_agent.py http|stdio auto|legacy [ITEM]; its answer is what it was told."""

import asyncio
import json
import os
import shutil
import sys
from typing import Any

from mcp import Client, StdioServerParameters


async def main(way: str, mode: Any, item: str = "tea") -> None:
    environment = dict(os.environ)
    command = shutil.which("scoresheet-mcp") or "scoresheet-mcp"
    stdio = StdioServerParameters(command=command, args=[], env=environment)
    async with Client(environment["SCORESHEET_MCP_URL"] if way == "http" else stdio, mode=mode) as client:
        tools = (await client.list_tools()).tools
        said = [await client.call_tool("price", {"item": item})]
        said += [await client.call_tool("count", {}) for _ in range(2)]
        listed = await client.list_resources()
        read = await client.read_resource(listed.resources[0].uri)
    texts = [each.content[0].text for each in said]
    answer = {"tools": [tool.name for tool in tools], "texts": texts, "terms": read.contents[0].text}
    print(json.dumps(answer))


asyncio.run(main(*sys.argv[1:]))
