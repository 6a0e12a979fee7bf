"""Requests per second over MCP as a ratio to plain HTTP: the same server, recordings and client.

    python bench/mcp_replay.py           # ours, at 100, 10,000 and 100,000 recorded calls
    python bench/mcp_replay.py --peer    # and a server of the official SDK that answers a constant

Load: wrk, one thread, 8 kept connections; a scrambled walk over all recordings, each request with an id of its own, as
MCP's are, after a first walk that asked for each; five interleaved rounds. Over HTTP the bytes of a request repeat,
over MCP they never do, so the ratio holds what reading a message costs. What is compared is the server's own processor
time for each, in nanoseconds of the kernel's scheduler, for it depends less on what else the machine does; the rates
and the load are printed beside it. Goals: 0.2 of plain HTTP, flat within 0.8 over the recordings, 10 times the SDK.
"""

import argparse
import importlib.metadata
import itertools
import json
import multiprocessing
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from parts.clock import process_s

SIZES = (100, 10_000, 100_000)
ROUNDS, SECONDS = 5, 3
GOAL, GOAL_FLAT, GOAL_PEER = 0.2, 0.8, 10.0
LUA = """
local at, id = 0, 0
local head = "POST {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nContent-Type: application/json\\r\\n" ..
  "Accept: application/json, text/event-stream\\r\\nContent-Length: "
request = function()
  at, id = (at + 61803) % {count}, id + 1
  local body = '{{"amount":' .. at .. '}}'
  if {mcp} then
    body = '{{"jsonrpc":"2.0","id":' .. id .. ',"method":"tools/call",' ..
      '"params":{{"name":"pay","arguments":' .. body .. '}}}}'
  end
  return head .. #body .. "\\r\\n\\r\\n" .. body
end
"""
"""The whole request is written here: wrk.format puts the headers into another order in every process."""


def script(port: int, count: int, mcp: bool) -> str:
    return LUA.format(port=port, count=count, mcp=str(mcp).lower(), path="/mcp" if mcp else "/pay")


def serve(plain: socket.socket, over_mcp: socket.socket, count: int, told: Connection) -> None:
    from scoresheet.documents.task import Call, Task, ToolReference
    from scoresheet.documents.tool import RequestCopy, Tool
    from scoresheet.pack import fingerprint
    from scoresheet.replay import journal as journals
    from scoresheet.replay.http import MCP_DOOR, ReplayServer
    from scoresheet.replay.journal import CallJournal
    from scoresheet.replay.session import Session, Tape

    journals.MAX_BYTES = 1 << 40  # wrk asks more in a minute than an agent may in an episode
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}}
    http = {"upstream": "api", "method": "POST", "path": "/pay"}
    tool = Tool.model_validate({"name": "pay", "inputSchema": schema, "http": http})
    calls = []
    for amount in range(count):
        headers = (("Content-Type", "application/json"),)
        request = RequestCopy(upstream="api", method="POST", path="/pay", headers=headers, body={"amount": amount})
        text = json.dumps({"paid": amount})
        digest = fingerprint.v2(request.as_request())
        calls.append(
            Call(
                request_fingerprint=digest,
                request=request,
                response_status=200,
                response_bytes=text,
                latency_ms_recorded=1.0,
            )
        )
    reference = ToolReference(name="pay", schema_sha256="sha256:" + "0" * 64)
    tape = Tape.of(Task(task_id="t", prompt="p", tools=(reference,), calls=tuple(calls)), {"pay": tool})
    with tempfile.TemporaryDirectory() as folder, ReplayServer() as server:
        for number in itertools.count():  # one episode a measurement
            journal = CallJournal(Path(folder) / str(number))
            with server.episode({"api": plain, MCP_DOOR: over_mcp}, {"api": "api"}, Session(tape), journal):
                told.send("ready")
                if told.recv() == "end":
                    return


