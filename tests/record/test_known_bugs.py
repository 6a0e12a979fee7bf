"""Bugs that people reported of recorders and importers, each as bytes that are recorded, frozen and replayed.

The second half of the table in `tests/replay/test_known_bugs.py`. A row is what a client sends, what the service
answers, and what a replay must answer: the service's own bytes, unless the row says otherwise.
"""

import base64
import contextlib
import gzip
import json
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scoresheet.cli.app import run
from scoresheet.documents.task import Task
from scoresheet.pack.folder import Pack
from scoresheet.replay.http import ReplayServer
from scoresheet.replay.journal import CallJournal
from scoresheet.replay.session import Session, Tape
from tests.record.importers.replayed import gathered
from tests.record.scripted import Scripted, Step, exchange, scripted
from tests.replay.test_known_bugs import BUGS, Shown, shows_in
from tests.replay.test_known_bugs import SHOWN as SHOWN_BY_REPLAY

AGENT = str(Path(__file__).with_name("raw_agent.py"))
PACKED = gzip.compress(b'{"a": 1}', mtime=1)
SECRET = "s3cr3t-9f8e7d6c5b4a39281706"


def request(line: str, body: bytes = b"", *headers: str) -> bytes:
    length = (f"Content-Length: {len(body)}",) if body else ()
    return "\r\n".join((f"{line} HTTP/1.1", "Host: x", "Connection: close", *headers, *length, "", "")).encode() + body


