import hashlib
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoresheet.stats import resample
from tests.stats import convolution

PACK = hashlib.sha256(b"demo-pack").hexdigest()
START = resample.prefix(20260922, PACK)


def test_the_prefix_holds_the_algorithm_the_seed_and_the_pack():
    assert START.hex() == f"786f662d636c75737465722d626f6f742f310032303236303932320{'0'}{PACK}00"


@pytest.mark.parametrize(
    ("replicate", "drawn"),
    [
        (0, (11, 1, 9, 1, 2, 2, 7, 9, 10, 1, 7, 2)),
        (1, (11, 4, 1, 11, 11, 1, 9, 11, 10, 6, 10, 3)),
        (9998, (7, 11, 0, 11, 2, 11, 0, 5, 10, 6, 9, 10)),
    ],
)
def test_a_replicate_draws_the_published_indexes(replicate, drawn):
    assert resample.indices(START, replicate, 12) == drawn


def test_all_indexes_have_the_published_digest():
    expected = "a83955b80977defaae4721964adbaf57470411790415f311f16be6d2acfeae11"
    assert resample.stream_sha256(START, 12, 9999) == expected


@pytest.mark.parametrize("clusters", [1, 5, 12, 257, 70_000])
def test_numpy_gives_the_sums_and_the_digest_of_plain_python(clusters, monkeypatch):
    count = 40 if clusters < 1000 else 8
    column, other = [i * i % 7 for i in range(clusters)], [3 * i - 5 for i in range(clusters)]
    fast = resample.sums(START, [column, other], count, use_numpy=True)
    assert fast == resample.sums(START, [column, other], count, use_numpy=False)
    slow = resample.stream_sha256(START, clusters, count)
    monkeypatch.setattr(resample, "_WORTH_NUMPY", 0)
    for kept in (resample.stream_sha256, resample._kept):
        kept.cache_clear()
    assert fast == resample.sums(START, [column, other], count, use_numpy=True)
    assert resample.stream_sha256(START, clusters, count) == slow


def test_the_last_indexes_of_a_large_pack_do_not_overflow():
    top = 1_000_003
    assert max(resample.indices(START, 0, top)) < top


def test_sums_too_large_for_64_bits_stay_exact():
    column = [2**70, 1, 0, 0, 0]
    (found,) = resample.sums(START, [column], 100)
    assert found[0] == sum(column[i] for i in resample.indices(START, 0, 5))
    assert max(found) > 2**64


def test_more_resamples_keep_the_earlier_ones():
    (few,), (many,) = resample.sums(START, [[1, 0, 2]], 10), resample.sums(START, [[1, 0, 2]], 20)
    assert many[:10] == few


def test_columns_share_their_draws():
    first, second = resample.sums(START, [[1, 2, 3, 4], [10, 20, 30, 40]], 50)
    assert [10 * value for value in first] == list(second)


def test_another_seed_and_another_pack_draw_otherwise():
    other = resample.prefix(20260922, "0" * 64)
    assert len({resample.indices(s, 0, 12) for s in (START, other, resample.prefix(1, PACK))}) == 3


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match="length"):
        resample.sums(START, [[1], [1, 2]], 1)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=5, max_size=9))
def test_the_resampled_quartiles_come_within_an_atom_of_infinitely_many_resamples(totals):
    (drawn,) = resample.sums(START, [totals], 2000)
    exact = convolution.resampled_sums(totals)
    support = [total for total, _ in exact]
    for level in (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)):
        seen = sorted(drawn)[int(level * 2000)]
        assert abs(support.index(seen) - support.index(convolution.quantile(exact, level))) <= 1
