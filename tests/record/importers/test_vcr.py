"""VCR.py cassettes: both serializers, both versions, every way in which they hold a body."""

import gzip
import json

import pytest

from scoresheet.errors import Malformed
from tests.record.importers.replayed import CORPUS, gathered, imported, replays

REAL = [*sorted((CORPUS / "vcrpy-yaml").iterdir()), *sorted((CORPUS / "vcrpy-json").iterdir())]


def cassette(body="body: {string: '{}'}", request="body: null", headers="{}", status="{code: 200, message: OK}"):
    return f"""\
interactions:
- request:
    {request}
    headers: {{Accept: ['*/*']}}
    method: GET
    uri: https://api.test/a
  response:
    {body}
    headers: {headers}
    status: {status}
version: 1
"""


def only(text, name="c.yaml"):
    result = gathered("vcr", text, name)
    assert not result.left_out
    return result.exchanges[0]


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_cassettes_freeze_and_answer(path, tmp_path):
    done = imported("vcr", (path,), tmp_path / "pack")
    assert not done.left_out
    assert done.calls == len(replays(tmp_path / "pack", tmp_path / "run").calls)


def test_a_cassette_of_65_exchanges_freezes_and_answers(tmp_path):
    done = imported("vcr", (CORPUS / "vcr" / "library.yaml",), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == 65
    put = next(call for call in task.calls if call.request.method == "PUT")
    assert put.request.as_request().body == bytes(range(256))
    assert [call.response_status for call in task.calls if call.request.path == "/old"] == [302]
    assert [call.response().stream for call in task.calls if call.request.path == "/events"] == [(46,)]
    for path in (tmp_path / "pack").rglob("*.json"):
        assert "tok-example" not in path.read_text()


def test_cassettes_of_other_clients_and_serializers_freeze_and_answer(tmp_path):
    folder = CORPUS / "vcr"
    done = imported("vcr", (folder / "library-httpx.yaml", folder / "library-text.json"), tmp_path / "pack")
    assert done.calls == 10
    replays(tmp_path / "pack", tmp_path / "run")


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path):
    done = imported("vcr", (CORPUS / "vcrpy-yaml",), tmp_path / "pack")
    assert done.calls == 30
    assert len(done.upstreams) == 5


