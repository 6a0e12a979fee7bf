"""Public MCP clients and servers against ours; `./full mcp`. Needs node, npm and the network.

1. @modelcontextprotocol/conformance against a replay: every scenario of what a replay offers must pass.
2. Servers from npm and PyPI are recorded through `record --mcp` by a client of the TypeScript SDK and by one of the
   Python SDK, frozen, and replayed to it over HTTP and stdio: its results must be those of the recording, byte for
   byte. Python's speaks both ages. Then each is replayed what the other recorded, and must be told the same.
3. The inspector's command line against a replay.
"""

import contextlib
import importlib.resources
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HOUSE = Path(__file__).parents[1]
sys.path.insert(0, str(HOUSE))

from scoresheet.documents.tool import MCP_RESULT, Tool  # noqa: E402
from scoresheet.replay.http import MCP_DOOR, ReplayServer  # noqa: E402
from scoresheet.replay.journal import CallJournal  # noqa: E402
from scoresheet.replay.session import Session, Tape  # noqa: E402
from scoresheet.sandbox.spec import executable  # noqa: E402
from tests.replay.recordings import call, tape  # noqa: E402

NPM = (
    *("conformance@0.2.0-alpha.12", "inspector@0.15.0", "sdk@1.32.2", "server-everything@2026.8.31"),
    *("server-filesystem@2026.8.31", "server-memory@2026.8.31", "server-sequential-thinking@2026.8.31"),
)
PYPI = ("mcp-server-sqlite==2025.4.25", "mcp==1.30.0")
COMMAND = str(shutil.which("scoresheet", path=str(Path(sys.executable).parent)))
NOT_OFFERED = re.compile(r"with-logging|with-progress|sampling|elicitation")
"""Scenarios of what a replay never does: it asks and tells the client nothing of its own accord."""

