"""Calls accepted by many threads at once: each new one is asked once, and none is lost."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scoresheet.documents.tool import Request
from scoresheet.pack import draft
from scoresheet.record.upstream import Upstream
from scoresheet.replay.session import Hit, Miss, Session, Tape
from scoresheet.run.acceptance import Acceptance
from tests.record.scripted import scripted

TASK = {"task_id": "t", "prompt": "p", "tools": [], "calls": [], "expected": {"ok": True}}


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    (tmp_path / "pack" / "tasks").mkdir(parents=True)
    (tmp_path / "pack" / "tasks" / "t.json").write_text(json.dumps(TASK | {"unknown": [1]}))
    return tmp_path / "pack"


def accepting(pack: Path, address: str, told: list[str]) -> tuple[Acceptance, Session]:
    opened = draft.opened(pack)
    session = Session(Tape.of(opened.task("t"), opened.tools))
    return Acceptance(pack, "tasks/t.json", [Upstream.parse(f"API={address}")], told.append, 30.0), session


def echo(request: bytes) -> tuple[bytes]:
    target = request.split(b" ")[1]
    return (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(target), target),)


def missed(session: Session, target: str) -> Miss:
    answer = session.ask(Request("API", "GET", target))
    assert isinstance(answer, Miss)
    return answer


def test_parallel_calls_are_each_asked_once_and_all_are_kept(pack: Path) -> None:
    told: list[str] = []
    with scripted(react=echo) as service:
        acceptance, session = accepting(pack, service.address, told)
        targets = [f"/a?n={n % 20}" for n in range(80)]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda target: acceptance(missed(session, target)), targets))
        assert len(service.requests) == 20
    for target, hit in zip(targets, found, strict=True):
        assert isinstance(hit, Hit)
        assert hit.recorded.response().body == target.encode()
    assert sum(hit.accepted for hit in found if hit is not None) == 20
    task = json.loads((pack / "tasks" / "t.json").read_text())
    assert sorted(call["request"]["query"] for call in task["calls"]) == sorted(f"n={n}" for n in range(20))
    assert task["unknown"] == [1]
    assert told == []
    assert not list(pack.parent.glob(".*recording"))


def test_after_its_end_nothing_is_asked(pack: Path) -> None:
    with scripted(react=echo) as service:
        acceptance, session = accepting(pack, service.address, [])
        acceptance(missed(session, "/a"))
        acceptance.end()
        assert acceptance(missed(session, "/b")) is None
        again = acceptance(missed(session, "/a"))
        assert isinstance(again, Hit)
        assert (again.repeated, again.accepted) == (True, False)
        assert len(service.requests) == 1


def test_the_end_waits_for_what_is_being_accepted(pack: Path) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow(request: bytes) -> tuple[bytes]:
        asked.set()
        go_on.wait(300)
        return echo(request)

    with scripted(react=slow) as service:
        acceptance, session = accepting(pack, service.address, [])
        with ThreadPoolExecutor(2) as pool:
            answer = pool.submit(acceptance, missed(session, "/a"))
            assert asked.wait(300)
            ending = pool.submit(acceptance.end)
            go_on.set()
            ending.result(300)
            assert len(json.loads((pack / "tasks" / "t.json").read_text())["calls"]) == 1
            assert answer.result(300) is not None
