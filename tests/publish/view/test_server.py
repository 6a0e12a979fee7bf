"""The server alone, asked through sockets as browsers, other sites and worse would ask."""

import contextlib
import re
import socket
import threading

import pytest

from scoresheet.errors import Usage
from scoresheet.publish.view.server import HEADERS, Server
from scoresheet.publish.view.site import Answer

POLICY = "default-src 'none'"


def site(target):
    if target == "bug":
        raise KeyError("secret text of an error")
    return Answer(200, iter(["<p>", "ä", target, "</p>"]))


@pytest.fixture
def server():
    with Server(site, POLICY) as found:
        yield found


def ask(server, data):
    """What comes back for these bytes, until the server has closed; it may, before it has read all of them."""
    found = b""
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection,
        contextlib.suppress(ConnectionResetError, BrokenPipeError),
    ):
        connection.sendall(data)
        while piece := connection.recv(1 << 16):
            found += piece
    return found


def path(server):
    return "/" + server.url.split("/", 3)[3]


def get(server, target="", method="GET", host=None, headers=(), whole=None):
    lines = [
        f"{method} {whole or path(server) + target} HTTP/1.1",
        f"Host: {host or f'127.0.0.1:{server.port}'}",
        *headers,
    ]
    head, _, body = ask(server, "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")).partition(b"\r\n\r\n")
    status, *fields = head.decode().split("\r\n")
    return int(status.split()[1]), dict(field.split(": ", 1) for field in fields), body.decode()


def test_a_page_is_given_with_headers_that_keep_it_to_itself(server):
    status, headers, body = get(server, "run/r1?a=b")
    assert (status, body) == (200, "<p>ärun/r1?a=b</p>")
    assert dict(HEADERS).items() <= headers.items()
    assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Content-Length"] == str(len(body.encode()))


def test_head_gives_the_head_alone(server):
    status, headers, body = get(server, method="HEAD")
    assert (status, body) == (200, "")
    assert headers["Content-Length"] == str(len("<p>ä</p>".encode()))


def test_it_listens_on_loopback_alone(server):
    assert server.url.startswith(f"http://127.0.0.1:{server.port}/")
    assert server._http.socket.getsockname()[0] == "127.0.0.1"
    assert re.fullmatch(r"/[A-Za-z0-9_-]{32}/", path(server))


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", "0.0.0.0:{port}"]
)
def test_a_name_of_somebody_else_is_refused(server, host):
    status, headers, body = get(server, host=host.format(port=server.port))
    assert (status, body) == (403, "this site answers to its own address only\n")
    assert dict(HEADERS).items() <= headers.items()


def test_localhost_is_its_name_too(server):
    assert get(server, host=f"LocalHost:{server.port}")[0] == 200


def test_one_host_must_be_named(server):
    target = path(server).encode()
    ours = f"Host: 127.0.0.1:{server.port}\r\n".encode()
    for head in (b"", ours + ours, ours + b"Host: evil.example\r\n"):
        assert ask(server, b"GET " + target + b" HTTP/1.1\r\n" + head + b"\r\n").startswith(b"HTTP/1.0 403 ")
    assert b"<p>" not in ask(server, b"GET " + target + b"\r\n\r\n")  # HTTP/0.9 knows none


@pytest.mark.parametrize("site_", ["cross-site", "same-site"])
def test_pages_of_other_sites_may_not_ask(server, site_):
    assert get(server, headers=[f"Sec-Fetch-Site: {site_}"])[0] == 403
    assert get(server, headers=["Sec-Fetch-Site: same-origin"])[0] == 200


@pytest.mark.parametrize("whole", ["/", "/x/", "/../", "//", "*", "http://127.0.0.1/", "/\udcff", "/" + "A" * 32 + "/"])
def test_without_the_secret_there_is_nothing(server, whole):
    status, _, body = get(server, whole=whole)
    assert status == 404
    assert path(server).strip("/") not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_nothing_can_be_written(server, method):
    status, headers, _ = get(server, method=method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 500 + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"b" * 100_000 + b"\r\n\r\n",
        b"GET <script>alert(1)</script>\x1b[2J HTTP/1.1 x\r\n\r\n",
    ],
)
def test_a_request_that_is_none_is_refused_without_an_echo(server, data):
    answer = ask(server, data)
    assert b"script" not in answer
    assert b"\x1b" not in answer
    assert b"200 OK" not in answer
    assert get(server)[0] == 200


def test_a_bug_says_nothing_to_the_browser(server, capfd):
    status, _, body = get(server, "bug")
    assert (status, body) == (500, "a bug in scoresheet: its terminal says more\n")


def test_a_connection_that_says_nothing_holds_nobody_up(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=60):
        assert get(server)[0] == 200


def test_many_ask_at_once(server):
    found = []
    threads = [threading.Thread(target=lambda: found.append(get(server)[0])) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [200] * 32


def test_a_taken_port_is_told(server):
    with pytest.raises(Usage, match=f"can't listen on port {server.port}"):
        Server(site, POLICY, server.port)


def test_every_server_has_a_secret_of_its_own(server):
    with Server(site, POLICY) as other:
        assert path(other) != path(server)
        assert get(server, whole=path(other))[0] == 404
