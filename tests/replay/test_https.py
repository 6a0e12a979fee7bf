"""Public hosts over real sockets: TLS, HTTP/2, a proxy's door, and what was recorded as broken."""

import asyncio
import contextlib
import socket
import ssl
import struct

import httpx
import pytest

from scoresheet.replay.dns import NameLog
from scoresheet.replay.hosts import Hosts
from scoresheet.replay.http import Public, ReplayServer
from scoresheet.replay.journal import CallJournal, read_back
from scoresheet.replay.session import Session
from scoresheet.replay.tls import server_name
from tests.replay.recordings import call, tape
from tests.replay.test_dns import parts, question

HOST = "api.example.com"
JSON = (("content-type", "application/json"),)
DOORS = ("web-443", "web-80", "proxy", "dns-tcp")


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def server(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "asyncio":
            patch.setattr("scoresheet.replay.http._new_loop", asyncio.new_event_loop)
        made = ReplayServer()
    with made:
        yield made


class World:
    """One episode with public hosts, and the ways to it."""

    def __init__(self, server, folder, listening):
        self.server, self.path, self.listening = server, folder / "calls.jsonl", listening
        self.names = NameLog()

    @contextlib.contextmanager
    def serve(self, *calls, upstreams=None, **session):
        public = Public(Hosts.of(upstreams or {"api": HOST}), self.server.authority, self.names)
        replayed = Session(tape(*calls), **session)
        with self.server.episode(self.listening, {}, replayed, CallJournal(self.path), public=public):
            yield

    def connect(self, door):
        return socket.create_connection(self.listening[door].getsockname(), timeout=300)

    def secure(self, name=HOST, protocols=("http/1.1",)):
        context = ssl.create_default_context(cadata=self.server.authority.pem.decode())
        context.set_alpn_protocols(list(protocols))
        return context.wrap_socket(self.connect("web-443"), server_hostname=name)

    def ask(self, request, door="web-443"):
        """Everything that comes back for `request`, until the server closes."""
        with self.secure() if door == "web-443" else self.connect(door) as client:
            client.sendall(request)
            return read_all(client)

    def client(self, http2=True, proxy=False):
        """A client that takes our port for the host's, or for its proxy's."""
        context = ssl.create_default_context(cadata=self.server.authority.pem.decode())
        if proxy:
            address = "http://{}:{}".format(*self.listening["proxy"].getsockname())
            return httpx.Client(verify=context, http2=http2, proxy=address, trust_env=False)
        return httpx.Client(
            transport=Here(self.listening["web-443"].getsockname()[1], context, http2), headers={"host": HOST}
        )

    def lines(self):
        return [read_back(line) for line in self.path.read_bytes().splitlines()]


class Here(httpx.HTTPTransport):
    """Sends what is meant for the host to a port of ours, under the host's name."""

    def __init__(self, port, context, http2):
        super().__init__(verify=context, http2=http2)
        self.port = port

    def handle_request(self, request):
        request.extensions["sni_hostname"] = HOST
        request.url = request.url.copy_with(host="127.0.0.1", port=self.port)
        return super().handle_request(request)


@pytest.fixture
def world(server, tmp_path):
    with contextlib.ExitStack() as stack:
        listening = {name: stack.enter_context(socket.create_server(("127.0.0.1", 0))) for name in DOORS}
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", 0))
        yield World(server, tmp_path, listening | {"dns": datagrams})


def read_all(client):
    pieces = []
    while piece := client.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def get(path, *lines, host=HOST):
    return "\r\n".join((f"GET {path} HTTP/1.1", f"Host: {host}", *lines, "", "")).encode()


CLOSE = "Connection: close"


def test_the_authority_signs_for_the_name_that_is_asked_and_keeps_its_key(world):
    with world.serve(call("GET", "/a")), world.secure("api.example.com") as client:
        found = client.getpeercert()
        assert found["subjectAltName"] == (("DNS", "api.example.com"),)
        assert client.version() == "TLSv1.3"
    assert b"PRIVATE" not in world.server.authority.pem


def test_a_client_without_the_authority_is_written_down(world):
    with world.serve(), pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(world.connect("web-443"), server_hostname=HOST)
    assert [(each.name, each.type, each.answer) for each in world.names.records()] == [
        (HOST, "TLS", "refused_by_client")
    ]


def test_http_1_1_over_tls_keeps_the_connection_and_continues_a_waiting_body(world):
    with world.serve(call("POST", "/a", {"n": 1}, text="made"), call("GET", "/b", text="b")), world.secure() as client:
        client.sendall(
            b"POST /a HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: application/json\r\n"
            b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b'8\r\n{"n": 1}\r\n0\r\nX-Trailer: 1\r\n\r\n' + get("/b", CLOSE))
        said = read_all(client)
    assert said.count(b"HTTP/1.1 200") == 2
    assert said.endswith(b"\r\n\r\nb")
    assert [(each.path, each.outcome) for each in world.lines()] == [("/a", "hit"), ("/b", "hit")]


@pytest.mark.parametrize("http2", [True, False])
@pytest.mark.parametrize("proxy", [True, False])
def test_answers_are_the_same_by_both_protocols_and_both_ways(world, http2, proxy):
    large = "x" * 300_000
    calls = (
        call(
            "GET", "/a", text="{}", status=201, response_headers=(*JSON, ("set-cookie", "a=1"), ("set-cookie", "b=2"))
        ),
        call("HEAD", "/a", text="", response_headers=(("content-length", "99"),)),
        call("DELETE", "/a", text="", status=204),
        call("GET", "/cached", text="", status=304, response_headers=(("etag", '"1"'),)),
        call("GET", "/old", text="", status=302, response_headers=(("location", "/a"),)),
        call("GET", "/large", text=large, stream=(100, 200_000)),
    )
    with world.serve(*calls), world.client(http2, proxy) as client:
        found = client.get(f"https://{HOST}/a")
        assert (found.status_code, found.content) == (201, b"{}")
        assert found.headers.get_list("set-cookie") == ["a=1", "b=2"]
        assert found.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
        assert client.head(f"https://{HOST}/a").headers["content-length"] == "99"
        assert client.delete(f"https://{HOST}/a").status_code == 204
        assert client.get(f"https://{HOST}/cached").headers["etag"] == '"1"'
        assert client.get(f"https://{HOST}/old").status_code == 302
        assert client.get(f"https://{HOST}/large").text == large
    assert [each.status for each in world.lines()] == [201, 200, 204, 304, 302, 200]


def test_a_body_of_megabytes_comes_in_and_goes_out_by_http_2(world):
    body = "y" * 3_000_000
    headers = (("content-type", "text/plain"),)
    with world.serve(call("POST", "/a", request={"body_text": body, "headers": headers}, text=body)):
        with world.client() as client:
            found = client.post(f"https://{HOST}/a", content=body, headers=dict(headers))
    assert found.text == body


@pytest.mark.parametrize("http2", [True, False])
def test_a_body_that_is_longer_than_is_taken_is_refused_and_written_down(world, http2, monkeypatch):
    monkeypatch.setattr(f"scoresheet.replay.{'http' if http2 else 'http1'}.MAX_BODY", 100_000)
    with world.serve(call("GET", "/a")), world.client(http2) as client:
        assert client.post(f"https://{HOST}/a", content=b"x" * 150_000).status_code == 413
        assert client.get(f"https://{HOST}/a").status_code == 200
    assert [(each.outcome, each.status) for each in world.lines()] == [("malformed", 413), ("hit", 200)]


@pytest.mark.parametrize("http2", [True, False])
def test_a_call_that_was_not_recorded_is_refused_with_the_nearest_one(world, http2):
    with world.serve(call("GET", "/a", query="n=1")), world.client(http2) as client:
        found = client.get(f"https://{HOST}/a?n=2")
    assert (found.status_code, found.headers["x-should-retry"]) == (403, "false")
    assert found.json()["difference"] == ['query n: recorded "1", asked "2"']
    assert [(each.outcome, each.upstream, each.path) for each in world.lines()] == [("miss", "api", "/a?n=2")]


@pytest.mark.parametrize("http2", [True, False])
def test_another_host_on_a_connection_to_a_recorded_one_is_unrecorded(world, http2):
    with world.serve(call("GET", "/a")), world.client(http2) as client:
        assert client.get("https://x/a", headers={"host": "other.example.com"}).status_code == 403
        assert client.get("https://x/a", headers={"host": HOST}).status_code == 200
    assert [(each.outcome, each.path) for each in world.lines()] == [
        ("miss", "https://other.example.com/a"),
        ("hit", "/a"),
    ]


@pytest.mark.parametrize("http2", [True, False])
def test_calls_beyond_the_cap_are_not_answered(world, http2):
    with world.serve(call("GET", "/a"), max_tool_calls=1), world.client(http2) as client:
        assert [client.get(f"https://{HOST}/a").status_code for _ in range(2)] == [200, 403]
    assert [each.outcome for each in world.lines()] == ["hit", "capped"]


@pytest.mark.parametrize("http2", [True, False])
@pytest.mark.parametrize("fault", ["connection_reset", "truncated"])
def test_a_recorded_fault_is_replayed(world, http2, fault):
    recording = call("GET", "/a", text="half", fault=fault, response_headers=(("content-length", "8"),))
    with world.serve(recording), world.client(http2) as client:
        with pytest.raises(httpx.TransportError):
            client.get(f"https://{HOST}/a")
    assert [(each.outcome, each.status) for each in world.lines()] == [("hit", 0)]


def test_a_recorded_timeout_is_silence_for_its_time(world):
    with world.serve(call("GET", "/a", text="", fault="timeout", latency_ms_recorded=9000.0)), world.client() as client:
        with pytest.raises(httpx.ReadTimeout):
            client.get(f"https://{HOST}/a", timeout=0.2)


def test_a_websocket_is_an_unrecorded_call(world):
    with world.serve(call("GET", "/a")):
        said = world.ask(get("/a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x", CLOSE))
    assert said.startswith(b"HTTP/1.1 403")
    assert b"websockets are not replayed" in said
    assert [(each.outcome, each.path) for each in world.lines()] == [("miss", "/a")]


def test_plain_http_is_answered_at_the_hosts_own_port_and_by_the_proxy(world):
    with world.serve(call("GET", "/a", text="a")):
        assert world.ask(get("/a", CLOSE), "web-80").endswith(b"\r\n\r\na")
        assert world.ask(get(f"http://{HOST}/a", CLOSE), "proxy").endswith(b"\r\n\r\na")
        assert world.ask(get("/a", CLOSE, host="other.example"), "proxy").startswith(b"HTTP/1.1 403")


def test_a_tunnel_to_a_host_that_was_not_recorded_is_refused(world):
    with world.serve(call("GET", "/a")):
        said = world.ask(b"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n", "proxy")
    assert said.startswith(b"HTTP/1.1 403")
    assert [(each.method, each.path, each.outcome) for each in world.lines()] == [
        ("CONNECT", "other.example:443", "miss")
    ]


def test_what_a_client_sends_right_behind_its_tunnel_request_is_not_lost(world):
    with world.serve(call("GET", "/a", text="a")):
        asked = b"CONNECT api.example.com:80 HTTP/1.1\r\nHost: api.example.com:80\r\n\r\n" + get("/a", CLOSE)
        assert world.ask(asked, "proxy").endswith(b"\r\n\r\na")


def test_a_path_before_the_recorded_ones_leads_to_the_right_recordings(world):
    calls = (call("GET", "/x", text="one", upstream="one"), call("GET", "/x", text="two", upstream="two"))
    upstreams = {"one": f"{HOST}/v1", "two": f"{HOST}/v2"}
    with world.serve(*calls, upstreams=upstreams), world.client() as client:
        assert [client.get(f"https://{HOST}/v{n}/x").text for n in (1, 2)] == ["one", "two"]


def test_names_are_answered_by_datagram_and_by_stream(world):
    with world.serve():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(60)
            client.connect(world.listening["dns"].getsockname())
            client.send(question(HOST))
            assert parts(client.recv(512)) == (0x1234, 0, 1, 1)
        with world.connect("dns-tcp") as client:
            asked = question("other.example")
            client.sendall(struct.pack(">H", len(asked)) + asked)
            assert parts(client.recv(512)[2:]) == (0x1234, 3, 1, 0)
    assert [(each.name, each.count) for each in world.names.records()] == [(HOST, 1), ("other.example", 1)]


def test_bytes_that_are_no_handshake_end_the_connection(world):
    with world.serve(), world.connect("web-443") as client:
        client.sendall(b"\x16\x03\x01\x00\x05hello")
        with contextlib.suppress(ConnectionResetError):
            read_all(client)
    assert world.lines() == []


def test_a_hello_without_a_name_has_none():
    assert server_name(b"\x16\x03\x01") is None
    assert server_name(b"\x16" * 600) is None
