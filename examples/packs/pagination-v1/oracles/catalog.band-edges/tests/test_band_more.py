from catalog import price_band


def test_every_edge():
    assert [price_band(cents) for cents in (999, 1000, 4999, 5000)] == ["low", "middle", "middle", "high"]
