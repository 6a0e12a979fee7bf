import pytest

from scoresheet.errors import Malformed
from scoresheet.model.log import Entry, ModelLog, read_back


def entry(**more):
    values = {
        "kind": "openai",
        "method": "POST",
        "path": "/v1/responses",
        "request_headers": (("a", "b"),),
        "request": b'{"model":"m"}',
        "status": 200,
        "response_headers": (("content-type", "application/json"),),
        "response": b"\xff\x00",
        "started_s": 1.5,
        "first_byte_s": 1.75,
        "ended_s": 2.0,
        **more,
    }
    return Entry(**values)


def test_what_is_written_is_read_back_byte_for_byte(tmp_path):
    entries = [
        entry(),
        entry(status=None, response=b"", first_byte_s=None, refused="no"),
        entry(response="é\r\n".encode()),
    ]
    log = ModelLog(tmp_path / "model.jsonl")
    for each in entries:
        log.write(each)
    log.close()
    assert list(read_back((tmp_path / "model.jsonl").read_bytes())) == entries


@pytest.mark.parametrize("line", [b"{}", b"[]", b"{"])
def test_a_line_that_is_none_is_refused_with_its_place(line):
    with pytest.raises(Malformed):
        list(read_back(entry().line() + line))


def test_a_list_of_models_and_a_count_of_tokens_are_no_calls():
    assert entry(method="GET", path="/v1/models").exchange() is None
    assert entry(path="/v1/messages/count_tokens?beta=true").exchange() is None
    assert entry().exchange().status == 200
