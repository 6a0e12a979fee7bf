from catalog import by

ITEMS = [{"n": 1, "p": 5}, {"n": 2, "p": 7}, {"n": 3, "p": 5}, {"n": 4}]


def test_ascending():
    assert [item["n"] for item in by(ITEMS, "p")] == [1, 3, 2, 4]


def test_descending():
    assert [item["n"] for item in by(ITEMS, "p", descending=True)] == [2, 1, 3, 4]
