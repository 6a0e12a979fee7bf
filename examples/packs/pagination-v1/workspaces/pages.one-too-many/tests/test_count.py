from pages.offset import page_count


def test_a_page_that_is_not_full_counts():
    assert page_count(9, 4) == 3


def test_a_full_last_page_is_the_last():
    assert page_count(8, 4) == 2
