"""Protocol conversations with the replay server over real sockets: the bytes sent, and the bytes that come back."""

import asyncio
import base64
import contextlib
import gzip
import http.client
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.task import Call
from scoresheet.documents.tool import Tool
from scoresheet.pack.toolbox import Toolbox
from scoresheet.replay.door import Elsewhere
from scoresheet.replay.http import CALL_DOOR, ReplayServer
from scoresheet.replay.journal import CallJournal, body_text, read_back
from scoresheet.replay.session import Hit, Miss, Recorded, Session, Tape
from tests.replay.recordings import JSON, call, call_v1, tape, task, tool


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def server(request: pytest.FixtureRequest) -> Iterator[ReplayServer]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "asyncio":
            patch.setattr("scoresheet.replay.http._new_loop", asyncio.new_event_loop)
        made = ReplayServer()
    with made as running:
        assert (type(running._loop).__module__ == "uvloop") is (request.param == "uvloop")
        yield running


class World:
    """One served episode, and its client's end."""

    def __init__(self, server: ReplayServer, folder: Path) -> None:
        self.server, self.path = server, folder / "calls.jsonl"
        self.refused: list[CallRecord] = []
        self.every: list[CallRecord] = []
        self.listening = {name: socket.create_server(("127.0.0.1", 0)) for name in ("api", CALL_DOOR)}

    @contextlib.contextmanager
    def serve(
        self, replayed: Tape | Session, listen: bool = False, elsewhere: Elsewhere | None = None
    ) -> Iterator[Any]:
        session = replayed if isinstance(replayed, Session) else Session(replayed)
        on_call = self.every.append if listen else None
        journal = CallJournal(self.path)
        with self.server.episode(
            self.listening, {"api": "api"}, session, journal, on_call, self.refused.append, elsewhere=elsewhere
        ) as view:
            yield view

    def connect(self, door: str = "api") -> socket.socket:
        client = socket.create_connection(self.listening[door].getsockname(), timeout=300)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def client(self, door: str = "api") -> http.client.HTTPConnection:
        host, port = self.listening[door].getsockname()
        return http.client.HTTPConnection(host, port, timeout=300)

    def exchange(self, sent: bytes, door: str = "api") -> bytes:
        """Everything that comes back for `sent`, until the server closes; we say that we are done by half-closing."""
        with self.connect(door) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            return read_all(client)

    def lines(self) -> list[CallRecord]:
        return [read_back(line) for line in self.path.read_bytes().splitlines()]


@pytest.fixture
def world(server: ReplayServer, tmp_path: Path) -> Iterator[World]:
    made = World(server, tmp_path)
    yield made
    for listening in made.listening.values():
        listening.close()


def read_all(client: socket.socket) -> bytes:
    pieces = []
    while piece := client.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def get(target: str, *headers: str, version: str = "1.1") -> bytes:
    return "\r\n".join((f"GET {target} HTTP/{version}", "Host: x", *headers, "", "")).encode()


