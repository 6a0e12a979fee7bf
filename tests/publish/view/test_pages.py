"""Pages that are kept: for what they were made of alone, and no more than there is room for."""

from hypothesis import given
from hypothesis import strategies as st

from scoresheet.publish.view.pages import Pages


def test_a_page_is_given_for_the_stamp_that_it_was_made_of_alone():
    pages = Pages()
    pages.put("r1", b"one", "page")
    assert (pages.get("r1", b"one"), pages.get("r1", b"two"), pages.get("r2", b"one")) == ("page", None, None)
    pages.put("r1", b"two", "another")
    assert (pages.get("r1", b"one"), pages.get("r1", b"two")) == (None, "another")


def test_the_page_that_was_asked_for_least_lately_goes_first():
    pages = Pages(most=10)
    for key in ("a", "b"):
        pages.put(key, b"", "12345")
    assert pages.get("a", b"") == "12345"
    pages.put("c", b"", "123")
    assert [pages.get(key, b"") for key in "abc"] == ["12345", None, "123"]


def test_a_page_larger_than_the_room_is_not_kept():
    pages = Pages(most=3)
    pages.put("b", b"", "12")
    pages.put("a", b"", "1234")
    assert (pages.get("a", b""), pages.get("b", b"")) == (None, "12")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12)), max_size=30))
def test_no_more_is_held_than_there_is_room_for(given_):
    pages = Pages(most=10)
    for key, length in given_:
        pages.put(key, b"", "x" * length)
        held = [page for name in "abc" if (page := pages.get(name, b"")) is not None]
        assert sum(map(len, held)) <= 10
        assert pages.get(key, b"") == (None if length > 10 else "x" * length)
