import pytest
from pages.cursor import decode, encode


@pytest.mark.parametrize("position", [[1, 1], [12, 1], [123, 1], [1234, 1], ["é", 0], ["~?>", 77]])
def test_any_position_is_read_back(position):
    assert decode(encode(position)) == position
