"""A scripted model server: OpenAI's chat completions and responses, Anthropic's messages, streaming and not.

For tests of agents without a key and without a network. Same script, same seed, same requests: the same bytes.
"""

import contextlib
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from scoresheet import __version__
from scoresheet.canonical import JsonValue
from scoresheet.model import coding, spoken
from scoresheet.model.heads import Bad
from scoresheet.model.script import Fault, Script, offered, turn_of
from scoresheet.model.wire import parts, reading

MAX_BODY = 64 << 20
_RESET = struct.pack("ii", 1, 0)


class ModelStub:
    """A context manager: a scripted model on a port of this machine, until the block ends."""

    def __init__(
        self,
        script: Script,
        seed: int = 0,
        port: int = 0,
        on_request: Callable[[dict[str, JsonValue]], None] | None = None,
    ) -> None:
        """`on_request` hears of every request: number, path, turn, what was answered, and the body."""
        self.script = script
        self.seed = seed
        self._lock = threading.Lock()
        self._failed: Counter[int] = Counter()
        self._number = 0
        self._on_request = on_request
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.stub = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        """`http://127.0.0.1:PORT`; OpenAI's base URL is that and `/v1`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def fault(self, turn: int) -> Fault | None:
        """How this request is to fail; faults are used up in their order."""
        with self._lock:
            for place, fault in enumerate(self.script.faults):
                if fault.turn in (None, turn) and (fault.times is None or self._failed[place] < fault.times):
                    self._failed[place] += 1
                    return fault
        return None

    def tell(self, path: str, turn: int | None, answer: str, body: JsonValue) -> None:
        """Tell whoever listens."""
        with self._lock:
            self._number += 1
            if self._on_request is not None:
                told = {"number": self._number, "path": path, "turn": turn, "answer": answer, "body": body}
                self._on_request(told)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    stub: ModelStub

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = f"scoresheet-model-stub/{__version__}"
    sys_version = ""
    timeout = 60
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        stub = self._stub
        raw = self._body()
        if raw is None:
            return
        try:
            raw = coding.unpacked((self.headers.get("content-encoding") or "identity").strip().lower(), raw)
        except Bad as bad:
            stub.tell(self.path, None, str(bad.status), None)
            self._json(bad.status, spoken.error("", bad.status, bad.why))
            return
        path = self.path.partition("?")[0]
        if path.endswith("/messages/count_tokens"):
            stub.tell(self.path, None, "200", None)
            self._json(200, {"input_tokens": max(len(raw) // 4, 1)})
            return
        dialect, value = reading.dialect_of(path), parts.parsed(raw)
        if dialect is None or not isinstance(value, dict):
            status = 404 if dialect is None else 400
            stub.tell(self.path, None, str(status), None)
            self._json(status, spoken.error(dialect or "", status, "nothing is spoken here that this could be"))
            return
        turn = turn_of(dialect, value)
        fault = stub.fault(turn)
        said = stub.script.says(dialect, value, stub.seed)
        model = said.model or stub.script.model or parts.text(value.get("model")) or "stub"
        saying = spoken.Saying(said, turn, model, stub.script.usage, offered(dialect, value))
        stub.tell(self.path, turn, fault.kind if fault else "200", value)
        if fault is not None:
            self._fail(fault, dialect, saying)
        elif value.get("stream") is True:
            usage = parts.obj(value.get("stream_options")).get("include_usage") is True
            self._stream(spoken.stream(dialect, saying, usage))
        else:
            self._json(200, spoken.body(dialect, saying))

    def do_HEAD(self) -> None:
        self._stub.tell(self.path, None, "200", None)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if self.headers.get("upgrade"):
            self._stub.tell(self.path, None, "426", None)
            self._json(426, spoken.error("", 426, "nothing but HTTP is spoken here"))
            return
        if path.endswith("/models"):
            name = self._stub.script.model or "stub-model"
            listed = {"id": name, "object": "model", "created": spoken.CREATED, "owned_by": "stub"}
            self._stub.tell(self.path, None, "200", None)
            self._json(200, {"object": "list", "data": [listed]})
            return
        self._stub.tell(self.path, None, "404", None)
        self._json(404, spoken.error("", 404, "not found"))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: `on_request` tells it."""

    @property
    def _stub(self) -> ModelStub:
        assert isinstance(self.server, _Server)
        return self.server.stub

    def _body(self) -> bytes | None:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline(128).split(b";")[0], 16):
                if len(body) + size > MAX_BODY:
                    break
                body += self.rfile.read(size)
                self.rfile.readline(128)
            else:
                while self.rfile.readline(65536).strip():
                    pass
                return body
        else:
            length = self.headers.get("content-length", "0")
            if length.isascii() and length.isdigit() and int(length) <= MAX_BODY:
                return self.rfile.read(int(length))
        self.close_connection = True
        self._json(413, spoken.error("", 413, "too large, or of no length"))
        return None

    def _json(self, status: int, value: JsonValue, headers: tuple[tuple[str, str], ...] = ()) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, told in (
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("request-id", "req_stub"),
            ("x-request-id", "req_stub"),
            *headers,
        ):
            self.send_header(name, told)
        self.end_headers()
        self.wfile.write(body)

    def _stream_head(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("request-id", "req_stub")
        self.send_header("x-request-id", "req_stub")
        self.end_headers()

    def _stream(self, events: Iterator[bytes]) -> None:
        self._stream_head()
        for event in events:
            self._chunk(event)
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        if self._stub.script.delay_ms:
            time.sleep(self._stub.script.delay_ms / 1000)
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _fail(self, fault: Fault, dialect: str, saying: spoken.Saying) -> None:
        match fault.kind:
            case "status":
                self._json(fault.status, spoken.error(dialect, fault.status, fault.message), fault.headers)
                return
            case "drop":
                self._reset()
            case "hang":
                self.connection.settimeout(fault.seconds)
                with contextlib.suppress(OSError):  # until the client goes away, or the time is over
                    self.connection.recv(1)
            case "cut" | "error_event":
                self._stream_head()
                events = spoken.stream(dialect, saying)
                self._chunk(next(events))
                self._chunk(next(events))
                if fault.kind == "error_event":
                    self._chunk(spoken.error_event(dialect, fault.message))
                    self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.close_connection = True
