import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.model.heads import Bad, Chunks, request_head, response_head

bodies = st.lists(st.binary(min_size=1, max_size=40), max_size=6)


@given(bodies, st.lists(st.integers(1, 30), min_size=1, max_size=20), st.binary(max_size=9))
def test_chunks_give_their_data_however_they_come(pieces, cuts, rest):
    wire = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\nT: 1\r\n\r\n" + rest
    chunks, found, place = Chunks(), b"", 0
    for size in itertools.cycle(cuts):
        found += chunks.feed(wire[place : place + size])
        place += size
        if chunks.done or place > len(wire):
            break
    assert (found, chunks.done) == (b"".join(pieces), True)
    assert chunks.rest + wire[place:] == rest


@given(st.binary(max_size=200))
def test_any_bytes_are_a_head_or_are_refused(raw):
    for read in (request_head, response_head):
        with contextlib.suppress(Bad):
            read(raw)


def test_what_a_connection_header_names_is_not_sent_on():
    head = request_head(b"POST /v1/responses HTTP/1.1\r\nHost: localhost:1\r\nConnection: x-a\r\nX-A: 1\r\nX-B: 2")
    assert list(head.sent()) == [("X-B", "2")]


def test_an_answer_without_a_length_ends_with_its_connection():
    head = response_head(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream")
    assert (head.length, head.chunked, head.close) == (None, False, True)


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_that_has_no_body_has_none(status):
    assert response_head(b"HTTP/1.1 %d No\r\ncontent-length: 9" % status).length == 0
