"""Differences of lines: true for any two texts, small for small changes, bounded for large ones."""

import itertools
import time

from hypothesis import given
from hypothesis import strategies as st

from scoresheet.run import lines

TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=40)


def rebuilt(old, new):
    made, at = [], 0
    for part in lines.regions(old, new):
        made += [*old[at : part.a0], *new[part.b0 : part.b1]]
        at = part.a1
    return made + old[at:]


@given(TEXTS, TEXTS)
def test_the_regions_turn_the_old_text_into_the_new(old, new):
    assert rebuilt(old, new) == new


@given(TEXTS, TEXTS)
def test_regions_are_in_order_and_never_touch(old, new):
    found = lines.regions(old, new)
    for first, second in itertools.pairwise(found):
        assert first.a1 < second.a0 or first.b1 < second.b0
        assert first.a1 <= second.a0


def test_equal_texts_have_no_difference():
    assert lines.regions([b"a\n"] * 5, [b"a\n"] * 5) == ()


def test_one_changed_line_is_one_small_region():
    old = [b"%d\n" % n for n in range(1000)]
    assert lines.regions(old, [*old[:500], b"x\n", *old[501:]]) == (lines.Region(500, 501, 500, 501),)


def test_a_shortest_script_is_found():
    old, new = list(b"ABCABBA"), list(b"CBABAC")
    found = lines.regions([bytes((c,)) for c in old], [bytes((c,)) for c in new])
    assert sum(part.a1 - part.a0 + part.b1 - part.b0 for part in found) == 5  # Myers 1986, figure 1


def test_a_large_text_of_which_every_other_line_changed_is_bounded():
    old = [b"line %d\n" % n for n in range(40_000)]
    new = [line if n % 2 else b"new %d\n" % n for n, line in enumerate(old)]
    began = time.process_time()
    found = lines.regions(old, new)
    assert time.process_time() - began < 10
    assert rebuilt(old, new) == new
    assert len(found) == 20_000


def test_what_has_nothing_in_common_is_replaced_whole():
    old, new = [b"a\n"] * 3000 + [b"x\n"], [b"b\n"] * 3000
    assert lines.regions(old, new) == (lines.Region(0, 3001, 0, 3000),)
