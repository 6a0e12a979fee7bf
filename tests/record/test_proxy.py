import gzip
import os
import socket
import ssl
import subprocess
import threading
import time

import pytest

from scoresheet.record.proxy import RecordingProxy
from scoresheet.record.upstream import Upstream
from tests.record.scripted import exchange, read_message, scripted

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def proxied(service, timeout_s=5.0, base=""):
    return RecordingProxy([Upstream.parse(f"API={service.address}{base}")], timeout_s)


def get(target=b"/", more=b""):
    return b"GET " + target + b" HTTP/1.1\r\nHost: given\r\nConnection: close\r\n" + more + b"\r\n"


def test_the_service_gets_path_query_and_headers_as_they_were_sent():
    sent = (
        b"GET /a%2fb/../c;x=1//%41?z=1&a=+%20&flag&z=0 HTTP/1.1\r\nX-Two: b\r\nhOsT: given\r\nx-two: A\r\n"
        b"Connection: close\r\n\r\n"
    )
    with scripted(OK) as service, proxied(service) as proxy:
        assert exchange(proxy.addresses["API"], sent).endswith(b"ok")
        (seen,) = proxy.exchanges()
    assert seen.request.target == "/a%2fb/../c;x=1//%41?z=1&a=+%20&flag&z=0"
    assert seen.request.headers[:3] == (("X-Two", "b"), ("hOsT", "given"), ("x-two", "A"))
    host = f"hOsT: 127.0.0.1:{service.port}".encode()
    assert service.requests == [
        b"GET /a%2fb/../c;x=1//%41?z=1&a=+%20&flag&z=0 HTTP/1.1\r\nX-Two: b\r\n" + host + b"\r\nx-two: A\r\n"
        b"Connection: close\r\n\r\n"
    ]


def test_the_client_gets_headers_in_order_with_their_case_and_repetitions():
    answer = (
        b"HTTP/1.1 203 Quite Fine\r\nx-B: 1\r\nSet-Cookie: a=1\r\nX-A: 2\r\nset-cookie: b=2\r\n"
        b"Content-Length: 3\r\n\r\n\x00\xff\n"
    )
    with scripted(answer) as service, proxied(service) as proxy:
        got = exchange(proxy.addresses["API"], get())
        (seen,) = proxy.exchanges()
    assert got == answer.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert seen.response.status == 203
    assert seen.response.body == b"\x00\xff\n"
    names = ["x-B", "Set-Cookie", "X-A", "set-cookie", "Content-Length"]
    assert [name for name, _ in seen.response.headers] == names


def test_compressed_bodies_pass_untouched_both_ways():
    packed = gzip.compress(b"hello" * 100, mtime=1)
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed
    with scripted(answer) as service, proxied(service) as proxy:
        head = (
            b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
        )
        got = exchange(proxy.addresses["API"], head % len(packed) + packed)
        (seen,) = proxy.exchanges()
    assert got.endswith(packed)
    assert service.requests[0].endswith(packed)
    assert seen.request.body == seen.response.body == packed


def test_codings_that_cannot_be_searched_are_not_asked_for():
    with scripted(OK) as service, proxied(service) as proxy:
        exchange(proxy.addresses["API"], get(more=b"Accept-Encoding: br, gzip;q=0.5, zstd\r\n"))
        (seen,) = proxy.exchanges()
    assert b"Accept-Encoding: gzip;q=0.5\r\n" in service.requests[0]
    assert seen.request.header("accept-encoding") == "br, gzip;q=0.5, zstd"


def test_chunk_boundaries_are_kept():
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n6;x=1\r\nefghij\r\n0\r\nT: 1\r\n\r\n"
    with scripted(answer) as service, proxied(service) as proxy:
        got = exchange(proxy.addresses["API"], get())
        (seen,) = proxy.exchanges()
    assert got.endswith(b"4\r\nabcd\r\n6\r\nefghij\r\n0\r\n\r\n")
    assert seen.response.body == b"abcdefghij"
    assert seen.response.stream == (4, 10)
    assert seen.response.headers == ()


