"""A door that asks its endpoint only so often at once, and waits where the endpoint asks it to."""

import contextlib
import socket
import threading
import time

import httpx
import pytest

from scoresheet.model.observed import Pinned, observe
from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from tests.model.doors import Service, opened

PATH = "/v1/chat/completions"
BODY = b'{"model":"m","messages":[{"role":"user","content":"a"}]}'
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
PATIENT = httpx.Timeout(300)
TEXT = {"turns": [{"text": "done"}]}
PINNED = Pinned(0.0, (7,), None, frozenset(), 40, retries=2)


def post(url, body=BODY, timeout=PATIENT):
    return httpx.post(f"{url}{PATH}", content=body, timeout=timeout, headers={"content-type": "application/json"})


def allowed(times):
    """Says yes so often."""
    left = [times]

    def may_retry(_asked):
        left[0] -= 1
        return left[0] >= 0

    return may_retry


def faulty(*faults):
    return Script.of({**TEXT, "faults": list(faults)})


def limited(seconds="0", **more):
    return {"status": 429, "headers": {"retry-after": seconds}, **more}


def test_a_call_that_is_to_come_later_is_sent_again_by_the_door_and_each_one_is_counted(tmp_path):
    with ModelStub(faulty(limited(times=2))) as stub:
        with opened(tmp_path, f"{stub.address}/v1", may_retry=allowed(2)) as door:
            answer = post(door.url)
            entries = door.entries()
            heard = list(door.heard)
    assert (answer.status_code, answer.json()["choices"][0]["message"]["content"]) == (200, "done")
    assert [(each.status, each.fault) for each in entries] == [
        (429, "rate limited"),
        (429, "rate limited"),
        (200, None),
    ]
    assert entries[0].started_s < entries[1].started_s < entries[2].started_s
    seen = observe(heard, PINNED)
    assert (seen.calls, seen.retries, seen.door_retries, seen.failed) == (3, 2, 2, 2)
    assert next(each.status for each in seen.controls if each.control == "controls.retries") == "verified"


def test_the_door_waits_as_long_as_it_was_asked_to(tmp_path):
    told = []
    with (
        ModelStub(faulty(limited("1", times=1)), on_request=lambda _: told.append(time.monotonic())) as stub,
        opened(tmp_path, f"{stub.address}/v1", may_retry=allowed(1)) as door,
    ):
        assert post(door.url).status_code == 200
    assert told[1] - told[0] >= 1


@pytest.mark.parametrize("headers", [{"retry-after": "0"}, {"retry-after": "3600"}])
def test_where_nothing_may_be_sent_again_the_answer_is_passed_on_as_it_is(tmp_path, headers):
    may_retry = {"may_retry": allowed(1)} if headers["retry-after"] == "3600" else {}
    with (
        ModelStub(faulty({"status": 429, "headers": headers, "times": 1})) as stub,
        opened(tmp_path, f"{stub.address}/v1", **may_retry) as door,
    ):
        answer = post(door.url)
        entries = door.entries()
    assert (answer.status_code, answer.headers["retry-after"]) == (429, headers["retry-after"])
    assert [(each.status, each.fault) for each in entries] == [(429, None)]


def test_the_last_refusal_is_passed_on_when_the_retries_are_used_up(tmp_path):
    with ModelStub(faulty(limited(times="always"))) as stub:
        with opened(tmp_path, f"{stub.address}/v1", may_retry=allowed(2)) as door:
            assert post(door.url).status_code == 429
            assert [each.fault for each in door.entries()] == ["rate limited", "rate limited", None]


def test_an_error_that_asks_for_no_patience_is_not_sent_again(tmp_path):
    with ModelStub(faulty({"status": 500, "times": 1})) as stub:
        with opened(tmp_path, f"{stub.address}/v1", may_retry=allowed(9)) as door:
            assert post(door.url).status_code == 500
            assert [each.fault for each in door.entries()] == [None]


def test_a_client_that_goes_away_while_the_door_waits_is_not_asked_for_again(tmp_path):
    asked = threading.Event()
    with (
        ModelStub(faulty(limited("50", times="always")), on_request=lambda _: asked.set()) as stub,
        opened(tmp_path, f"{stub.address}/v1", may_retry=allowed(9)) as door,
    ):
        with pytest.raises(httpx.ReadTimeout):
            post(door.url, timeout=httpx.Timeout(300, read=0.5))
        assert asked.wait(300)
        for _ in range(3000):
            if (tmp_path / "model.jsonl").stat().st_size:
                break
            threading.Event().wait(0.1)
        assert [each.fault for each in door.entries()] == ["client gone"]


def test_the_end_of_an_episode_ends_the_waiting(tmp_path):
    asked = threading.Event()
    with (
        ModelStub(faulty(limited("50", times="always")), on_request=lambda _: asked.set()) as stub,
        opened(tmp_path, f"{stub.address}/v1", may_retry=allowed(9)) as door,
        socket.create_connection(("127.0.0.1", door.port), 300) as client,
    ):
        head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(BODY)}\r\n\r\n"
        client.sendall(head.encode() + BODY)
        assert asked.wait(300)
        assert [each.fault for each in door.entries()] == ["ended"]  # told before the log was closed


