from catalog import facets

ITEMS = [{"colour": "red"}, {"colour": "blue"}, {"colour": "red"}]


def test_counts():
    assert facets(ITEMS, "colour") == {"red": 2, "blue": 1}


def test_counts_again():
    assert facets(ITEMS[:1], "colour") == {"red": 1}