def test_a_stream_is_passed_on_while_it_comes():
    go = threading.Event()

    def react(request):
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n"
        assert go.wait(120)
        yield b"data: 2\n\n"

    with scripted(react=react) as service, proxied(service) as proxy:
        with socket.create_connection(("127.0.0.1", int(proxy.addresses["API"].rpartition(":")[2])), 5) as client:
            client.sendall(get())
            first = b""
            while b"data: 1" not in first:
                first += client.recv(1000)
            go.set()
            rest = b""
            while data := client.recv(1000):
                rest += data
        proxy.settle()
        (seen,) = proxy.exchanges()
    assert b"data: 2" in rest
    assert seen.response.body == b"data: 1\n\ndata: 2\n\n"
    assert seen.response.stream == (9, 18)
    assert seen.response.fault is None


@pytest.mark.parametrize(
    ("method", "answer", "length"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", "1234"),
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", "4"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", "99"),
        (b"DELETE", b"HTTP/1.1 204 No Content\r\n\r\n", ""),
    ],
)
def test_answers_without_a_body_do_not_wait_for_one(method, answer, length):
    def react(request):
        return answer, 3.0

    with scripted(react=react) as service, proxied(service, timeout_s=20) as proxy:
        started = time.monotonic()
        got = exchange(proxy.addresses["API"], get().replace(b"GET", method))
        (seen,) = proxy.exchanges()
        assert time.monotonic() - started < 2.9
    head = answer.partition(b"\r\n\r\n")[0] + b"\r\n"
    assert got in (head + b"Connection: close\r\n\r\n", head + b"\r\n")
    assert seen.response.body == b""
    assert seen.response.fault is None
    assert dict(seen.response.headers).get("Content-Length", "") == length


def test_one_connection_carries_many_requests_and_their_order_is_kept():
    def react(request):
        body = request.split(b" ")[1]
        return (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body,)

    requests = b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % n for n in range(5))
    with scripted(react=react) as service, proxied(service) as proxy:
        got = exchange(proxy.addresses["API"], requests + get(b"/last"))
        seen = proxy.exchanges()
    assert [each.request.target for each in seen] == ["/0", "/1", "/2", "/3", "/4", "/last"]
    assert got.count(b"200 OK") == 6


def test_chunked_requests_reach_the_service_whole():
    head = b"PUT /up HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    sent = head + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    with scripted(OK) as service, proxied(service) as proxy:
        assert exchange(proxy.addresses["API"], sent).endswith(b"ok")
        (seen,) = proxy.exchanges()
    assert seen.request.body == b"abcde"
    assert service.requests[0].endswith(b"\r\n\r\n5\r\nabcde\r\n0\r\n\r\n")


def test_a_client_that_waits_for_100_continue_gets_it():
    with scripted(b"HTTP/1.1 100 Continue\r\n\r\n" + OK) as service, proxied(service) as proxy:
        with socket.create_connection(("127.0.0.1", int(proxy.addresses["API"].rpartition(":")[2])), 5) as client:
            client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            client.sendall(b"hi")
            got = b""
            while not got.endswith(b"ok"):
                got += client.recv(1000)
            assert got.startswith(b"HTTP/1.1 200 OK")
        proxy.settle()
        (seen,) = proxy.exchanges()
    assert seen.request.body == b"hi"
    assert seen.response.status == 200


def test_a_large_body_passes_whole():
    body = os.urandom(3 << 20)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with scripted(answer) as service, proxied(service) as proxy:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        assert exchange(proxy.addresses["API"], head + body).endswith(body)
        (seen,) = proxy.exchanges()
    assert seen.request.body == seen.response.body == body


