"""`scoresheet record` as users run it: a real service, a real agent, a real terminal command."""

import contextlib
import gzip
import hashlib
import io
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scoresheet.cli.app import run
from scoresheet.documents.task import Task
from scoresheet.pack import freezer
from scoresheet.pack.folder import Pack
from scoresheet.replay.http import CALL_DOOR, ReplayServer
from scoresheet.replay.journal import CallJournal
from scoresheet.replay.session import Session, Tape
from tests.record.scripted import scripted

AGENT = str(Path(__file__).with_name("record_agent.py"))
FORM = "application/x-www-form-urlencoded"
BINARY = bytes(range(256)) * 3


class Shop(BaseHTTPRequestHandler):
    """A service with every kind of answer."""

    protocol_version = "HTTP/1.1"
    count = 0
    gone = False
    holding = threading.Event()
    hold = threading.Event()

    def log_message(self, format, *args):
        pass

    def do_GET(self):
        match self.path.partition("?")[0]:
            case "/binary":
                self.answer(BINARY, "application/octet-stream")
            case "/gzip":
                packed = gzip.compress(b'{"ok": true, "text": "' + b"x" * 999 + b'"}', mtime=5)
                self.answer(packed, more=[("Content-Encoding", "gzip")])
            case "/chunked":
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for part in (b"data: 1\n\n", b"data: 2\n\n"):
                    self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")
            case "/twice":
                self.answer(b"{}", more=[("X-Part", "a"), ("x-part", "b"), ("Link", "c")])
            case "/short":
                self.send_response(200)
                self.send_header("Content-Length", "100")
                self.end_headers()
                self.wfile.write(b"cut")
                self.close_connection = True
            case "/drop":
                self.close_connection = True
            case "/slow":
                time.sleep(0.8)
            case "/hold":
                self.holding.set()
                self.hold.wait(120)
                self.answer(b"{}")
            case "/order":
                self.answer(b'{"order": "gone"}' if Shop.gone else b'{"order": "here"}')
            case "/missing":
                self.answer(b'{"error": "none"}', status=404)
            case "/tick":
                Shop.count += 1
                self.answer(b'{"tick": %d}' % Shop.count)
            case _:
                seen = {"path": self.path, "auth": self.headers.get("Authorization")}
                self.answer(json.dumps(seen).encode(), more=[("Set-Cookie", f"sid={self.headers.get('X-Sid', '')}")])

    do_HEAD = do_GET

    def do_DELETE(self):
        Shop.gone = True
        self.answer(b'{"gone": true}')

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(json.dumps({"echo": body.decode("latin-1")}).encode(), status=201)

    def answer(self, body, media="application/json", status=200, more=()):
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):  # who recorded may be dead by now
                self.wfile.write(body)


@pytest.fixture(scope="module")
def shop():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    Shop.hold.set()
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Done:
    """What a command said, and how it ended."""

    returncode: int
    stdout: str
    stderr: str


def scoresheet(*arguments, env=None):
    """The command line in this very process; agents and services are real ones."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            code = run([str(argument) for argument in arguments])
    return Done(code, stdout.getvalue(), stderr.getvalue())


def agent(*requests):
    return ("--", sys.executable, AGENT, *(json.dumps(request) for request in requests))


def record(pack, shop, *requests, task="t", more=("--expect-stdout",), env=None):
    upstream = ("--upstream", f"SHOP={shop}")
    return scoresheet(
        "record", pack, "--task", task, "--prompt", "Do it.", *upstream, *more, *agent(*requests), env=env
    )


def contents(folder):
    """Every file of a folder and what is in it; links and modes too."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
        for path in sorted(folder.rglob("*"))
    }


def task_of(pack, task="t"):
    return Task.from_bytes((pack / "tasks" / f"{task}.json").read_bytes(), task)