def post(target: str, body: bytes, *headers: str) -> bytes:
    lines = (f"POST {target} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def recorded(path: str = "/a", **members: Any) -> Call:
    return call("GET", path, **members)


CLOSE = "Connection: close"


# -- bytes of answers


def test_status_headers_and_body_come_back_as_recorded(world: World) -> None:
    headers = (("Server", "x/1"), ("Set-Cookie", "a=1"), ("set-cookie", "b=2"), ("Content-Length", "99"), ("X-Z", ""))
    with world.serve(tape(recorded(response_headers=headers, text="0.00 é", status=418))):
        answer = world.exchange(get("/a", CLOSE))
    assert (
        answer
        == (
            "HTTP/1.1 418 I'm a Teapot\r\nServer: x/1\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n"
            "Content-Length: 7\r\nX-Z: \r\nconnection: close\r\n\r\n0.00 é"
        ).encode()
    )


def test_hop_by_hop_headers_are_dropped_with_those_that_connection_names(world: World) -> None:
    headers = (("Connection", "keep-alive, X-Private"), ("X-Private", "1"), ("Keep-Alive", "5"), ("Via", "1.1 y"))
    more = (("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"), ("Trailer", "X"))
    with world.serve(tape(recorded(response_headers=headers + more))):
        answer = world.exchange(get("/a", CLOSE))
    assert answer == b"HTTP/1.1 200 OK\r\nVia: 1.1 y\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"


def test_a_recorded_header_can_not_split_the_answer(world: World) -> None:
    with world.serve(tape(recorded(response_headers=(("X", "a\r\nSet-Cookie: b"),)))):
        assert b"X: a  Set-Cookie: b\r\n" in world.exchange(get("/a", CLOSE))


@pytest.mark.parametrize(
    ("text", "media"),
    [('{"a":1}', "application/json"), ("no json", "text/plain; charset=utf-8"), ("", "text/plain; charset=utf-8")],
)
def test_v1_has_no_headers_so_the_text_says_its_type(world: World, text: str, media: str) -> None:
    with world.serve(Tape.of(task(call_v1("GET", "/a?b=1", None, text, 404)), {}, "tool-replay-v1")):
        answer = world.exchange(get("/a?b=1", CLOSE))
    head = (
        f"HTTP/1.1 404 Not Found\r\ncontent-type: {media}\r\ncontent-length: {len(text)}\r\nconnection: close\r\n\r\n"
    )
    assert answer == (head + text).encode()


def test_binary_and_compressed_bodies_keep_every_byte(world: World) -> None:
    packed = gzip.compress(b'{"a":1}')
    headers = (("Content-Encoding", "gzip"), ("Content-Type", "application/json"))
    stored = base64.b64encode(packed).decode()
    with world.serve(tape(recorded(response_base64=stored, response_headers=headers))):
        head, _, body = world.exchange(get("/a", CLOSE)).partition(b"\r\n\r\n")
    assert body == packed
    assert b"Content-Encoding: gzip" in head


def test_head_keeps_the_recorded_length_and_sends_no_body(world: World) -> None:
    head = call("HEAD", "/a", text="", response_headers=(("Content-Length", "1234"), ("X", "1")))
    with world.serve(tape(head)):
        client = world.client()
        for _ in range(3):  # twice by the parser, once from memory
            client.request("HEAD", "/a")
            answer = client.getresponse()
            assert (answer.getheader("content-length"), answer.read()) == ("1234", b"")
        client.close()


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (204, (), b"HTTP/1.1 204 No Content\r\n"),
        (204, (("X", "1"),), b"HTTP/1.1 204 No Content\r\nX: 1\r\n"),
        (
            304,
            (("ETag", "x"), ("Content-Length", "7")),
            b"HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 7\r\n",
        ),
    ],
)
def test_answers_without_a_body_have_none_and_the_connection_goes_on(
    world: World, status: int, headers: Any, expected: bytes
) -> None:
    bare = recorded(status=status, text="", response_headers=headers)
    with world.serve(tape(bare, recorded("/b", text="next", response_headers=(("Y", "2"),)))):
        answer = world.exchange(get("/a") + get("/b"))
    if not headers:
        expected += b"content-type: text/plain; charset=utf-8\r\n"
    assert answer == expected + b"\r\nHTTP/1.1 200 OK\r\nY: 2\r\ncontent-length: 4\r\n\r\nnext"


def test_an_empty_body_says_so(world: World) -> None:
    with world.serve(tape(recorded(text="", response_headers=(("Content-Length", "0"),)))):
        assert world.exchange(get("/a")) == b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def test_a_stream_is_replayed_in_its_chunks(world: World) -> None:
    events = "data: 1\n\ndata: 2\n\n"
    headers = (("Content-Type", "text/event-stream"), ("Content-Length", "18"))
    with world.serve(tape(recorded(text=events, stream=(9, 18), response_headers=headers))):
        answer = world.exchange(get("/a"))
        old = world.exchange(get("/a", version="1.0"))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    assert answer == head + b"transfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"
    assert old.endswith(b"connection: close\r\n\r\n" + events.encode())  # HTTP/1.0 knows no chunks


# -- faults


def test_a_recorded_reset_is_a_reset(world: World) -> None:
    with world.serve(tape(recorded(text="", fault="connection_reset"))):
        with world.connect() as client:
            client.sendall(get("/a"))
            with pytest.raises(ConnectionResetError):
                read_all(client)
    assert [(line.outcome, line.status) for line in world.lines()] == [("hit", 0)]


def test_a_recorded_timeout_is_held_for_its_latency_and_then_closed(world: World) -> None:
    with world.serve(tape(recorded(text="", fault="timeout", latency_ms_recorded=300.0), recorded("/b"))):
        start = time.monotonic()
        assert world.exchange(get("/a") + get("/b")) == b""
        assert 0.28 < time.monotonic() - start < 30
    assert [(line.path, line.status, line.latency_ms_recorded) for line in world.lines()] == [("/a", 0, 300.0)]


