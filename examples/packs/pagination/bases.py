"""The four small code bases of `pagination-v1`, as they are when nothing is wrong: name → path → text."""

PAGES = {
    "README.md": "# pages\n\nPages of lists: by offset, by cursor, and the links between them.\n",
    "pages/__init__.py": '"""Pages of lists."""\n',
    "pages/offset.py": '''\
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
''',
    "pages/cursor.py": '''\
"""Pages by cursor: each page says where the next one starts, so that new rows shift nothing."""

import base64
import json


def encode(position):
    """A position as an opaque word for URLs, without padding."""
    text = json.dumps(position, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor):
    """The position that `encode` was given. Raises ValueError for any other word."""
    padded = cursor + "=" * (-len(cursor) % 4)
    return json.loads(base64.urlsafe_b64decode(padded))


def after(rows, size, cursor=None):
    """(rows of a page, cursor of the next one or None); rows are sorted by `key`, and by `id` where keys are equal."""
    ordered = sorted(rows, key=lambda row: (row["key"], row["id"]))
    if cursor is not None:
        position = tuple(decode(cursor))
        ordered = [row for row in ordered if (row["key"], row["id"]) > position]
    found = ordered[:size]
    more = len(ordered) > size
    return found, encode([found[-1]["key"], found[-1]["id"]]) if more else None
''',
    "pages/links.py": '''\
"""The Link header of a page (RFC 8288)."""

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit


def at(url, number):
    """The URL of another page: only its `page` parameter differs."""
    parts = urlsplit(url)
    query = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "page"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("page", number)])))


def header(url, number, count):
    """Links to the first, previous, next and last page, as far as there are any."""
    links = []
    if number > 1:
        links += [(at(url, 1), "first"), (at(url, number - 1), "prev")]
    if number < count:
        links += [(at(url, number + 1), "next"), (at(url, count), "last")]
    return ", ".join(f'<{link}>; rel="{rel}"' for link, rel in links)
''',
}

CATALOG = {
    "README.md": "# catalog\n\nSorting, filtering and counting the rows of a catalogue.\n",
    "catalog.py": '''\
"""A catalogue of items: sorted, filtered, counted."""


def by(items, field, descending=False):
    """Items sorted by a field; equal ones keep their order, and those without a value come last, either way."""
    known = [item for item in items if item.get(field) is not None]
    unknown = [item for item in items if item.get(field) is None]
    if descending:
        known = sorted(reversed(known), key=lambda item: item[field])[::-1]
    else:
        known = sorted(known, key=lambda item: item[field])
    return known + unknown


def matching(items, words, fields=("name",)):
    """Items of which one field holds every word, whatever its case; new lists, the items themselves."""
    found = []
    for item in items:
        text = " ".join(str(item.get(field, "")) for field in fields).casefold()
        if all(word.casefold() in text for word in words.split()):
            found.append(item)
    return found


def facets(items, field, into=None):
    """value → how many items have it; added to `into` when that is given."""
    counts = {} if into is None else into
    for item in items:
        counts[item[field]] = counts.get(item[field], 0) + 1
    return counts


def price_band(cents):
    """The band that a price lies in: its lower end belongs to it, its upper end does not."""
    for limit, name in ((1000, "low"), (5000, "middle")):
        if cents < limit:
            return name
    return "high"
''',
}

FEED = {
    "README.md": "# feed\n\nReading a paged feed to its end, whatever the network does.\n",
    "feed/__init__.py": '"""Reading feeds."""\n',
    "feed/retry.py": '''\
"""Trying again, a bounded number of times."""


class Failed(Exception):
    """Every attempt failed; the last failure is its cause."""


def attempt(call, attempts=3, wait=lambda seconds: None, first_wait_s=1):
    """What `call` returns, tried at most `attempts` times with doubling waits between; raises Failed."""
    wait_s = first_wait_s
    for number in range(1, attempts + 1):
        try:
            return call()
        except OSError as error:
            if number == attempts:
                raise Failed(f"gave up after {attempts} attempts") from error
        wait(wait_s)
        wait_s *= 2
''',
    "feed/merge.py": '''\
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
''',
    "feed/dates.py": '''\
"""Months, as bills count them."""

import calendar
import datetime


def add_months(day, months):
    """The same day some months later, or the last of that month when it has no such day."""
    month = day.month - 1 + months
    year, month = day.year + month // 12, month % 12 + 1
    last = calendar.monthrange(year, month)[1]
    return datetime.date(year, month, min(day.day, last))
''',
}

TEXT = {
    "README.md": "# text\n\nText in pieces, and names for URLs.\n",
    "text/__init__.py": '"""Text in pieces."""\n',
    "text/chunks.py": '''\
"""Lines from chunks of bytes, wherever those were cut."""

import codecs


def lines(chunks, encoding="utf-8"):
    """Each line without its end; the last one needs none. Raises UnicodeDecodeError."""
    decoder = codecs.getincrementaldecoder(encoding)()
    rest = ""
    for chunk in chunks:
        rest += decoder.decode(chunk)
        *whole, rest = rest.split("\\n")
        for line in whole:
            yield line.removesuffix("\\r")
    rest += decoder.decode(b"", final=True)
    if rest:
        yield rest.removesuffix("\\r")
''',
    "text/slug.py": '''\
"""Names for URLs."""

import re
import unicodedata


def slug(title, longest=40):
    """Lower-case ASCII letters, digits and single hyphens; never one at an end, never longer than `longest`."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:longest].rstrip("-")
''',
}
