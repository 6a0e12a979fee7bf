import contextlib
import json
import os
import socket
import ssl
import subprocess
import threading
import time
from typing import Any

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.errors import Usage
from scoresheet.model import log as log_module
from scoresheet.model import view
from scoresheet.model.door import Mask, ModelDoor
from scoresheet.model.heads import CODINGS, MAX_BODY
from scoresheet.model.observed import Pinned, observe
from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from scoresheet.model.upstream import ModelUpstream
from tests.model.doors import KEY, Service, opened, packed, says

BODY = b'{"model":"m","messages":[]}'
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
TURNS = {"turns": [{"tool": "lookup", "arguments": {"id": 7}}, {"text": "done"}]}


def request(
    line=b"POST /v1/chat/completions HTTP/1.1",
    headers=b"Host: 127.0.0.1\r\nConnection: close\r\n",
    body=BODY,
    length=True,
):
    told = b"Content-Length: %d\r\n" % len(body) if length else b""
    return line + b"\r\n" + headers + told + b"\r\n" + body


@pytest.fixture
def service():
    with Service(says(OK)) as found:
        yield found


@pytest.fixture
def door(tmp_path, service):
    with opened(tmp_path, service.address) as found:
        yield found


def test_the_key_is_added_outside_and_kept_nowhere(tmp_path, service):
    with opened(tmp_path, service.address) as door:
        headers = {"authorization": "Bearer dummy", "x-api-key": "dummy", "cookie": "a=b", "x-title": "mine"}
        assert httpx.post(f"{door.url}/v1/chat/completions", content=BODY, headers=headers).json() == {}
    (sent,) = service.requests
    lower = sent.lower()
    assert f"Authorization: Bearer {KEY}".encode() in sent
    assert sent.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:")
    assert b"dummy" not in sent
    assert b"cookie" not in lower
    assert b"x-title: mine" in lower
    assert sent.endswith(b"\r\n\r\n" + BODY)
    assert KEY.encode() not in (tmp_path / "model.jsonl").read_bytes()


def test_anthropics_key_has_its_own_header(tmp_path, service):
    with opened(tmp_path, service.address, kind="anthropic") as door:
        httpx.post(f"{door.url}/v1/messages?beta=true", content=BODY, headers={"authorization": "Bearer dummy"})
    (sent,) = service.requests
    assert sent.startswith(b"POST /v1/messages?beta=true HTTP/1.1\r\n")
    assert f"x-api-key: {KEY}".encode() in sent
    assert b"dummy" not in sent


def test_openais_own_client_runs_through_the_door_streamed_and_not(tmp_path):
    with ModelStub(Script.of(TURNS)) as stub, opened(tmp_path, f"{stub.address}/v1") as door:
        with openai.OpenAI(base_url=f"{door.url}/v1", api_key="dummy", max_retries=0, timeout=300) as client:
            messages: Any = [{"role": "user", "content": "a"}]
            assert client.chat.completions.create(model="m", messages=messages).choices[0].message.tool_calls
            with client.chat.completions.create(model="m", messages=messages, stream=True) as stream:
                assert list(stream)[-1].choices[0].finish_reason == "tool_calls"
            assert client.responses.create(model="m", input="a").output[0].name == "lookup"
            assert client.models.list().data
    seen = observe(door.heard, Pinned(0.0, (7,), "m", frozenset({"lookup"}), 2))
    assert (seen.calls, seen.tool_calls, seen.ending) == (3, 3, "tool_cap")
    assert seen.tokens_in == 2000  # the stream was not asked for its usage
    assert seen.unreported == 1


def test_bytes_are_passed_on_and_kept_as_they_were(tmp_path):
    chunks = [b'data: {"a":"\xc3', b'\xa9"}\n\n', b"data: [DONE]\n\n"]
    wire = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    with Service(says(head + wire)) as service, opened(tmp_path, service.address) as door:
        found = door.raw(request())
    assert found.partition(b"\r\n\r\n")[2] == wire
    (entry,) = door.entries()
    assert entry.response == b"".join(chunks)
    assert entry.request == BODY


