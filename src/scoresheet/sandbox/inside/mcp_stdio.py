"""`scoresheet-mcp`, inside the sandbox: MCP over standard input and output. Standard library only.

An ordinary client of the door at $SCORESHEET_MCP_URL: a line goes there as it is, an answer comes back as a line.
"""

import base64
import http.client
import json
import os
import re
import sys
import threading

META = "io.modelcontextprotocol/protocolVersion"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
SESSION = "Mcp-Session-Id"
LAST_S = 5
"""How long answers are waited for when the client says nothing more."""
_lock = threading.Lock()


def main():
    url = os.environ.get("SCORESHEET_MCP_URL", "")
    found = re.fullmatch(r"http://([^/]+)(/.*)", url)
    if found is None:
        sys.exit("scoresheet-mcp: $SCORESHEET_MCP_URL holds no address")
    host, path = found.groups()
    connection = http.client.HTTPConnection(host)
    session: "dict[str, str]" = {}
    streams: "list[threading.Thread]" = []
    wanted: "dict[str, list[tuple[tuple[str, ...], str]]] | None" = None
    for line in sys.stdin.buffer:
        line = line.strip()
        if not line:
            continue
        message = read(line)
        method = message.get("method")
        made = headers(message)
        if method == "tools/call" and "Mcp-Method" in made:
            if wanted is None:
                wanted = marked(host, path, message["params"]["_meta"])
            made.update(repeated(message["params"], wanted))
        connection.request("POST", path, line, {**session, **made})
        answer = connection.getresponse()
        opened = answer.getheader(SESSION)
        if method == "initialize" and opened:
            session = {SESSION: opened}
        if answer.headers.get_content_type() != "text/event-stream":
            body = answer.read()
            if body:
                say(body)
            continue
        stream = threading.Thread(target=listen, args=(answer, connection), daemon=True)
        stream.start()  # it may wait for something that our client says next
        if method != "subscriptions/listen":  # that one has no end
            streams = [each for each in streams if each.is_alive()] + [stream]
        connection = http.client.HTTPConnection(host)
    for stream in streams:
        stream.join(LAST_S)


def read(line):
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def headers(message):
    """What the HTTP transport says in headers, of a message in the stateless age; nothing more in the older one."""
    made = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    method = message.get("method")
    if isinstance(meta, dict) and isinstance(meta.get(META), str) and isinstance(method, str) and "id" in message:
        made["MCP-Protocol-Version"] = text(meta[META])
        made["Mcp-Method"] = text(method)
        name = params.get(NAMED.get(method))
        if isinstance(name, str):
            made["Mcp-Name"] = text(name)
    return made


def marked(host, path, meta):
    """Tool → the arguments that its schema wants repeated in headers: (names that lead there, header)."""
    known = {}
    params = {"_meta": meta}
    while True:
        message = {"jsonrpc": "2.0", "id": "scoresheet-mcp", "method": "tools/list", "params": params}
        connection = http.client.HTTPConnection(host)
        connection.request("POST", path, json.dumps(message), headers(message))
        answer = connection.getresponse()
        lines = answer.read().splitlines()
        if answer.headers.get_content_type() == "text/event-stream":
            lines = [line[5:] for line in lines if line.startswith(b"data:")]
        else:
            lines = [b" ".join(lines)]
        connection.close()
        found = [read(line).get("result") for line in lines]
        result = next((each for each in found if isinstance(each, dict)), {})
        for tool in result.get("tools") or []:
            known[tool.get("name")] = list(marks(tool.get("inputSchema"), ()))
        if not result.get("nextCursor"):
            return known
        params = {"_meta": meta, "cursor": result["nextCursor"]}


def marks(schema, names):
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict) and isinstance(inner.get("x-mcp-header"), str):
            yield (*names, name), inner["x-mcp-header"]
        yield from marks(inner, (*names, name))


def repeated(params, wanted):
    made = {}
    for names, header in wanted.get(params.get("name"), ()):
        value = params.get("arguments")
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, (str, int, float)):
            made["Mcp-Param-" + header] = text(str(value))
    return made


def text(value):
    """A header's value: what no header can hold is put as base64."""
    if re.fullmatch(r"[\x20-\x7e]*", value) and value == value.strip() and not value.startswith("=?base64?"):
        return value
    return "=?base64?" + base64.b64encode(value.encode()).decode() + "?="


def listen(answer, connection):
    """Carries events; the connection is kept alive by being held."""
    data = []
    for line in answer:
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data += [line[5:]] if line[5:].strip() else []
        elif not line and data:
            say(b" ".join(data).strip())
            data = []


def say(body):
    with _lock:  # line breaks between the tokens of a recorded result are not JSON-RPC's
        sys.stdout.buffer.write(body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(0)
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"scoresheet-mcp: the door is gone: {error!r}")
