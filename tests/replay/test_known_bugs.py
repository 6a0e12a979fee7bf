"""Bugs that people reported of other record and replay tools, each as a conversation with ours.

The number is its place in the study of such tools that the formats rest on; the reference, where it was reported.
`tests/record/test_known_bugs.py` has those of recorders and importers, and sees that no number is missing.
"""

import base64
import contextlib
import gzip
import hashlib
import http.client
import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args

import pytest

from scoresheet import canonical
from scoresheet.documents.manifest import Manifest
from scoresheet.documents.task import Call
from scoresheet.documents.tool import Request
from scoresheet.errors import Refused, Usage
from scoresheet.pack import fingerprint, freezer
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import Settings
from scoresheet.replay.dns import NameLog
from scoresheet.replay.hosts import Hosts
from scoresheet.replay.http import Public, ReplayServer
from scoresheet.replay.journal import CallJournal, read_back
from scoresheet.replay.session import OnExhausted, Session, Tape
from tests.replay.recordings import call, tape, tool
from tests.replay.test_mcp import over_mcp, serving

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
    Bug(4, "nock#324", "the network is denied without being asked to", (), tuple(
        Ask(method, target, gives=MISS) for method in ("GET", "POST", "DELETE", "PATCH") for target in ("/", "/a?b"))),
    Bug(8, "vcrpy#1035", "?flag= is not no query", (GET,), (Ask("GET", "/a?flag=", gives=MISS),)),
    Bug(9, "betamax#110", "?123 is not ?456", (call("GET", "/a", query="123", text="x"),), (
        Ask("GET", "/a?456", gives=MISS), Ask("GET", "/a?123", gives=b"x"))),
    Bug(10, "responses#778", "an extra blank parameter", (call("GET", "/a", query="x=1"),), (
        Ask("GET", "/a?x=1&y=", gives=MISS),)),
    Bug(11, "respx#172", "order within one name counts", (call("GET", "/a", query="x=1&x=2"),), (
        Ask("GET", "/a?x=2&x=1", gives=MISS),)),
    Bug(12, "hoverfly#321", "order across names does not", (call("GET", "/a", query="x=1&y=2", text="x"),), (
        Ask("GET", "/a?y=2&x=1", gives=b"x"),)),
    Bug(13, "libvmod-querystring#53", "a[]= keeps its order", (call("GET", "/a", query="a[]=2&a[]=1", text="x"),), (
        Ask("GET", "/a?a[]=1&a[]=2", gives=MISS), Ask("GET", "/a?a%5B%5D=2&a%5b%5d=1", gives=b"x"))),
    Bug(14, "vcrpy#299", "one rule of order: by name, the values of one name as they came", (
        call("GET", "/a", query="b=1&a=2&b=0", text="x"),), (
        Ask("GET", "/a?a=2&b=1&b=0", gives=b"x"), Ask("GET", "/a?b=1&b=0&a=2", gives=b"x"),
        Ask("GET", "/a?b=0&a=2&b=1", gives=MISS))),
    Bug(15, "hoverfly#1169", "large integers keep every digit", (form("/a", ID_645.decode(), "x", JSON),), (
        Ask("POST", "/a", ID_640, JSON, MISS), Ask("POST", "/a", ID_645, JSON, b"x"))),
    Bug(16, "wiremock#1779", "123.0 is 123", (form("/a", '{"a":123.0}', "x", JSON),), (
        Ask("POST", "/a", b'{"a":123}', JSON, b"x"),)),
    Bug(17, "wiremock#2610", "1.2 is 1.2000", (form("/a", '{"a":1.2}', "x", JSON),), (
        Ask("POST", "/a", b'{"a":1.2000}', JSON, b"x"),)),
    Bug(18, "mockserver#1345", "1 is 1.0, and neither is true", (form("/a", '{"a":[{"b":1}]}', "x", JSON),), (
        Ask("POST", "/a", b'{"a":[{"b":1.0}]}', JSON, b"x"), Ask("POST", "/a", b'{"a":[{"b":10e-1}]}', JSON, b"x"),
        Ask("POST", "/a", b'{"a":[{"b":true}]}', JSON, MISS))),
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
    Bug(26, "json-canonicalization#20", "64 bits keep their last", (form("/a", f'{{"n":{2**64 - 1}}}', "x", JSON),), (
        Ask("POST", "/a", b'{"n":18446744073709551614}', JSON, MISS),
        Ask("POST", "/a", b'{"n":18446744073709551615}', JSON, b"x"))),
    Bug(28, "agent-manifest#338", "beyond 2^53 a whole number is exact, and one with a point is a double", (
        form("/a", f'{{"n":{2**53 + 1}}}', "x", JSON), form("/a", f'{{"n":{2**53}}}', "y", JSON)), (
        Ask("POST", "/a", b'{"n":9007199254740993}', JSON, b"x"),
        Ask("POST", "/a", b'{"n":9007199254740993.0}', JSON, b"y"),  # the nearest double is 2^53
        Ask("POST", "/a", b'{"n":9007199254740995}', JSON, MISS))),
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
    Bug(37, "vcrpy#842", "not the first answer for ever", (GET, call("GET", "/a", text="two")), (
        Ask("GET", "/a", gives=b"one"), Ask("GET", "/a", gives=b"two"), Ask("GET", "/a", gives=b"two"))),
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


Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Shown(Generic[Kind]):
    """A report that takes more than a conversation to show."""

    name: str
    check: Callable[[Kind], None]


