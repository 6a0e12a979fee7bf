"""Bugs that people reported of other record and replay tools, each as a conversation with ours.

The number is its place in the study of such tools that the formats rest on; the reference, where it was reported.
"""

import base64
import gzip
import http.client
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scoresheet.documents.task import Call
from scoresheet.replay.http import ReplayServer
from scoresheet.replay.journal import CallJournal, read_back
from scoresheet.replay.session import OnExhausted, Session
from tests.replay.recordings import call, tape

MISS = 403
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Ask:
    """One request of the conversation, and what must come back."""

    method: str
    target: str
    body: bytes = b""
    media: str = ""
    gives: bytes | int = b""
    """Body of a hit, or the status."""
    encoding: str = ""


@dataclass(frozen=True)
class Bug:
    number: int
    reference: str
    what: str
    calls: tuple[Call, ...]
    asks: tuple[Ask, ...]
    on_exhausted: OnExhausted = "last"


def form(path: str, body: str, text: str = "ok", media: str = FORM) -> Call:
    return call("POST", path, text=text, request={"body_text": body, "headers": (("Content-Type", media),)})


def binary(path: str, body: bytes, text: str, *headers: tuple[str, str]) -> Call:
    return call("POST", path, text=text, request={"body_base64": base64.b64encode(body).decode(), "headers": headers})


def multipart(boundary: str) -> bytes:
    return f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--{boundary}--\r\n'.encode()


GET = call("GET", "/a", text="one")
ID_645, ID_640 = b'{"id":9007199254740645645}', b'{"id":9007199254740645640}'

