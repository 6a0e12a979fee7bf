from pages import offset


def test_the_window_is_shown():
    assert offset.shown(5, 9) == [3, 4, 5, 6, 7]
    assert offset.shown(1, 9) == [1, 2, 3]
    assert offset.shown(9, 9) == [7, 8, 9]
    assert offset.shown(1, 1) == [1]
