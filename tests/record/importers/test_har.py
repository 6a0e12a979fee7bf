"""HAR files: what is carried over, and that nothing which is missing or was cut becomes empty."""

import base64
import gzip
import json

import pytest

from scoresheet.errors import Malformed
from tests.record.importers.replayed import CORPUS, gathered, imported, replays

HAR = CORPUS / "har"
EXPECTED = {
    # file: (imported, rules of what is left out)
    "charles-proxy.har": (0, ["import-body-cut"]),
    "chrome-local-api-patch.har": (6, []),
    "chrome-postdata-text.har": (1, []),
    "chrome-webinspector.har": (1, ["import-no-answer", "import-body-cut"]),
    "chrome-with-bom.har": (1, []),
    "firefox.har": (3, ["import-body-missing"] * 5),
    "mitmproxy-corrupted-gzip.har": (0, ["import-unreadable"]),
    "mitmproxy-error-status0.har": (1, ["import-no-answer"]),
    "mitmproxy-event-stream.har": (0, ["import-body-missing"] * 2),
    "mitmproxy-form-post.har": (1, ["import-body-cut"]),
    "mitmproxy-multipart.har": (3, []),
    "mitmproxy-websocket.har": (0, ["import-no-replay"] * 3),
    "proxyman-graphql.har": (1, []),
}


def entry(request=None, response=None, content=None, headers=(), **more):
    """A sound GET, with something changed."""
    value = {
        "startedDateTime": "2026-01-01T00:00:00Z",
        "time": 12.5,
        "request": {"method": "GET", "url": "https://api.test/a", "headers": [], "bodySize": 0} | (request or {}),
        "response": {
            "status": 200,
            "headers": [{"name": name, "value": value} for name, value in headers],
            "content": {"size": 2, "text": "{}", "mimeType": "application/json"} if content is None else content,
            "bodySize": -1,
        }
        | (response or {}),
    }
    return value | more


def har(*entries, creator="WebInspector"):
    return json.dumps({"log": {"version": "1.2", "creator": {"name": creator}, "entries": list(entries)}})


def read(*entries, creator="WebInspector"):
    return gathered("har", har(*entries, creator=creator), "f.har")


def only(result):
    assert not result.left_out
    return result.exchanges[0]


@pytest.mark.parametrize("name", EXPECTED)
def test_real_files_of_browsers_and_proxies_are_imported_or_say_why_not(name):
    result = gathered("har", (HAR / name).read_bytes(), name)
    count, rules = EXPECTED[name]
    assert (len(result.exchanges), [finding.rule for finding in result.left_out]) == (count, rules)
    assert all(finding.where.startswith(f"{name}#/log/entries/") for finding in result.left_out)


def test_every_har_of_the_corpus_is_expected():
    assert {path.name for path in HAR.iterdir()} == EXPECTED.keys()