def test_a_stream_is_passed_on_while_it_comes(tmp_path):
    gate = threading.Event()

    def answer(client):
        client.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        client.sendall(b"5\r\nfirst\r\n")
        assert gate.wait(120)
        client.sendall(b"4\r\nlast\r\n0\r\n\r\n")

    with Service(answer) as service, opened(tmp_path, service.address) as door:
        with httpx.stream("POST", f"{door.url}/v1/responses", content=b'{"model":"m"}') as stream:
            pieces = stream.iter_raw()
            assert next(pieces) == b"first"  # the last one can't have been sent
            gate.set()
            assert next(pieces) == b"last"


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 529])
def test_errors_are_passed_through(tmp_path, status):
    script = {**TURNS, "faults": [{"status": status, "headers": {"retry-after": "3"}}]}
    with ModelStub(Script.of(script)) as stub, opened(tmp_path, f"{stub.address}/v1") as door:
        direct = httpx.post(f"{door.url}/v1/chat/completions", content=BODY)
    assert (direct.status_code, direct.headers["retry-after"]) == (status, "3")
    assert direct.json()["error"]["message"] == "scripted fault"


@pytest.mark.parametrize("kind", ["drop", "cut"])
def test_a_hidden_retry_after_a_fault_is_seen(tmp_path, kind):
    script = {**TURNS, "faults": [{"kind": kind}]}
    with ModelStub(Script.of(script)) as stub, opened(tmp_path, f"{stub.address}/v1") as door:
        body = {"model": "m", "messages": [], "stream": True}
        for _ in range(2):
            with contextlib.suppress(httpx.HTTPError):
                httpx.post(f"{door.url}/v1/chat/completions", json=body)
    seen = observe(door.heard, Pinned(0.0, (7,), "m", frozenset({"lookup"}), 9))
    assert (seen.calls, seen.failed, seen.retries) == (2, 1, 1)
    assert "controls.retries" in [each.control for each in seen.violated]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"CONNECT evil.example:443 HTTP/1.1", 403),
        (b"POST http://evil.example/v1/chat/completions HTTP/1.1", 403),
        (b"POST //evil.example/v1/chat/completions HTTP/1.1", 404),
        (b"POST *  HTTP/1.1", 400),
        (b"POST * HTTP/1.1", 403),
        (b"POST /v1/../admin HTTP/1.1", 404),
        (b"POST /v1/chat/completions/../../../admin HTTP/1.1", 404),
        (b"POST /v1/%2e%2e/admin HTTP/1.1", 404),
        (b"POST /v1/chat%2fcompletions HTTP/1.1", 404),
        (b"POST /v1/chat/completions?a=b\xff HTTP/1.1", 403),
        (b"GET /v1/models/../files HTTP/1.1", 404),
        (b"GET /v1/models//evil.example HTTP/1.1", 404),
        (b"POST /v1/files HTTP/1.1", 404),
        (b"POST /v1/messages HTTP/1.1", 404),
        (b"GET /v1/chat/completions HTTP/1.1", 404),
        (b"DELETE /v1/models/m HTTP/1.1", 404),
        (b"GET /v1/responses/resp_1 HTTP/1.1", 404),
        (b"POST /v1/chat/completions HTTP/1.0", 400),
        (b"POST /v1/chat/completions HTTP/2.0", 400),
        (b"PRI * HTTP/2.0", 400),
        (b"nonsense", 400),
    ],
)
def test_nothing_but_the_api_can_be_asked_for(door, service, line, status):
    assert door.status(request(line)) == status
    assert service.requests == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Host: evil.example\r\n", 421),
        (b"Host: 127.0.0.1@evil.example\r\n", 421),
        (b"Host: 127.0.0.1\r\nHost: evil.example\r\n", 400),
        (b"", 400),
        (b"Host: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n", 400),  # with the length that follows
        (b"Host: 127.0.0.1\r\nTransfer-Encoding : chunked\r\n", 400),
        (b"Host: 127.0.0.1\r\nTransfer-Encoding: xchunked\r\n", 400),
        (b"Host: 127.0.0.1\r\nContent-Length: 3\r\n", 400),
        (b"Host: 127.0.0.1\r\nX: a\r\n folded\r\n", 400),
        (b"Host: 127.0.0.1\r\nX: a\nEvil: b\r\n", 400),
        (b"Host: 127.0.0.1\r\nX: a\0b\r\n", 400),
        (b"Host: 127.0.0.1\r\nContent-Encoding: br\r\n", 415),
        (b"Host: 127.0.0.1\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\n", 415),
        (b"Host: 127.0.0.1\r\nContent-Encoding: gzip\r\n", 400),  # it is not
    ],
)
def test_heads_that_two_programs_could_read_differently_are_refused(door, service, headers, status):
    assert door.status(request(headers=headers)) == status
    assert service.requests == []