def test_an_episode_ends_without_waiting_for_a_held_answer(world: World) -> None:
    with world.serve(tape(recorded(text="", fault="timeout", latency_ms_recorded=60_000.0))):
        client = world.connect()
        client.sendall(get("/a"))
        deadline = time.monotonic() + 60
        while not world.path.stat().st_size:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        start = time.monotonic()
    assert time.monotonic() - start < 30
    with client, contextlib.suppress(ConnectionResetError):
        assert client.recv(1) == b""


def test_a_truncated_answer_promises_more_than_it_sends(world: World) -> None:
    cut = recorded(text="abc", fault="truncated", response_headers=(("Content-Length", "10"),))
    chunked = recorded("/b", text="abcdef", fault="truncated", stream=(3,), response_headers=(("X", "1"),))
    with world.serve(tape(cut, chunked, recorded("/c", text="abc", fault="truncated"))):
        assert world.exchange(get("/a")) == b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"
        client = world.client()
        for target in ("/b", "/c"):
            client.request("GET", target)
            with pytest.raises(http.client.IncompleteRead):
                client.getresponse().read()
            client.close()


# -- requests, in every framing


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
def test_requests_may_come_in_any_pieces_and_in_batches(world: World, size: int) -> None:
    calls = [call("POST", "/pay", {"a": n}, text=str(n), response_headers=(("X", "1"),)) for n in range(3)]
    sent = b"".join(post("/pay", b'{"a":%d}' % n, "Content-Type: application/json") for n in (0, 1, 2, 1))
    with world.serve(tape(*calls)):
        with world.connect() as client:
            for start in range(0, len(sent), size):
                client.sendall(sent[start : start + size])
            client.shutdown(socket.SHUT_WR)
            answer = read_all(client)
    assert answer == b"".join(b"HTTP/1.1 200 OK\r\nX: 1\r\ncontent-length: 1\r\n\r\n%d" % n for n in (0, 1, 2, 1))
    assert [(line.seq, line.repeat) for line in world.lines()] == [(0, False), (1, False), (2, False), (3, True)]


def test_a_chunked_request_is_its_body(world: World) -> None:
    head = "POST /pay HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    sent = head.encode() + b'3\r\n{"a\r\n4;x=y\r\n":1}\r\n0\r\nX-Trailer: Content-Length: 5\r\n\r\n'
    with world.serve(tape(call("POST", "/pay", {"a": 1}))):
        assert world.exchange(sent * 2).count(b"HTTP/1.1 200 OK") == 2
    assert [line.body for line in world.lines()] == ['{"a":1}'] * 2


def test_a_client_that_waits_for_100_continue_gets_it(world: World) -> None:
    whole = post("/pay", b'{"a":1}', "Content-Type: application/json", "Expect: 100-continue")
    with world.serve(tape(call("POST", "/pay", {"a": 1}, text="done"))):
        with world.connect() as client:
            client.sendall(whole[:-7])
            assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
            client.sendall(whole[-7:])
            assert client.recv(1000).endswith(b"done")
            client.sendall(whole)  # one that does not wait needs none
            assert client.recv(1000).startswith(b"HTTP/1.1 200")


def test_old_clients_and_those_that_ask_are_closed_after_the_answer(world: World) -> None:
    with world.serve(tape(recorded())):
        for sent in (get("/a", version="1.0"), get("/a", CLOSE), get("/a", "Connection: keep-alive", version="1.0")):
            with world.connect() as client:
                client.sendall(sent + get("/a"))
                assert read_all(client).count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("http://api.example:80/a?b=c", "/a?b=c"),
        ("HTTP://api.example/a?b=c", "/a?b=c"),
        ("http://api.example?b=c", "/?b=c"),
    ],
)
def test_an_absolute_target_is_reduced_to_path_and_query(world: World, target: str, told: str) -> None:
    with world.serve(tape(recorded(told.partition("?")[0], query="b=c"))):
        assert world.exchange(get(target, CLOSE)).startswith(b"HTTP/1.1 200")
    assert world.lines()[0].path == told


def test_a_client_that_offers_http_2_gets_http_1(world: World) -> None:
    upgrade = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    with world.serve(tape(recorded(), call("POST", "/pay", {"a": 1}))):
        sent = (
            get("/a", *upgrade)
            + post("/pay", b'{"a":1}', "Content-Type: application/json", *upgrade)
            + get("/a", CLOSE)
        )
        assert world.exchange(sent).count(b"HTTP/1.1 200") == 3


