"""A server that speaks MCP over stdio, reached at an address: for clients that want HTTP while it is recorded.

Each `initialize` starts the server anew, as a client that starts it itself would; requests without a session share one.
Messages are carried as they are. What the server says on the way to an answer comes before it, as events.
"""

import contextlib
import json
import queue
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from scoresheet.record.mcp import Line

Hear = Callable[[Line], None]
_SESSION = "Mcp-Session-Id"
_END_S = 3.0


class _Server:
    """One process of the recorded server."""

    def __init__(self, command: Sequence[str], channel: str, hear: Hear) -> None:
        self._channel, self._hear = channel, hear
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lock = threading.Condition()
        self._waiting: dict[str, queue.SimpleQueue[bytes | None]] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def say(self, line: bytes) -> None:
        """Hand a message to the server that gets no answer."""
        with self._lock:
            self._write(line)

    def ask(self, line: bytes, number: str) -> Iterator[bytes]:
        """What the server says until it has answered, the answer last; it may end without one."""
        heard: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        with self._lock:
            self._lock.wait_for(lambda: number not in self._waiting)  # stateless clients may have chosen one id
            self._waiting[number] = heard
            self._write(line)
        try:
            while (found := heard.get()) is not None:
                yield found
                if _answers(found, number):
                    return
        finally:
            with self._lock:
                self._waiting.pop(number, None)
                self._lock.notify_all()

    def end(self) -> None:
        """As a client ends it: nothing more to read, then a signal."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._hear(Line("client", time.monotonic() * 1000, line, self._channel))
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            text = line.strip()
            if not text:
                continue
            self._hear(Line("server", time.monotonic() * 1000, text, self._channel))
            with self._lock:
                own = self._waiting.get(_id(text)) if _method(text) is None else None
                for heard in [own] if own is not None else list(self._waiting.values())[:1]:
                    heard.put(text)
        with self._lock:
            for heard in self._waiting.values():
                heard.put(None)


class Gateway:
    """The address of a server, while it is entered."""

    def __init__(self, command: Sequence[str], hear: Hear) -> None:
        self._command, self._hear = tuple(command), hear
        self._servers: dict[str, _Server] = {}
        self._lock = threading.Lock()
        gateway = self

        class Handler(_Handler):
            owner = gateway

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}/mcp"

    def __enter__(self) -> "Gateway":
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        for session in tuple(self._servers):
            self.end(session)

    def server(self, session: str) -> _Server:
        """The server of a session, started when it is new. Raises `OSError`."""
        with self._lock:
            if session not in self._servers:
                self._servers[session] = _Server(self._command, f"session {session}", self._hear)
            return self._servers[session]

    def knows(self, session: str) -> bool:
        with self._lock:
            return not session or session in self._servers

    def end(self, session: str) -> None:
        with self._lock:
            server = self._servers.pop(session, None)
        if server is not None:
            server.end()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: Gateway

    def do_POST(self) -> None:
        line = self.rfile.read(int(self.headers.get("Content-Length") or 0)).replace(b"\r", b" ").replace(b"\n", b" ")
        session = self.headers.get(_SESSION, "")
        method, number = _method(line), _id(line)
        if method == "initialize":
            session = secrets.token_hex(16)
        elif not self.owner.knows(session):
            self._send(404, b"")
            return
        server = self.owner.server(session)
        if method is None or not number:
            server.say(line)
            self._send(202, b"")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if method == "initialize":
            self.send_header(_SESSION, session)
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for text in server.ask(line, number):
                self.wfile.write(b"event: message\ndata: " + text + b"\n\n")
                self.wfile.flush()

    def do_DELETE(self) -> None:
        self.owner.end(self.headers.get(_SESSION, ""))
        self._send(200, b"")

    def do_GET(self) -> None:
        self._send(405, b"")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what is said is recorded."""

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _answers(line: bytes, number: str) -> bool:
    return _method(line) is None and _id(line) == number


def _method(line: bytes) -> str | None:
    message = _read(line)
    return str(message["method"]) if "method" in message else None


def _id(line: bytes) -> str:
    """The id as JSON text; empty when there is none."""
    message = _read(line)
    return json.dumps(message["id"]) if "id" in message else ""


def _read(line: bytes) -> dict[str, object]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