def test_what_real_files_hold_freezes_and_answers(tmp_path):
    done = imported("har", (HAR, CORPUS / "polly"), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == len(task.calls) == 22
    assert len(done.left_out) == 16


def test_a_recording_of_210_entries_freezes_and_answers(tmp_path):
    done = imported("har", (CORPUS / "mitmproxy" / "library.har",), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == 210
    assert not done.left_out
    jobs = [call.response_bytes or "" for call in task.calls if call.request.path == "/jobs/7"]
    assert [json.loads(text)["state"] for text in jobs] == ["queued", "running", "done", "done"]
    put = next(call for call in task.calls if call.request.method == "PUT")
    assert base64.b64decode(put.request.body_base64 or "") == bytes(range(256))
    latin = next(call for call in task.calls if call.request.path == "/latin")
    assert latin.response().body == "Der Prozeß; Kafka\n".encode("latin-1")
    for path in (tmp_path / "pack").rglob("*.json"):
        assert "tok-example" not in path.read_text()


def test_a_browser_of_210_entries_freezes_and_answers_but_for_what_it_did_not_write(tmp_path):
    done = imported("har", (CORPUS / "browser" / "library.har",), tmp_path / "pack")
    replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == 209
    assert [(finding.rule, finding.what) for finding in done.left_out] == [
        ("import-body-cut", "the request's body has 0 bytes of 256")  # binary, and written as an empty text
    ]


def test_a_recording_of_a_proxy_holds_binary_form_parts(tmp_path):
    result = gathered("har", (HAR / "mitmproxy-multipart.har").read_bytes())
    assert len(result.exchanges[0].request.body) == 455
    assert b"\x00" in result.exchanges[0].request.body


def test_polly_writes_gzip_as_hexadecimal_digits():
    exchange = only(gathered("har", (CORPUS / "polly" / "github-org-gzip-hex.har").read_bytes()))
    assert json.loads(gzip.decompress(exchange.response.body))["login"] == "Netflix"


def test_entries_are_taken_in_the_order_in_which_they_started():
    late = entry({"url": "https://api.test/late"}, startedDateTime="2026-01-01T00:00:00+00:00")
    early = entry({"url": "https://api.test/early"}, startedDateTime="2026-01-01T00:30:00+01:00")
    assert [each.request.target for each in read(late, early).exchanges] == ["/early", "/late"]
    del early["startedDateTime"]
    assert [each.request.target for each in read(late, early).exchanges] == ["/late", "/early"]


def test_path_and_query_stay_as_they_were_sent():
    url = "https://API.test:443/a%2Fb//c;v=1?x=1&x=2&flag&e=#top"
    request = only(read(entry({"url": url}))).request
    assert request.target == "/a%2Fb//c;v=1?x=1&x=2&flag&e="
    assert request.upstream == "API_TEST"
    wide = read(entry({"url": "http://api.test/bücher liste"}))
    assert only(wide).request.target == "/b%C3%BCcher%20liste"
    assert "percent-encoded" in wide.changed[0][0]


def test_a_query_that_is_not_in_the_url_is_taken_from_its_list():
    result = read(entry({"queryString": [{"name": "q", "value": "a b&c"}]}))
    assert only(result).request.target == "/a?q=a+b%26c"
    assert result.changed


MISSING = {
    "no text": {"size": 5},
    "no content": {},
    "an empty text beside a size": {"size": 5, "text": ""},
    "nothing said": {"size": 0, "mimeType": "x-unknown"},
    "no text, size unknown": {"size": -1},
    "half a file": {"size": 9, "text": "{}"},
    "half a base64 body": {"size": 9, "text": "e30=", "encoding": "base64"},
    "replaced bytes": {"size": 4, "text": "a\ufffdb"},
    "no base64": {"size": 2, "text": "e3*=", "encoding": "base64"},
    "unknown encoding": {"size": 2, "text": "e30", "encoding": "base91"},
    "no hexadecimal digits": {"size": 2, "text": '["zz"]', "_isBinary": True},
}


@pytest.mark.parametrize("content", MISSING.values(), ids=MISSING)
def test_an_answer_whose_body_is_missing_or_cut_is_never_imported_as_empty(content):
    result = read(entry(content=content))
    assert not result.exchanges
    assert len(result.left_out) == 1
    assert result.left_out[0].rule in ("import-body-missing", "import-body-cut", "import-encoding")


def test_an_answer_shorter_than_its_content_length_is_left_out():
    assert read(entry(headers=[("Content-Length", "300")])).left_out[0].rule == "import-body-cut"
    empty = entry(content={"size": 0, "text": ""}, headers=[("Content-Length", "300")])
    assert read(empty).left_out[0].rule == "import-body-missing"
    stream = entry(content={"size": 0, "text": ""}, headers=[("Content-Type", "text/event-stream")])
    assert read(stream).left_out[0].rule == "import-body-missing"


EMPTY = {
    "a text of no length": ({"size": 0, "text": ""}, ()),
    "a length of 0": ({"size": 0}, [("Content-Length", "0")]),
}


@pytest.mark.parametrize(("content", "headers"), EMPTY.values(), ids=EMPTY)
def test_an_answer_that_was_empty_is_empty(content, headers):
    assert only(read(entry(content=content, headers=headers))).response.body == b""


def test_answers_without_a_body_by_their_kind_keep_their_headers():
    head = only(read(entry({"method": "HEAD"}, content={}, headers=[("Content-Length", "123")])))
    assert head.response.headers == (("Content-Length", "123"),)
    assert only(read(entry(response={"status": 204}, content={}))).response.body == b""
    cached = read(entry(response={"status": 304}))
    assert only(cached).response.body == b""
    assert any("304" in what for what, _ in cached.changed)


SENT_MISSING = {
    "a size without a body": {"method": "POST", "bodySize": 12},
    "a length without a body": {"method": "POST", "headers": [{"name": "Content-Length", "value": "12"}]},
    "a type without a body": {
        "method": "PUT", "bodySize": -1, "headers": [{"name": "Content-Type", "value": "text/plain"}],
    },
    "half a body": {"method": "POST", "bodySize": 12, "postData": {"text": "half"}},
    "replaced bytes": {"method": "POST", "bodySize": 3, "postData": {"text": "a\ufffdb"}},
    "parts without files": {
        "method": "POST", "bodySize": 200,
        "postData": {"mimeType": "multipart/form-data; boundary=x", "params": [{"name": "f", "fileName": "a"}]},
    },
    "a form of another size": {
        "method": "POST", "bodySize": 99,
        "postData": {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a", "value": "1"}]},
    },
    "in another file": {"method": "POST", "bodySize": -1, "postData": {"_file": "a.bin"}},
}  # fmt: skip


@pytest.mark.parametrize("request_", SENT_MISSING.values(), ids=SENT_MISSING)
def test_a_request_whose_body_is_missing_or_cut_is_left_out(request_):
    result = read(entry(request_))
    assert not result.exchanges
    assert result.left_out[0].rule in ("import-body-missing", "import-body-cut")
    assert result.left_out[0].mend


def test_a_form_is_rebuilt_from_its_parameters_to_the_byte():
    posted = {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a b", "value": "ü&1"}]}
    result = read(entry({"method": "POST", "bodySize": 14, "postData": posted}))
    assert only(result).request.body == b"a+b=%C3%BC%261"
    assert any("rebuilt" in what for what, _ in result.changed)


def test_binary_request_bodies_are_bytes_in_every_spelling():
    raw = bytes(range(256))
    as_base64 = {"text": base64.b64encode(raw).decode(), "encoding": "base64"}
    as_latin = {"text": raw.decode("latin-1")}
    for posted in (as_base64, as_latin):
        exchange = only(read(entry({"method": "POST", "bodySize": 256, "postData": posted})))
        assert exchange.request.body == raw
    wide = only(read(entry({"method": "POST", "bodySize": 2, "postData": {"text": "ü"}})))
    assert wide.request.body == "ü".encode()


def test_a_body_that_the_file_holds_decoded_is_not_called_encoded():
    for coding in ("gzip", "br"):
        result = read(entry(headers=[("Content-Encoding", coding), ("Content-Length", "17")]))
        assert dict(only(result).response.headers) == {"Content-Length": "2"}
        assert len(result.changed) == 2
    packed = base64.b64encode(gzip.compress(b"{}", mtime=0)).decode()
    content = {"size": 2, "text": packed, "encoding": "base64"}
    kept = only(read(entry(content=content, headers=[("Content-Encoding", "gzip")])))
    assert dict(kept.response.headers)["Content-Encoding"] == "gzip"


def test_text_is_written_in_the_charset_that_it_came_in():
    headers = [("Content-Type", "text/csv; charset=iso-8859-1")]
    content = {"size": 4, "text": "groß", "mimeType": "text/csv"}
    assert only(read(entry(content=content, headers=headers))).response.body == "groß".encode("latin-1")
    assert only(read(entry(content=content | {"size": 5}))).response.body == "groß".encode()


def test_repeated_headers_stay_apart_and_frames_are_left_to_the_replay():
    headers = [(":status", "200"), ("Set-Cookie", "a=1\nb=2"), ("Transfer-Encoding", "chunked"), ("Bad Name", "x")]
    result = read(entry(headers=headers))
    assert only(result).response.headers == (("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"))
    assert only(result).response.stream == (2,)
    assert {what.split(":")[0] for what, _ in result.changed} == {
        "a header that can't be sent was left out",
        "chunked answer becomes one chunk",
    }


def test_what_no_replay_can_answer_is_left_out_by_name():
    rules = [
        read(entry(response={"status": 101})).left_out[0].rule,
        read(entry({"url": "wss://api.test/"})).left_out[0].rule,
        read(entry({"url": "data:text/plain,x"})).left_out[0].rule,
        read(entry(response={"status": 0})).left_out[0].rule,
        read(entry({"method": "G T"})).left_out[0].rule,
        read(entry({"url": 7})).left_out[0].rule,
        read("no object").left_out[0].rule,
    ]
    assert rules == [
        "import-no-replay", "import-url", "import-url", "import-no-answer", *["import-shape"] * 3,
    ]  # fmt: skip


def test_a_user_in_a_url_becomes_no_part_of_the_pack(tmp_path):
    path = tmp_path / "f.har"
    path.write_text(
        har(entry({"url": "https://joe:s3cr3t-pass-99@api.test/a"}, content={"text": '"s3cr3t-pass-99"', "size": 16}))
    )
    imported("har", (path,), tmp_path / "pack")
    assert "s3cr3t" not in (tmp_path / "pack" / "tasks" / "t.json").read_text()


def test_half_a_character_leaves_out_its_entry_only():
    result = gathered("har", har(entry(content={"size": 3, "text": "MARK"}), entry()).replace("MARK", "\\ud83d"))
    assert len(result.exchanges) == 1
    assert result.left_out[0].rule == "import-text"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("", "not JSON"),
        ("[]", "no log.entries"),
        ('{"log": {}}', "no log.entries"),
        ('{"log": {"entries": [', "not JSON"),
        ('{"a": 1, "a": 2}', "given twice"),
        ('{"a": NaN}', "no JSON number"),
        ("[" * 200_000, "nested too deeply"),
        (b"\xff\xfe{\x00", "not UTF-8"),
        ('{"a": ' + "9" * 5000 + "}", "relied on"),
    ],
)
def test_what_is_no_har_is_refused_with_its_place(data, what):
    with pytest.raises(Malformed, match=what) as found:
        gathered("har", data, "f.har")
    assert found.value.where.startswith("f.har")
