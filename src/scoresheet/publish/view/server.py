"""A site for one person at this machine: loopback only, GET only, under a path that nobody else can guess.

A page of another site can make a browser ask us, also by a name of its own that it points to 127.0.0.1. So the Host
must be this address; the path holds a secret; no answer may be framed, sniffed, kept, or read from elsewhere.
"""

import hmac
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from scoresheet.errors import Usage
from scoresheet.publish.view.site import Answer

LOOPBACK = "127.0.0.1"
_IDLE_S = 30
_AT_ONCE = 4
"""Pages that are made at the same time."""
HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


class Server:
    """A site that is served until it is closed. Raises `Usage` when the port can't be had."""

    def __init__(self, site: Callable[[str], Answer], policy: str, port: int = 0) -> None:
        token = secrets.token_urlsafe(24)
        try:
            self._http = _Http(site, policy, token, port)
        except (OSError, OverflowError) as error:
            raise Usage(f"can't listen on port {port}: {error}", "--port", "give another --port, or none") from error
        self.port = int(self._http.server_address[1])
        self.url = f"http://{LOOPBACK}:{self.port}/{token}/"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # an idle browser would hold us up
    allow_reuse_address = True

    def __init__(self, site: Callable[[str], Answer], policy: str, token: str, port: int) -> None:
        self.site, self.token = site, token
        self.headers = (*HEADERS, ("Content-Security-Policy", f"{policy}; frame-ancestors 'none'"))
        self.at_once = threading.BoundedSemaphore(_AT_ONCE)
        super().__init__((LOOPBACK, port), _Handler)

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)  # without the look-up of our own name that http.server makes
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # a browser that went away is no error
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    timeout = _IDLE_S

    def handle_one_request(self) -> None:
        super().handle_one_request()
        self.close_connection = True

    def do_GET(self) -> None:
        """Answer with a page."""
        if not self._may():
            self._say(HTTPStatus.FORBIDDEN, "this site answers to its own address only")
            return
        prefix = f"/{self.server.token}/"
        given = self.path[: len(prefix)]
        if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), prefix.encode()):
            self._say(HTTPStatus.NOT_FOUND, "there is nothing here: use the whole address that was printed")
            return
        try:
            with self.server.at_once:
                found = self.server.site(self.path[len(prefix) :])
                body = "".join(found.pieces).encode()
        except Exception as error:
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, "a bug in scoresheet: its terminal says more")
            raise RuntimeError("a page could not be made") from error
        self._give(found.status, "text/html; charset=utf-8", body)

    do_HEAD = do_GET

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that is none, or asks for more than to read."""
        if code == HTTPStatus.NOT_IMPLEMENTED and self.command:
            self._say(HTTPStatus.METHOD_NOT_ALLOWED, "this site can only be read", (("Allow", "GET, HEAD"),))
        else:
            self._say(HTTPStatus(code), "not a request that is answered here")

    def version_string(self) -> str:
        """Who answers, without a version."""
        return "scoresheet"

    def log_message(self, *_: object) -> None:
        """Nothing: the address is a secret, and what is asked is anybody's text."""

    def _may(self) -> bool:
        """True when the one Host is ours, and no page of another site asks."""
        hosts = self.headers.get_all("Host") or []
        ours = (f"{LOOPBACK}:{self.server.server_port}", f"localhost:{self.server.server_port}")
        asked_by = self.headers.get("Sec-Fetch-Site", "none")
        return len(hosts) == 1 and hosts[0].strip().lower() in ours and asked_by in ("none", "same-origin")

    def _say(self, status: HTTPStatus, text: str, more: tuple[tuple[str, str], ...] = ()) -> None:
        self._give(status, "text/plain; charset=utf-8", f"{text}\n".encode(), more)

    def _give(self, status: int, kind: str, body: bytes, more: tuple[tuple[str, str], ...] = ()) -> None:
        self.close_connection = True
        self.send_response(status)
        for name, value in (*self.server.headers, *more, ("Content-Type", kind), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