def answer(body: bytes = b"", *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    lines = (f"HTTP/1.1 {status}", "Content-Type: text/plain", *headers, f"Content-Length: {size}")
    return "\r\n".join((*lines, "", "")).encode() + body


def kept(sent: bytes) -> bytes:
    """An answer without the header that belongs to its connection."""
    head, end, body = sent.partition(b"\r\n\r\n")
    return b"\r\n".join(line for line in head.split(b"\r\n") if line.lower() != b"connection: close") + end + body


class World:
    """Where a task is recorded and replayed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.pack = folder, folder / "pack"

    def record(self, service: Scripted, messages: Sequence[bytes], *options: str, how: str = "one-by-one") -> int:
        words = ["record", str(self.pack), "--task", "t", "--prompt", "p", "--expect-stdout", *options]
        sent = [base64.b64encode(message).decode() for message in messages]
        return run([*words, "--upstream", f"API={service.address}", "--", sys.executable, AGENT, how, *sent])

    def task(self) -> Task:
        return Task.from_bytes((self.pack / "tasks/t.json").read_bytes(), "t.json")

    def text(self) -> str:
        return "".join(path.read_text() for path in sorted(self.pack.rglob("*")) if path.is_file())

    @contextlib.contextmanager
    def replaying(self) -> Iterator[str]:
        assert run(["freeze", str(self.pack), "-q"]) == 0
        pack = Pack.open(self.pack)
        journal = self.folder / f"calls-{len(tuple(self.folder.iterdir()))}.jsonl"
        with ReplayServer() as server, socket.create_server(("127.0.0.1", 0)) as listening:
            session = Session(Tape.of(pack.task("t"), pack.tools))
            with server.episode({"API": listening}, {"API": "API"}, session, CallJournal(journal)):
                yield f"http://127.0.0.1:{listening.getsockname()[1]}"

    def replay(self, *messages: bytes) -> list[bytes]:
        with self.replaying() as address:
            return [kept(exchange(address, message, 300)) for message in messages]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@dataclass(frozen=True)
class Taped:
    number: int
    reference: str
    what: str
    asks: tuple[bytes, ...]
    answers: tuple[bytes, ...]
    gives: tuple[bytes, ...] | None = None
    """Answers of the replay, where they are not the service's own bytes."""


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
COOKIES = ("Set-Cookie: theme=dark", "X-Between: 1", "set-cookie: lang=en", "Set-Cookie: theme=dark")
BLANKED = (
    "Set-Cookie: theme=REDACTED-1",
    "X-Between: 1",
    "set-cookie: lang=REDACTED-2",
    "Set-Cookie: theme=REDACTED-1",
)
TAPED = (
    Taped(21, "pact-js#77", "1.0 is not written as 1", (request("GET /a"),), (answer(b'{"price": 1.0, "n":1e0}'),)),
    Taped(23, "WireMock.Net#715", "what was recorded is matched again", (
        request("POST /a", b'{"a": NaN, "a": 1}', "Content-Type: application/json"),
        request("POST /a", b'--x\r\nContent-Disposition: form-data; name="*[.]?"\r\n\r\n(a|b)\r\n--x--\r\n',
                "Content-Type: multipart/form-data; boundary=x"),
        request("POST /%2A/[x]?a=%5B.*%5D&a=&a", b"b=%zz&c=*", "Content-Type: application/x-www-form-urlencoded"),
        request("POST /a", b"\xff{not json", "Content-Type: application/json")),
        tuple(answer(b"answer %d" % n) for n in range(4))),
    Taped(36, "vcrpy#475", "every answer is kept, not the last one", (request("GET /a"),) * 3,
          (answer(b"first"), answer(b"second"), answer(b"third"))),
    Taped(46, "vcrpy#661", "an empty body is not decoded", (request("HEAD /a"), request("GET /a"), request("GET /b")), (
        answer(b"", "Content-Encoding: gzip", length=77), answer(b"", "Content-Encoding: gzip"),
        b"HTTP/1.1 304 Not Modified\r\nContent-Encoding: gzip\r\nETag: \"1\"\r\n\r\n")),
    Taped(47, "nock#1001", "text that looks like hexadecimal digits is text", (
        request("GET /a"), request("GET /b"), request("GET /c"), request("GET /d")), (
        answer(b"1f8b0800"), answer(b"deadBEEF", "Content-Encoding: identity"), answer(b"\x1f\x8b\x08\x00"),
        answer(PACKED, "Content-Encoding: gzip"))),
    Taped(50, "wiremock#690", "bytes that are no text stay those bytes", (
        request("POST /a", b"\xff\xfe\x80"), request("POST /a", b"\xef\xbf\xbd")), (
        answer(b"\xff\xfe\x80\xc3"), answer(b"\xef\xbf\xbd"))),
    Taped(51, "wiremock#542", "a gzipped request is passed on as it is", (
        request("POST /a", PACKED, "Content-Type: application/json", "Content-Encoding: gzip"),), (answer(b"x"),)),
    Taped(54, "wiremock#1169", "an answer to HEAD keeps its length", (request("HEAD /a"), request("GET /a")), (
        answer(length=1234), answer(b"after"))),
    Taped(57, "wiremock#406", "a length stays a length, and chunks chunks", (request("GET /a"), request("GET /b")), (
        answer(b"whole"),
        CHUNKED + b"Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n5;x=y\r\ntwo--\r\n0\r\nT: 1\r\n\r\n"), (
        answer(b"whole"),
        CHUNKED + b"transfer-encoding: chunked\r\n\r\n3\r\none\r\n5\r\ntwo--\r\n0\r\n\r\n")),
    Taped(59, "vcr#542", "headers that are repeated stay apart, in their order", (request("GET /a"),), (
        answer(b"x", *COOKIES, "Link: a", "Link: b"),), (answer(b"x", *BLANKED, "Link: a", "Link: b"),)),
)  # fmt: skip


@pytest.mark.parametrize("row", TAPED, ids=lambda row: f"{row.number} {row.reference} {row.what}")
def test_a_bug_of_another_recorder_is_none_of_ours(world: World, row: Taped) -> None:
    left = iter(row.answers)
    with scripted(react=lambda _: (next(left),)) as service:
        assert world.record(service, row.asks) == 0
    assert world.replay(*row.asks) == list(row.gives or row.answers)
    passed_on = [message.partition(b"\r\n\r\n")[2] for message in service.requests]
    assert passed_on == [message.partition(b"\r\n\r\n")[2] for message in row.asks]


SHOWN: dict[int, Shown[World]] = {}
"""Reports that take more than one recording to show."""
shows = shows_in(SHOWN)


@shows(34, "wiremock#90", "two equal requests at one time are both recorded")
def _(world: World) -> None:
    both, numbers = threading.Barrier(2), iter((b"one", b"two"))

    def react(_: bytes) -> tuple[Step, ...]:
        both.wait(120)
        return (answer(next(numbers)),)

    asks = (request("GET /a"),) * 2
    with scripted(react=react) as service:
        assert world.record(service, asks, how="at-once") == 0
    assert sorted(told[-3:] for told in world.replay(*asks)) == [b"one", b"two"]


@shows(35, "wiremock#1034", "recording again does not double what was recorded")
def _(world: World) -> None:
    with scripted(answer(b"x")) as service:
        assert world.record(service, [request("GET /a")]) == 0
        assert world.record(service, [request("GET /a")]) != 0  # not by accident
        assert world.record(service, [request("GET /a")], "--replace") == 0
    assert len(world.task().calls) == 1


@shows(41, "vcrpy#849", "many threads lose no recording")
def _(world: World) -> None:
    asks = [request(f"GET /{number}") for number in range(64)]
    with scripted(react=lambda sent: (answer(sent.split(b" ")[1]),)) as service:
        assert world.record(service, asks, how="at-once") == 0
    assert len(world.task().calls) == 64
    assert [told.partition(b"\r\n\r\n")[2] for told in world.replay(*asks)] == [b"/%d" % n for n in range(64)]


@shows(45, "responses#724", "a header says gzip, and the body is not: never both in a replay")
def _(world: World) -> None:
    with scripted(answer(b"plain", "Content-Encoding: gzip")) as service:
        assert world.record(service, [request("GET /a")]) != 0  # it can't be searched for credentials
    assert not world.pack.exists()
    decoded = (
        "interactions:\n- request: {method: GET, uri: 'https://api.test/a', body: null, headers: {}}\n"
        "  response: {body: {string: plain}, headers: {Content-Encoding: [gzip]}, status: {code: 200, message: OK}}\n"
        "version: 1\n"
    )
    (found,) = gathered("vcr", decoded, "c.yaml").exchanges
    assert (found.response.body, found.response.headers) == (b"plain", ())


@shows(62, "vcr#650", "a reset and a timeout are recorded, and happen again")
def _(world: World) -> None:
    steps: dict[bytes, tuple[Step, ...]] = {
        b"/reset": ("reset",),
        b"/silent": (1.5,),
        b"/cut": (answer(b"x", length=9),),
    }
    asks = [request(f"GET {path.decode()}") for path in steps]
    with scripted(react=lambda sent: steps[sent.split(b" ")[1]]) as service:
        assert world.record(service, asks, "--timeout-s", "0.5") == 0
    assert [call.fault for call in world.task().calls] == ["connection_reset", "timeout", "truncated"]
    with world.replaying() as address:
        with pytest.raises(ConnectionResetError):
            exchange(address, asks[0])
        assert exchange(address, asks[1]) == b""
        assert kept(exchange(address, asks[2])) == answer(b"x", length=9)


@shows(63, "melcloudhome#223", "a cookie is a credential whatever the case of its header")
def _(world: World) -> None:
    asks = [request("GET /a"), request("GET /b", b"", f"COOKIE: sid={SECRET}"), request("GET /c")]
    lines = iter((f"Set-Cookie: sid={SECRET}; Path=/", f"SET-COOKIE: sid={SECRET}", f"x-echo: {SECRET}"))
    with scripted(react=lambda _: (answer(b"hello " + SECRET.encode(), next(lines)),)) as service:
        assert world.record(service, asks) == 0
    assert SECRET not in world.text()
    assert all(b"REDACTED-1" in told and SECRET.encode() not in told for told in world.replay(*asks))


@shows(64, "ubuntu.com#16555", "a header that nobody thought of is not kept")
def _(world: World) -> None:
    headers = (f"Api-Key: {SECRET}", f"X-Corp-Ticket: {SECRET[::-1]}", "Accept: text/plain")
    with scripted(react=lambda _: (answer(b"x", f"Api-Key: {SECRET}"),)) as service:
        assert world.record(service, [request("GET /a", b"", *headers)]) == 0
    assert SECRET not in world.text()
    assert SECRET[::-1] not in world.text()
    (recorded,) = world.task().calls
    assert [name for name, _ in recorded.request.headers] == ["Accept"]


def entry(**response: Any) -> dict[str, Any]:
    """One entry of a HAR, as browsers write them."""
    asked = {"method": "GET", "url": "https://api.test/a", "httpVersion": "HTTP/1.1", "headers": [], "cookies": []}
    given = {"status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "headers": [], "cookies": []}
    given |= {"redirectURL": "", "headersSize": -1, "bodySize": -1, "content": {"size": 0, "mimeType": "text/plain"}}
    request = asked | {"queryString": [], "headersSize": -1, "bodySize": 0} | response.pop("request", {})
    return {
        "startedDateTime": "2026-01-01T00:00:00.000Z",
        "time": 1,
        "cache": {},
        "timings": {"send": 0, "wait": 1, "receive": 0},
        "request": request,
        "response": given | response,
    }


def har(*entries: dict[str, Any]) -> str:
    return json.dumps({"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": entries}})


@shows(65, "archiveweb.page#64", "a body that is missing or cut is never imported as an empty one")
def _(_: World) -> None:
    def text(size: int, **more: str) -> dict[str, Any]:
        return {"content": {"size": size, "mimeType": "text/plain", **more}}

    def posted(size: int, **data: str) -> dict[str, Any]:
        return {
            "method": "POST",
            "bodySize": size,
            **({"postData": {"mimeType": "text/plain", **data}} if data else {}),
        }

    bad = {
        "dropped": entry(**text(12)),
        "cut": entry(**text(1_048_576, text="x" * 1000)),
        "binary as text": entry(**text(4, text="\ufffd\ufffdPNG")),
        "no request body": entry(request=posted(12), **text(1, text="x")),
        "request body cut": entry(request=posted(12, text="x"), **text(1, text="x")),
    }
    found = gathered("har", har(*bad.values(), entry(request=posted(2, text="hi"), **text(1, text="x"))), "f.har")
    assert [(each.request.body, each.response.body) for each in found.exchanges] == [(b"hi", b"x")]
    rules = [finding.rule for finding in found.left_out]
    assert rules == [
        "import-body-missing",
        "import-body-cut",
        "import-body-cut",
        "import-body-missing",
        "import-body-cut",
    ]


@pytest.mark.parametrize("number", SHOWN, ids=lambda number: SHOWN[number].name)
def test_a_bug_that_takes_more_to_show_is_none_of_ours_either(world: World, number: int) -> None:
    SHOWN[number].check(world)


def test_every_report_of_the_study_is_a_row() -> None:
    numbers = [row.number for row in (*BUGS, *TAPED)] + [*SHOWN_BY_REPLAY, *SHOWN]
    assert sorted(numbers) == list(range(1, 68))