EVERYTHING = (
    {"target": "/orders/17?b=2&a=1&a=0"},
    {"target": "/orders/18"},
    {"method": "POST", "target": "/orders", "body": {"sku": "a", "price": 1.50, "n": 12345678901234567890}},
    {"method": "POST", "target": "/orders", "body": "a=1&b=x+y", "headers": {"Content-Type": FORM}},
    {"method": "POST", "target": "/upload", "body": "\u00ff\u00fe", "headers": {"Content-Type": "image/png"}},
    {"target": "/binary"},
    {"target": "/gzip", "headers": {"Accept-Encoding": "gzip, br"}},
    {"target": "/chunked"},
    {"target": "/twice"},
    {"method": "HEAD", "target": "/binary"},
    {"target": "/missing"},
    {"target": "/tick"},
    {"target": "/tick"},
    {"target": "/short"},
    {"target": "/drop"},
    {"target": "/slow"},
    {"target": "/csv", "headers": {"Accept": "text/csv"}},
    {"target": "/csv", "headers": {"Accept": "text/html"}},
)  # fmt: skip


def replayed(pack, requests, seen, tmp_path):
    """Run the same agent, unchanged, against the frozen recording; what it saw, and the outcomes at the door."""
    opened = Pack.open(pack)
    tape = Tape.of(opened.task("t"), opened.tools)
    sockets = {name: socket.create_server(("127.0.0.1", 0)) for name in ("http", CALL_DOOR)}
    urls = {name: f"http://127.0.0.1:{listening.getsockname()[1]}" for name, listening in sockets.items()}
    journal = tmp_path / "calls.jsonl"
    env = {"SHOP": urls["http"], "SCORESHEET_CALL_URL": urls[CALL_DOOR], "SEEN": str(seen), "SCORESHEET_SEED": "x"}
    view = tmp_path / "task.json"
    view.write_text("{}")
    with contextlib.ExitStack() as stack, ReplayServer() as server:
        for listening in sockets.values():
            stack.enter_context(listening)
        with server.episode(sockets, {"http": "SHOP"}, Session(tape), CallJournal(journal)):
            done = subprocess.run(
                agent(*requests)[1:],
                env=os.environ | env | {"SCORESHEET_TASK": str(view)},
                input="{}",
                capture_output=True,
                text=True,
                check=False,
            )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return json.loads(seen.read_text()), lines