def test_calls_wait_for_their_turn_and_none_is_lost(tmp_path):
    inside, most, lock = [0], [0], threading.Lock()

    def busy(client):
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        threading.Event().wait(0.02)
        with lock:
            inside[0] -= 1
        client.sendall(OK)
        return True

    with Service(busy) as service, opened(tmp_path, service.address, at_once=3) as door:
        statuses = []

        def ask(number):
            statuses.append(post(door.url, b'{"model":"m","n":%d}' % number).status_code)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        assert statuses == [200] * 24
    assert 1 <= most[0] <= 3


def test_who_goes_away_before_its_turn_is_never_sent(tmp_path):
    release, reached = threading.Event(), threading.Event()

    def slow(client):
        reached.set()
        release.wait(300)
        client.sendall(OK)
        return True

    with Service(slow) as service, opened(tmp_path, service.address, at_once=1) as door:
        first = threading.Thread(target=post, args=(door.url,))
        first.start()
        assert reached.wait(300)
        with pytest.raises(httpx.ReadTimeout):
            post(door.url, b'{"model":"late"}', timeout=httpx.Timeout(300, read=0.5))
        for _ in range(3000):
            if (tmp_path / "model.jsonl").stat().st_size:
                break
            threading.Event().wait(0.1)
        release.set()
        first.join(300)
        assert [each.fault for each in door.entries()] == ["client gone", None]
        assert len(service.requests) == 1


def test_what_is_not_admitted_is_not_sent_whatever_it_asks(tmp_path):
    asked_for = []

    def admit(path, asked):
        asked_for.append((path, None if asked is None else asked.model))
        return "spent"

    with ModelStub(Script.of(TEXT)) as stub, opened(tmp_path, f"{stub.address}/v1", admit=admit) as door:
        for path in (PATH, "/v1/embeddings"):
            answer = httpx.post(f"{door.url}{path}", content=BODY, timeout=300)
            assert (answer.status_code, "spent" in answer.text) == (403, True)
        with contextlib.suppress(httpx.HTTPError):
            assert httpx.get(f"{door.url}/v1/models", timeout=300).status_code == 200
    assert asked_for == [(PATH, "m"), ("/v1/embeddings", None)]


def test_what_waits_for_its_turn_is_looked_at_again_when_that_has_come(tmp_path):
    """A budget that is spent by the call before it lets it out no more."""
    release, reached, spent = threading.Event(), threading.Event(), threading.Event()

    def slow(client):
        reached.set()
        release.wait(300)
        client.sendall(OK)
        return True

    looked_at, told = [], []

    def admit(_path, asked):
        looked_at.append(asked.model)
        return "spent" if spent.is_set() else None

    def hear(exchange):
        told.append(exchange.refused)
        spent.set()

    with Service(slow) as service, opened(tmp_path, service.address, at_once=1, hear=hear, admit=admit) as door:
        answers = []

        def ask(model):
            answers.append((model, post(door.url, b'{"model":"%b","messages":[]}' % model).status_code))

        first = threading.Thread(target=ask, args=(b"first",))
        first.start()
        assert reached.wait(300)
        others = [threading.Thread(target=ask, args=(b"later",)) for _ in range(5)]
        for each in others:
            each.start()
        for _ in range(3000):
            if looked_at.count("later") == 5:
                break
            threading.Event().wait(0.1)
        release.set()
        for each in (first, *others):
            each.join(300)
    assert sorted(answers) == [(b"first", 200)] + [(b"later", 403)] * 5
    assert len(service.requests) == 1
    assert told == [None] + ["spent"] * 5


def test_a_call_that_is_to_be_sent_again_is_looked_at_again(tmp_path):
    allowed_now = ["yes"]

    def admit(_path, _asked):
        return None if allowed_now.pop() == "yes" else "spent"

    allowed_now.insert(0, "no")
    with (
        ModelStub(faulty(limited(times="always"))) as stub,
        opened(tmp_path, f"{stub.address}/v1", may_retry=allowed(9), admit=admit) as door,
    ):
        assert post(door.url).status_code == 403
        entries = door.entries()
    assert [(each.status, each.fault, each.refused) for each in entries] == [
        (429, "rate limited", None),
        (None, None, "spent"),
    ]


def test_what_a_call_cost_is_told_before_the_next_one_is_looked_at(tmp_path):
    """A client that opens a connection for every call must not get ahead of the count."""
    told, release, looked_at = threading.Event(), threading.Event(), []

    def hear(_exchange):
        told.set()
        release.wait(300)

    def admit(_path, asked):
        looked_at.append((asked.model, release.is_set()))

    with (
        ModelStub(Script.of(TEXT)) as stub,
        opened(tmp_path, f"{stub.address}/v1", hear=hear, admit=admit) as door,
    ):
        assert post(door.url, b'{"model":"first","messages":[]}').status_code == 200
        assert told.wait(300)
        second = threading.Thread(target=post, args=(door.url, b'{"model":"second","messages":[]}'))
        second.start()
        second.join(0.5)  # long enough for a door that would not wait
        release.set()
        second.join(300)
    assert looked_at == [("first", False), ("second", True)]