def shows_in(table: dict[int, Shown[Kind]]) -> Callable[..., Callable[[Callable[[Kind], None]], None]]:
    """What puts a check into a table, by the number of its report."""

    def shows(number: int, reference: str, what: str) -> Callable[[Callable[[Kind], None]], None]:
        def keep(check: Callable[[Kind], None]) -> None:
            assert number not in table
            table[number] = Shown(f"{number} {reference} {what}", check)

        return keep

    return shows


SHOWN: dict[int, Shown[Path]] = {}
shows = shows_in(SHOWN)


@contextlib.contextmanager
def listening(count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]


def told(door: socket.socket, method: str, target: str, **headers: str) -> tuple[int, Any]:
    """Status and body of one answer; the body of a refusal as its value."""
    host, port = door.getsockname()
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=300)) as client:
        client.request(method, target, headers=headers)
        answer = client.getresponse()
        body = answer.read()
        return answer.status, json.loads(body) if answer.status == MISS else body


def frozen(root: Path, *calls: Call) -> Path:
    (root / "tasks").mkdir(parents=True)
    recorded = [json.loads(each.model_dump_json(exclude_defaults=True)) for each in calls]
    written = {"task_id": "t", "prompt": "p", "tools": [], "calls": recorded}
    (root / "tasks/t.json").write_text(json.dumps(written))
    freezer.write(root, Settings(protocol="tool-replay-v2"))
    return root


@shows(2, "mitmproxy#5024", "a refused call opens no connection to the real host")
def _(folder: Path) -> None:
    with listening(3) as (door, proxy, real), ReplayServer() as server:
        real.setblocking(False)
        address = "127.0.0.1:{1}".format(*real.getsockname())
        public = Public(Hosts.of({"api": address, "shop": "shop.example"}), server.authority, NameLog())
        session = Session(tape(GET, on_exhausted="refuse"))
        doors = {"api": door, "proxy": proxy}
        with server.episode(doors, {"api": "api"}, session, CallJournal(folder / "calls.jsonl"), public=public):
            assert [told(door, "GET", "/a")[0] for _ in range(3)] == [200, MISS, MISS]
            assert told(proxy, "GET", f"http://{address}/b")[0] == MISS
            assert told(proxy, "CONNECT", address)[0] == MISS
        with pytest.raises(BlockingIOError):
            real.accept()


@shows(
    5, "nock#2456", "no setting lets anything through: whatever a manifest says, a call without a recording is denied"
)
def _(folder: Path) -> None:
    policies = {name: Manifest.model_fields[name].annotation for name in ("on_mismatch", "on_exhausted")}
    assert [get_args(policies[name]) for name in policies] == [("stop", "continue"), ("last", "refuse")]
    for policy in get_args(OnExhausted):
        with listening(1) as (door,), ReplayServer() as server:
            session = Session(tape(GET, on_exhausted=policy))
            with server.episode({"api": door}, {"api": "api"}, session, CallJournal(folder / f"{policy}.jsonl")):
                assert told(door, "GET", "/never")[0] == MISS


@shows(6, "vcrpy#838", "no pack, no recording and no more recordings are three things")
def _(folder: Path) -> None:
    with pytest.raises(Usage, match="the folder can't be read"):
        Pack.open(folder / "none")
    with listening(1) as (door,), ReplayServer() as server:
        session = Session(tape(GET, on_exhausted="refuse"))
        with server.episode({"api": door}, {"api": "api"}, session, CallJournal(folder / "calls.jsonl")):
            assert told(door, "GET", "/a") == (200, b"one")
            assert [told(door, "GET", path)[1]["kind"] for path in ("/a", "/b")] == ["exhausted", "no_match"]


@shows(7, "pollyjs#357", "a replay writes nothing into what it replays")
def _(folder: Path) -> None:
    root = frozen(folder / "pack", GET)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*.json")}
    pack = Pack.open(root)
    with listening(1) as (door,), ReplayServer() as server:
        session = Session(Tape.of(pack.task("t"), pack.tools))
        with server.episode({"api": door}, {"api": "api"}, session, CallJournal(folder / "calls.jsonl")):
            assert [told(door, "GET", path)[0] for path in ("/a", "/b", "/a")] == [200, MISS, 200]
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*.json")} == before


