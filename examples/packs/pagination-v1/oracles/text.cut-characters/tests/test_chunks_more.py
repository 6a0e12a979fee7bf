import pytest
from text.chunks import lines

TEXT = "naïve\r\n日本語\n\n𝄞 end"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_any_cut(encoding, size):
    data = TEXT.encode(encoding)
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert list(lines(chunks, encoding)) == ["naïve", "日本語", "", "𝄞 end"]


def test_a_character_that_never_ends_is_an_error():
    with pytest.raises(UnicodeDecodeError):
        list(lines([b"a\n\xc3"]))
