from pages.cursor import after

ROWS = [{"key": key, "id": number} for number, key in enumerate([3, 1, 2, 1, 1, 2])]


def read(rows, size):
    found, cursor = after(rows, size)
    while cursor is not None:
        more, cursor = after(rows, size, cursor)
        found = found + more
    return found


def test_each_row_is_read_once():
    assert sorted(row["id"] for row in read(ROWS, 2)) == [0, 1, 2, 3, 4, 5]
