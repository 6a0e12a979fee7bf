from feed.merge import every


def test_empty_pages_at_either_end():
    pages = {None: ([], "a"), "a": ([1], "b"), "b": ([], None)}
    assert list(every(pages.get)) == [1]


def test_pages_are_read_as_they_are_needed():
    asked = []

    def fetch(cursor):
        asked.append(cursor)
        return [1], "next"

    assert next(every(fetch)) == 1
    assert asked == [None]
