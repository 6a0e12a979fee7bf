"""Records mcp-sdk/everything.jsonl: client and server of the official SDK, and a tee between: `python make_mcp.py`.

Needs mcp, in an environment of its own. One JSON-RPC message a line, both directions, in the order of their passing.
"""

import asyncio
import base64
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).parent / "mcp-sdk"
PIXEL = base64.b64encode(bytes(range(64))).decode()


def serve() -> None:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Image

    server = MCPServer("library", instructions="Ask for books.")

    @server.tool()
    def add(a: float, b: float) -> float:
        """Add two numbers."""
        return a + b

    @server.tool()
    def find(title: str, limit: int = 3) -> dict[str, object]:
        """Find books by a part of their title."""
        return {"title": title, "hits": [{"id": n, "price": 1.10 * n} for n in range(limit)], "große": "Straße"}

    @server.tool()
    def cover(book: int) -> Image:
        """The cover of a book."""
        return Image(data=bytes(range(64)), format="png")

    @server.tool()
    def lend(book: int) -> str:
        """Lend a book."""
        raise ValueError(f"book {book} is lent already")

    @server.resource("library://rules")
    def rules() -> str:
        return "Two weeks."

    @server.prompt()
    def review(title: str) -> str:
        """Ask for a review."""
        return f"Please review {title}."

    server.run(transport="stdio")


def tee(path: str) -> None:
    """Run the server, and write down every line that passes."""
    child = subprocess.Popen([sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lock = threading.Lock()
    with open(path, "wb", buffering=0) as log:

        def pump(source: object, sink: object) -> None:
            for line in source:
                with lock:
                    log.write(line)
                sink.write(line)
                sink.flush()
            sink.close()

        up = threading.Thread(target=pump, args=(sys.stdin.buffer, child.stdin), daemon=True)
        up.start()
        pump(child.stdout, sys.stdout.buffer)
        child.wait()


async def talk(path: Path) -> None:
    from mcp import ClientSession, StdioServerParameters, stdio_client

    parameters = StdioServerParameters(command=sys.executable, args=[__file__, "tee", str(path)])
    async with stdio_client(parameters) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        await session.list_tools()
        await session.list_resources()
        await session.list_prompts()
        for n in range(40):
            await session.call_tool("add", {"a": n, "b": 0.5})
        for title in ("Dune", "紅樓夢", "Der Prozeß"):
            await session.call_tool("find", {"title": title})
        await session.call_tool("cover", {"book": 1})
        await session.call_tool("lend", {"book": 2})
        await session.call_tool("nothing", {})
        await session.read_resource("library://rules")
        await session.get_prompt("review", {"title": "Dune"})
        await session.send_ping()


def main() -> None:
    HERE.mkdir(exist_ok=True)
    asyncio.run(talk(HERE / "everything.jsonl"))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            serve()
        case ["tee", path]:
            tee(path)
        case _:
            main()
