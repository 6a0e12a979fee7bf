"""An import as users make it, frozen, and asked over real sockets for what it was made from."""

import contextlib
import http.client
import json
import socket
from pathlib import Path

from scoresheet.cli.app import run
from scoresheet.documents.manifest import Manifest
from scoresheet.documents.task import Task
from scoresheet.documents.tool import CALL
from scoresheet.pack.folder import Pack
from scoresheet.record.importers.formats import FORMATS
from scoresheet.record.importers.hosts import Host, Hosts
from scoresheet.record.importers.intake import Gathered, Intake, Source
from scoresheet.record.importing import Import, Settings, bring_in, sources
from scoresheet.replay.http import ReplayServer
from scoresheet.replay.journal import CallJournal
from scoresheet.replay.session import Hit, Session, Tape

CORPUS = Path(__file__).parents[2] / "corpus"


def gathered(kind: str, data: bytes | str, name: str = "file", hosts: tuple[Host, ...] = ()) -> Gathered:
    """What an importer makes of one file."""
    intake = Intake(Hosts(hosts))
    FORMATS[kind].take([Source(name, data.encode() if isinstance(data, str) else data)], intake)
    return intake.gathered()


def imported(kind: str, paths: tuple[Path, ...], pack: Path, **more: object) -> Import:
    """The files, as task `t` of `pack`."""
    settings = Settings(pack, "t", str(more.pop("prompt", "what?")), {"a": 1}, **more)  # type: ignore[arg-type]  # a test's own words
    return bring_in(FORMATS[kind], sources(FORMATS[kind], paths), settings)


def replays(pack: Path, folder: Path) -> Task:
    """Freeze the pack and send every recorded request, in order: each must get its own answer. Gives the task."""
    assert run(["freeze", str(pack)]) == 0
    opened = Pack.open(pack)
    task = opened.task("t")
    tape = Tape.of(task, opened.tools)
    upstreams = [*Manifest.from_bytes((pack / "manifest.json").read_bytes(), "manifest.json").upstreams]
    folder.mkdir(exist_ok=True)
    journal = folder / "calls.jsonl"
    with contextlib.ExitStack() as stack, ReplayServer() as server:
        sockets = {name: stack.enter_context(socket.create_server(("127.0.0.1", 0))) for name in upstreams}
        doors = {name: name for name in upstreams}
        with server.episode(sockets, doors, Session(tape), CallJournal(journal)):
            connections = {
                name: http.client.HTTPConnection("127.0.0.1", listening.getsockname()[1], timeout=300)
                for name, listening in sockets.items()
            }
            for connection in connections.values():
                stack.callback(connection.close)
            over_http = [call for call in task.calls if call.request.method != CALL]
            for call in over_http:
                _ask(connections, call)
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert len(lines) == len(over_http)
    assert {line["outcome"] for line in lines} <= {"hit"}
    session = Session(tape)
    for call in task.calls:
        if call.request.method == CALL:
            answer = session.call(call.request.path, call.request.as_request().body)
            assert isinstance(answer, Hit)
            assert answer.recorded.response() == call.response()
    return task


def _ask(connections, call):
    request, recorded = call.request.as_request(), call.response()
    connection = connections[request.upstream]
    connection.putrequest(request.method, request.target, skip_accept_encoding=True)
    for name, value in request.headers:
        connection.putheader(name, value)
    if request.body:
        connection.putheader("Content-Length", str(len(request.body)))
    connection.endheaders(request.body or None)
    answer = connection.getresponse()
    body = answer.read()
    assert (answer.status, body) == (recorded.status, recorded.body), request.target
    if recorded.headers:
        names = {name.lower() for name, _ in recorded.headers} - {"connection", "date"}
        assert names <= {name.lower() for name in answer.headers}
