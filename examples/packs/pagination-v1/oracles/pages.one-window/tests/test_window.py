from pages import offset


def test_the_window_has_any_width():
    assert offset.window(5, 9, 1) == [4, 5, 6]
    assert offset.window(2, 3, around=5) == [1, 2, 3]
    assert offset.window(1, 0) == []


def test_shown_uses_the_window(monkeypatch):
    monkeypatch.setattr(offset, "window", lambda number, count, around=2: ["used", number, count])
    assert offset.shown(4, 8) == ["used", 4, 8]
