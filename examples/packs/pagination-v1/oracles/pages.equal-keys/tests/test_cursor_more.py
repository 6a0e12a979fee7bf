import random

from pages.cursor import after
from test_cursor import ROWS, read


def test_any_size_and_any_order_give_the_same_rows():
    expected = read(ROWS, 100)
    for size in range(1, 8):
        rows = ROWS[:]
        random.Random(size).shuffle(rows)
        assert read(rows, size) == expected


def test_a_row_that_came_meanwhile_shifts_nothing():
    found, cursor = after(ROWS, 3)
    more, _ = after([*ROWS, {"key": 0, "id": 9}], 3, cursor)
    assert [row["id"] for row in found + more] == [1, 3, 4, 2, 5, 0]
