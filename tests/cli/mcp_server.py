"""A small MCP server without any SDK, to be recorded: over stdio, or over HTTP with `http PORT-FILE`."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOOLS = [
    {
        "name": "price",
        "description": "The price of an item.",
        "inputSchema": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
        "annotations": {"readOnlyHint": True},
    },
    {"name": "count", "description": "How often it was called.", "inputSchema": {"type": "object"}},
]
STATE = {"count": 0}


def answer(message: dict[str, Any]) -> list[str]:
    """Lines to send; a notification first, then the answer, its text spelt in a way of its own."""
    if "id" not in message or "method" not in message:
        return []
    number, method, params = json.dumps(message["id"]), message["method"], message.get("params") or {}
    before = []
    match method:
        case "initialize":
            version = params["protocolVersion"]
            result = json.dumps(
                {
                    "protocolVersion": version,
                    "capabilities": {"tools": {}, "resources": {}},
                    "serverInfo": {"name": "prices", "version": "3"},
                }
            )
        case "tools/list":
            result = json.dumps({"tools": TOOLS})
        case "tools/call" if params["name"] == "price":
            before = ['{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"asked"}}']
            item = params["arguments"]["item"]
            secret = ' "key": "sk-proj-Zq8Wn3Lk5Vt7Ry2Xb9Mc4Hd6Jf1Gs0PaT3BlbkFJQw",' if item == "secret" else ""
            result = f'{{"content": [{{"type": "text", "text": "{item}: 1.50"}}],{secret} "isError": false}}'
        case "tools/call":
            STATE["count"] += 1
            result = json.dumps({"content": [{"type": "text", "text": str(STATE["count"])}]})
        case "resources/list":
            result = '{"resources": [{"uri": "shop://terms", "name": "terms"}]}'
        case "resources/read":
            result = '{"contents": [{"uri": "shop://terms", "text": "No refunds."}]}'
        case _:
            return [f'{{"jsonrpc":"2.0","id":{number},"error":{{"code":-32601,"message":"no"}}}}']
    return [*before, f'{{"jsonrpc": "2.0", "id": {number}, "result": {result}}}']


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        lines = answer(message)
        body = "".join(f"event: message\ndata: {line}\n\n" for line in lines).encode()
        self.send_response(200 if body else 202)
        if body:
            self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Path(sys.argv[2]).write_text(str(server.server_address[1]))
        server.serve_forever()
    for line in sys.stdin:
        for said in answer(json.loads(line)):
            print(said, flush=True)
