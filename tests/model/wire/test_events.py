from hypothesis import given
from hypothesis import strategies as st

from scoresheet.model.wire.events import Event, events


def test_lines_end_in_any_of_three_ways_and_comments_are_left_out():
    body = b": hello\r\nevent: a\r\ndata: 1\r\n\r\ndata:2\n\ndata: 3\rdata: 4\r\r"
    assert list(events(body)) == [Event("a", "1"), Event("", "2"), Event("", "3\n4")]


def test_an_event_that_was_cut_is_dropped():
    assert list(events(b"data: 1\n\ndata: 2\n")) == [Event("", "1")]
    assert list(events(b"data: 1\n\ndata: 2")) == [Event("", "1")]


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read(body):
    assert all(isinstance(event, Event) for event in events(body))
