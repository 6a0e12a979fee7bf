import contextlib
import sys

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.model import coding
from scoresheet.model.heads import CODINGS, Bad
from tests.model.doors import packed


@given(st.sampled_from(CODINGS), st.binary(max_size=300))
def test_what_was_packed_is_unpacked(name, data):
    assert coding.unpacked(name, packed(name, data)) == data


def test_a_body_that_is_not_packed_stays_as_it_is():
    assert coding.unpacked("identity", b"\x1f\x8b") == b"\x1f\x8b"


@given(st.sampled_from(CODINGS), st.binary(max_size=100))
def test_any_bytes_are_unpacked_or_refused(name, data):
    with contextlib.suppress(Bad):
        coding.unpacked(name, data)


@pytest.mark.parametrize("name", CODINGS)
def test_a_small_body_that_unpacks_to_a_large_one_is_refused(name):
    small = packed(name, bytes(1 << 20))
    assert len(small) < 3000
    assert coding.unpacked(name, small, 1 << 20) == bytes(1 << 20)
    with pytest.raises(Bad) as refused:
        coding.unpacked(name, small, (1 << 20) - 1)
    assert refused.value.status == 413


@pytest.mark.parametrize("name", ["gzip", "deflate"])
@pytest.mark.parametrize("spoil", [lambda data: data[:-1], lambda data: data + b"x", lambda data: data + data])
def test_a_packed_body_that_could_be_read_in_two_ways_is_refused(name, spoil):
    with pytest.raises(Bad) as refused:
        coding.unpacked(name, spoil(packed(name, b"hello")))
    assert refused.value.status == 400


def test_zstd_that_wants_too_much_memory_is_refused():
    huge = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    )
    made = huge.compressobj()
    body = made.compress(bytes(100)) + made.flush()
    with pytest.raises(Bad) as refused:
        coding.unpacked("zstd", body)
    assert refused.value.status == 400


def test_what_is_not_known_is_refused_with_what_is():
    with pytest.raises(Bad) as refused:
        coding.unpacked("br", b"")
    assert (refused.value.status, "gzip" in refused.value.why) == (415, True)


def test_without_its_package_zstd_is_the_standard_librarys_or_refused_with_what_to_install(monkeypatch):
    body = packed("zstd", b"hello")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    if sys.version_info >= (3, 14):
        assert coding.unpacked("zstd", body) == b"hello"
        return
    with pytest.raises(Bad) as refused:
        coding.unpacked("zstd", body)
    assert (refused.value.status, "scoresheet[zstd]" in refused.value.why) == (415, True)