def test_the_path_of_the_upstream_goes_before_every_path_and_is_not_recorded():
    with scripted(OK) as service, proxied(service, base="/v1/") as proxy:
        exchange(proxy.addresses["API"], get(b"/orders"))
        (seen,) = proxy.exchanges()
    assert service.requests[0].startswith(b"GET /v1/orders HTTP/1.1\r\n")
    assert seen.request.target == "/orders"


def test_a_service_that_refuses_is_recorded_as_a_reset_and_the_client_sees_one():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with RecordingProxy([Upstream.parse(f"API=http://127.0.0.1:{port}")]) as proxy:
        with pytest.raises(ConnectionResetError):
            exchange(proxy.addresses["API"], get())
        proxy.settle()
        (seen,) = proxy.exchanges()
    assert (seen.response.fault, seen.response.status) == ("connection_reset", 0)


@pytest.mark.parametrize(
    "steps", [("reset",), (b"HTTP/1.1 200 OK\r\nConte", "reset"), (b"",), (b"not HTTP at all\r\n\r\n",)]
)
def test_a_service_that_fails_before_its_headers_are_whole_is_a_reset(steps):
    with scripted(*steps) as service, proxied(service) as proxy:
        with pytest.raises(ConnectionResetError):
            exchange(proxy.addresses["API"], get())
        proxy.settle()
        (seen,) = proxy.exchanges()
    assert seen.response.fault == "connection_reset"


def test_a_silent_service_is_a_timeout_with_its_latency():
    with scripted(0.6) as service, proxied(service, timeout_s=0.3) as proxy:
        assert exchange(proxy.addresses["API"], get()) == b""
        (seen,) = proxy.exchanges()
    assert seen.response.fault == "timeout"
    assert 250 < seen.response.latency_ms < 2000


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n"],
)
@pytest.mark.parametrize("end", ["close", "reset", 0.6])
def test_a_body_cut_short_is_truncated_and_keeps_what_came(head, end):
    steps = (head + b"abcd", 0.05, *(() if end == "close" else (end,)))
    with scripted(*steps) as service, proxied(service, timeout_s=0.3) as proxy:
        got = exchange(proxy.addresses["API"], get())
        (seen,) = proxy.exchanges()
    assert seen.response.fault == "truncated"
    assert seen.response.body == b"abcd"
    assert got.rstrip(b"\r\n").endswith(b"abcd")
    assert not got.endswith(b"0\r\n\r\n")


def test_a_client_that_goes_away_leaves_the_whole_answer_and_a_warning():
    with scripted(b"HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n", b"x" * 4_000_000) as service:
        with proxied(service) as proxy:
            client = socket.create_connection(("127.0.0.1", int(proxy.addresses["API"].rpartition(":")[2])))
            client.sendall(get())
            client.recv(10)
            client.close()
            proxy.settle()
            (seen,) = proxy.exchanges()
            problems = proxy.problems()
    assert len(seen.response.body) == 4_000_000
    assert [problem.rule for problem in problems] == ["record-client-gone"]


