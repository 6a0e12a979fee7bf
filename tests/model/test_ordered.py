import io
from dataclasses import replace

import pytest

from scoresheet.errors import Malformed
from scoresheet.model.entry import Entry
from scoresheet.model.ordered import entries

ONE = Entry("openai", "POST", "/v1/responses", (), b"{}", 200, (), b"{}", 0.5, None, 1.5)


def log(*moments: float, **more) -> list[bytes]:
    return [
        replace(ONE, started_s=moment, request=b"%d" % place, **more).line() for place, moment in enumerate(moments)
    ]


def read(lines: list[bytes]) -> list[tuple[float, bytes]]:
    return [(entry.started_s, entry.request) for entry in entries(io.BytesIO(b"".join(lines)))]


def test_calls_come_as_they_began_though_they_were_written_as_they_ended():
    assert read(log(3.0, 1.25, 2.0)) == [(1.25, b"1"), (2.0, b"2"), (3.0, b"0")]


def test_of_two_at_one_moment_the_one_that_ended_first_comes_first():
    assert read(log(1.0, 1.0)) == [(1.0, b"0"), (1.0, b"1")]


def test_an_empty_log_has_no_calls():
    assert read([]) == []


def test_what_a_body_says_of_its_start_is_no_start():
    lines = log(2.0, 1.0, response=b',"started_s":9.0,', fault=',"started_s":9.0,')
    assert [moment for moment, _ in read(lines)] == [1.0, 2.0]


@pytest.mark.parametrize(
    "line",
    [
        b"{}\n",
        b"\n",
        b'{"a":1,"started_s":x}\n',
        b'{"a":1,"started_s":1.0}\n',
        log(1.0)[0].replace(b'"fault":null', b'"fault":null,"started_s":2.0'),
        log(1.0)[0].replace(b'"started_s":1.0', b'"started_s":NaN'),
        log(1.0)[0][:-20],
    ],
)
def test_a_line_that_is_none_is_named(line):
    with pytest.raises(Malformed) as error:
        read([*log(0.0), line])
    assert error.value.where == "model.jsonl:2"