def test_one_post_with_four_answers_is_answered_in_turn(tmp_path):
    imported("vcr", (CORPUS / "vcrpy-yaml" / "openai-chat-repeated-different.yaml",), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    prints = [call.request_fingerprint for call in task.calls]
    assert max(prints.count(each) for each in prints) == 4


def test_gzip_bodies_stay_as_they_crossed_the_wire():
    text = (CORPUS / "vcrpy-yaml" / "crossref-works-select.yaml").read_text()
    response = only(text).response
    assert json.loads(gzip.decompress(response.body))["status"] == "ok"
    assert ("content-encoding", "gzip") in response.headers


def test_a_parsed_body_is_written_anew_and_said_so():
    text = (CORPUS / "vcrpy-yaml" / "openai-background-parsed-body.yaml").read_text()
    result = gathered("vcr", text, "c.yaml")
    assert json.loads(result.exchanges[0].request.body)["model"] == "gpt-4o"
    assert any("parsed_body" in what for what, _ in result.changed)


OLD_YAML = """\
- request: !!python/object:vcr.request.Request
    body: null
    headers: !!python/object/apply:__builtin__.frozenset
    - - !!python/tuple [Accept, text/html]
    host: api.test
    method: GET
    path: /a?b=1
    port: 8080
    protocol: http
  response:
    body: {string: !!python/unicode 'hello'}
    headers: ["Content-Type: text/plain\\r\\n", "Set-Cookie: a=1\\r\\n", "Set-Cookie: b=2\\r\\n"]
    status: {code: 200, message: OK}
"""
OLD_JSON = json.dumps(
    [
        {
            "request": {
                "body": None, "headers": {"Accept": "text/html"}, "host": "api.test", "method": "GET",
                "path": "/a?b=1", "port": 8080, "protocol": "http",
            },
            "response": {
                "body": {"string": "hello"}, "status": {"code": 200, "message": "OK"},
                "headers": ["Content-Type: text/plain\r\n", "Set-Cookie: a=1\r\n", "Set-Cookie: b=2\r\n"],
            },
        }
    ]
)  # fmt: skip


@pytest.mark.parametrize("text", [OLD_YAML, OLD_JSON], ids=["yaml", "json"])
def test_cassettes_from_before_version_1_are_read(text):
    result = gathered("vcr", text, "old")
    exchange = result.exchanges[0]
    assert exchange.request.target == "/a?b=1"
    assert exchange.request.header("accept") == "text/html"
    assert result.hosts == {"API_TEST_8080": "api.test:8080"}
    assert [value for name, value in exchange.response.headers if name == "Set-Cookie"] == ["a=1", "b=2"]
    assert exchange.response.body == b"hello"


def test_cassettes_of_older_httpx_recorders_are_read():
    text = cassette("content: '{}'", status="null").replace("status: null", "status_code: 201")
    assert only(text).response.status == 201


def test_bodies_are_read_in_every_spelling():
    assert only(cassette("body: {string: !!binary AAH/}")).response.body == b"\x00\x01\xff"
    assert only(cassette("body: {base64_string: AAH/}")).response.body == b"\x00\x01\xff"
    assert only(cassette("body: plain")).response.body == b"plain"
    assert only(cassette(request="body: !!binary AAH/")).request.body == b"\x00\x01\xff"
    assert only(cassette("body: {string: ''}")).response.body == b""


def test_a_body_that_was_decoded_is_not_called_gzip():
    result = gathered("vcr", cassette(headers="{content-encoding: [gzip], content-length: ['99']}"), "c")
    assert result.exchanges[0].response.headers == (("Content-Length", "2"),)
    head = cassette("body: {string: ''}", headers="{content-encoding: [gzip], content-length: ['99']}")
    assert only(head.replace("method: GET", "method: HEAD")).response.body == b""


BAD = {
    "no body": (cassette("body: {string: null}"), "import-body-missing"),
    "a length without a body": (
        cassette("body: {string: ''}", headers="{Content-Length: ['7']}"), "import-body-missing",
    ),
    "a coding that can't be undone": (
        cassette("body: {string: !!binary AAH/}", headers="{content-encoding: [br]}"), "import-unreadable",
    ),
    "a date in a body": (cassette("parsed_body: {a: 2020-01-01}"), "import-shape"),
    "no status": (cassette(status="null"), "import-no-answer"),
    "no base64": (cassette("body: {base64_string: '*'}"), "import-encoding"),
    "a list for a body": (cassette("body: [1]"), "import-shape"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "rule"), BAD.values(), ids=BAD)
def test_what_is_missing_leaves_its_interaction_out(text, rule):
    result = gathered("vcr", text, "c.yaml")
    assert not result.exchanges
    assert [finding.rule for finding in result.left_out] == [rule]
    assert result.left_out[0].where == "c.yaml#/interactions/0"


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(12)
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [", "not a YAML cassette"),
        ("a: !!python/object/apply:os.system [id]", "not a YAML cassette"),
        ("interactions: 7", "no interactions"),
        ("version: 2\ninteractions: []", "version 2"),
        ("http_interactions: []", "betamax"),
        ("just text", "no interactions"),
        ("a: !!binary '*'", "not a YAML cassette"),
        ("a: 2020-99-99", "not a YAML cassette"),
        ("[" * 100_000, "nested too deeply"),
        ("a: " + "[" * 100_000, "not a YAML cassette"),
        ("interactions: &a [*a]", "holds itself"),
        (BOMB, "endless"),
        ("\x00", "not a YAML cassette"),
        ("{]", "not JSON"),
    ],
)
def test_what_is_no_cassette_is_refused_with_its_place(text, what):
    with pytest.raises(Malformed) as found:
        gathered("vcr", text, "c")
    assert what in f"{found.value} {found.value.mend}"
    assert found.value.where.startswith("c")
