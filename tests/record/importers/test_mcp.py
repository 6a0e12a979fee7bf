"""MCP logs: what the official SDK said over stdio, what a public server said over HTTP, and what loggers make of it."""

import http.client
import json
import socket

import pytest

from scoresheet.documents.tool import MCP_ERROR, MCP_RESULT
from scoresheet.errors import Malformed
from scoresheet.pack.folder import Pack
from scoresheet.replay.http import MCP_DOOR, ReplayServer
from scoresheet.replay.journal import CallJournal
from scoresheet.replay.session import Session, Tape
from tests.record.importers.replayed import CORPUS, gathered, imported, replays

LOG = CORPUS / "mcp-sdk" / "everything.jsonl"


def ask(number, method="tools/call", name="t", arguments=None, **more):
    params = {"name": name, "arguments": arguments or {}} if method == "tools/call" else {}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params | more}


def told(number, text='{"content": [], "isError": false}', member="result"):
    return f'{{"jsonrpc": "2.0", "id": {json.dumps(number)}, "{member}": {text}}}'


def lines(*messages):
    return "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in messages)


def rules(result):
    return [finding.rule for finding in result.left_out]


def test_a_session_of_the_official_sdk_freezes_and_answers(tmp_path):
    done = imported("mcp", (LOG,), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == 50
    assert [finding.what for finding in done.left_out] == ["a call of nothing, which the server did not offer"]
    assert {tool.name for tool in task.tools} == {"add", "find", "cover", "lend"}
    names = [call.request.path for call in task.calls if call.request.path.startswith("mcp/")]
    assert names == [
        "mcp/initialize",
        "mcp/resources/list",
        "mcp/prompts/list",
        "mcp/resources/read",
        "mcp/prompts/get",
    ]
    cover = next(call for call in task.calls if call.request.path == "cover").response()
    assert cover.headers == (("Content-Type", MCP_RESULT),)
    assert json.loads(cover.body)["content"][0]["type"] == "image"
    assert (
        json.loads(next(call for call in task.calls if call.request.path == "lend").response().body)["isError"] is True
    )


@pytest.mark.parametrize("name", ["deepwiki-one-session.jsonl", "deepwiki-three-sessions.jsonl"])
def test_logs_of_a_public_server_freeze_and_answer(name, tmp_path):
    done = imported("mcp", (CORPUS / "mcp" / name,), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert done.tools == ("ask_question",)
    assert {tool.name for tool in task.tools} >= {"read_wiki_structure", "ask_question"}
    assert "_meta" not in (tmp_path / "pack" / "tasks" / "t.json").read_text()


def test_an_imported_server_is_served_over_mcp_as_it_was(tmp_path):
    imported("mcp", (LOG,), tmp_path / "pack")
    replays(tmp_path / "pack", tmp_path / "run")
    opened = Pack.open(tmp_path / "pack")
    session = Session(Tape.of(opened.task("t"), opened.tools))
    asked = [json.loads(line) for line in LOG.read_text().splitlines() if '"method"' in line]
    answers = {
        message["id"]: message for message in map(json.loads, LOG.read_text().splitlines()) if "result" in message
    }
    with socket.create_server(("127.0.0.1", 0)) as listening, ReplayServer() as server:
        with server.episode({MCP_DOOR: listening}, {}, session, CallJournal(tmp_path / "calls.jsonl")):
            connection = http.client.HTTPConnection("127.0.0.1", listening.getsockname()[1], timeout=300)
            for message in asked:
                if message["method"] not in ("tools/call", "resources/read", "prompts/get", "resources/list"):
                    continue
                headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
                connection.request("POST", "/mcp", json.dumps(message), headers)
                told = json.loads(connection.getresponse().read())
                if message.get("params", {}).get("name") == "nothing":
                    assert "error" in told
                else:
                    assert told == answers[message["id"]]
            connection.close()


def test_results_are_the_text_that_was_logged():
    text = '{"content":[{"type":"text","text":"\\u00fc"}], "n": 1.10, "big": 12345678901234567890}'
    result = gathered("mcp", lines(ask(1), told(1, text)))
    assert result.exchanges[0].response.body == text.encode()
    error = gathered("mcp", lines(ask(1), told(1, '{"code": -32602, "message": "no"}', "error")))
    assert error.exchanges[0].response.headers == (("Content-Type", MCP_ERROR),)


ENVELOPES = {
    "bare": lines(ask(1), told(1)),
    "a batch": lines([ask(1)], f"[{told(1)}]"),
    "a list": json.dumps([ask(1), json.loads(told(1))]),
    "a list over many lines": json.dumps({"version": 1, "messages": [ask(1), json.loads(told(1))]}, indent=2),
    "directions": lines(
        {"direction": "client->server", "message": ask(1)},
        {"direction": "server->client", "message": json.loads(told(1))},
    ),
    "text within": lines({"dir": "out", "raw": json.dumps(ask(1))}, {"dir": "in", "raw": told(1)}),
    "behind a logger's words": (
        f"2026-01-01T00:00:00.000Z [shop] [info] Message from client: {json.dumps(ask(1))} {{ metadata: undefined }}\n"
        f"2026-01-01T00:00:01.000Z [shop] [info] Message from server: {told(1)} {{ metadata: undefined }}\n"
        "2026-01-01T00:00:02.000Z [shop] [info] Server transport closed { metadata: undefined }\n"
    ),
}


@pytest.mark.parametrize("text", ENVELOPES.values(), ids=ENVELOPES)
def test_messages_are_found_in_every_envelope(text):
    result = gathered("mcp", text)
    assert [exchange.request.target for exchange in result.exchanges] == ["t"]
    assert not result.left_out


def test_answers_are_paired_by_id_in_whatever_order_they_come():
    result = gathered("mcp", lines(ask(1, name="a"), ask("1", name="b"), told("1", '{"x": 2}'), told(1, '{"x": 1}')))
    assert [(each.request.target, each.response.body) for each in result.exchanges] == [
        ("b", b'{"x": 2}'), ("a", b'{"x": 1}'),
    ]  # fmt: skip


def test_what_the_server_asks_of_its_client_is_no_call():
    text = lines(ask(5), ask(5, "sampling/createMessage"), told(5, '{"role": "assistant"}'), told(5, '{"x": 1}'))
    result = gathered("mcp", text)
    assert [each.response.body for each in result.exchanges] == [b'{"x": 1}']
    assert rules(result) == ["import-no-replay"]


def test_what_is_told_again_is_kept_once():
    hello = '{"serverInfo": {"name": "s", "version": "1"}, "capabilities": {}, "protocolVersion": "2025-06-18"}'
    text = lines(ask(1, "initialize"), told(1, hello), ask(1, "initialize"), told(1, hello.replace('"1"', '"2"')))
    result = gathered("mcp", text)
    assert [json.loads(each.response.body)["serverInfo"]["version"] for each in result.exchanges] == ["1"]
    assert result.changed == (("initialize was answered differently later: the first answer counts", 1),)


LEFT_OUT = {
    "no answer": (lines(ask(1)), "import-no-answer"),
    "no request": (lines(told(1)), "import-no-request"),
    "arguments that were taken out": (lines(ask(1, arguments={"key": "[REDACTED]"}), told(1)), "import-redacted"),
    "a name that is a path": (lines(ask(1, name="../../evil"), told(1)), "import-tool-name"),
    "our own tool": (lines(ask(1, name="submit_answer"), told(1)), "import-tool-name"),
    "no name": (lines(ask(1, name=None), told(1)), "import-tool-name"),
    "a reserved name": (lines(ask(1, name="mcp/x"), told(1)), "import-tool-name"),
    "a line that was cut": ('{"jsonrpc": "2.0", "id": 1, "meth\n' + lines(ask(2), told(2)), "import-shape"),
    "an unknown method": (lines(ask(1, "tasks/get"), told(1)), "import-no-replay"),
    "a result that is none": (lines(ask(1), told(1, "7")), "import-shape"),
    "a bad tool": (lines(ask(1, "tools/list"), told(1, '{"tools": [{"name": "a/b"}]}')), "import-tool-name"),
}


@pytest.mark.parametrize(("text", "rule"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_cant_be_carried_over_is_named(text, rule):
    assert rules(gathered("mcp", text)) == [rule]


@pytest.mark.parametrize("text", ["", "no json here", "{}", "[]", "[" * 100_000, '{"a": ' * 50_000, '{"messages": []}'])
def test_what_is_no_log_is_refused(text):
    with pytest.raises(Malformed):
        gathered("mcp", text, "log")
