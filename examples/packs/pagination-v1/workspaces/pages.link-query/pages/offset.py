"""Pages by number, counted from 1."""


def page(items, number, size):
    """The items of one page; nothing beyond the last one. Raises ValueError below 1."""
    if number < 1 or size < 1:
        raise ValueError("pages are counted from 1, and hold at least one item")
    start = (number - 1) * size
    return items[start : start + size]


def page_count(total, size):
    """How many pages `total` items fill; none for no items."""
    return -(-total // size)


def window(number, count, around=2):
    """Numbers of the pages to show around one: never below 1, never beyond `count`."""
    first = max(1, number - around)
    last = min(count, number + around)
    return list(range(first, last + 1))
