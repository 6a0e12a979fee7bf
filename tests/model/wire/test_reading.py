import gzip
import json

from hypothesis import given
from hypothesis import strategies as st

from scoresheet.model.wire import reading
from tests.model.wire import exchanges
from tests.strategies import json_values

PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages?beta=true")
members = st.sampled_from(
    [
        "model",
        "messages",
        "input",
        "tools",
        "tool_choice",
        "usage",
        "choices",
        "content",
        "error",
        "output",
        "type",
        "delta",
        "message",
        "response",
        "name",
    ]
)
shapes = st.recursive(json_values, lambda inner: st.dictionaries(members, inner) | st.lists(inner), max_leaves=8)


def test_the_corpus_holds_more_exchanges_than_the_claim():
    assert len(exchanges.NAMES) >= 60


def test_an_unknown_dialect_is_unobserved():
    found = reading.read("/v1/embeddings", b"{}", 200, (), b"{}")
    assert isinstance(found, reading.Unobserved)
    assert "dialect" in found.reason


def test_a_request_that_two_parsers_read_differently_is_unobserved():
    body = b'{"model":"m","tools":[],"tools":[{"type":"web_search"}]}'
    assert isinstance(reading.ask("/v1/responses", body), reading.Unobserved)


def test_an_answer_that_is_packed_is_read():
    exchange = exchanges.recorded("chat-basic")
    packed = gzip.compress(exchanges.answer(exchange))
    body = json.dumps(exchange["request"]["body"]).encode()
    headers = [("content-type", "application/json"), ("content-encoding", "gzip")]
    found = reading.read("/v1/chat/completions", body, 200, headers, packed)
    assert found.answered.usage.input == 15
    assert reading.read("/v1/chat/completions", body, 200, [("content-encoding", "br")], packed).answered is None


def test_a_bomb_is_not_unpacked():
    packed = gzip.compress(bytes(reading.MAX_DECODED + 1))
    assert reading.decoded([("content-encoding", "gzip")], packed) is None


@given(st.sampled_from(PATHS), shapes, shapes, st.sampled_from(["application/json", "text/event-stream"]))
def test_no_shape_of_json_raises(path, asked, answer, media):
    body = json.dumps(asked).encode()
    told = json.dumps(answer)
    data = f"event: message_start\ndata: {told}\n\n" if "event" in media else told
    found = reading.read(path, body, 200, [("content-type", media)], data.encode())
    assert isinstance(found, reading.Read) == isinstance(asked, dict)


@given(st.sampled_from(PATHS), st.binary(max_size=80), st.integers(100, 599))
def test_no_bytes_raise(path, data, status):
    reading.read(path, b'{"model":"m"}', status, [("content-type", "text/event-stream")], data)
    reading.read(path, data, status, [("content-encoding", "gzip")], data)
