import time

from scoresheet.model.log import ModelLog, read_back
from tests.model.entries import entry


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


def test_times_count_from_the_moment_that_the_agent_started(tmp_path):
    log = ModelLog(tmp_path / "model.jsonl")
    log.start(time.monotonic() - 1000)
    assert 1000 <= log.elapsed() < 2000
    log.close()
