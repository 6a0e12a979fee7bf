import gzip
import zlib

import pytest

from scoresheet.record.exchange import codings, encoded, header, media_type, readable, readable_start

TEXT = b"hello " * 100


def headers(coding):
    return (("Content-Encoding", coding),)


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT, mtime=0)),
        ("X-GZIP", gzip.compress(TEXT, mtime=0)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("deflate, gzip", gzip.compress(zlib.compress(TEXT), mtime=0)),
    ],
)
def test_a_coding_is_undone_and_done_again(coding, body):
    assert readable(headers(coding), body) == TEXT
    again = encoded(headers(coding), TEXT)
    assert again is not None
    assert readable(headers(coding), again) == TEXT


def test_what_cannot_be_undone_is_none():
    assert readable(headers("compress"), b"x") is None
    assert readable(headers("gzip"), b"not gzip") is None
    assert encoded(headers("compress"), b"x") is None
    assert readable(headers("compress"), b"") == b""


def test_the_start_of_a_body_that_was_cut_can_be_read():
    assert TEXT.startswith(readable_start(headers("gzip"), gzip.compress(TEXT, mtime=0)[:-9]) or b"?")
    assert readable_start((), TEXT[:7]) == TEXT[:7]
    assert readable_start(headers("gzip"), b"not gzip at all") is None
    assert readable_start(headers("br"), b"x") is None


def test_headers_are_read_whatever_their_case_and_count():
    pairs = (
        ("content-TYPE", "Text/HTML; charset=x"),
        ("A", "1"),
        ("a", "2"),
        ("Content-Encoding", "gzip, identity, br"),
    )
    assert media_type(pairs) == "text/html"
    assert header(pairs, "A") == "1, 2"
    assert header(pairs, "b") == ""
    assert codings(pairs) == ("gzip", "br")
