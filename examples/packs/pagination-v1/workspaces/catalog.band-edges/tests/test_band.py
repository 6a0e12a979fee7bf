from catalog import price_band


def test_inside():
    assert [price_band(cents) for cents in (0, 2500, 90000)] == ["low", "middle", "high"]


def test_the_edge():
    assert price_band(1000) == "middle"
