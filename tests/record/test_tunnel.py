"""Recording a command that calls the real https address: the proxy opens what goes to a service, and nothing else."""

import contextlib
import http.client
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scoresheet.authority import Authority
from scoresheet.cli.app import run
from scoresheet.record.proxy import RecordingProxy
from scoresheet.record.tunnel import Tunnels
from scoresheet.record.upstream import Upstream


class Items(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        pass

    def do_GET(self):
        body = json.dumps({"path": self.path, "host": self.headers["host"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.do_GET()


@contextlib.contextmanager
def service():
    """(port, certificate of its authority) of an https service at `localhost`."""
    authority = Authority(http2=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Items)
    server.daemon_threads = True
    server.socket = authority.server.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], authority.pem
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def proxied(folder, upstreams, pem):
    trusted = ssl.create_default_context(cadata=pem.decode())
    tunnels = Tunnels([Upstream.parse(each) for each in upstreams], folder)
    parsed = [Upstream.parse(each) for each in upstreams]
    with RecordingProxy(parsed, 5.0, tls=trusted, tunnels=tunnels) as proxy:
        yield proxy, tunnels.environment(proxy.proxy_address)


def through(proxy, context, port, host="localhost"):
    """A connection to the service by the proxy."""
    address = proxy.proxy_address.removeprefix("http://").split(":")
    client = http.client.HTTPSConnection(address[0], int(address[1]), context=context, timeout=300)
    client.set_tunnel(host, port)
    return client


def get(client, path):
    client.request("GET", path)
    return json.loads(client.getresponse().read())


def test_a_call_to_the_real_address_is_recorded_as_one_to_the_service(tmp_path):
    with service() as (port, pem), proxied(tmp_path, [f"API=https://localhost:{port}/v1"], pem) as (proxy, environment):
        context = ssl.create_default_context(cafile=environment["SSL_CERT_FILE"])
        with contextlib.closing(through(proxy, context, port)) as client:
            assert [get(client, "/v1/a?b=1")["path"], get(client, "/v1/c")["path"]] == ["/v1/a?b=1", "/v1/c"]
        assert environment["HTTPS_PROXY"] == environment["https_proxy"] == proxy.proxy_address
        proxy.settle()
    found = [(each.request.upstream, each.request.target, each.response.status) for each in proxy.exchanges()]
    assert found == [("API", "/a?b=1", 200), ("API", "/c", 200)]
    assert proxy.problems() == ()


def test_what_goes_elsewhere_is_passed_on_unopened_and_named(tmp_path):
    with service() as (port, pem), proxied(tmp_path, ["API=https://api.example.com"], pem) as (proxy, _):
        trusting_the_service = ssl.create_default_context(cadata=pem.decode())
        with contextlib.closing(through(proxy, trusting_the_service, port)) as client:
            assert get(client, "/a")["path"] == "/a"
    assert proxy.exchanges() == ()
    assert [(each.rule, each.where, each.severity) for each in proxy.problems()] == [
        ("record-elsewhere", "localhost", "warning")
    ]


def test_a_path_of_no_service_and_a_command_that_does_not_trust_us_are_errors(tmp_path):
    with service() as (port, pem), proxied(tmp_path, [f"API=https://localhost:{port}/v1"], pem) as (proxy, environment):
        context = ssl.create_default_context(cafile=environment["SSL_CERT_FILE"])
        with contextlib.closing(through(proxy, context, port)) as client:
            client.request("GET", "/v2/a")
            assert client.getresponse().status == 501
        with contextlib.closing(through(proxy, ssl.create_default_context(cadata=pem.decode()), port)) as client:
            with pytest.raises(ssl.SSLCertVerificationError):
                client.request("GET", "/v1/a")
    assert {(each.rule, each.severity) for each in proxy.problems()} == {
        ("record-not-http", "error"),
        ("record-untrusted", "error"),
    }


def test_record_https_makes_a_task_of_a_command_that_knows_only_the_real_address(tmp_path, monkeypatch):
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import os, sys, urllib.request as u\n"
        "opener = u.build_opener(u.ProxyHandler({'https': os.environ['HTTPS_PROXY']}))\n"
        "os.environ.pop('no_proxy'); os.environ.pop('NO_PROXY')\n"
        "opener.open(sys.argv[1]).read()\n"
        "print('{\"price\": 12}')\n"
    )
    with service() as (port, pem):
        (tmp_path / "trusted.pem").write_bytes(pem)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "trusted.pem"))
        words = ["record", str(tmp_path / "pack"), "--task", "t", "--prompt", "Price?", "--expect-stdout", "--https"]
        words += ["--upstream", f"API=https://localhost:{port}/v1", "--"]
        words += [sys.executable, str(agent), f"https://localhost:{port}/v1/items/1"]
        assert run(words) == 0
    task = json.loads((tmp_path / "pack/tasks/t.json").read_text())
    assert [(each["request"]["upstream"], each["request"]["path"]) for each in task["calls"]] == [("API", "/items/1")]
    manifest = json.loads((tmp_path / "pack/manifest.json").read_text())
    assert manifest["upstreams"] == {"API": f"localhost:{port}/v1"}