@pytest.mark.parametrize("name", CODINGS)
def test_a_packed_body_is_sent_on_and_kept_as_what_was_in_it(door, service, name):
    headers = b"Host: 127.0.0.1\r\nConnection: close\r\nContent-Encoding: " + name.encode() + b"\r\n"
    assert door.status(request(headers=headers, body=packed(name, BODY))) == 200
    (sent,) = service.requests
    assert sent.endswith(b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY))
    assert b"content-encoding" not in sent.lower()
    (entry,) = door.entries()
    assert (entry.request, ("Content-Encoding", name) in entry.request_headers) == (BODY, True)


@pytest.mark.parametrize(
    ("plain", "status"),
    [
        (b'{"model":"m","messages":[],"tools":[{"type":"web_search"}]}', 403),
        (b'{"model":"m","model":"n"}', 400),
        (bytes(MAX_BODY + 1), 413),
    ],
    ids=["server tool", "two names", "64 MiB of nothing"],
)
@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_nothing_passes_because_it_is_packed(door, service, name, plain, status):
    headers = b"Host: 127.0.0.1\r\nContent-Encoding: " + name.encode() + b"\r\n"
    assert door.status(request(headers=headers, body=packed(name, plain))) == status
    assert service.requests == []


def test_another_protocol_is_refused_so_that_a_client_asks_over_http_at_once(door, service):
    headers = b"Host: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    assert door.status(request(b"GET /v1/responses HTTP/1.1", headers, b"")) == 426
    assert (service.requests, door.heard) == ([], [])


@pytest.mark.parametrize(
    "body",
    [
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"5\r\nhelloX0\r\n\r\n",
        b"fffffffff\r\n",
        b"5\r\nhello0\r\n\r\nPOST /admin HTTP/1.1\r\n\r\n",
    ],
)
def test_smuggled_chunks_are_refused(door, service, body):
    headers = b"Host: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
    assert door.status(request(headers=headers, body=body, length=False)) == 400
    assert service.requests == []


def test_chunks_are_sent_on_with_a_length_and_what_follows_is_a_request_of_its_own(door, service):
    headers = b"Host: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    smuggled = b"GET /admin HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    found = door.raw(request(headers=headers, body=body, length=False) + smuggled)
    assert found.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 404" in found
    (sent,) = service.requests
    assert b"transfer-encoding" not in sent.lower()
    assert b"Content-Length: %d\r\n" % len(BODY) in sent


def test_an_oversized_head_is_refused(door, service):
    headers = b"Host: 127.0.0.1\r\n" + b"X: " + b"a" * 40_000 + b"\r\n"
    assert door.status(request(headers=headers)) == 431
    assert door.status(request(b"POST /v1/chat/completions?" + b"a" * 40_000 + b" HTTP/1.1")) == 431
    assert service.requests == []


def test_a_body_of_a_gigabyte_is_refused_before_it_is_read(door, service):
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % (1 << 30)
    assert door.status(head) == 413
    assert service.requests == []


def test_a_body_of_a_gigabyte_in_chunks_is_cut(door, service):
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%b\r\n" % (1 << 20, bytes(1 << 20))
    sent = 0
    with socket.create_connection(("127.0.0.1", door.port), 5) as client:
        client.sendall(head)
        with contextlib.suppress(OSError):
            for _ in range(1024):
                client.sendall(chunk)
                sent += len(chunk)
    assert sent < 2 * MAX_BODY
    assert service.requests == []


def test_bodies_of_which_the_size_is_not_known_wait_for_room_and_are_not_refused(tmp_path, service):
    """Each takes the room of the largest until it has come: of eight that begin at once, four have to wait."""
    heads = (b"Content-Encoding: gzip\r\nContent-Length: 100\r\n", b"Transfer-Encoding: chunked\r\n")
    first = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    whole = b'17\r\n{"model":"m","input":1}\r\n0\r\n\r\n'
    with opened(tmp_path, service.address) as door, contextlib.ExitStack() as stack:
        halves = [stack.enter_context(socket.create_connection(("127.0.0.1", door.port), 60)) for _ in range(4)]
        for number, client in enumerate(halves):
            client.sendall(first + heads[number % 2] + b"Expect: 100-continue\r\n\r\n")
            assert client.recv(64).startswith(b"HTTP/1.1 100")  # it has its room
        later = [stack.enter_context(socket.create_connection(("127.0.0.1", door.port), 60)) for _ in range(4)]
        for client in later:
            client.sendall(first + heads[1] + b"\r\n" + whole)
        for client in halves:
            client.close()
        for client in later:
            assert client.recv(64).startswith(b"HTTP/1.1 200")
    assert len(service.requests) == 4


