from feed.merge import every

PAGES = {None: ([1, 2], "a"), "a": ([], "b"), "b": ([3], None)}


def test_every_page_is_read():
    assert list(every(PAGES.get)) == [1, 2, 3]
