"""mitmproxy's flow files, by our own reader."""

import pytest

from scoresheet.errors import Malformed
from tests.record.importers.replayed import CORPUS, gathered, imported, replays

FILE = CORPUS / "mitmproxy" / "library.flows"


def dump(value):
    """A tnetstring."""
    match value:
        case None:
            body, kind = b"", b"~"
        case bool():
            body, kind = str(value).lower().encode(), b"!"
        case int():
            body, kind = str(value).encode(), b"#"
        case float():
            body, kind = repr(value).encode(), b"^"
        case bytes():
            body, kind = value, b","
        case str():
            body, kind = value.encode(), b";"
        case list():
            body, kind = b"".join(map(dump, value)), b"]"
        case dict():
            body, kind = b"".join(dump(key) + dump(item) for key, item in value.items()), b"}"
    return b"%d:%b%b" % (len(body), body, kind)


def flow(request=None, response=None, **more):
    asked = {
        "method": b"GET", "scheme": b"https", "host": "10.0.0.1", "port": 443, "authority": b"", "path": b"/a?b",
        "headers": [[b"Host", b"api.test"]], "content": b"", "timestamp_start": 1.0,
    }  # fmt: skip
    told = {"status_code": 200, "headers": [], "content": b"{}", "timestamp_end": 1.25}
    value = {
        "type": "http", "version": 21, "websocket": None, "request": asked | (request or {}),
        "response": None if response == "none" else told | (response or {}),
    }  # fmt: skip
    return dump(value | more)


def test_flows_of_mitmdump_freeze_and_answer(tmp_path):
    done = imported("mitmproxy", (FILE,), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == 26
    assert not done.left_out
    gzipped = [call for call in task.calls if dict(call.response().headers).get("Content-Encoding") == "gzip"]
    assert gzipped
    assert all(call.response().body.startswith(b"\x1f\x8b") for call in gzipped)
    assert "tok-example" not in (tmp_path / "pack" / "tasks" / "t.json").read_text()


def test_the_host_is_the_one_that_the_client_named():
    result = gathered("mitmproxy", flow() + flow({"authority": b"other.test:8443"}) + flow({"headers": []}))
    assert [*result.hosts.values()] == ["api.test", "other.test:8443", "10.0.0.1"]
    assert result.exchanges[0].request.target == "/a?b"
    assert result.exchanges[0].response.latency_ms == 250


LEFT_OUT = {
    "no answer": (flow(response="none"), "import-no-answer"),
    "a streamed body": (flow(response={"content": None}), "import-body-missing"),
    "a streamed request": (flow({"content": None}), "import-body-missing"),
    "half a body": (flow(response={"headers": [[b"Content-Length", b"9"]]}), "import-body-cut"),
    "a websocket": (flow(websocket={"messages": []}), "import-no-replay"),
    "another protocol": (flow(type="tcp"), "import-no-replay"),
    "an old version": (flow(version=[2, 0, 0]), "import-version"),
    "no header": (flow({"headers": [b"x"]}), "import-shape"),
    "no flow": (dump([1]), "import-shape"),
}


@pytest.mark.parametrize(("data", "rule"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_cant_be_carried_over_is_named(data, rule):
    result = gathered("mitmproxy", data)
    assert not result.exchanges
    assert [finding.rule for finding in result.left_out] == [rule]


def test_a_newer_version_is_read_by_what_is_known():
    result = gathered("mitmproxy", flow(version=99))
    assert len(result.exchanges) == 1
    assert "99" in result.changed[0][0]


def test_a_file_that_was_cut_anywhere_is_refused_or_shorter():
    data = flow() + flow()
    for end in range(0, len(data), 7):
        if end == len(flow()):
            continue
        with pytest.raises(Malformed):
            gathered("mitmproxy", data[:end], "f")


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"999999999999:x,",
        b"5:ab,",
        b"01:a,",
        b"-1:,",
        b"3:1.x^",
        b"3:abc#",
        b"2:\xff\xff;",
        b"1:a?",
        b"2:1:}",
        b"{}",
        b"4:8:ab]cdefg,",
    ],
)
def test_hostile_bytes_are_refused_with_their_place(data):
    with pytest.raises(Malformed, match="not a flow file") as found:
        gathered("mitmproxy", data, "f")
    assert found.value.where.startswith("f#0, byte ")


def test_a_value_without_end_is_refused():
    deep = b""
    for _ in range(2000):
        deep = b"%d:%b]" % (len(deep), deep)
    with pytest.raises(Malformed, match="deep"):
        gathered("mitmproxy", deep)