def test_what_was_recorded_answers_the_same_agent_unchanged(shop, tmp_path):
    pack = tmp_path / "pack"
    live, again = tmp_path / "live.json", tmp_path / "again.json"
    done = record(pack, shop, *EVERYTHING, more=("--expect-stdout", "--timeout-s", "0.4"), env={"SEEN": str(live)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"t: {len(EVERYTHING)} calls, 3 of them failed; tools: ")
    task = task_of(pack)
    assert [call.fault for call in task.calls if call.fault] == ["truncated", "connection_reset", "timeout"]
    assert task.calls[5].response().body == BINARY
    assert gzip.decompress(task.calls[6].response().body).startswith(b'{"ok"')
    assert task.calls[7].stream == (9, 18)
    assert [value for name, value in task.calls[8].response_headers if name.lower() == "x-part"] == ["a", "b"]
    assert task.expected["calls"] == len(EVERYTHING)
    freezer.write(pack)
    (bodies, statuses, _), lines = replayed(pack, EVERYTHING, again, tmp_path)
    (live_bodies, live_statuses, _) = json.loads(live.read_text())
    assert bodies == live_bodies
    assert statuses == live_statuses
    assert [line["outcome"] for line in lines] == ["hit"] * len(EVERYTHING)
    assert [line["schema_errors"] for line in lines if line.get("schema_errors")] == []
    assert not any(line["repeat"] for line in lines)


def test_no_credential_reaches_the_disk_and_the_replay_takes_any(shop, tmp_path):
    values = {name: "q7" + secrets.token_urlsafe(18) for name in ("bearer", "query", "body", "form", "cookie", "env")}

    def requests(values):
        form = {"Content-Type": FORM}
        return (
            {"target": "/me", "headers": {"Authorization": f"Bearer {values['bearer']}", "X-Sid": values["cookie"]}},
            {"target": f"/list?page=2&api_key={values['query']}"},
            {"method": "POST", "target": "/login", "body": {"user": "me", "password": values["body"]}},
            {"method": "POST", "target": "/token", "body": f"id=1&client_secret={values['form']}", "headers": form},
            {"target": f"/list?page=3&cursor={values['env']}"},
            {"method": "POST", "target": "/login", "body": {"user": values["bearer"], "password": values["body"]}},
        )

    pack = tmp_path / "pack"
    done = record(pack, shop, *requests(values), env={"SHOP_API_KEY": values["env"]})
    assert done.returncode == 0, done.stderr
    written = b"".join(data or b"" for _, data in contents(tmp_path).values())
    for name, value in values.items():
        assert value.encode() not in written, name
        assert value not in done.stdout + done.stderr, name
    assert "REDACTED-" in done.stderr
    assert "ignored in matching from now on: /query/api_key" in done.stderr
    freezer.write(pack)
    others = {name: "other-" + name for name in values}
    _, lines = replayed(pack, requests(others), tmp_path / "again.json", tmp_path)
    assert [line["outcome"] for line in lines] == ["hit"] * 6
    assert [line["schema_errors"] for line in lines if line.get("schema_errors")] == []


@pytest.mark.parametrize("where", ["path", "body"])
def test_a_credential_that_cannot_be_taken_out_stops_the_recording(shop, tmp_path, where):
    value = "gh" + "p_" + secrets.token_hex(18)
    text = {"method": "POST", "target": "/x", "body": f"use {value}", "headers": {"Content-Type": "text/plain"}}
    request = {"path": {"target": f"/bot/{value}/x"}, "body": text}[where]
    done = record(tmp_path / "pack", shop, request)
    assert done.returncode == 1
    assert f"record-secret-in-{where}" in done.stderr
    assert value not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_task_is_recorded_again_only_when_asked(shop, tmp_path):
    pack = tmp_path / "pack"
    assert record(pack, shop, {"target": "/a"}).returncode == 0
    before = contents(tmp_path)
    done = record(pack, shop, {"target": "/b"})
    assert done.returncode == 1
    assert "add --replace" in done.stderr
    assert contents(tmp_path) == before
    assert record(pack, shop, {"target": "/b"}, more=("--expect-stdout", "--replace")).returncode == 0
    assert [call.request.path for call in task_of(pack).calls if call.request] == ["/b"]
    assert sorted(path.name for path in (pack / "tools").iterdir()) == ["get_b.json"]


def test_a_second_task_widens_the_tools_of_the_first(shop, tmp_path):
    pack = tmp_path / "pack"
    assert record(pack, shop, {"target": "/orders/17"}, task="one").returncode == 0
    assert record(pack, shop, {"target": "/orders/18?expand=lines&token=abcdef"}, task="two").returncode == 0
    tool = json.loads((pack / "tools" / "get_orders_by_order_id.json").read_bytes())
    assert tool["inputSchema"]["required"] == ["order_id"]
    digest = hashlib.sha256((pack / "tools" / "get_orders_by_order_id.json").read_bytes()).hexdigest()
    for task in ("one", "two"):
        assert [reference.schema_sha256 for reference in task_of(pack, task).tools] == [f"sha256:{digest}"]
    assert freezer.write(pack).tasks == 2


@pytest.mark.parametrize(
    ("requests", "more", "code", "what"),
    [
        (({"target": "/a"}, {"exit": 3}), ("--expect-stdout",), 1, "ended with status 3: nothing was recorded"),
        ((), ("--expect-stdout",), 1, "made no call through the proxy: nothing was recorded"),
        (({"target": "/a"},), (), 2, "either --expected or --expect-stdout"),
        (({"target": "/a"},), ("--expected", "{}"), 2, "at least one member"),
        (({"target": "/a"}, {"write": "no json"}), ("--expect-stdout",), 1, "SCORESHEET_ANSWER"),
        (({"target": "/a"}, {"write": "[1]"}), ("--expect-stdout",), 1, "no answer to expect"),
        (({"target": "/hold"},), ("--expect-stdout", "--wall-clock-s", "0.5"), 1, "did not end within 0.5 s"),
    ],
)
def test_a_recording_that_fails_says_why_and_writes_nothing(shop, tmp_path, requests, more, code, what):
    done = record(tmp_path / "pack", shop, *requests, more=more)
    assert done.returncode == code, done.stderr
    assert what in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_service_that_refuses_is_named_where_the_command_failed_of_it(tmp_path):
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # taken, and nobody listens there
        done = record(tmp_path / "pack", f"http://127.0.0.1:{deaf.getsockname()[1]}", {"target": "/a"}, {"exit": 3})
    assert done.returncode == 1, done.stderr
    assert "error: the command ended with status 3: nothing was recorded — t\n" in done.stderr
    assert "  mend: SHOP: the service failed: [Errno 111] Connection refused; " in done.stderr


def test_the_answer_file_is_what_is_expected_before_stdout_is(shop, tmp_path):
    assert record(tmp_path / "pack", shop, {"target": "/a"}, {"write": '{"x": 1.50}'}).returncode == 0
    assert task_of(tmp_path / "pack").expected == {"x": 1.5}


def test_the_seed_is_that_of_a_run_and_the_facts_are_json(shop, tmp_path):
    env = {"SEEN": str(tmp_path / "seen.json")}
    done = record(tmp_path / "pack", shop, {"target": "/a"}, more=("--expected", '{"x": 1}', "--json"), env=env)
    facts = json.loads(done.stdout)
    assert (facts["calls"], facts["tools"], facts["expected"]) == (1, ["get_a"], {"x": 1})
    assert facts["files"] == ["manifest.json", "tasks/t.json", "tools/get_a.json"]
    seed = int.from_bytes(hashlib.sha256(b"20260922:t:0").digest()[:8], "big") & (2**63 - 1)
    assert json.loads((tmp_path / "seen.json").read_text())[2] == str(seed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_recording_leaves_the_pack_byte_identical(shop, tmp_path, number):
    pack = tmp_path / "pack"
    assert record(pack, shop, {"target": "/a"}).returncode == 0
    before = contents(tmp_path)
    Shop.holding.clear()
    with scripted(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 30.0) as service:
        command = [sys.executable, "-m", "scoresheet", "record", str(pack), "--task", "t", "--prompt", "p", "--replace"]
        command += ["--expect-stdout", "--upstream", f"SHOP={shop}", "--upstream", f"OTHER={service.address}"]
        recorder = subprocess.Popen(
            [*command, *agent({"target": "/b"}, {"target": "/hold"})], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert Shop.holding.wait(120)
        assert recorder.poll() is None
        recorder.send_signal(number)
        _, stderr = recorder.communicate(timeout=300)
    assert recorder.returncode == (-9 if number == signal.SIGKILL else 130), stderr
    assert contents(tmp_path) == before


def test_a_batch_keeps_what_ended_well_and_says_what_did_not(shop, tmp_path):
    good = [sys.executable, AGENT, json.dumps({"target": "/orders/1"})]
    bad = [sys.executable, AGENT, json.dumps({"target": "/orders/2"}), json.dumps({"exit": 9})]
    entries = [
        {"task": "one", "prompt": "p", "expected": {"a": 1}, "tags": ["x"], "origin": "synthetic", "command": good},
        {"task": "two", "prompt": "p", "expect_stdout": True, "command": bad},
        {"task": "three", "prompt": "p", "expect_stdout": True, "limits": {"max_tool_calls": 3}},
    ]
    batch = tmp_path / "batch.jsonl"
    batch.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    pack = tmp_path / "pack"
    upstream = ("--upstream", f"SHOP={shop}")
    done = scoresheet("record", pack, "--batch", batch, *upstream, *agent({"target": "/orders/3"}))
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "recorded 2 of 3 tasks, 2 calls"
    assert done.stdout.splitlines()[1].startswith("failed two: the command ended with status 9")
    assert [line for line in done.stderr.splitlines() if line.startswith("[")] == [
        "[1/3] one: 1 call; tools: get_orders_by_order_id",
        "[2/3] two: failed",
        "[3/3] three: 1 call; tools: get_orders_by_order_id",
    ]
    assert sorted(path.name for path in (pack / "tasks").iterdir()) == ["one.json", "three.json"]
    assert (task_of(pack, "one").tags, task_of(pack, "one").origin) == (("x",), "synthetic")
    assert task_of(pack, "three").limits.max_tool_calls == 3
    assert freezer.write(pack).tasks == 2


def test_tools_are_taken_from_an_openapi_file(shop, tmp_path):
    api = tmp_path / "api.yaml"
    api.write_text(
        """
openapi: 3.0.3
paths:
  /orders/{order}:
    get:
      operationId: getOrder
      summary: One order.
      parameters: [{name: order, in: path, required: true, schema: &id {type: integer}}]
    delete:
      operationId: deleteOrder
      parameters: [{name: order, in: path, required: true, schema: *id}]
"""
    )
    pack = tmp_path / "pack"
    done = record(pack, shop, {"target": "/orders/17"}, more=("--expect-stdout", "--openapi", str(api)))
    assert done.returncode == 0, done.stderr
    assert [tool.name for tool in task_of(pack).tools] == ["deleteOrder", "getOrder"]
    assert json.loads((pack / "tools" / "getOrder.json").read_bytes())["description"] == "One order."
    again = record(pack, shop, {"target": "/orders/x"}, task="u", more=("--expect-stdout", "--openapi", f"SHOP={api}"))
    assert "record-schema" in again.stderr
    assert again.returncode == 0
    freezer.write(pack)


def test_tools_that_are_described_are_called_by_name_and_replayed_so(shop, tmp_path):
    api = tmp_path / "api.json"
    order = {"name": "order", "in": "path", "required": True, "schema": {"type": "string"}}
    lines = {"name": "lines", "in": "query", "schema": {"type": "array", "items": {"type": "integer"}}}
    body = {"content": {"application/json": {"schema": {"properties": {"sku": {"type": "string"}}}}}}
    paths = {
        "/orders/{order}": {"get": {"operationId": "getOrder", "parameters": [order, lines]}},
        "/orders": {"post": {"operationId": "place", "requestBody": body}},
    }
    api.write_text(json.dumps({"openapi": "3.1.0", "paths": paths}))
    requests = (
        {"call": "getOrder", "arguments": {"order": "a/b c", "lines": [1, 2]}},
        {"call": "place", "arguments": {"sku": "x"}},
        {"target": "/orders/7?lines=1"},
        {"call": "submit_answer", "arguments": {"done": True}},
    )
    pack = tmp_path / "pack"
    live, again = tmp_path / "live.json", tmp_path / "again.json"
    more = ("--expect-stdout", "--openapi", str(api))
    done = record(pack, shop, *requests, more=more, env={"SEEN": str(live)})
    assert done.returncode == 0, done.stderr
    task = task_of(pack)
    assert task.expected == {"done": True}
    assert [(call.request.method, call.request.path, call.request.query) for call in task.calls if call.request] == [
        ("GET", "/orders/a%2Fb%20c", "lines=1&lines=2"), ("POST", "/orders", None), ("GET", "/orders/7", "lines=1")
    ]  # fmt: skip
    freezer.write(pack)
    (bodies, statuses, _), records = replayed(pack, requests, again, tmp_path)
    assert [bodies, statuses] == json.loads(live.read_text())[:2]
    assert [line["outcome"] for line in records] == ["hit", "hit", "hit", "answer"]
    assert not any(line.get("schema_errors") for line in records)
    second = record(pack, shop, {"target": "/orders/8"}, task="u")
    assert second.returncode == 0, second.stderr
    assert [tool.name for tool in task_of(pack, "u").tools] == ["getOrder", "place"]


def test_a_tool_that_nobody_described_cannot_be_called_by_name(shop, tmp_path):
    done = record(tmp_path / "pack", shop, {"target": "/a"}, {"call": "guess"})
    assert done.returncode == 1
    assert "the command called the tool 'guess'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_two_services_have_a_variable_each(shop, tmp_path):
    with scripted(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as other:
        code = (
            "import os, sys, urllib.request; assert 'SCORESHEET_TOOLS_URL' not in os.environ\n"
            "for name in ('SHOP', 'OTHER'): urllib.request.urlopen(os.environ[name] + '/x').read()\n"
            "print('{\"done\": true}')"
        )
        services = ("--upstream", f"SHOP={shop}", "--upstream", f"OTHER={other.address}")
        named = ("--task", "t", "--prompt", "p", "--expect-stdout")
        done = scoresheet("record", tmp_path / "pack", *named, *services, "--", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert [call.request.upstream for call in task_of(tmp_path / "pack").calls if call.request] == ["SHOP", "OTHER"]
    manifest = json.loads((tmp_path / "pack" / "manifest.json").read_bytes())
    assert manifest["upstreams"] == {"OTHER": f"127.0.0.1:{other.port}", "SHOP": shop.removeprefix("http://")}
    assert scoresheet("freeze", tmp_path / "pack").returncode == 0
    assert json.loads((tmp_path / "pack" / "manifest.json").read_bytes())["upstreams"] == manifest["upstreams"]


def test_help_shows_an_example_and_usage_errors_exit_2(tmp_path):
    assert "Example: scoresheet record" in scoresheet("record", "--help").stdout
    for arguments in (
        ("--upstream", "nonsense"),
        ("--upstream", "A=http://x", "--upstream", "A=http://y"),
        ("--upstream", "A=http://127.0.0.1:1", "--expect-stdout", "--task", "a/b", "--prompt", "p", "--", "true"),
        ("--upstream", "A=http://127.0.0.1:1", "--expect-stdout", "--task", "a", "--prompt", "p"),
        ("--upstream", "A=http://127.0.0.1:1", "--expect-stdout", "--task", "a", "--prompt", "p", "--", "/no/such"),
        ("--upstream", "A=http://127.0.0.1:1", "--batch", str(tmp_path / "none.yaml")),
    ):
        done = scoresheet("record", tmp_path / "pack", *arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert done.stderr.startswith("error: "), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_states_of_a_recording_answer_a_command_that_reads_more_often(shop, tmp_path):
    """Written, then read again: a sequence alone would show the second reader what the first one changed."""
    Shop.gone = False
    order, gone = {"target": "/order"}, {"method": "DELETE", "target": "/order"}
    pack = tmp_path / "pack"
    done = record(pack, shop, order, gone, order, more=("--expect-stdout", "--states"))
    assert done.returncode == 0, done.stderr
    assert "states of SHOP: start → write-1" in done.stderr
    recorded = task_of(pack)
    assert recorded.scenarios == {"SHOP": ("start", "write-1")}
    freezer.write(pack)
    outcomes = {}
    for name, requests in (("more", (order, order, order, gone, order, order)), ("before", (gone, order))):
        (bodies, *_), _ = replayed(pack, requests, tmp_path / f"{name}.json", tmp_path)
        outcomes[name] = [json.loads(body) for body in bodies]
    here, away, deleted = {"order": "here"}, {"order": "gone"}, {"gone": True}
    assert outcomes == {"more": [here, here, here, deleted, away, away], "before": [deleted, away]}
    explained = scoresheet("explain", pack, "DELETE /order", "--upstream", "SHOP").stdout
    assert "status 200, when SHOP is start, sets SHOP to write-1" in explained


def test_a_recording_in_which_nothing_changed_has_no_states_and_says_so(shop, tmp_path):
    done = record(tmp_path / "pack", shop, {"target": "/orders/1"}, more=("--expect-stdout", "--states"))
    assert done.returncode == 0
    assert "no answer changed with what was written" in done.stderr
    assert "scenarios" not in json.loads((tmp_path / "pack/tasks/t.json").read_bytes())