def test_a_log_that_is_full_lets_no_further_call_out(tmp_path, service, monkeypatch):
    monkeypatch.setattr(log_module, "MAX_BYTES", 500)
    with opened(tmp_path, service.address) as door:
        found = [door.status(request(body=b'{"model":"m","messages":["%b"]}' % (b"a" * 500))) for _ in range(3)]
    assert found == [200, 507, 507]
    assert len(service.requests) == 1
    assert [entry.refused is None for entry in door.entries()] == [True, False]


def test_a_client_that_dribbles_its_head_is_cut(tmp_path, service, monkeypatch):
    monkeypatch.setattr(view, "HEAD_S", 0.5)
    with opened(tmp_path, service.address) as door:
        with socket.create_connection(("127.0.0.1", door.port), 5) as client:
            began = time.monotonic()
            with contextlib.suppress(OSError):
                for letter in b"POST /v1/chat/completions HTTP/1.1\r\nX: " + b"a" * 1000:
                    client.sendall(bytes([letter]))
                    time.sleep(0.05)
                    if time.monotonic() - began > 30:
                        break
            assert time.monotonic() - began < 25
    assert service.requests == []


def test_an_episode_ends_whatever_its_clients_and_its_model_do(tmp_path):
    script = {**TURNS, "faults": [{"kind": "hang", "times": "always"}]}
    before = threading.active_count()
    heard: list[object] = []
    with ModelStub(Script.of(script), on_request=heard.append) as stub:
        with opened(tmp_path, f"{stub.address}/v1") as door:
            clients = [socket.create_connection(("127.0.0.1", door.port)) for _ in range(20)]
            for number, client in enumerate(clients):
                client.sendall(request()[: None if number % 2 else 30])
            deadline = time.monotonic() + 60
            while len(heard) < 10:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            began = time.monotonic()
        assert time.monotonic() - began < 9  # less than a head may take
        for client in clients:
            client.close()
    entries = door.entries()
    assert [entry.fault for entry in entries if entry.refused is None] == ["ended"] * 10
    for _ in range(300):
        if threading.active_count() <= before:
            break
        time.sleep(0.1)
    assert not [thread for thread in threading.enumerate() if thread.name == "scoresheet-model"]


def test_a_redirect_is_not_followed(tmp_path):
    with Service(says(OK)) as elsewhere:
        answer = b"HTTP/1.1 307 Go\r\nlocation: %b\r\ncontent-length: 0\r\n\r\n" % elsewhere.address.encode()
        with Service(says(answer)) as service, opened(tmp_path, service.address) as door:
            found = httpx.post(f"{door.url}/v1/chat/completions", content=BODY, follow_redirects=True)
        assert found.status_code == 502
        assert "location" not in found.headers
        assert elsewhere.requests == []
    assert door.entries()[0].fault == "redirect"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 50_000 + b"\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"",
    ],
)
def test_an_answer_that_can_be_read_in_two_ways_is_not_passed_on(tmp_path, answer):
    with Service(lambda client: client.sendall(answer)) as service, opened(tmp_path, service.address) as door:
        assert door.status(request()) in (400, 431, 502)


def test_a_key_that_the_endpoint_repeats_does_not_come_in(tmp_path):
    body = f'{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}'.encode()
    answer = b"HTTP/1.1 401 No\r\nx-echo: %b\r\ncontent-length: %d\r\n\r\n%b" % (KEY.encode(), len(body), body)
    with Service(says(answer)) as service, opened(tmp_path, service.address) as door:
        found = door.raw(request())
    assert KEY.encode() not in found
    assert b"Incorrect API key provided: ****" in found
    assert KEY.encode() not in (tmp_path / "model.jsonl").read_bytes()


def test_a_key_in_two_pieces_is_masked_and_nothing_else_is_changed():
    for cut in range(1, 40):
        data = b"a" * 8 + KEY.encode() + b"sk-real-no-key"
        mask = Mask(KEY.encode())
        found = mask.feed(data[:cut]) + mask.feed(data[cut:]) + mask.feed(b"", last=True)
        assert found == data.replace(KEY.encode(), b"*" * len(KEY))