def peer(listening: socket.socket) -> None:
    import mcp_types
    import uvicorn
    from mcp.server.lowlevel import Server

    async def listed(*_: object) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=[mcp_types.Tool(name="pay", input_schema={"type": "object"})])

    async def called(*_: object) -> mcp_types.CallToolResult:
        return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text='{"paid":1}')])

    server: Server = Server("peer", on_list_tools=listed, on_call_tool=called)
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


def rate(port: int, lua_text: str, pid: int, seconds: int = SECONDS) -> tuple[float, float, int]:
    """(requests per second, microseconds of the server's processor time for each, requests)"""
    before = process_s(pid)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as lua:
        lua.write(lua_text)
        lua.flush()
        words = ["wrk", "-t1", "-c8", f"-d{seconds}", "-s", lua.name, f"http://127.0.0.1:{port}/"]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said, said
    found, count = re.search(r"Requests/sec:\s+([\d.]+)", said), re.search(r"(\d+) requests in", said)
    assert found is not None, said
    assert count is not None, said
    done = int(count[1])
    return float(found[1]), 1e6 * (process_s(pid) - before) / max(1, done), done


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", action="store_true", help="measure the official SDK's server as well")
    fork = multiprocessing.get_context("fork")
    costs: dict[tuple[str, int], float] = {}
    missed: list[str] = []
    asked = parser.parse_args()

    def goal(what: str, found: float, least: float) -> None:
        print(f"{what}: {found:.2f} (goal: at least {least})")
        if found < least:
            missed.append(what)

    for count in SIZES:
        plain, over_mcp = (socket.create_server(("127.0.0.1", 0), backlog=512) for _ in range(2))
        ours, theirs = multiprocessing.Pipe()
        server = fork.Process(target=serve, args=(plain, over_mcp, count, theirs), daemon=True)
        server.start()
        assert server.pid is not None
        found: dict[str, list[tuple[float, float]]] = {"HTTP": [], "MCP": []}
        ports = {"HTTP": plain.getsockname()[1], "MCP": over_mcp.getsockname()[1]}
        ours.recv()
        for name, port in ports.items():
            seconds, done = max(1, count // 10_000), 0
            while done < count:  # a first walk over everything
                done = rate(port, script(port, count, mcp=name == "MCP"), server.pid, seconds)[2]
                seconds *= 2
                ours.send("next")
                ours.recv()
        for _ in range(ROUNDS):
            for name, port in ports.items():
                found[name].append(rate(port, script(port, count, mcp=name == "MCP"), server.pid)[:2])
                ours.send("next")
                ours.recv()
        ours.send("end")
        server.join()
        for name, results in found.items():
            rates, spent = (statistics.median(column) for column in zip(*results, strict=True))
            costs[name, count] = spent
            print(f"{count:,} recordings, {name}: {rates:,.0f}/s, {spent:.1f} µs of the server each")
        ratio = costs["HTTP", count] / costs["MCP", count]
        goal(f"MCP of HTTP at {count:,}, by processor time; load {os.getloadavg()[0]:.1f}", ratio, GOAL)
    for name in ("HTTP", "MCP"):
        flat = costs[name, SIZES[0]] / costs[name, SIZES[-1]]
        goal(f"{name} at {SIZES[-1]:,} of {SIZES[0]:,} recordings, by processor time", flat, GOAL_FLAT)
    if asked.peer:
        listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        process = fork.Process(target=peer, args=(listening,), daemon=True)
        process.start()
        assert process.pid is not None
        time.sleep(3)
        port = listening.getsockname()[1]
        results = [rate(port, script(port, 100, mcp=True), process.pid)[:2] for _ in range(ROUNDS)]
        process.terminate()
        rates, spent = (statistics.median(column) for column in zip(*results, strict=True))
        version = importlib.metadata.version("mcp")
        print(f"mcp {version}, a constant: {rates:,.0f}/s, {spent:.1f} µs of the server each")
        goal(f"times the server of mcp {version}, by processor time", spent / costs["MCP", SIZES[0]], GOAL_PEER)
    for what in missed:
        print(f"missed: {what}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
