"""`scoresheet serve --accept-new` as people call it: a live service behind a task that lacks calls."""

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests import command
from tests.command import SCORESHEET

scoresheet = partial(command.call, ok=0)
TOKEN = "q7Zk29LmX04RtVbW83"  # invented
TASK = {"task_id": "refund", "prompt": "Refund it.", "tools": [], "calls": [], "expected": {"ok": True}}


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: list[str] = []

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps({"path": self.path, "session_token": TOKEN, "n": len(self.asked)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET


@pytest.fixture
def shop() -> Iterator[str]:
    Shop.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    root = tmp_path / "pack"
    (root / "tasks").mkdir(parents=True)
    (root / "tasks" / "refund.json").write_text(json.dumps(TASK))
    return root


class Served:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self.process, self.output, self.environment = process, process.stdout, dict[str, str]()
        while (line := self.output.readline()).startswith("export "):
            name, _, value = line.removeprefix("export ").strip().partition("=")
            self.environment[name] = value
        self.said = line

    def ask(self, name: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        host, _, prefix = self.environment[name].removeprefix("http://").partition("/")
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        with contextlib.closing(http.client.HTTPConnection(host, timeout=300)) as client:
            path = f"/{prefix}{path}" if prefix else path
            client.request("GET" if body is None else "POST", path, body, headers)
            answer = client.getresponse()
            return answer.status, json.loads(answer.read())

    def end(self) -> tuple[str, str]:
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=300)
        assert self.process.returncode == 0
        return out, err


@contextlib.contextmanager
def serving(pack: Path, *options: str) -> Iterator[Served]:
    words = [SCORESHEET, "serve", str(pack), "--task", "refund", *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield Served(process)
        finally:
            process.kill()


def deaf() -> socket.socket:
    """A port that refuses: it is taken, and nobody listens there."""
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    return held


def calls(pack: Path) -> list[Any]:
    return list(json.loads((pack / "tasks" / "refund.json").read_text())["calls"])


def test_a_missing_call_is_asked_once_answered_and_in_the_pack_for_ever_after(pack: Path, shop: str) -> None:
    with serving(pack, "--accept-new", "--upstream", f"SHOP={shop}") as served:
        live = served.ask("SHOP", "/orders/17?full=1")
        assert live == (200, {"path": "/orders/17?full=1", "session_token": TOKEN, "n": 1})
        assert served.ask("SHOP", "/orders/17?full=1") == live
        assert Shop.asked == ["GET /orders/17?full=1"]
        assert [call["response_status"] for call in calls(pack)] == [200]  # while it serves, not at its end
        assert served.ask("SHOP", "/pay", b'{"amount": 1}')[0] == 200
        out, err = served.end()
    assert "GET /orders/17?full=1 -> 200 ACCEPTED\n" in out
    assert "GET /orders/17?full=1 -> 200 repeated\n" in out
    assert out.endswith("calls: 3, misses: 0, accepted: 2\n")
    assert "redacted: call 1, answer body: REDACTED-1" in err
    assert not any(TOKEN.encode() in path.read_bytes() for path in pack.rglob("*") if path.is_file())
    scoresheet("freeze", pack, "-q")
    assert json.loads((pack / "manifest.json").read_text())["upstreams"] == {"SHOP": shop.removeprefix("http://")}
    Shop.asked = []
    with serving(pack) as served:
        assert served.ask("SHOP", "/orders/17?full=1")[1] == {
            "path": "/orders/17?full=1",
            "session_token": "REDACTED-1",
            "n": 1,
        }
        assert served.ask("SHOP", "/orders/18")[0] == 403
    assert Shop.asked == []


def test_placeholders_go_on_counting_where_the_task_has_some(pack: Path, shop: str) -> None:
    for path in ("/a", "/b"):
        with serving(pack, "--accept-new", "--upstream", f"SHOP={shop}") as served:
            served.ask("SHOP", path)
            served.end()
    found = [json.loads(call["response_bytes"])["session_token"] for call in calls(pack)]
    assert found == ["REDACTED-1", "REDACTED-2"]


def test_a_tool_called_by_name_or_over_mcp_is_asked_of_its_service(pack: Path, shop: str) -> None:
    get = {"name": "get_order", "http": {"upstream": "SHOP", "method": "GET", "path": "/orders/{id}"}}
    (pack / "tools").mkdir()
    (pack / "tools" / "get_order.json").write_text(json.dumps(get))
    import hashlib

    digest = hashlib.sha256((pack / "tools" / "get_order.json").read_bytes()).hexdigest()
    reference = {"name": "get_order", "schema_sha256": f"sha256:{digest}"}
    (pack / "tasks" / "refund.json").write_text(json.dumps(TASK | {"tools": [reference]}))
    with serving(pack, "--accept-new", "--upstream", f"SHOP={shop}") as served:
        assert served.ask("SCORESHEET_CALL_URL", "/get_order", b'{"id": "7"}')[1]["path"] == "/orders/7"
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        message |= {"params": {"name": "get_order", "arguments": {"id": "8"}}}
        status, told = served.ask("SCORESHEET_MCP_URL", "", json.dumps(message).encode())
        assert status == 200
        assert json.loads(told["result"]["content"][0]["text"])["path"] == "/orders/8"
        assert served.ask("SCORESHEET_CALL_URL", "/nothing", b"{}")[0] == 403  # no service has it
        served.end()
    assert Shop.asked == ["GET /orders/7", "GET /orders/8"]
    assert [call["request"]["path"] for call in calls(pack)] == ["/orders/7", "/orders/8"]
    scoresheet("freeze", pack, "-q")


def test_a_frozen_pack_is_never_added_to(pack: Path, shop: str) -> None:
    scoresheet("freeze", pack, "-q")
    before = (pack / "tasks" / "refund.json").read_bytes()
    words = ("serve", pack, "--task", "refund", "--accept-new", "--upstream", f"SHOP={shop}")
    done = scoresheet(*words, ok=1)
    assert "the pack is frozen: a call that is added would not be what its digest names" in done.stderr
    assert f"mend: work on a copy: cp -r {pack} DRAFT && rm DRAFT/manifest.json" in done.stderr
    (pack / "manifest.json").unlink()
    with serving(pack, *words[4:]) as served:
        scoresheet("freeze", pack, "-q")  # meanwhile
        assert served.ask("SHOP", "/orders/17")[0] == 403
        _, err = served.end()
    assert "not accepted: GET /orders/17: the pack is frozen" in err
    assert (pack / "tasks" / "refund.json").read_bytes() == before


def test_what_can_not_be_recorded_is_not_answered_and_says_why(pack: Path, shop: str) -> None:
    closed = deaf()
    gone = f"GONE=http://127.0.0.1:{closed.getsockname()[1]}"
    with closed, serving(pack, "--accept-new", "--upstream", f"SHOP={shop}", "--upstream", gone) as served:
        assert served.ask("SHOP", f"/u/{TOKEN}/x?token={TOKEN}")[0] == 403
        assert served.ask("GONE", "/x")[0] == 403
        _, err = served.end()
    assert "a credential stands in the path" in err
    assert "not accepted: GONE ended in a connection_reset: GET /x" in err
    assert calls(pack) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--accept-new",), "no live service is named"),
        (("--upstream", "SHOP=http://127.0.0.1:9"), "a replay asks no live service"),
        (("--accept-new", "--upstream", "SHOP=ftp://x"), "the address is not http(s)"),
    ],
)
def test_a_service_goes_with_accept_new_and_accept_new_with_a_service(
    pack: Path, options: tuple[str, ...], says: str
) -> None:
    assert says in scoresheet("serve", pack, "--task", "refund", *options, ok=2).stderr


def test_a_v1_task_can_not_be_added_to(tmp_path: Path) -> None:
    (tmp_path / "refund.json").write_text(json.dumps(TASK))
    words = ("serve", tmp_path, "--task", "refund", "--accept-new", "--upstream", "SHOP=http://127.0.0.1:9")
    assert "move the tasks into tasks/" in scoresheet(*words, ok=1).stderr


def test_a_call_to_the_real_https_address_is_asked_of_the_service_that_stands_for_it(pack: Path, shop: str) -> None:
    manifest = {"protocol": "tool-replay-v2", "tasks": {}, "upstreams": {"SHOP": "api.example.com/v1"}}
    (pack / "manifest.json").write_text(json.dumps(manifest))  # as `record` leaves it
    with serving(pack, "--accept-new", "--https", "--upstream", f"SHOP={shop}") as served:
        words = ["curl", "-sS", "--max-time", "300", "-w", " %{http_version}", "https://api.example.com/v1/orders/17"]
        done = subprocess.run(words, env=served.environment, capture_output=True, text=True, timeout=300)
        assert done.stderr == ""
        assert json.loads(done.stdout.removesuffix(" 1.1"))["path"] == "/orders/17"
        words[-1] = "https://elsewhere.example.com/"
        gone = subprocess.run(words, env=served.environment, capture_output=True, text=True, timeout=300)
        assert "response 403" in gone.stderr
        served.end()
    assert Shop.asked == ["GET /orders/17"]
    assert [call["request"]["path"] for call in calls(pack)] == ["/orders/17"]
    assert json.loads((pack / "manifest.json").read_text())["upstreams"] == {"SHOP": "api.example.com/v1"}
