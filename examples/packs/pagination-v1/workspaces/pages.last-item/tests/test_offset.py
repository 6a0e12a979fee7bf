import pytest
from pages.offset import page


def test_a_page_is_full():
    assert page(list(range(10)), 1, 4) == [0, 1, 2, 3]


def test_pages_follow_each_other():
    assert page(list(range(10)), 2, 4) == [4, 5, 6, 7]


def test_there_is_no_page_zero():
    with pytest.raises(ValueError):
        page([1], 0, 4)
