from pages.offset import page


def test_all_pages_hold_every_item_once():
    for size in range(1, 12):
        found = [item for number in range(1, 12) for item in page(list(range(10)), number, size)]
        assert found == list(range(10))