def test_redirects_are_not_followed_and_an_own_address_is_told_once():
    def react(request):
        location = b"http://127.0.0.1:%d/there" % service.port
        return (b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n",)

    with scripted(react=react) as service, proxied(service) as proxy:
        for _ in range(2):
            assert b"Location: " + service.address.encode() + b"/there" in exchange(proxy.addresses["API"], get())
        problems = proxy.problems()
    assert len(service.requests) == 2
    assert [problem.rule for problem in problems] == ["record-absolute-url"]


def test_an_upgrade_is_refused_and_reported():
    with scripted(OK) as service, proxied(service) as proxy:
        got = exchange(proxy.addresses["API"], get(more=b"Upgrade: websocket\r\n").replace(b"close", b"Upgrade"))
        problems = proxy.problems()
        assert proxy.exchanges() == ()
    assert got.startswith(b"HTTP/1.1 501 ")
    assert [problem.severity for problem in problems] == ["error"]
    assert service.requests == []


def test_an_offer_of_http_2_is_declined_and_the_request_taken():
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    sent = b"POST /a HTTP/1.1\r\nHost: x\r\n" + offer + b"Content-Length: 3\r\n\r\nabc"
    with scripted(OK) as service, proxied(service) as proxy:
        with socket.create_connection(("127.0.0.1", int(proxy.addresses["API"].rpartition(":")[2])), 5) as client:
            client.sendall(sent + get(b"/b"))
            got = b""
            while data := client.recv(1000):
                got += data
            assert got.count(b"\r\n\r\nok") == 2
        proxy.settle()
        assert [seen.request.target for seen in proxy.exchanges()] == ["/a", "/b"]
        assert proxy.exchanges()[0].request.body == b"abc"
    assert b"pgrade" not in service.requests[0]


@pytest.mark.parametrize(
    ("sent", "target"), [(b"http://api.example.com/a?b=1", "/a?b=1"), (b"HTTP://x?q", "/?q"), (b"http://x", "/")]
)
def test_the_absolute_form_is_recorded_as_path_and_query(sent, target):
    with scripted(OK) as service, proxied(service) as proxy:
        assert exchange(proxy.addresses["API"], get(sent)).endswith(b"ok")
        assert [seen.request.target for seen in proxy.exchanges()] == [target]
    assert service.requests[0].startswith(b"GET " + target.encode() + b" HTTP/1.1\r\n")


def test_a_certificate_that_is_not_trusted_is_an_error_not_a_recording(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    command = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *names)
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(connection, server_side=True) as secure:
                    read_message(secure)
                    secure.sendall(OK)
            except OSError:
                connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    upstream = Upstream.parse(f"API=https://localhost:{listener.getsockname()[1]}")
    try:
        with RecordingProxy([upstream]) as proxy:
            with pytest.raises(ConnectionResetError):
                exchange(proxy.addresses["API"], get())
            proxy.settle()
            assert [problem.rule for problem in proxy.problems()] == ["record-tls"]
        with RecordingProxy([upstream], tls=ssl.create_default_context(cafile=str(certificate))) as proxy:
            assert exchange(proxy.addresses["API"], get()).endswith(b"ok")
            assert [seen.response.status for seen in proxy.exchanges()] == [200]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@pytest.mark.parametrize("media", ["application/x-ndjson", "application/jsonl; charset=utf-8", "text/event-stream"])
def test_the_pieces_of_a_stream_that_is_not_chunked_are_kept_too(media):
    """A server may end a stream by closing; what came together was sent together."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\n".encode()
    go_on = threading.Event()

    def pieces():
        yield head + b'{"n": 1}\n'
        assert go_on.wait(300)
        yield b'{"n": 2}\n'

    with scripted(react=lambda _: pieces()) as service, proxied(service) as proxy:
        host, port = proxy.addresses["API"].removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=300) as client:
            client.sendall(get())
            got = b""
            while not got.endswith(b"1}\n"):
                got += client.recv(1000)
            go_on.set()
            while data := client.recv(1000):
                got += data
        proxy.settle()
        (seen,) = proxy.exchanges()
    assert seen.response.body == b'{"n": 1}\n{"n": 2}\n'
    assert seen.response.stream == (9, 18)


def test_the_chunks_of_ndjson_are_kept():
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    with scripted(head + b'9\r\n{"n": 1}\n\r\n9\r\n{"n": 2}\n\r\n0\r\n\r\n') as service, proxied(service) as proxy:
        exchange(proxy.addresses["API"], get())
        (seen,) = proxy.exchanges()
    assert seen.response.stream == (9, 18)


def test_a_body_that_came_with_its_length_has_no_pieces():
    """It is replayed with its length: a download of lines stays one."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: 18\r\n\r\n"
    with scripted(head + b'{"n": 1}\n', 0.2, b'{"n": 2}\n') as service, proxied(service) as proxy:
        exchange(proxy.addresses["API"], get())
        (seen,) = proxy.exchanges()
    assert (seen.response.body, seen.response.stream) == (b'{"n": 1}\n{"n": 2}\n', ())
