"""Calls are recorded through the live door from a scripted model, and played back through the other one."""

import ast
import contextlib
import socket
import threading
from typing import Any

import httpx
import openai
import pytest

from scoresheet.model import playback
from scoresheet.model.entry import MODEL_LOG, read_back
from scoresheet.model.log import ModelLog
from scoresheet.model.playback import PlaybackDoor, SharedTape
from scoresheet.model.recording import Tape
from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from tests.model.doors import Service, opened, says
from tests.model.entries import entry

PATH = "/v1/chat/completions"
TURNS = {"turns": [{"tool": "lookup", "arguments": {"id": 7}}, {"text": "done, ünd \n\n über"}]}
CHAT: Any = {"model": "m", "messages": [{"role": "user", "content": "a"}]}


class Told(SharedTape):
    """A tape that says when it was asked."""

    def __init__(self, tape, asked):
        super().__init__(tape)
        self._asked = asked

    def ask(self, *call):
        self._asked.set()
        return super().ask(*call)


@contextlib.contextmanager
def replayed(folder, entries, kind="openai", asked=None):
    """(URL of a door to that recording, a function that ends it and gives what it kept, what it told)."""
    folder.mkdir()
    heard = []
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        log = ModelLog(folder / MODEL_LOG)
        stack.callback(log.close)
        episode = stack.enter_context(contextlib.ExitStack())
        tape = Told(Tape(entries), asked or threading.Event())
        episode.enter_context(PlaybackDoor(kind).episode(listening, log, tape, on_exchange=heard.append))

        def kept():
            episode.close()
            return list(read_back((folder / MODEL_LOG).read_bytes()))

        yield f"http://127.0.0.1:{listening.getsockname()[1]}", kept, heard


