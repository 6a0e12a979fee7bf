"""The library service that the recordings of this folder were made from: the same answers, always.

`run()` serves it on a free port of loopback; the make_*.py beside it record it with other people's tools.
"""

import contextlib
import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TITLES = ("Dune", "Emma", "Ulysses", "Der Prozeß", "紅樓夢", "Solaris", "Kim", "Middlemarch")
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000" + "1f15c4890000000d49444154789c6360f8cf50"
    "0f0003860180" + "5a34467b0000000049454e44ae426082"
)


class Library(BaseHTTPRequestHandler):
    """Books, loans and a job that takes three looks."""

    protocol_version = "HTTP/1.1"
    looks = 0
    loans = 0

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        parts = path.strip("/").split("/")
        match parts:
            case ["books"]:
                page = int(dict(pair.split("=") for pair in query.split("&") if "=" in pair).get("page", "1"))
                self.json({"page": page, "books": [self.book(page * 10 + n) for n in range(3)]})
            case ["books", number] if number.isdigit() and int(number) < 500:
                self.json(self.book(int(number)), pack=int(number) % 3 == 0)
            case ["cover"]:
                self.answer(200, PIXEL, "image/png")
            case ["jobs", _]:
                type(self).looks += 1
                self.json({"state": ("queued", "running", "done")[min(self.looks, 3) - 1]})
            case ["old"]:
                self.answer(302, b"", "text/plain", [("Location", "/books/1")])
            case ["events"]:
                self.chunks([b'data: {"n": 1}\n\n', b'data: {"n": 2}\n\n', b"data: [DONE]\n\n"])
            case ["latin"]:
                self.answer(200, "Der Prozeß; Kafka\n".encode("latin-1"), "text/csv; charset=iso-8859-1")
            case ["twice"]:
                self.json({"ok": True}, more=[("Set-Cookie", "lang=de"), ("Set-Cookie", "theme=dark"), ("X-Part", "a")])
            case _:
                self.json({"error": "no such thing"}, 404)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "123")
        self.end_headers()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == "/loans":
            type(self).loans += 1
            self.json({"loan": self.loans, "asked": json.loads(body)["book"]}, 201)
        else:
            self.json({"bytes": len(body), "type": self.headers.get("Content-Type", "").partition(";")[0]})

    def do_PUT(self) -> None:
        self.do_POST()

    def do_DELETE(self) -> None:
        self.send_response(204)
        self.end_headers()

    def book(self, number: int) -> dict[str, Any]:
        return {
            "id": number,
            "title": TITLES[number % len(TITLES)],
            "price": number + 0.5,
            "isbn": 9780000000000 + number,
        }

    def json(
        self, value: Any, status: int = 200, pack: bool = False, more: list[tuple[str, str]] | None = None
    ) -> None:
        body = json.dumps(value, ensure_ascii=False).encode()
        headers = list(more or ())
        if pack and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, mtime=0)
            headers.append(("Content-Encoding", "gzip"))
        self.answer(status, body, "application/json", headers)

    def answer(self, status: int, body: bytes, kind: str, headers: list[tuple[str, str]] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers or ():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def chunks(self, parts: list[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in parts:
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")


@contextlib.contextmanager
def run() -> Iterator[str]:
    """Serve while the block runs; gives `http://127.0.0.1:PORT`."""
    Library.looks = Library.loans = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Library)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def work(base: str, session: Any, books: int, token: str = "tok-example-6d5e4f3a2b1c0d9e") -> None:
    """What the recorded client does, with a `requests` session: 19 calls and one for every book."""
    session.headers["Authorization"] = f"Bearer {token}"
    for number in range(1, books + 1):
        session.get(f"{base}/books/{number}")
    for page in (1, 2):
        session.get(f"{base}/books?page={page}&sort=title&q=Der%20Proze%C3%9F")
    for _ in range(4):
        session.get(f"{base}/jobs/7")
    session.get(f"{base}/cover")
    session.get(f"{base}/old")
    session.get(f"{base}/events")
    session.get(f"{base}/latin")
    session.get(f"{base}/twice")
    session.get(f"{base}/nothing/here")
    session.head(f"{base}/books/1")
    session.delete(f"{base}/books/3")
    session.post(f"{base}/loans", json={"book": 12, "who": "Zoë", "request_id": "0f8fad5b-d9cb-469f-a165-70867728950e"})
    session.post(f"{base}/loans", json={"book": 12, "who": "Zoë", "request_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7"})
    session.post(f"{base}/search", data={"q": "größe & mehr", "n": "3"})
    session.post(f"{base}/upload?kind=multi", files={"cover": ("pixel.png", PIXEL, "image/png")}, data={"note": "ü"})
    session.put(f"{base}/raw", data=bytes(range(256)), headers={"Content-Type": "application/octet-stream"})