@given(
    st.text("ab", min_size=4, max_size=7).map(str.encode),
    st.lists(st.text("abc", max_size=9).map(str.encode), max_size=9),
)
def test_however_a_stream_is_cut_it_is_masked_as_the_whole_would_be(key, pieces):
    mask = Mask(key)
    found = b"".join([*map(mask.feed, pieces), mask.feed(b"", last=True)])
    assert found == b"".join(pieces).replace(key, b"*" * len(key))


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m", "messages": [], "tools": [{"type": "web_search"}]},
        {"model": "m", "messages": [], "web_search_options": {}},
    ],
)
def test_tools_of_the_providers_own_are_refused_and_seen(door, service, body):
    found = httpx.post(f"{door.url}/v1/chat/completions", json=body)
    assert found.status_code == 403
    assert "the card does not allow" in found.json()["error"]["message"]
    assert service.requests == []
    seen = observe(door.heard, Pinned(0.0, (7,), "m", frozenset(), 9))
    assert (seen.calls, seen.refused, seen.ending) == (0, 1, "mismatch")


def test_tools_that_only_one_of_two_parsers_would_see_are_refused(door, service):
    body = b'{"model":"m","messages":[],"tools":[{"type":"web_search"}],"tools":[]}'
    assert door.status(request(body=body)) == 400
    assert service.requests == []


def test_an_unknown_dialect_is_passed_through_and_unobserved(door, service):
    assert httpx.post(f"{door.url}/v1/embeddings", json={"model": "m", "input": "a"}).status_code == 200
    assert observe(door.heard, Pinned(0.0, (7,), "m", frozenset(), 9)).unobserved == 1


def test_an_endpoint_that_is_not_there_is_a_502(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with opened(tmp_path, f"http://127.0.0.1:{port}/v1") as door:
        assert door.status(request()) == 502
    assert door.entries()[0].fault == "unreachable"


def test_connections_to_the_endpoint_are_used_again(tmp_path):
    places = set()

    def answer(client):
        places.add(client.getpeername())
        client.sendall(OK)
        return True

    with Service(answer) as service, opened(tmp_path, service.address) as door:
        with httpx.Client() as client:
            for _ in range(20):
                assert client.post(f"{door.url}/v1/chat/completions", content=BODY).status_code == 200
    assert len(places) == 1


def test_a_connection_that_the_endpoint_has_closed_is_not_used_again(tmp_path):
    with Service(lambda client: client.sendall(OK)) as service, opened(tmp_path, service.address) as door:
        for number in range(5):
            assert httpx.post(f"{door.url}/v1/chat/completions", content=BODY).status_code == 200
            deadline = time.monotonic() + 60
            while service.ended <= number:
                assert time.monotonic() < deadline
                time.sleep(0.01)


def test_an_endpoint_over_tls_is_checked_by_name(tmp_path):
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    command += [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    trusting = ssl.create_default_context(cafile=tmp_path / "cert.pem")
    with Service(says(OK), server) as service:
        for number, (address, tls, status) in enumerate(
            [
                (service.address, trusting, 200),
                (service.address.replace("localhost", "127.0.0.1"), trusting, 502),
                (service.address, None, 502),
            ]
        ):
            (folder := tmp_path / str(number)).mkdir()
            with opened(folder, address, tls=tls) as door:
                assert door.status(request()) == status


def test_a_hundred_streams_at_once_come_whole(tmp_path):
    turns = {"turns": [{"text": "word " * 40}], "delay_ms": 2}
    with ModelStub(Script.of(turns)) as stub, opened(tmp_path, f"{stub.address}/v1") as door:
        body = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
        found: list[bytes] = []
        threads = [threading.Thread(target=lambda: found.append(door.raw(request(body=body), 30))) for _ in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(found)) <= 3  # the Date header may move on
    assert all(each.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") for each in found)
    assert len(door.heard) == 100


def test_a_key_with_a_line_break_is_refused():
    with pytest.raises(Usage):
        ModelDoor(ModelUpstream.parse("openai=http://127.0.0.1/v1"), "sk-a\r\nX: b")


def test_no_file_stays_open(tmp_path, service):
    def count():
        return len(os.listdir("/proc/self/fd"))

    before = count()
    for number in range(3):
        (folder := tmp_path / str(number)).mkdir()
        with opened(folder, service.address) as door:
            door.raw(request())
    for _ in range(300):
        if count() <= before:
            break
        time.sleep(0.1)
    assert count() <= before