CLIENT = """
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import fs from 'fs';
import crypto from 'crypto';
const [,, way, plan, out] = process.argv;
const transport = way === 'http' ? new StreamableHTTPClientTransport(new URL(process.env.SCORESHEET_MCP_URL))
  : new StdioClientTransport({command: 'scoresheet-mcp', env: process.env, stderr: 'ignore'});
const client = new Client({name: 'by-hand', version: '1'}, {capabilities: {}});
await client.connect(transport);
const said = [await client.listTools()];
for (const [name, args] of JSON.parse(plan)) {
  if (name === 'resources') {
    said.push(await client.listResources());
    said.push(await client.readResource({uri: said.at(-1).resources[0].uri}));
  } else if (name === 'prompts') {
    said.push(await client.listPrompts());
    said.push(await client.getPrompt({name: said.at(-1).prompts[0].name}));
  } else said.push(await client.callTool({name, arguments: args}));
}
fs.writeFileSync(out, JSON.stringify(said, null, 1));
console.log(JSON.stringify({sha256: crypto.createHash('sha256').update(JSON.stringify(said)).digest('hex')}));
await client.close();
process.exit(0);
"""
PYTHON_CLIENT = """
import asyncio, hashlib, json, os, sys
from mcp import Client, StdioServerParameters

way, plan, out, mode = sys.argv[1:]
target = os.environ["SCORESHEET_MCP_URL"]
if way == "stdio":
    target = StdioServerParameters(command="scoresheet-mcp", args=[], env=dict(os.environ))


async def main():
    async with Client(target, mode=mode) as client:
        said = [await client.list_tools()]
        for name, arguments in json.loads(plan):
            if name == "resources":
                said.append(await client.list_resources())
                said.append(await client.read_resource(said[-1].resources[0].uri))
            elif name == "prompts":
                said.append(await client.list_prompts())
                said.append(await client.get_prompt(said[-1].prompts[0].name))
            else:
                said.append(await client.call_tool(name, arguments))
    text = json.dumps([each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in said], indent=1)
    with open(out, "w") as file:
        file.write(text)
    print(json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest()}))


asyncio.run(main())
"""
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def conformance_tape() -> Tape:
    """What the suite asks of a server, as recordings."""

    def said(name: str, arguments: Any, result: Any) -> Any:
        headers = (("Content-Type", MCP_RESULT),)
        return call("CALL", name, arguments, upstream="", text=json.dumps(result), response_headers=headers)

    def text(value: str) -> dict[str, str]:
        return {"type": "text", "text": value}

    def embedded(uri: str, value: str, media: str = "text/plain") -> dict[str, Any]:
        return {"type": "resource", "resource": {"uri": uri, "mimeType": media, "text": value}}

    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    sound = {
        "type": "audio",
        "data": "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=",
        "mimeType": "audio/wav",
    }
    results = {
        "test_simple_text": [text("This is a simple text response for testing.")],
        "test_image_content": [image],
        "test_audio_content": [sound],
        "test_embedded_resource": [embedded("test://embedded-resource", "This is an embedded resource content.")],
        "test_multiple_content_types": [
            text("Multiple content types test:"),
            image,
            embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
        ],
        "test_error_handling": [text("This tool intentionally returns an error for testing")],
    }
    tools = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in results]
    calls = [
        said(name, {}, {"content": content, **({"isError": True} if "error" in name else {})})
        for name, content in results.items()
    ]
    can = {"logging": {}, "completions": {}, "resources": {"subscribe": True}}
    calls.append(said("mcp/initialize", {}, {"capabilities": can, "serverInfo": {"name": "suite", "version": "1"}}))
    resources = [
        {"uri": f"test://{name}", "name": name} for name in ("static-text", "static-binary", "watched-resource")
    ]
    calls.append(said("mcp/resources/list", {}, {"resources": resources}))
    templates = [{"uriTemplate": "test://template/{id}/data", "name": "t"}]
    calls.append(said("mcp/resources/templates/list", {}, {"resourceTemplates": templates}))
    for uri, content in (
        ("test://static-text", {"mimeType": "text/plain", "text": "This is the content of the static text resource."}),
        ("test://static-binary", {"mimeType": "image/png", "blob": PNG}),
        ("test://template/123/data", {"mimeType": "application/json", "text": '{"id":"123","templateTest":true}'}),
    ):
        calls.append(said("mcp/resources/read", {"uri": uri}, {"contents": [{"uri": uri, **content}]}))
    prompts: dict[str, tuple[dict[str, str], list[Any]]] = {
        "test_simple_prompt": ({}, [text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments": (
            {"arg1": "testValue1", "arg2": "testValue2"},
            [text("Prompt with arguments: arg1='testValue1', arg2='testValue2'")],
        ),
        "test_prompt_with_embedded_resource": (
            {"resourceUri": "test://example-resource"},
            [embedded("test://example-resource", "Embedded resource content for testing."), text("Please process it.")],
        ),
        "test_prompt_with_image": ({}, [image, text("Please analyze the image above.")]),
    }
    listed = [
        {"name": name, "description": name, "arguments": [{"name": each, "required": True} for each in arguments]}
        for name, (arguments, _) in prompts.items()
    ]
    calls.append(said("mcp/prompts/list", {}, {"prompts": listed}))
    for name, (arguments, contents) in prompts.items():
        asked = {"name": name, **({"arguments": arguments} if arguments else {})}
        messages = [{"role": "user", "content": content} for content in contents]
        calls.append(said("mcp/prompts/get", asked, {"messages": messages}))
    completing = {
        "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
        "argument": {"name": "arg1", "value": "test"},
    }
    calls.append(said("mcp/completion/complete", completing, {"completion": {"values": ["test"], "hasMore": False}}))
    return tape(*calls, tools=tuple(map(Tool.model_validate, tools)))


def conformance(folder: Path) -> list[str]:
    """What failed that should not."""
    main = folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    source = main.read_text()
    if not ran(folder, "node", "-e", "process.exit(require('fs').globSync ? 0 : 1)", check=False)[0]:
        source = re.sub(r"globSync as (\w+),", "", source, count=1)  # node before 22: only its author's tools use that
        named = re.search(r"globSync as (\w+),", main.read_text())
        main.write_text(source.replace("import{", f"const {named[1]}=()=>[];import{{", 1) if named else source)
    with ReplayServer() as server, socket.create_server(("127.0.0.1", 0)) as listening:
        journal = CallJournal(folder / "calls.jsonl")
        with server.episode({MCP_DOOR: listening}, {}, Session(conformance_tape()), journal):
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
            failed = []
            for version in ("2025-11-25", "2026-07-28"):
                words = ("node", str(main), "server", "--url", url, "--spec-version", version)
                _, said = ran(folder, *words, check=False)
                lines = re.findall(r"^[✓✗] .*", said, re.MULTILINE)
                print(version, *lines, sep="\n")
                failed += [line for line in lines if line.startswith("✗") and not NOT_OFFERED.search(line)]
                failed += [] if len(lines) > 15 else [f"the conformance suite did not run for {version}"]
    return failed


def servers(folder: Path) -> dict[str, tuple[str, list[Any]]]:
    """Name → (command, what is called)."""
    scope = folder / "node_modules/@modelcontextprotocol"
    data = folder / "data"
    data.mkdir()
    (data / "a.txt").write_text("hello\n")
    import base64

    (data / "p.png").write_bytes(base64.b64decode(PNG))
    venv.create(folder / "sqlite", with_pip=True)
    ran(folder, str(folder / "sqlite/bin/pip"), "install", "-q", *PYPI)
    everything = [
        *(["echo", {"message": "hi"}], ["get-sum", {"a": 2, "b": 3}], ["get-tiny-image", {}]),
        *(["get-structured-content", {"location": "New York"}], ["resources", {}], ["prompts", {}]),
        ["get-annotated-message", {"messageType": "error", "includeImage": True}],
    ]
    entity = {"name": "Ada", "entityType": "person", "observations": ["x"]}
    thought = {"thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    files = [
        *(["list_directory", {"path": str(data)}], ["read_text_file", {"path": str(data / "a.txt")}]),
        *(["read_media_file", {"path": str(data / "p.png")}], ["read_text_file", {"path": "/etc/passwd"}]),
    ]
    rows = [
        *(
            ["create_table", {"query": "CREATE TABLE a (id INTEGER)"}],
            ["write_query", {"query": "INSERT INTO a VALUES (1)"}],
        ),
        *(["read_query", {"query": "SELECT * FROM a"}], ["resources", {}]),
    ]
    return {
        "everything": (f"node {scope}/server-everything/dist/index.js stdio", everything),
        "filesystem": (f"node {scope}/server-filesystem/dist/index.js {data}", files),
        "memory": (f"env MEMORY_FILE_PATH={folder}/memory node {scope}/server-memory/dist/index.js",
                   [["create_entities", {"entities": [entity]}], ["read_graph", {}]]),
        "thinking": (f"node {scope}/server-sequential-thinking/dist/index.js", [["sequentialthinking", thought]]),
        "sqlite": (f"{folder}/sqlite/bin/mcp-server-sqlite --db-path {folder}/rows.db", rows),
    }  # fmt: skip


def recorded_and_replayed(folder: Path, name: str, command: str, plan: list[Any]) -> list[str]:
    """What failed: nothing when both clients were told the same in all ways."""
    clients = {
        "TypeScript": ("node", str(folder / "client.mjs")),
        "Python": (sys.executable, str(folder / "client.py")),
    }
    modes = {"TypeScript": ("",), "Python": ("legacy", "2026-07-28")}  # which age the client speaks
    written, failed, same = json.dumps(plan), [], []
    for language, client in clients.items():
        pack, live = folder / f"pack-{name}-{language}", folder / f"{name}-{language}-live.json"
        for state in ("memory", "rows.db"):
            (folder / state).unlink(missing_ok=True)
        options = ("--task", "t", "--prompt", "p", "--expect-stdout", "--mcp", command)
        recording = (*client, "stdio", written, str(live), *([] if language == "TypeScript" else ["legacy"]))
        ran(folder, COMMAND, "record", str(pack), *options, "--", *recording)
        ran(folder, COMMAND, "freeze", str(pack), "-q")
        with served(pack) as environment:
            for other, asking in clients.items():
                for way, mode in ((way, mode) for way in ("http", "stdio") for mode in modes[other]):
                    out = folder / f"{name}-{language}-{other}-{way}.json"
                    ran(folder, *asking, way, written, str(out), mode, environment=environment)
                    what = f"{name} recorded by {language}, replayed to {other} {mode} over {way}"
                    if other == language and not mode.startswith("2026"):
                        alike = out.read_bytes() == live.read_bytes()
                    else:
                        alike = plain(json.loads(out.read_bytes())) == plain(json.loads(live.read_bytes()))
                    (same if alike else failed).append(what)
            if name == "filesystem" and language == "TypeScript":
                address = environment["SCORESHEET_MCP_URL"]
                inspector = str(folder / "node_modules/.bin/mcp-inspector")
                words = (inspector, "--cli", address, "--transport", "http", "--method", "tools/list")
                listed = json.loads(ran(folder, *words)[1])["tools"]
                print(f"inspector: {len(listed)} tools")
    images = (folder / f"{name}-Python-live.json").read_text().count('"image"')
    print(f"{name}: {len(plan)} requests, {images} images; the same as recorded in {len(same)} of", end=" ")
    print(f"{len(same) + len(failed)} replays: two recordings, two clients, HTTP and stdio, both ages")
    return failed


def plain(value: Any) -> Any:
    """What a server said, without what one age or one SDK adds of its own."""
    added = {"resultType", "ttlMs", "cacheScope", "_meta", "nextCursor", "execution"}
    if isinstance(value, dict):
        own = {key: plain(each) for key, each in value.items() if key not in added}
        return {key: each for key, each in own.items() if (key, each) != ("isError", False)}
    return [plain(each) for each in value] if isinstance(value, list) else value


@contextlib.contextmanager
def served(pack: Path) -> Iterator[dict[str, str]]:
    """The environment of a client of `scoresheet serve`, `scoresheet-mcp` on its PATH."""
    programs = pack.parent / "bin"
    programs.mkdir(exist_ok=True)
    source = importlib.resources.files("scoresheet.sandbox.inside") / "mcp_stdio.py"
    (programs / "scoresheet-mcp").write_bytes(executable(source.read_bytes(), sys.executable))
    (programs / "scoresheet-mcp").chmod(0o755)
    with subprocess.Popen([COMMAND, "serve", str(pack), "--task", "t"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = {}
            while (line := process.stdout.readline()).startswith("export "):
                name, _, value = line.removeprefix("export ").strip().partition("=")
                found[name] = value
            yield os.environ | found | {"PATH": f"{programs}:{os.environ['PATH']}"}
        finally:
            process.send_signal(signal.SIGINT)


def ran(folder: Path, *words: str, check: bool = True, environment: Any = None) -> tuple[bool, str]:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=environment, timeout=600, check=False)
    if check and done.returncode:
        sys.exit(f"{' '.join(words)[:200]}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0, done.stdout


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "package.json").write_text("{}")
        (folder / "client.mjs").write_text(CLIENT)
        (folder / "client.py").write_text(PYTHON_CLIENT)
        ran(folder, "npm", "install", "--no-audit", "--no-fund", *(f"@modelcontextprotocol/{each}" for each in NPM))
        failed = conformance(folder)
        for server, (command, plan) in servers(folder).items():
            failed += recorded_and_replayed(folder, server, command, plan)
    print("failed:", ", ".join(failed) or "nothing")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