@shows(27, "Cpanel-JSON-XS#248", "members are sorted by UTF-16, as RFC 8785 says, not by code point")
def _(_: Path) -> None:
    assert canonical.jcs({"\ufb33": 1, "\U0001f602": 2}).decode() == '{"\U0001f602":2,"\ufb33":1}'
    asked = Request("api", "POST", "/a", (("content-type", JSON),), '{"\ufb33":1,"\U0001f602":2}'.encode())
    start = '{"body":["json",{"\U0001f602":2,"\ufb33":1}],"method":"POST","path":"/a",'
    written = start + '"query":[],"upstream":"api","v":2,"vary":[]}'
    assert fingerprint.v2(asked) == "sha256:" + hashlib.sha256(written.encode()).hexdigest()


@shows(33, "wiremock#3506", "askers at one time each get a place of their own, and none is refused")
def _(folder: Path) -> None:
    count, askers = 96, 16
    calls = tuple(call("GET", "/a", text=str(number)) for number in range(count))
    with listening(1) as (door,), ReplayServer() as server, ThreadPoolExecutor(askers) as pool:
        session = Session(tape(*calls, on_exhausted="refuse"))
        with server.episode({"api": door}, {"api": "api"}, session, CallJournal(folder / "calls.jsonl")):
            found = list(pool.map(lambda _: told(door, "GET", "/a"), range(count)))
            assert told(door, "GET", "/a")[1]["kind"] == "exhausted"
    assert sorted(int(body) for _, body in found) == list(range(count))


@shows(38, "vcrpy#929", "an exhausted call says how often it was recorded")
def _(folder: Path) -> None:
    with listening(1) as (door,), ReplayServer() as server:
        session = Session(tape(GET, GET, on_exhausted="refuse"))
        with server.episode({"api": door}, {"api": "api"}, session, CallJournal(folder / "calls.jsonl")):
            said = [told(door, "GET", "/a")[1] for _ in range(3)][-1]
    assert (said["kind"], said["difference"]) == ("exhausted", ["recorded 2 times, asked once more"])


@shows(42, "pollyjs#340", "episodes at one time do not take each other's answers")
def _(folder: Path) -> None:
    calls = tuple(call("GET", "/a", text=str(number)) for number in range(20))
    shared = tape(*calls, on_exhausted="refuse")
    with listening(8) as doors, ReplayServer() as server, contextlib.ExitStack() as stack:
        for number, door in enumerate(doors):
            journal = CallJournal(folder / f"{number}.jsonl")
            stack.enter_context(server.episode({"api": door}, {"api": "api"}, Session(shared), journal))
        with ThreadPoolExecutor(len(doors)) as pool:
            said = pool.map(lambda door: [int(told(door, "GET", "/a")[1]) for _ in calls], doors)
            assert list(said) == [list(range(20))] * 8


@shows(67, "mcpsnoop#208", "MCP matches without _meta and gives back the id of the request; websockets are refused")
def _(folder: Path) -> None:
    result = {"content": [{"type": "text", "text": "12"}]}
    recorded = over_mcp("price", {"n": 1}, result)
    with serving(folder, tape(recorded, tools=(tool("price", {"type": "object"}),))) as door:
        for number, meta in (7, {"progressToken": 3}), ("eight", {"progressToken": "x", "io.example/trace": [1]}):
            params = {"name": "price", "arguments": {"n": 1}, "_meta": meta}
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            status, body = door.send(json.dumps(message).encode())
            said = json.loads(body)
            assert (status, said["id"], said["result"]["content"]) == (200, number, result["content"])
    redacted = recorded.request.model_copy(update={"body": {"n": "[REDACTED]"}})
    with pytest.raises(Refused) as refused:  # it would match nothing that was ever asked
        frozen(folder / "pack", recorded.model_copy(update={"request": redacted}))
    assert [finding.rule for finding in refused.value.findings] == ["task-fingerprint"]
    with listening(1) as (web,), ReplayServer() as server:
        with server.episode({"api": web}, {"api": "api"}, Session(tape(GET)), CallJournal(folder / "w.jsonl")):
            asked = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x"}
            status, said = told(web, "GET", "/a", **asked)
    assert (status, said["what"]) == (MISS, "websockets are not replayed")


@pytest.mark.parametrize("number", SHOWN, ids=lambda number: SHOWN[number].name)
def test_a_bug_that_takes_more_to_show_is_none_of_ours_either(tmp_path: Path, number: int) -> None:
    SHOWN[number].check(tmp_path)
