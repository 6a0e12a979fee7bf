"""Clients that speak HTTP/2 to the recording proxy: real ones, against a real service over TLS."""

import contextlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from scoresheet.authority import Authority
from scoresheet.record.proxy import RecordingProxy
from scoresheet.record.tunnel import Tunnels
from scoresheet.record.upstream import Upstream

LARGE = os.urandom(3 << 20)
CURL = shutil.which("curl")


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    go_on = threading.Event()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        match self.path:
            case "/events":
                self.head(200, ("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked"))
                self.chunk(b"data: 1\n\n")
                self.go_on.wait(300)
                self.chunk(b"data: 2\n\n")
                self.wfile.write(b"0\r\n\r\n")
            case "/large":
                self.head(200, ("Content-Length", str(len(LARGE))))
                with contextlib.suppress(OSError):
                    self.wfile.write(LARGE)
            case "/cut":
                self.head(200, ("Content-Length", "100"))
                self.wfile.write(b"part")
                self.close_connection = True
            case "/drop":
                self.close_connection = True
            case "/none":
                self.head(204)
            case _:
                told = {"path": self.path, "host": self.headers["host"], "cookie": self.headers["cookie"]}
                body = json.dumps(told).encode()
                self.head(200, ("Content-Length", str(len(body))), ("X-Two", "a"), ("x-two", "b"))
                if self.command != "HEAD":
                    self.wfile.write(body)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.head(201, ("Content-Length", str(len(body))))
        self.wfile.write(body)

    def head(self, status: int, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


class World:
    """The proxy before the service, and curl."""

    def __init__(self, proxy: RecordingProxy, environment: dict[str, str], port: int) -> None:
        self.proxy, self.environment, self.url = proxy, environment, f"https://localhost:{port}"

    def words(self, *more: str) -> list[str]:
        assert CURL is not None
        return [CURL, "-sS", "--http2", "--noproxy", "", "-x", self.proxy.proxy_address, "--max-time", "300", *more]

    def curl(self, *more: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(self.words(*more), capture_output=True, env=self.environment, timeout=300)

    def seen(self) -> list[tuple[str, str, int]]:
        self.proxy.settle()
        return [(each.request.method, each.request.target, each.response.status) for each in self.proxy.exchanges()]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    Service.go_on.clear()
    authority = Authority(http2=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.daemon_threads = True
    server.socket = authority.server.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    port = server.server_address[1]
    upstreams = [Upstream.parse(f"API=https://localhost:{port}")]
    trusted = ssl.create_default_context(cadata=authority.pem.decode())
    tunnels = Tunnels(upstreams, tmp_path)
    try:
        with RecordingProxy(upstreams, 30.0, tls=trusted, tunnels=tunnels) as proxy:
            yield World(proxy, {**os.environ, **tunnels.environment(proxy.proxy_address)}, port)
    finally:
        Service.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_call_over_http_2_is_recorded_as_one_over_http_1(world: World) -> None:
    done = world.curl("-i", "-b", "a=1; b=2", f"{world.url}/a%2Fb?x=1&x=+")
    assert done.stdout.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/2 200 \r\n"), done.stderr
    assert b"x-two: a\r\nx-two: b\r\n" in done.stdout
    told = json.loads(done.stdout.partition(b"\r\n\r\n")[2].partition(b"\r\n\r\n")[2])
    assert told == {"path": "/a%2Fb?x=1&x=+", "host": world.url.removeprefix("https://"), "cookie": "a=1; b=2"}
    assert world.seen() == [("GET", "/a%2Fb?x=1&x=+", 200)]
    (each,) = world.proxy.exchanges()
    assert (each.request.upstream, each.request.header("cookie")) == ("API", "a=1; b=2")
    assert ("X-Two", "a") in each.response.headers
    assert world.proxy.problems() == ()


def test_large_bodies_pass_both_ways_through_the_windows(world: World, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(LARGE)
    assert world.curl(f"{world.url}/large").stdout == LARGE
    assert world.curl("--data-binary", f"@{tmp_path / 'large'}", f"{world.url}/echo").stdout == LARGE
    down, up = world.proxy.exchanges()
    assert (down.response.body, up.request.body, up.response.body) == (LARGE, LARGE, LARGE)


def test_streams_of_one_connection_are_answered_beside_one_another(world: World) -> None:
    urls = [f"{world.url}/{n}" for n in range(12)] + [f"{world.url}/large"]
    named = [word for n, url in enumerate(urls) for word in (url, "-o", "/dev/fd/1" if n < 12 else os.devnull)]
    done = world.curl("-Z", "--parallel-immediate", *named)
    assert done.returncode == 0, done.stderr
    assert sorted(target for _, target, _ in world.seen()) == sorted([*(f"/{n}" for n in range(12)), "/large"])


def test_an_event_is_passed_on_before_the_next_one_comes_and_the_pieces_are_kept(world: World) -> None:
    with subprocess.Popen(
        world.words("-N", f"{world.url}/events"), stdout=subprocess.PIPE, env=world.environment
    ) as curl:
        assert curl.stdout is not None
        assert curl.stdout.readline() == b"data: 1\n"  # the service waits for us before it says more
        Service.go_on.set()
        assert curl.stdout.read() == b"\ndata: 2\n\n"
    assert world.seen() == [("GET", "/events", 200)]
    assert world.proxy.exchanges()[0].response.stream == (9, 18)


def test_answers_without_a_body_end_their_stream(world: World) -> None:
    assert world.curl("-o", os.devnull, "-w", "%{http_code}", f"{world.url}/none").stdout == b"204"
    assert b"HTTP/2 200" in world.curl("-I", f"{world.url}/a").stdout
    assert world.seen() == [("GET", "/none", 204), ("HEAD", "/a", 200)]


@pytest.mark.parametrize(("target", "fault"), [("/cut", "truncated"), ("/drop", "connection_reset")])
def test_a_failure_of_the_service_is_recorded_and_breaks_the_stream(world: World, target: str, fault: str) -> None:
    assert world.curl(f"{world.url}{target}").returncode != 0
    world.proxy.settle()
    assert [each.response.fault for each in world.proxy.exchanges()] == [fault]


def test_a_client_that_goes_away_leaves_the_whole_answer(world: World) -> None:
    with subprocess.Popen(
        world.words("-N", f"{world.url}/events"), stdout=subprocess.PIPE, env=world.environment
    ) as curl:
        assert curl.stdout is not None
        assert curl.stdout.readline() == b"data: 1\n"
        curl.kill()
    Service.go_on.set()
    world.proxy.settle()
    (each,) = world.proxy.exchanges()
    assert each.response.body == b"data: 1\n\ndata: 2\n\n"


def test_a_client_of_http_1_is_served_as_ever(world: World) -> None:
    done = world.curl("--http1.1", "-i", f"{world.url}/a")
    assert b"HTTP/1.1 200 OK" in done.stdout
    assert world.seen() == [("GET", "/a", 200)]


def test_what_is_no_http_2_ends_the_connection_and_nothing_else(world: World) -> None:
    context = ssl.create_default_context(cafile=world.environment["SSL_CERT_FILE"])
    context.set_alpn_protocols(["h2"])
    host, port = world.proxy.proxy_address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=300) as raw:
        raw.sendall(f"CONNECT {world.url.removeprefix('https://')} HTTP/1.1\r\n\r\n".encode())
        assert raw.recv(1000).endswith(b"\r\n\r\n")
        with context.wrap_socket(raw, server_hostname="localhost") as client:
            assert client.selected_alpn_protocol() == "h2"
            client.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
            with contextlib.suppress(OSError):
                while client.recv(1000):
                    pass
    assert b'"path"' in world.curl(f"{world.url}/a").stdout
    assert world.seen() == [("GET", "/a", 200)]