def test_expensive_answers_wait_for_a_client_that_reads_slowly(world: World) -> None:
    text = "x" * 1_000_000
    with world.serve(tape(recorded(text=text))):
        with world.connect() as client:
            client.sendall(get("/a") * 60)
            time.sleep(0.3)
            client.shutdown(socket.SHUT_WR)
            assert read_all(client).count(b"HTTP/1.1 200") == 60
    assert len(world.lines()) == 60


# -- what is refused

MALFORMED = [
    ("garbage", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ("no version", b"GET /a\r\n\r\n", 400),
    ("a space in the target", b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("a line without a colon", b"GET /a HTTP/1.1\r\nHost\r\n\r\n", 400),
    ("a bare line feed in a header", b"GET /a HTTP/1.1\r\nX: a\nY: b\r\n\r\n", 400),
    ("two lengths", b"POST /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    ("a length that is none", b"POST /a HTTP/1.1\r\nContent-Length: +1\r\n\r\na", 400),
    ("length and chunks", b"POST /a HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("chunks and length", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
    ("chunks in HTTP/1.0", b"POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("gzip as framing", b"POST /a HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    (
        "chunked twice",
        b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        400,
    ),
    ("a broken chunk", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 400),
    ("a huge length", b"POST /a HTTP/1.1\r\nContent-Length: 67108865\r\n\r\n", 413),
    ("a huge head", b"GET /a HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431),
    ("a head that never ends", b"GET /a HTTP/1.1\r\nX: " + b"a" * 200_000, 431),
]


@pytest.mark.parametrize(("sent", "status"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_what_is_no_request_is_answered_plainly_closed_and_journalled(world: World, sent: bytes, status: int) -> None:
    with world.serve(tape(recorded())):
        with world.connect() as client:
            client.sendall(get("/a") + sent)
            with contextlib.suppress(ConnectionResetError):  # bytes that were not read any more
                answer = read_all(client)
    assert answer.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 %d " % status in answer
    assert [(line.outcome, line.status) for line in world.lines()] == [("hit", 200), ("malformed", status)]
    assert [record.outcome for record in world.refused] == ["malformed"]


def test_a_chunked_body_over_the_limit_is_refused_where_it_passes_it(world: World) -> None:
    chunk = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
    with world.serve(tape(recorded())):
        with world.connect() as client:
            client.sendall(b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                for _ in range(70):
                    client.sendall(chunk)
            with contextlib.suppress(ConnectionResetError):
                read_all(client)
    assert [line.status for line in world.lines()] == [413]


def test_a_websocket_and_a_tunnel_are_misses(world: World) -> None:
    socket_headers = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x", "Sec-WebSocket-Version: 13")
    with world.serve(tape(recorded())):  # the same path was recorded, but as no websocket
        assert world.exchange(get("/a", *socket_headers)).startswith(b"HTTP/1.1 403")
        assert world.exchange(b"CONNECT api.example:443 HTTP/1.1\r\nHost: x\r\n\r\n\x16\x03\x01").startswith(
            b"HTTP/1.1 403"
        )
    assert [(line.outcome, line.kind, line.method) for line in world.lines()] == [
        ("miss", "no_match", "GET"),
        ("miss", "no_match", "CONNECT"),
    ]


def test_a_miss_says_what_is_nearest_in_a_way_that_no_sdk_retries(world: World) -> None:
    with world.serve(tape(call("POST", "/pay", {"amount": 12}))):
        client = world.client()
        client.request("POST", "/pay", b'{"amount":13}', dict(JSON))
        answer = client.getresponse()
        assert (answer.status, answer.getheader("x-should-retry")) == (403, "false")
        assert json.loads(answer.read()) == {
            "error": "unrecorded_call",
            "kind": "no_match",
            "nearest": {"method": "POST", "path": "/pay"},
            "difference": ["body /amount: recorded 12, asked 13"],
        }
        client.request("POST", "/pay", b'{"amount":12}', dict(JSON))  # the connection goes on
        assert client.getresponse().status == 200
        client.close()
    line = world.lines()[0]
    assert (line.outcome, line.kind, line.status, line.body) == ("miss", "no_match", 403, '{"amount":13}')
    assert line.nearest is not None
    assert line.nearest.difference == ("body /amount: recorded 12, asked 13",)
    assert world.refused == [line]


def test_exhaustion_and_the_cap_are_told_apart(world: World) -> None:
    with world.serve(Session(tape(recorded(), on_exhausted="refuse"), max_tool_calls=2)):
        client = world.client()
        told = []
        for _ in range(3):
            client.request("GET", "/a")
            answer = client.getresponse()
            told.append((answer.status, json.loads(answer.read())))
        client.close()
    assert told[0] == (200, {})
    assert (told[1][0], told[1][1]["kind"]) == (403, "exhausted")
    assert told[2] == (403, {"error": "tool_cap"})
    assert [(line.outcome, line.kind, line.repeat) for line in world.lines()] == [
        ("hit", None, False),
        ("miss", "exhausted", True),
        ("capped", None, False),
    ]


def stated(method: str, text: str, status: int = 200, **state: str) -> Call:
    return call(method, "/order", text=text, status=status, state={"scenario": "order", **state})


def order() -> Tape:
    """An order that can be cancelled once."""
    calls = (
        stated("GET", "open", requires="open"),
        stated("DELETE", "done", requires="open", sets="cancelled"),
        stated("GET", "cancelled", requires="cancelled"),
        stated("DELETE", "twice", 409, requires="cancelled"),
        call("GET", "/bill", text="none", state={"scenario": "order", "requires": "open"}),
    )
    made = task(*calls).model_copy(update={"scenarios": {"order": ("open", "cancelled")}})
    return Tape.of(made, {}, "tool-replay-v2")


def test_a_write_among_64_connections_happens_once_and_is_read_by_all_that_ask_after_it(world: World) -> None:
    """Whatever the order in which they arrive: each answer is the one of the state that the episode was in."""
    delete = b"DELETE /order HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    with world.serve(order()), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(world.connect()) for _ in range(64)]
        for number, client in enumerate(clients):  # all at once: nobody waits for an answer
            client.sendall(get("/order") + delete + get("/order") if number % 2 else get("/order") * 3)
            client.shutdown(socket.SHUT_WR)
        seen = [read_all(client) for client in clients]
    texts = [[text for text in (b"open", b"done", b"cancelled", b"twice") if text in answer] for answer in seen]
    assert sum(b"done" in answer for answer in seen) == 1
    assert sum(b"twice" in answer for answer in seen) == 31
    for number, answer in enumerate(seen):
        assert answer.count(b"HTTP/1.1 ") == 3, texts[number]
        if number % 2:
            assert answer.endswith(b"cancelled")
    lines = world.lines()
    assert len(lines) == 192
    assert {line.outcome for line in lines} == {"hit"}
    moved = [place for place, line in enumerate(lines) if line.state is not None and line.state.sets]
    assert len(moved) == 1
    for place, line in enumerate(lines):
        assert line.state is not None
        assert line.state.requires == ("open" if place <= moved[0] else "cancelled")


def test_a_call_in_the_wrong_state_says_so_to_the_client_and_in_the_journal(world: World) -> None:
    with world.serve(order()), contextlib.closing(world.client()) as client:
        client.request("DELETE", "/order")
        assert client.getresponse().read() == b"done"
        client.request("GET", "/bill")
        answer = client.getresponse()
        assert answer.status == 403
        told = json.loads(answer.read())
        client.request("GET", "/nothing")
        assert json.loads(client.getresponse().read())["states"] == {"order": "cancelled"}
    assert told["kind"] == "wrong_state"
    assert told["states"] == {"order": "cancelled"}
    assert told["difference"] == ["state order: recorded in open, asked in cancelled"]
    _, wrong, nothing = world.lines()
    assert (wrong.kind, wrong.states, nothing.kind) == ("wrong_state", {"order": "cancelled"}, "no_match")
    assert wrong.nearest is not None
    assert wrong.nearest.difference == ("state order: recorded in open, asked in cancelled",)


def test_a_task_without_scenarios_says_nothing_of_states(world: World) -> None:
    with world.serve(tape(recorded())):
        world.exchange(get("/a") + get("/b", CLOSE))
    assert b"state" not in world.path.read_bytes()


def test_remembered_bytes_move_sequences_and_obey_the_cap(world: World) -> None:
    pages = [recorded(text=name) for name in ("one", "two")]
    session = Session(tape(*pages, on_exhausted="refuse"), max_tool_calls=5)
    with world.serve(session):
        client = world.client()
        told = []
        for _ in range(6):
            client.request("GET", "/a")
            told.append(client.getresponse().read())
        client.close()
    assert told[:2] == [b"one", b"two"]
    assert [json.loads(body)["error"] for body in told[2:]] == ["unrecorded_call"] * 3 + ["tool_cap"]


@pytest.mark.parametrize("together", [True, False])
def test_a_header_that_the_tool_names_counts_for_remembered_requests_too(world: World, together: bool) -> None:
    members = {"upstream": "api", "method": "GET", "path": "/a", "vary": ["x-tenant"]}
    box = Toolbox((Tool.model_validate({"name": "get", "http": members}),))
    red = recorded(request={"headers": (("X-Tenant", "red"),)}, toolbox=box)
    asks = [get("/a", f"x-TENANT: {who}", f"X-Trace: {n}") for n, who in enumerate(("red", "blue", "red", "blue"))]
    with world.serve(Tape.of(task(red, tools=("get",)), box)):
        for sent in (b"".join(asks),) * 2 if together else asks * 2:
            world.exchange(sent)
    assert [line.outcome for line in world.lines()] == ["hit", "miss"] * 4


def test_remembered_bytes_of_one_episode_answer_in_another_from_its_own_place(world: World, tmp_path: Path) -> None:
    shared = tape(*(recorded(text=name) for name in ("one", "two")))
    for _ in range(2):
        with world.serve(shared):
            client = world.client()
            for expected in (b"one", b"two", b"two"):
                client.request("GET", "/a")
                assert client.getresponse().read() == expected
            client.close()
    assert [line.repeat for line in world.lines()] == [False, False, True] * 2


# -- tools by name


def test_tools_are_called_by_name_on_their_own_door(world: World) -> None:
    pay = tool("pay", {"type": "object", "required": ["amount"]}, method="POST", path="/pay")
    with world.serve(tape(call("POST", "/pay", {"amount": 1}, text="paid"), tools=(pay,))):
        assert world.exchange(post("/pay", b'{"amount":1}', CLOSE), CALL_DOOR).endswith(b"\r\n\r\npaid")
        assert b'"unknown_tool"' in world.exchange(post("/void", b"{}", CLOSE), CALL_DOOR)
        assert world.exchange(post("/pay", b"{}", CLOSE), CALL_DOOR).startswith(b"HTTP/1.1 403")
        assert world.exchange(get("/pay", CLOSE), CALL_DOOR).startswith(b"HTTP/1.1 405")
    assert [(line.via, line.method, line.path, line.outcome, line.kind, line.tool) for line in world.lines()] == [
        ("call", "CALL", "pay", "hit", None, "pay"),
        ("call", "CALL", "void", "miss", "unknown_tool", "void"),
        ("call", "CALL", "pay", "miss", "no_match", "pay"),
        ("call", "GET", "/pay", "malformed", None, None),
    ]
    assert world.lines()[2].schema_errors == ('pay: (whole): "amount" is a required property',)


def test_the_last_submitted_answer_counts_and_is_no_call(world: World) -> None:
    with world.serve(Session(tape(recorded()), max_tool_calls=1)) as view:
        assert view.answer is None
        for body in (b'{"a":1}', b'{"a":2}'):
            assert world.exchange(post("/submit_answer", body, CLOSE), CALL_DOOR).endswith(b'{"accepted":true}')
        assert world.exchange(get("/a", CLOSE)).startswith(b"HTTP/1.1 200")
        assert view.answer == b'{"a":2}'
        too_long = b"x" * ((1 << 20) + 1)
        assert b"HTTP/1.1 413" in world.exchange(post("/submit_answer", too_long, CLOSE), CALL_DOOR)
        assert view.answer == b'{"a":2}'
    assert [line.outcome for line in world.lines()] == ["answer", "answer", "hit", "malformed"]


# -- the journal


def test_lines_reach_the_file_while_the_episode_runs(world: World) -> None:
    with world.serve(tape(recorded())):
        assert world.exchange(get("/a")).startswith(b"HTTP/1.1 200")
        deadline = time.monotonic() + 60
        while not world.path.stat().st_size and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(world.lines()) == 1


def test_a_listener_hears_every_call_as_the_journal_holds_it(world: World) -> None:
    with world.serve(tape(recorded()), listen=True):
        world.exchange(get("/a") + get("/a") + get("/b"))
    assert [record.outcome for record in world.every] == ["hit", "hit", "miss"]
    assert world.every == world.lines()


@pytest.mark.parametrize(
    ("body", "held"),
    [
        (b"", None),
        ("é".encode(), "é"),
        (b"\xff\x00", {"base64": "/wA="}),
        (b"a" * 70_000, "a" * 65536),
        (b"a" + "é".encode() * 40_000, "a" + "é" * 32767),
    ],
)
def test_the_journal_holds_bodies_as_text_and_cuts_long_ones(body: bytes, held: Any) -> None:
    assert body_text(body) == held


def test_a_journal_that_could_not_be_written_is_told_at_the_end(world: World) -> None:
    world.path = Path("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        with world.serve(tape(recorded())):
            assert world.exchange(get("/a")).startswith(b"HTTP/1.1 200")


def test_a_journal_that_grows_too_long_caps_the_episode(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scoresheet.replay.journal.MAX_BYTES", 1000)
    with world.serve(tape(recorded())):
        client = world.client()
        deadline = time.monotonic() + 60
        status = 200
        while status == 200 and time.monotonic() < deadline:
            client.request("GET", "/a")
            answer = client.getresponse()
            answer.read()
            status = answer.status
        client.close()
    assert status == 403
    assert [record.outcome for record in world.refused] == ["capped"]


# -- episodes


def test_episodes_at_one_time_do_not_mix(server: ReplayServer, tmp_path: Path) -> None:
    shared = tape(*(recorded(text=str(n)) for n in range(50)))
    with contextlib.ExitStack() as stack:
        worlds = []
        for n in range(6):
            (tmp_path / str(n)).mkdir()
            made = World(server, tmp_path / str(n))
            stack.enter_context(made.serve(shared))
            worlds.append((made, made.client()))
        for n in range(50):
            for _, client in worlds:
                client.request("GET", "/a")
                assert client.getresponse().read() == str(n).encode()
        for made, client in worlds:
            client.close()
            for listening in made.listening.values():
                listening.close()
    assert all(len(made.lines()) == 50 for made, _ in worlds)


def test_the_end_of_an_episode_closes_its_connections_and_leaves_the_socket_to_its_owner(world: World) -> None:
    with world.serve(tape(recorded())):
        client = world.connect()
        client.sendall(get("/a"))
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
    with client, contextlib.suppress(ConnectionResetError):
        assert client.recv(1) == b""
    with world.serve(tape(recorded(text="again"))):
        assert world.exchange(get("/a")).endswith(b"again")


def test_a_call_that_was_fired_just_before_the_end_is_on_record(server: ReplayServer, tmp_path: Path) -> None:
    for n in range(30):
        (tmp_path / str(n)).mkdir()
        world = World(server, tmp_path / str(n))
        with world.serve(tape(recorded())):
            clients = [world.connect() for _ in range(3)]
            for client in clients:
                client.sendall(get("/a") + get("/live"))
                client.close()
        for listening in world.listening.values():
            listening.close()
        assert [line.outcome for line in world.lines()] == ["hit", "miss"] * 3
        assert len(world.refused) == 3


def test_episodes_leave_no_descriptor_behind(server: ReplayServer, tmp_path: Path) -> None:
    def one() -> int:
        world = World(server, tmp_path)
        with world.serve(tape(recorded())):
            assert world.exchange(get("/a", CLOSE)).startswith(b"HTTP/1.1 200")
        for listening in world.listening.values():
            listening.close()
        return len(os.listdir("/proc/self/fd"))

    first = one()
    last = max(one() for _ in range(20))
    deadline = time.monotonic() + 60
    while last > first + 3 and time.monotonic() < deadline:  # the server closes a little later
        time.sleep(0.05)
        last = len(os.listdir("/proc/self/fd"))
    assert last <= first + 3


def test_a_client_that_goes_away_in_the_middle_harms_nobody(world: World) -> None:
    with world.serve(tape(recorded())):
        with world.connect() as client:
            client.sendall(get("/a")[:9])
        with world.connect() as client:
            client.sendall(post("/a", b"x" * 100)[:-50])
        assert world.exchange(get("/a")).startswith(b"HTTP/1.1 200")
    assert [line.outcome for line in world.lines()] == ["hit"]


def test_curl_reads_what_was_recorded(world: World) -> None:
    curl = shutil.which("curl")
    assert curl is not None, "this test needs curl"
    packed = base64.b64encode(gzip.compress(b"hello")).decode()
    with world.serve(tape(recorded(response_base64=packed, response_headers=(("Content-Encoding", "gzip"),)))):
        host, port = world.listening["api"].getsockname()
        found = subprocess.run(
            [curl, "-sS", "--compressed", f"http://{host}:{port}/a"], capture_output=True, check=True, timeout=20
        )
    assert found.stdout == b"hello"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([get("/a"), post("/p", b"{}"), b"\r\n"])), max_size=5)
)
def test_no_bytes_harm_the_server(server: ReplayServer, tmp_path_factory: Any, pieces: list[bytes]) -> None:
    world = World(server, tmp_path_factory.mktemp("fuzz"))
    with world.serve(tape(recorded())):
        with world.connect() as client, contextlib.suppress(OSError):
            for piece in pieces:
                client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
            read_all(client)
        assert world.exchange(get("/a", CLOSE)).startswith(b"HTTP/1.1 200")
    assert world.lines()[-1].outcome == "hit"
    for listening in world.listening.values():
        listening.close()


# -- asked elsewhere (`serve --accept-new`)


def found_live(missed: Miss, text: str = "live") -> Hit:
    live = call("GET", "/live", text=text)
    return Hit(Recorded(0, missed.fingerprint, live), False, missed.verdict, accepted=True)


def test_what_is_missing_is_asked_elsewhere_and_its_connection_answers_in_order(world: World) -> None:
    with world.serve(tape(recorded()), elsewhere=found_live):
        sent = get("/a") + get("/new") + get("/a") + post("/new", b"x") + get("/a", CLOSE)
        answers = world.exchange(sent)
    assert [part[:4] for part in answers.split(b"\r\n\r\n")[1:]] == [b"{}HT", b"live", b"{}HT", b"live", b"{}"]
    assert answers.count(b"HTTP/1.1 200 OK") == 5
    assert [(line.path, line.outcome, line.status) for line in world.lines()] == [
        ("/a", "hit", 200),
        ("/new", "accepted", 200),
        ("/a", "hit", 200),
        ("/new", "accepted", 200),
        ("/a", "hit", 200),
    ]


def test_others_are_answered_while_one_waits_for_elsewhere(world: World) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow(missed: Miss) -> Hit:
        asked.set()
        assert go_on.wait(300)
        return found_live(missed)

    with world.serve(tape(recorded()), elsewhere=slow), world.connect() as waiting:
        waiting.sendall(get("/new") + get("/a", CLOSE))
        assert asked.wait(300)
        assert world.exchange(get("/a", CLOSE)).endswith(b"{}")
        go_on.set()
        assert read_all(waiting).count(b"HTTP/1.1 200 OK") == 2
    assert [line.outcome for line in world.lines()] == ["hit", "accepted", "hit"]


def test_a_client_that_goes_while_elsewhere_is_asked_and_an_end_meanwhile_harm_nobody(world: World) -> None:
    asked, go_on = threading.Semaphore(0), threading.Event()

    def slow(missed: Miss) -> Hit:
        asked.release()
        assert go_on.wait(300)
        return found_live(missed)

    with world.serve(tape(recorded()), elsewhere=slow):
        with world.connect() as gone:
            gone.sendall(get("/new"))
            assert asked.acquire(timeout=300)
        waiting = world.connect()
        waiting.sendall(get("/new"))
        assert asked.acquire(timeout=300)
        assert world.exchange(get("/a", CLOSE)).endswith(b"{}")
    with waiting, contextlib.suppress(ConnectionResetError):
        assert read_all(waiting) == b""
    go_on.set()
    assert [line.path for line in world.lines()] == ["/a"]


def test_what_nobody_knows_elsewhere_is_a_miss_as_ever(world: World) -> None:
    with world.serve(tape(recorded()), elsewhere=lambda _: None):
        assert b"unrecorded_call" in world.exchange(get("/new", CLOSE))
    assert [(line.outcome, line.kind) for line in world.lines()] == [("miss", "no_match")]


def test_a_client_that_waits_for_100_continue_gets_it_after_an_answer_from_elsewhere(world: World) -> None:
    with world.serve(tape(recorded(), call("POST", "/pay", {"a": 1})), elsewhere=found_live), world.connect() as client:
        client.sendall(get("/new") + post("/pay", b"", "Expect: 100-continue").replace(b"Content-Length: 0", MEDIA_7))
        got = b""
        while b"100 Continue" not in got:
            got += client.recv(65536)
        assert got.index(b"200 OK") < got.index(b"100 Continue")
        client.sendall(b'{"a":1}')
        client.shutdown(socket.SHUT_WR)
        assert b"200 OK" in read_all(client)


MEDIA_7 = b"Content-Type: application/json\r\nContent-Length: 7"