@contextlib.contextmanager
def plain_service():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Items)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asking(proxy):
    return http.client.HTTPConnection(proxy.proxy_address.removeprefix("http://"), timeout=300)


def test_a_plain_call_with_its_whole_address_is_recorded_beside_one_that_only_passes(tmp_path):
    with plain_service() as port, plain_service() as other:
        upstreams = [Upstream.parse(f"API=http://127.0.0.1:{port}/v1"), Upstream.parse("SAFE=https://api.example.com")]
        tunnels = Tunnels(upstreams, tmp_path)
        with RecordingProxy(upstreams, 30.0, tunnels=tunnels) as proxy:
            with contextlib.closing(asking(proxy)) as client:  # one connection, as clients keep it to their proxy
                told = get(client, f"http://127.0.0.1:{port}/v1/a?b=1")
                assert told == {"path": "/v1/a?b=1", "host": f"127.0.0.1:{port}"}
                assert get(client, f"http://127.0.0.1:{other}/x")["host"] == f"127.0.0.1:{other}"
                client.request("POST", f"HTTP://127.0.0.1:{port}/v1/c", b"{}")
                assert json.loads(client.getresponse().read())["path"] == "/v1/c"
            proxy.settle()
            environment = tunnels.environment(proxy.proxy_address)
        found = [(each.request.upstream, each.request.target, each.response.status) for each in proxy.exchanges()]
    assert found == [("API", "/a?b=1", 200), ("API", "/c", 200)]
    assert [(each.rule, each.where, each.severity) for each in proxy.problems()] == [
        ("record-elsewhere", "127.0.0.1", "warning")
    ]
    assert {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE"} <= environment.keys()


@pytest.mark.parametrize("target", ["/a", "https://api.example.com/a", "http://127.0.0.1:x/a", "http://127.0.0.1:9/v2"])
def test_what_the_proxy_can_not_take_is_refused_and_told(tmp_path, target):
    upstreams = [Upstream.parse("API=http://127.0.0.1:9/v1")]
    with RecordingProxy(upstreams, 30.0, tunnels=Tunnels(upstreams, tmp_path)) as proxy:
        with contextlib.closing(asking(proxy)) as client:
            client.request("GET", target)
            assert client.getresponse().status == 501
    assert [each.rule for each in proxy.problems()] == ["record-not-http"]
    assert proxy.exchanges() == ()


def test_without_an_https_service_the_proxy_is_for_plain_calls_alone(tmp_path):
    tunnels = Tunnels([Upstream.parse("API=http://127.0.0.1:9")], tmp_path)
    assert tunnels.environment("http://p") == {"HTTP_PROXY": "http://p", "http_proxy": "http://p"}


def test_record_proxy_makes_a_task_of_a_command_that_knows_only_a_plain_address(tmp_path):
    with plain_service() as port:
        script = f"NO_PROXY= no_proxy= curl -sSf http://127.0.0.1:{port}/items/1 >/dev/null && echo '{{\"price\": 12}}'"
        words = ["record", str(tmp_path / "pack"), "--task", "t", "--prompt", "Price?", "--expect-stdout", "--proxy"]
        assert run([*words, "--upstream", f"API=http://127.0.0.1:{port}", "--", "sh", "-c", script]) == 0
    task = json.loads((tmp_path / "pack/tasks/t.json").read_text())
    assert [(each["request"]["upstream"], each["request"]["path"]) for each in task["calls"]] == [("API", "/items/1")]
