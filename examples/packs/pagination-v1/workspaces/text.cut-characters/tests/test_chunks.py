from text.chunks import lines


def test_lines():
    assert list(lines([b"a\r\nb", b"c\n", b"d"])) == ["a", "bc", "d"]


def test_a_cut_character():
    data = "é\n".encode()
    assert list(lines([data[:1], data[1:]])) == ["é"]
