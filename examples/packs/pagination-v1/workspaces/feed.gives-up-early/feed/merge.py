"""Feeds put together."""

import heapq


def merged(*feeds):
    """Entries of feeds that are each sorted by time, in order of time; the same id is given once."""
    seen = set()
    for entry in heapq.merge(*feeds, key=lambda entry: entry["time"]):
        if entry["id"] not in seen:
            seen.add(entry["id"])
            yield entry


def every(fetch):
    """Entries of all pages; `fetch(cursor)` gives (entries, next cursor or None). A page may be empty."""
    cursor = None
    while True:
        entries, cursor = fetch(cursor)
        yield from entries
        if cursor is None:
            return
