from catalog import by


def test_many_equal_items_keep_their_order_either_way():
    items = [{"n": n, "p": n % 3} for n in range(30)]
    for descending in (False, True):
        for value in range(3):
            found = [item["n"] for item in by(items, "p", descending) if item["p"] == value]
            assert found == sorted(found)