def raw(url, body, path=PATH):
    """Everything that comes back, byte for byte, until the door closes."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port)), 300) as client:
        client.sendall(head.encode() + body)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(65536):
                found += piece
    return found


def dechunked(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head.lower():
        return head, body
    plain = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        plain, body = plain + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return head, plain


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "path"), [("openai", PATH), ("openai", "/v1/responses"), ("anthropic", "/v1/messages?beta=true")]
)
def test_an_answer_comes_back_byte_for_byte_with_its_head(tmp_path, kind, path, stream):
    told = f'"stream":{"true" if stream else "false"},"max_tokens":9'
    body = f'{{"model":"m",{told},"messages":[{{"role":"user","content":"a"}}],"input":"a"}}'.encode()
    with ModelStub(Script.of(TURNS)) as stub, opened(tmp_path, f"{stub.address}/v1", kind=kind) as door:
        live = raw(door.url, body, path)
        recorded = door.entries()
    with replayed(tmp_path / "again", recorded, kind) as (url, kept, heard):
        assert dechunked(raw(url, body, path)) == dechunked(live)
        (entry,) = kept()
    (before,) = recorded
    assert (entry.status, entry.response, entry.response_headers) == (200, before.response, before.response_headers)
    assert entry.exchange().found == before.exchange().found == heard[0].found


def test_real_clients_run_on_a_recording_and_a_call_too_many_is_refused_once(tmp_path):
    def loop(url):
        with openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=2, timeout=300) as client:
            first = client.chat.completions.create(**CHAT)
            told: Any = [{"role": "assistant", "content": "so"}, *CHAT["messages"]]
            events = client.chat.completions.create(model="m", messages=told, stream=True)
            return first.choices[0].message.tool_calls[0].id, "".join(e.choices[0].delta.content or "" for e in events)

    with ModelStub(Script.of(TURNS)) as stub, opened(tmp_path, f"{stub.address}/v1") as door:
        live = loop(door.url)
        recorded = door.entries()
    with replayed(tmp_path / "again", recorded) as (url, kept, heard):
        assert loop(url) == live
        with pytest.raises(openai.PermissionDeniedError, match="recorded once, and is asked once more"):
            loop(url)
        entries = kept()
    assert [entry.fault for entry in entries] == [None, None, "unrecorded"]
    assert [exchange.unrecorded for exchange in heard] == [False, False, True]


def test_a_miss_speaks_as_its_provider_does(tmp_path):
    with replayed(tmp_path / "again", [], "anthropic") as (url, kept, _):
        answer = httpx.post(f"{url}/v1/messages", content=b'{"model":"m"}', timeout=300)
        assert (answer.status_code, answer.headers["x-should-retry"]) == (403, "false")
        assert answer.json()["type"] == "error"
        assert "never recorded in this episode" in answer.json()["error"]["message"]
        assert [entry.fault for entry in kept()] == ["unrecorded"]


def test_an_endpoint_that_was_not_there_is_not_there_again(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with opened(tmp_path, address) as door:
        live = raw(door.url, b'{"model":"m"}')
        recorded = door.entries()
    assert b"can't be reached" in live
    with replayed(tmp_path / "again", recorded) as (url, kept, _):
        assert raw(url, b'{"model":"m"}') == live
        assert [entry.fault for entry in kept()] == ["unreachable"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: http://elsewhere.example/\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx-a: b\r\n\r\nuntil the end",
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 2\r\n\r\n{}",
        b"no HTTP\r\n\r\n",
    ],
)
def test_an_answer_that_was_cut_sent_elsewhere_or_refused_is_so_again(tmp_path, answer):
    def once(client):
        client.sendall(answer)

    with Service(once) as service, opened(tmp_path, service.address) as door:
        live = raw(door.url, b'{"model":"m"}')
        recorded = door.entries()
    with replayed(tmp_path / "again", recorded) as (url, kept, _):
        again = raw(url, b'{"model":"m"}')
        assert dechunked(again) == dechunked(live)
        assert again.endswith(b"0\r\n\r\n") == live.endswith(b"0\r\n\r\n")  # a cut stream has no end
        assert kept()[0].fault == recorded[0].fault


def test_a_connection_goes_on_as_it_did(tmp_path):
    ok = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    with Service(says(ok)) as service, opened(tmp_path, service.address) as door, httpx.Client(timeout=300) as client:
        for number in range(3):
            client.post(f"{door.url}{PATH}", content=b'{"n":%d}' % number)
        recorded = door.entries()
    with replayed(tmp_path / "again", recorded) as (url, kept, _), httpx.Client(timeout=300) as client:
        for number in (2, 0, 1):
            assert client.post(f"{url}{PATH}", content=b'{"n":%d}' % number).content == b"{}"
        assert [entry.fault for entry in kept()] == [None, None, None]


def test_who_went_away_from_an_answer_waits_for_it_again_until_going_away(tmp_path):
    gone = threading.Event()

    def silent(client):
        gone.wait(300)

    def impatient(url):
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}{PATH}", content=b"{}", timeout=httpx.Timeout(300, read=0.3))

    with Service(silent) as service, opened(tmp_path, service.address) as door:
        impatient(door.url)
        deadline = threading.Event()
        for _ in range(3000):  # until the door has seen it
            if (tmp_path / MODEL_LOG).read_bytes():
                break
            deadline.wait(0.1)
        recorded = door.entries()
        gone.set()
    assert [entry.fault for entry in recorded] == ["client gone"]
    with replayed(tmp_path / "again", recorded) as (url, kept, _):
        impatient(url)
        assert [entry.status for entry in kept()] == [None]


def test_the_end_of_an_episode_ends_who_waits(tmp_path):
    recorded, asked = [entry(path=PATH, request=b"{}", status=None, response=b"", fault="ended")], threading.Event()
    with replayed(tmp_path / "again", recorded, asked=asked) as (url, kept, _), httpx.Client(timeout=300) as client:
        failed = []

        def wait():
            try:
                client.post(f"{url}{PATH}", content=b"{}")
            except httpx.HTTPError as error:
                failed.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        assert asked.wait(300)
        kept()
        thread.join(300)
        assert not thread.is_alive()
        assert failed


def test_nothing_in_the_door_of_a_recording_could_open_a_connection():
    with open(playback.__file__, encoding="utf-8") as file:
        names = {node.attr for node in ast.walk(ast.parse(file.read())) if isinstance(node, ast.Attribute)}
    assert names.isdisjoint({"connect", "connect_ex", "create_connection", "wrap_socket", "urlopen"})
    assert not any("connect" in name for name in vars(playback))
