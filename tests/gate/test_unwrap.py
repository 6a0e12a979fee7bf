"""Wrappings, one layer at a time, and their bounds."""

import base64
import gzip
import io
import zipfile

import pytest

from scoresheet.gate import unwrap
from scoresheet.gate.unwrap import Bounds, Piece, Unreadable


def test_a_layer_is_undone_and_the_room_shrinks():
    bounds = Bounds(room=1000)
    assert list(unwrap.pieces(gzip.compress(b"hello"), bounds, 0)) == [Piece("", b"hello")]
    assert bounds.room == 995


def test_too_little_room_is_said():
    (found,) = unwrap.pieces(gzip.compress(b"x" * 2000), Bounds(room=1000), 0)
    assert isinstance(found, Unreadable)
    assert "unfolds to more than" in found.reason


def test_too_many_members_are_said():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(5):
            archive.writestr(f"{number}", b"x")
    found = list(unwrap.pieces(out.getvalue(), Bounds(members=3), 0))
    assert found[:3] == [Piece(f"{number}", b"x") for number in range(3)]
    assert isinstance(found[3], Unreadable)


@pytest.mark.parametrize("data", [b"", b"x^ not zlib", b"BZh is a word", b"PK", b"plain text", b"\x78\x9cplain"])
def test_what_only_begins_like_a_wrapping_is_none(data):
    assert list(unwrap.pieces(data, Bounds(), 0)) == []
    assert not unwrap.is_compressed(data)


def test_hashes_are_not_decoded_and_text_is():
    text = base64.b64encode(b"this is a plain sentence, long enough")
    found = dict(unwrap.hidden(b"ab" * 32 + b" " + text))
    assert found == {65: b"this is a plain sentence, long enough"}


def test_noise_in_base64_is_left_alone():
    assert list(unwrap.hidden(base64.b64encode(bytes(range(128, 192))))) == []
