from pages.cursor import decode, encode


def test_a_cursor_is_read_back():
    assert decode(encode([12, 5])) == [12, 5]


def test_a_cursor_has_no_padding():
    assert "=" not in encode([1, 23])