BUGS = (
    Bug(1, "mitmproxy#8363", "after the last recording the policy still holds", (GET,), (
        Ask("GET", "/a", gives=b"one"), Ask("GET", "/a", gives=MISS), Ask("GET", "/b", gives=MISS)), "refuse"),
    Bug(3, "nock#264", "nothing is passed on", (GET,), (Ask("DELETE", "/a", gives=MISS),)),
    Bug(8, "vcrpy#1035", "?flag= is not no query", (GET,), (Ask("GET", "/a?flag=", gives=MISS),)),
    Bug(9, "betamax#110", "?123 is not ?456", (call("GET", "/a", query="123", text="x"),), (
        Ask("GET", "/a?456", gives=MISS), Ask("GET", "/a?123", gives=b"x"))),
    Bug(10, "responses#778", "an extra blank parameter", (call("GET", "/a", query="x=1"),), (
        Ask("GET", "/a?x=1&y=", gives=MISS),)),
    Bug(11, "respx#172", "order within one name counts", (call("GET", "/a", query="x=1&x=2"),), (
        Ask("GET", "/a?x=2&x=1", gives=MISS),)),
    Bug(12, "hoverfly#321", "order across names does not", (call("GET", "/a", query="x=1&y=2", text="x"),), (
        Ask("GET", "/a?y=2&x=1", gives=b"x"),)),
    Bug(15, "hoverfly#1169", "large integers keep every digit", (form("/a", ID_645.decode(), "x", JSON),), (
        Ask("POST", "/a", ID_640, JSON, MISS), Ask("POST", "/a", ID_645, JSON, b"x"))),
    Bug(16, "wiremock#1779", "123.0 is 123", (form("/a", '{"a":123.0}', "x", JSON),), (
        Ask("POST", "/a", b'{"a":123}', JSON, b"x"),)),
    Bug(17, "wiremock#2610", "1.2 is 1.2000", (form("/a", '{"a":1.2}', "x", JSON),), (
        Ask("POST", "/a", b'{"a":1.2000}', JSON, b"x"),)),
    Bug(19, "mockserver#2658", "a recorded body is never written anew", (call("GET", "/a", text='{"a":275.0 }'),), (
        Ask("GET", "/a", gives=b'{"a":275.0 }'),)),
    Bug(20, "mockserver#1740", "0.00 stays 0.00", (call("GET", "/a", text="0.00"),), (
        Ask("GET", "/a", gives=b"0.00"),)),
    Bug(22, "wiremock#1152", "no body is neither null nor {}", (call("POST", "/a", text="x"),), (
        Ask("POST", "/a", gives=b"x"), Ask("POST", "/a", b"null", JSON, MISS), Ask("POST", "/a", b"{}", JSON, MISS))),
    Bug(24, "vcrpy#166", "a declared encoding is undone", (form("/a", '{"a":1}', "x", JSON),), (
        Ask("POST", "/a", gzip.compress(b'{"a":1}'), JSON, b"x", "gzip"),)),
    Bug(25, "wiremock#171", "the body is always in the key", (form("/a", '{"a":1}', "x", JSON),), (
        Ask("POST", "/a", b'{"a":2}', JSON, MISS),)),
    Bug(29, "hoverfly#679", "every answer of a repeated request", (GET, call("GET", "/a", text="two")), (
        Ask("GET", "/a", gives=b"one"), Ask("GET", "/a", gives=b"two"))),
    Bug(30, "hoverfly#764", "three sequences, three counters", tuple(
        call("GET", f"/{name}", text=f"{name}{n}") for name in "abc" for n in (1, 2)), tuple(
        Ask("GET", f"/{name}", gives=f"{name}{n}".encode()) for n in (1, 2) for name in "cab")),
    Bug(31, "wiremock#2364", "in recorded order, not in reverse", tuple(
        call("GET", "/a", text=str(n)) for n in range(3)), tuple(Ask("GET", "/a", gives=b"%d" % n) for n in range(3))),
    Bug(32, "wiremock#1015", "parameters do not share a state", (
        call("GET", "/a", query="p=1", text="1a"), call("GET", "/a", query="p=1", text="1b"),
        call("GET", "/a", query="p=2", text="2a")), (
        Ask("GET", "/a?p=1", gives=b"1a"), Ask("GET", "/a?p=2", gives=b"2a"), Ask("GET", "/a?p=1", gives=b"1b"))),
    Bug(39, "vcr#971", "429, then 200", (call("GET", "/a", text="slow down", status=429), GET), (
        Ask("GET", "/a", gives=429), Ask("GET", "/a", gives=b"one"))),
    Bug(40, "WireMock.Net#632", "GET, POST, GET", (
        call("GET", "/a", text="before"), form("/a", "x=1", "made"), call("GET", "/a", text="after")), (
        Ask("GET", "/a", gives=b"before"), Ask("POST", "/a", b"x=1", FORM, b"made"), Ask("GET", "/a", gives=b"after"))),
    Bug(43, "vcr#960", "the boundary of a form is chance", (
        binary("/a", multipart("one"), "x", ("Content-Type", "multipart/form-data; boundary=one")),), (
        Ask("POST", "/a", multipart("two"), "multipart/form-data; boundary=two", b"x"),)),
    Bug(44, "vcrpy#719", "gzip as it was on the wire", (
        call("GET", "/a", response_base64=base64.b64encode(gzip.compress(b"hi", mtime=0)).decode(),
             response_headers=(("Content-Encoding", "gzip"),)),), (
        Ask("GET", "/a", gives=gzip.compress(b"hi", mtime=0)),)),
    Bug(48, "vcr-test#6", "application/gzip is a type, not an encoding", (
        binary("/a", gzip.compress(b"hi", mtime=0), "x", ("Content-Type", "application/gzip")),), (
        Ask("POST", "/a", gzip.compress(b"hi", mtime=0), "application/gzip", b"x"),
        Ask("POST", "/a", b"hi", "application/gzip", MISS))),
    Bug(49, "hoverfly#467", "binary requests", (binary("/a", b"\xff\xfe", "x"), binary("/a", b"\xfe\xff", "y")), (
        Ask("POST", "/a", b"\xfe\xff", gives=b"y"), Ask("POST", "/a", b"\xff\xfe", gives=b"x"),
        Ask("POST", "/a", b"\xff\xff", gives=MISS))),
    Bug(52, "wiremock#1548", "an unmatched gzip request is told", (GET,), (
        Ask("POST", "/a", gzip.compress(b"{}"), JSON, MISS, "gzip"),)),
    Bug(53, "mitmproxy#6547", "HEAD keeps its length", (
        call("HEAD", "/a", text="", response_headers=(("Content-Length", "77"),)), GET), (
        Ask("HEAD", "/a", gives=200), Ask("GET", "/a", gives=b"one"))),
    Bug(55, "hoverfly#697", "an empty body has its length", (call("GET", "/a", text=""), call("GET", "/b", text="b")), (
        Ask("GET", "/a", gives=b""), Ask("GET", "/b", gives=b"b"))),
    Bug(56, "keploy#4360", "204 and 304 have no body to wait for", (
        call("GET", "/a", text="", status=204), call("GET", "/b", text="", status=304), call("GET", "/c", text="c")), (
        Ask("GET", "/a", gives=204), Ask("GET", "/b", gives=304), Ask("GET", "/c", gives=b"c"))),
    Bug(58, "vcrpy#597", "streams keep their chunks", (call("GET", "/a", text="onetwo", stream=(3, 6)),), (
        Ask("GET", "/a", gives=b"onetwo"), Ask("GET", "/a", gives=b"onetwo"))),
    Bug(60, "wiremock#527", "%2F is no slash", (call("GET", "/a%2Fb", text="x"),), (
        Ask("GET", "/a/b", gives=MISS), Ask("GET", "/a%2fb", gives=b"x"))),
    Bug(61, "vcrpy#456", "each hop of a redirect", (
        call("GET", "/a", text="go", status=302, response_headers=(("Location", "/b"),)),
        call("GET", "/b", text="b")), (
        Ask("GET", "/a", gives=302), Ask("GET", "/b", gives=b"b"))),
    Bug(66, "tailored-ai#550", "the member that differs is named", (form("/a", '{"run":{"id":1}}', "x", JSON),), (
        Ask("POST", "/a", b'{"run":{"id":2}}', JSON, MISS),)),
)  # fmt: skip


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ReplayServer() as server:

        def conversation(bug: Bug, converse: Callable[[http.client.HTTPConnection], None]) -> Path:
            path = tmp_path_factory.mktemp("bug") / "calls.jsonl"
            with socket.create_server(("127.0.0.1", 0)) as listening:
                session = Session(tape(*bug.calls, on_exhausted=bug.on_exhausted))
                with server.episode({"api": listening}, {"api": "api"}, session, CallJournal(path)):
                    host, port = listening.getsockname()
                    client = http.client.HTTPConnection(host, port, timeout=300)
                    converse(client)
                    client.close()
            return path

        yield conversation


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.number} {bug.reference} {bug.what}")
def test_a_bug_of_another_tool_is_none_of_ours(serve: Any, bug: Bug) -> None:
    def converse(client: http.client.HTTPConnection) -> None:
        for ask in bug.asks:
            headers = {"Content-Type": ask.media, "Content-Encoding": ask.encoding}
            client.request(ask.method, ask.target, ask.body, {name: value for name, value in headers.items() if value})
            answer = client.getresponse()
            body = answer.read()
            assert (answer.status if isinstance(ask.gives, int) else body) == ask.gives, ask
            if ask.method == "HEAD":
                assert answer.getheader("content-length") == "77"

    lines = [read_back(line) for line in serve(bug, converse).read_bytes().splitlines()]
    assert [line.outcome == "miss" for line in lines] == [ask.gives == MISS for ask in bug.asks]
    if bug.number == 66:
        assert lines[0].nearest is not None
        assert lines[0].nearest.difference == ("body /run/id: recorded 1, asked 2",)
