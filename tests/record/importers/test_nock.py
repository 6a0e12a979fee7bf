"""Recordings of nock."""

import json

import pytest

from scoresheet.errors import Malformed
from tests.record.importers.replayed import CORPUS, gathered, imported, replays

FOLDER = CORPUS / "nock"
MADE = ("library.json", "library-raw.json")


def definition(**members):
    asked = {"scope": "https://api.test:443", "method": "GET", "path": "/a?b=1", "body": "", "reqheaders": {}}
    told = {"status": 200, "response": "ok", "rawHeaders": ["Content-Type", "text/plain"], "responseIsBinary": False}
    return asked | told | members


def result(**members):
    return gathered("nock", json.dumps([definition(**members)]), "f.json")


def only(**members):
    found = result(**members)
    assert not found.left_out
    return found.exchanges[0]


def rules(found):
    return [finding.rule for finding in found.left_out]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("github-*.json")), ids=lambda path: path.name)
def test_real_fixtures_freeze_and_answer(path, tmp_path):
    done = imported("nock", (path,), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert not done.left_out
    assert done.calls == len(json.loads(path.read_text()))
    for call in task.calls:
        if call.request.path.endswith("refs/heads/main"):
            assert call.response().body.startswith(b"\x1f\x8b")
            assert len(call.response().body) == 176


@pytest.mark.parametrize("name", MADE)
def test_a_recording_of_everything_that_nock_records_freezes_and_answers(name, tmp_path):
    done = imported("nock", (FOLDER / name,), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    by_path = {call.request.path: call for call in task.calls}
    states = [json.loads(call.response().body)["state"] for call in task.calls if call.request.path == "/jobs/7"]
    assert states == ["queued", "running", "done"]
    assert json.loads(by_path["/books/2"].response().body)["isbn"] == 9780000000002
    assert ("Content-Encoding", "gzip") in by_path["/books/6"].response().headers
    assert by_path["/cover"].response().body.startswith(b"\x89PNG")
    assert by_path["/old"].response_status == 302
    assert [value for header, value in by_path["/twice"].response().headers if header == "Set-Cookie"] == [
        "lang=REDACTED-1",
        "theme=REDACTED-2",
    ]
    assert by_path["/loans"].request.as_request().header("content-type") == "application/json"
    if name == "library.json":
        assert not done.left_out
        assert by_path["/covers/9"].request.as_request().body == bytes(range(256))
    else:  # no lengths: the bytes of a request are not to be told from digits
        assert [finding.rule for finding in done.left_out] == ["import-encoding"]
    for path in (tmp_path / "pack").rglob("*.json"):
        assert "tok-example" not in path.read_text()


@pytest.mark.parametrize(
    ("body", "headers", "bytes_"),
    [
        ("", {}, b""),
        (None, {}, b""),
        ("plain", {"content-type": "text/plain"}, b"plain"),
        ({"b": 1, "a": "ß"}, {"content-type": "application/json"}, '{"b":1,"a":"ß"}'.encode()),
        ([1, "2"], {"content-type": "application/json"}, b'[1,"2"]'),
        (7, {"content-type": "application/json"}, b"7"),
        ("hi", {"content-type": "application/json", "content-length": "4"}, b'"hi"'),
        ("{no", {"content-type": "application/json", "content-length": 3}, b"{no"),
        ("00ff", {"content-length": 2}, b"\x00\xff"),
        ("00ff", {"content-length": "4"}, b"00ff"),
        ("00ff", {"content-type": "text/plain"}, b"00ff"),
        ("0ff", {}, b"0ff"),
        (["1f8b", "08"], {"content-encoding": "gzip"}, None),
    ],
)
def test_a_request_body_is_told_by_what_is_known_of_it(body, headers, bytes_):
    found = result(method="POST", body=body, reqheaders=headers)
    if bytes_ is None:  # half a gzip stream
        assert rules(found) == ["import-unreadable"]
    else:
        assert found.exchanges[0].request.body == bytes_


def test_what_was_read_as_json_is_written_anew_and_said_so():
    found = result(response={"a": [1.0]}, rawHeaders=["Content-Type", "application/json", "Content-Length", "13"])
    assert found.exchanges[0].response.body == b'{"a":[1.0]}'
    assert found.exchanges[0].response.headers[-1] == ("Content-Length", "11")
    assert any("written anew" in what for what, _ in found.changed)


def test_headers_are_read_in_every_shape():
    assert only(rawHeaders=["X-A", "1", "x-a", "2"]).response.headers == (("X-A", "1"), ("x-a", "2"))
    assert only(rawHeaders={"X-A": ["1", "2"]}).response.headers == (("X-A", "1"), ("X-A", "2"))
    older = definition(headers={"x-a": 7})
    del older["rawHeaders"]
    assert gathered("nock", json.dumps([older])).exchanges[0].response.headers == (("x-a", "7"),)


BAD = {
    "hexadecimal digits or text": ({"method": "POST", "body": "00ff"}, "import-encoding"),
    "a JSON text or no JSON": ({"response": "x", "rawHeaders": ["Content-Type", "a/b+json"]}, "import-encoding"),
    "no digits": ({"response": "xyz", "responseIsBinary": True}, "import-encoding"),
    "a chunk that is no text": (
        {"response": [7], "rawHeaders": ["Content-Encoding", "gzip"]},
        "import-shape",
    ),
    "a body that is gone": ({"response": "", "rawHeaders": ["Content-Length", "9"]}, "import-body-missing"),
    "a request body that is gone": ({"reqheaders": {"content-length": 9}}, "import-body-missing"),
    "no status": ({"status": None}, "import-no-answer"),
    "options": ({"options": {"filteringScope": True}}, "import-pattern"),
    "a path that is none": ({"path": 7}, "import-shape"),
    "another scheme": ({"scope": "ws://api.test"}, "import-url"),
}


@pytest.mark.parametrize(("members", "rule"), BAD.values(), ids=BAD)
def test_what_cant_be_told_leaves_its_definition_out(members, rule):
    found = result(**members)
    assert rules(found) == [rule]
    assert found.left_out[0].where == "f.json#/0"


@pytest.mark.parametrize(
    "text", ["", "7", "{}", "[7]", '[{"request": 1}]', "nock('https://a').get('/')", "[" * 100_000]
)
def test_what_is_no_recording_of_nock_is_refused(text):
    with pytest.raises(Malformed):
        gathered("nock", text, "f.json")
