"""The tasks of `pagination-v1`: what was broken, what is asked, and the tests that say whether it is right.

Each breaks one of the code bases by replacing text; the reference solution puts the text back.
"""

from dataclasses import dataclass, field

from bases import CATALOG, FEED, PAGES, TEXT


@dataclass(frozen=True)
class Made:
    """One task."""

    name: str
    kind: str
    base: dict[str, str]
    prompt: str
    breaks: dict[str, list[tuple[str, str]]]
    """Path → (right text, broken text)."""
    tests: dict[str, str]
    """Path → the tests that the agent sees."""
    hidden: dict[str, str] = field(default_factory=dict)
    """Path → tests that it does not see."""
    solution: dict[str, str] = field(default_factory=dict)
    """Path → a file that the reference solution adds."""


TASKS = (
    Made(
        "pages.last-item",
        "bugfix",
        PAGES,
        "Every page of pages/offset.py lacks its last item. Mend it.",
        {"pages/offset.py": [("start : start + size]", "start : start + size - 1]")]},
        {
            "tests/test_offset.py": """\
import pytest
from pages.offset import page


def test_a_page_is_full():
    assert page(list(range(10)), 1, 4) == [0, 1, 2, 3]


def test_pages_follow_each_other():
    assert page(list(range(10)), 2, 4) == [4, 5, 6, 7]


def test_there_is_no_page_zero():
    with pytest.raises(ValueError):
        page([1], 0, 4)
"""
        },
        {
            "tests/test_offset_more.py": """\
from pages.offset import page


def test_all_pages_hold_every_item_once():
    for size in range(1, 12):
        found = [item for number in range(1, 12) for item in page(list(range(10)), number, size)]
        assert found == list(range(10))
"""
        },
    ),
    Made(
        "pages.one-too-many",
        "bugfix",
        PAGES,
        "page_count says one page too many when the last page is full, and one when there is nothing at all. Mend it.",
        {"pages/offset.py": [("return -(-total // size)", "return total // size + 1")]},
        {
            "tests/test_count.py": """\
from pages.offset import page_count


def test_a_page_that_is_not_full_counts():
    assert page_count(9, 4) == 3


def test_a_full_last_page_is_the_last():
    assert page_count(8, 4) == 2
"""
        },
        {
            "tests/test_count_more.py": """\
import pytest
from pages.offset import page_count


@pytest.mark.parametrize(("total", "pages"), [(0, 0), (1, 1), (3, 1), (4, 1), (5, 2), (400, 100)])
def test_count(total, pages):
    assert page_count(total, 4) == pages
"""
        },
    ),
    Made(
        "pages.equal-keys",
        "bugfix",
        PAGES,
        "Reading on by cursor skips rows whose key is that of the last row of the page before. Mend pages/cursor.py.",
        {
            "pages/cursor.py": [
                ('key=lambda row: (row["key"], row["id"])', 'key=lambda row: row["key"]'),
                ('if (row["key"], row["id"]) > position]', 'if row["key"] > position[0]]'),
            ]
        },
        {
            "tests/test_cursor.py": """\
from pages.cursor import after

ROWS = [{"key": key, "id": number} for number, key in enumerate([3, 1, 2, 1, 1, 2])]


def read(rows, size):
    found, cursor = after(rows, size)
    while cursor is not None:
        more, cursor = after(rows, size, cursor)
        found = found + more
    return found


def test_each_row_is_read_once():
    assert sorted(row["id"] for row in read(ROWS, 2)) == [0, 1, 2, 3, 4, 5]
"""
        },
        {
            "tests/test_cursor_more.py": """\
import random

from pages.cursor import after
from test_cursor import ROWS, read


def test_any_size_and_any_order_give_the_same_rows():
    expected = read(ROWS, 100)
    for size in range(1, 8):
        rows = ROWS[:]
        random.Random(size).shuffle(rows)
        assert read(rows, size) == expected


def test_a_row_that_came_meanwhile_shifts_nothing():
    found, cursor = after(ROWS, 3)
    more, _ = after([*ROWS, {"key": 0, "id": 9}], 3, cursor)
    assert [row["id"] for row in found + more] == [1, 3, 4, 2, 5, 0]
"""
        },
    ),
    Made(
        "pages.cursor-padding",
        "bugfix",
        PAGES,
        "pages.cursor.decode fails for most cursors that encode gave. Mend it; the cursors that are out there stay valid.",
        {
            "pages/cursor.py": [
                ('    padded = cursor + "=" * (-len(cursor) % 4)\n', ""),
                ("b64decode(padded)", "b64decode(cursor)"),
            ]
        },
        {
            "tests/test_decode.py": """\
from pages.cursor import decode, encode


def test_a_cursor_is_read_back():
    assert decode(encode([12, 5])) == [12, 5]


def test_a_cursor_has_no_padding():
    assert "=" not in encode([1, 23])
"""
        },
        {
            "tests/test_decode_more.py": """\
import pytest
from pages.cursor import decode, encode


@pytest.mark.parametrize("position", [[1, 1], [12, 1], [123, 1], [1234, 1], ["é", 0], ["~?>", 77]])
def test_any_position_is_read_back(position):
    assert decode(encode(position)) == position
"""
        },
    ),
    Made(
        "pages.link-query",
        "bugfix",
        PAGES,
        "The links of a page lose the search that the reader asked for: other parameters of the query must stay as they are. "
        "Mend pages/links.py.",
        {
            "pages/links.py": [
                (
                    '    query = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "page"]\n',
                    "",
                ),
                ('urlencode([*query, ("page", number)])', 'urlencode([("page", number)])'),
            ]
        },
        {
            "tests/test_links.py": """\
from pages.links import header


def test_the_first_page_has_no_page_before_it():
    assert header("https://a.example/x", 1, 2) == (
        '<https://a.example/x?page=2>; rel="next", <https://a.example/x?page=2>; rel="last"'
    )


def test_the_search_stays():
    assert "q=red+shoes" in header("https://a.example/x?q=red+shoes&page=1", 1, 2)
"""
        },
        {
            "tests/test_links_more.py": """\
from pages.links import at


def test_only_the_page_differs():
    assert at("https://a.example/x?page=3&q=a%26b&empty=&q=c#top", 4) == "https://a.example/x?q=a%26b&empty=&q=c&page=4#top"
"""
        },
    ),
    Made(
        "pages.one-window",
        "refactor",
        PAGES,
        "pages/offset.py works out the window twice, and links.py needs it too. Give offset.py one function "
        "window(number, count, around=2), and let shown(number, count) use it. What they return stays the same.",
        {
            "pages/offset.py": [
                (
                    '''def window(number, count, around=2):
    """Numbers of the pages to show around one: never below 1, never beyond `count`."""
    first = max(1, number - around)
    last = min(count, number + around)
    return list(range(first, last + 1))
''',
                    '''def shown(number, count):
    """Numbers of the pages to show around one: never below 1, never beyond `count`."""
    if number - 2 < 1:
        return list(range(1, min(count, number + 2) + 1))
    if number + 2 > count:
        return list(range(number - 2, count + 1))
    return list(range(number - 2, number + 2 + 1))
''',
                )
            ]
        },
        {
            "tests/test_shown.py": """\
from pages import offset


def test_the_window_is_shown():
    assert offset.shown(5, 9) == [3, 4, 5, 6, 7]
    assert offset.shown(1, 9) == [1, 2, 3]
    assert offset.shown(9, 9) == [7, 8, 9]
    assert offset.shown(1, 1) == [1]
"""
        },
        {
            "tests/test_window.py": """\
from pages import offset


def test_the_window_has_any_width():
    assert offset.window(5, 9, 1) == [4, 5, 6]
    assert offset.window(2, 3, around=5) == [1, 2, 3]
    assert offset.window(1, 0) == []


def test_shown_uses_the_window(monkeypatch):
    monkeypatch.setattr(offset, "window", lambda number, count, around=2: ["used", number, count])
    assert offset.shown(4, 8) == ["used", 4, 8]
"""
        },
    ),
    Made(
        "catalog.stable-sort",
        "bugfix",
        CATALOG,
        "catalog.by turns items with equal values round when it sorts descending. Equal items must keep their order.",
        {
            "catalog.py": [
                (
                    "        known = sorted(reversed(known), key=lambda item: item[field])[::-1]\n",
                    "        known = sorted(known, key=lambda item: item[field])[::-1]\n",
                )
            ]
        },
        {
            "tests/test_by.py": """\
from catalog import by

ITEMS = [{"n": 1, "p": 5}, {"n": 2, "p": 7}, {"n": 3, "p": 5}, {"n": 4}]


def test_ascending():
    assert [item["n"] for item in by(ITEMS, "p")] == [1, 3, 2, 4]


def test_descending():
    assert [item["n"] for item in by(ITEMS, "p", descending=True)] == [2, 1, 3, 4]
"""
        },
        {
            "tests/test_by_more.py": """\
from catalog import by


def test_many_equal_items_keep_their_order_either_way():
    items = [{"n": n, "p": n % 3} for n in range(30)]
    for descending in (False, True):
        for value in range(3):
            found = [item["n"] for item in by(items, "p", descending) if item["p"] == value]
            assert found == sorted(found)
"""
        },
    ),
    Made(
        "catalog.shared-counts",
        "bugfix",
        CATALOG,
        "catalog.facets counts items of earlier calls again. Mend it; counting into a given dict stays possible.",
        {
            "catalog.py": [
                ("into=None):", "into={}):"),
                ("    counts = {} if into is None else into\n", "    counts = into\n"),
            ]
        },
        {
            "tests/test_facets.py": """\
from catalog import facets

ITEMS = [{"colour": "red"}, {"colour": "blue"}, {"colour": "red"}]


def test_counts():
    assert facets(ITEMS, "colour") == {"red": 2, "blue": 1}


def test_counts_again():
    assert facets(ITEMS[:1], "colour") == {"red": 1}
"""
        },
        {
            "tests/test_facets_more.py": """\
from catalog import facets


def test_a_given_dict_is_added_to_even_when_it_is_empty():
    counts = {}
    facets([{"a": 1}], "a", counts)
    facets([{"a": 1}, {"a": 2}], "a", into=counts)
    assert counts == {1: 2, 2: 1}


def test_results_are_not_shared():
    first = facets([{"a": 1}], "a")
    facets([{"a": 1}], "a")
    assert first == {1: 1}
"""
        },
    ),
    Made(
        "catalog.band-edges",
        "bugfix",
        CATALOG,
        "A price of exactly 10.00 must be in the middle band, and one of exactly 50.00 in the high one. Mend price_band.",
        {"catalog.py": [("if cents < limit:", "if cents <= limit:")]},
        {
            "tests/test_band.py": """\
from catalog import price_band


def test_inside():
    assert [price_band(cents) for cents in (0, 2500, 90000)] == ["low", "middle", "high"]


def test_the_edge():
    assert price_band(1000) == "middle"
"""
        },
        {
            "tests/test_band_more.py": """\
from catalog import price_band


def test_every_edge():
    assert [price_band(cents) for cents in (999, 1000, 4999, 5000)] == ["low", "middle", "middle", "high"]
"""
        },
    ),
    Made(
        "feed.gives-up-early",
        "bugfix",
        FEED,
        "attempt(call, attempts=3) calls only twice, and waits once more before it gives up. Mend feed/retry.py: it calls "
        "`attempts` times and never waits after the last.",
        {
            "feed/retry.py": [
                ("range(1, attempts + 1)", "range(1, attempts)"),
                (
                    "            if number == attempts:\n"
                    '                raise Failed(f"gave up after {attempts} attempts") from error\n'
                    "        wait(wait_s)\n        wait_s *= 2\n",
                    "            last = error\n        wait(wait_s)\n        wait_s *= 2\n"
                    '    raise Failed(f"gave up after {attempts} attempts") from last\n',
                ),
            ]
        },
        {
            "tests/test_retry.py": """\
import pytest
from feed.retry import Failed, attempt


def failing(times):
    calls = []

    def call():
        calls.append(1)
        if len(calls) <= times:
            raise OSError("down")
        return len(calls)

    return call, calls


def test_the_third_attempt_may_succeed():
    assert attempt(failing(2)[0]) == 3


def test_it_gives_up():
    call, calls = failing(9)
    with pytest.raises(Failed):
        attempt(call)
    assert len(calls) == 3
"""
        },
        {
            "tests/test_retry_more.py": """\
import pytest
from feed.retry import Failed, attempt
from test_retry import failing


def test_waits_double_and_none_follows_the_last_attempt():
    waits = []
    with pytest.raises(Failed) as caught:
        attempt(failing(9)[0], 4, waits.append, 0.5)
    assert waits == [0.5, 1, 2]
    assert isinstance(caught.value.__cause__, OSError)


def test_one_attempt_is_one():
    call, calls = failing(9)
    with pytest.raises(Failed):
        attempt(call, 1)
    assert len(calls) == 1


def test_other_failures_are_not_tried_again():
    with pytest.raises(KeyError):
        attempt(lambda: {}["x"])
"""
        },
    ),
    Made(
        "feed.empty-page",
        "bugfix",
        FEED,
        "feed.merge.every stops at the first empty page, although later ones hold entries. Mend it.",
        {
            "feed/merge.py": [
                (
                    "        yield from entries\n        if cursor is None:\n            return\n",
                    "        if not entries:\n            return\n        yield from entries\n        if cursor is None:\n            return\n",
                )
            ]
        },
        {
            "tests/test_every.py": """\
from feed.merge import every

PAGES = {None: ([1, 2], "a"), "a": ([], "b"), "b": ([3], None)}


def test_every_page_is_read():
    assert list(every(PAGES.get)) == [1, 2, 3]
"""
        },
        {
            "tests/test_every_more.py": """\
from feed.merge import every


def test_empty_pages_at_either_end():
    pages = {None: ([], "a"), "a": ([1], "b"), "b": ([], None)}
    assert list(every(pages.get)) == [1]


def test_pages_are_read_as_they_are_needed():
    asked = []

    def fetch(cursor):
        asked.append(cursor)
        return [1], "next"

    assert next(every(fetch)) == 1
    assert asked == [None]
"""
        },
    ),
    Made(
        "feed.month-end",
        "bugfix",
        FEED,
        "feed.dates.add_months fails for the last days of a month, and in December. Mend it as its docstring says.",
        {
            "feed/dates.py": [
                ("    month = day.month - 1 + months\n", "    month = day.month + months\n"),
                (
                    "    year, month = day.year + month // 12, month % 12 + 1\n",
                    "    year, month = day.year + month // 12, month % 12\n",
                ),
                ("    last = calendar.monthrange(year, month)[1]\n", ""),
                ("min(day.day, last)", "day.day"),
            ]
        },
        {
            "tests/test_dates.py": """\
from datetime import date

from feed.dates import add_months


def test_within_a_year():
    assert add_months(date(2026, 1, 15), 2) == date(2026, 3, 15)


def test_the_end_of_a_month():
    assert add_months(date(2026, 1, 31), 1) == date(2026, 2, 28)
"""
        },
        {
            "tests/test_dates_more.py": """\
from datetime import date

import pytest
from feed.dates import add_months


@pytest.mark.parametrize(
    ("day", "months", "expected"),
    [
        (date(2026, 11, 30), 1, date(2026, 12, 30)),
        (date(2026, 12, 31), 2, date(2027, 2, 28)),
        (date(2027, 12, 31), 2, date(2028, 2, 29)),
        (date(2026, 3, 31), -1, date(2026, 2, 28)),
        (date(2026, 1, 5), -1, date(2025, 12, 5)),
        (date(2026, 6, 5), 24, date(2028, 6, 5)),
    ],
)
def test_any_month(day, months, expected):
    assert add_months(day, months) == expected
"""
        },
    ),
    Made(
        "text.cut-characters",
        "bugfix",
        TEXT,
        "text.chunks.lines fails when a chunk ends within a character. Chunks may be cut anywhere. Mend it.",
        {
            "text/chunks.py": [
                ("import codecs\n\n\n", "\n"),
                ("    decoder = codecs.getincrementaldecoder(encoding)()\n", ""),
                ("decoder.decode(chunk)", "chunk.decode(encoding)"),
                ('    rest += decoder.decode(b"", final=True)\n', ""),
            ]
        },
        {
            "tests/test_chunks.py": """\
from text.chunks import lines


def test_lines():
    assert list(lines([b"a\\r\\nb", b"c\\n", b"d"])) == ["a", "bc", "d"]


def test_a_cut_character():
    data = "é\\n".encode()
    assert list(lines([data[:1], data[1:]])) == ["é"]
"""
        },
        {
            "tests/test_chunks_more.py": """\
import pytest
from text.chunks import lines

TEXT = "naïve\\r\\n日本語\\n\\n𝄞 end"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_any_cut(encoding, size):
    data = TEXT.encode(encoding)
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert list(lines(chunks, encoding)) == ["naïve", "日本語", "", "𝄞 end"]


def test_a_character_that_never_ends_is_an_error():
    with pytest.raises(UnicodeDecodeError):
        list(lines([b"a\\n\\xc3"]))
"""
        },
    ),
    Made(
        "text.test-the-slug",
        "test-authoring",
        TEXT,
        "text/slug.py has no tests. Write them in checks/test_slug.py, as functions without arguments: they must pass as "
        "things are, and fail when slug breaks anything that its docstring promises.",
        {},
        {
            "tests/test_there.py": """\
from text.slug import slug


def test_it_is_there():
    assert slug("A title") == "a-title"
"""
        },
        {
            "tests/test_mutants.py": """\
import runpy

import pytest
import text.slug

RIGHT = text.slug.slug
MUTANTS = {
    "keeps case": lambda title, longest=40: RIGHT(title, longest).upper(),
    "keeps accents": lambda title, longest=40: title.lower().replace(" ", "-"),
    "hyphen at the end": lambda title, longest=40: RIGHT(title, longest) + "-",
    "doubles hyphens": lambda title, longest=40: RIGHT(title, longest).replace("-", "--"),
    "never cuts": lambda title, longest=40: RIGHT(title, 10**6),
    "cuts, and leaves a hyphen": lambda title, longest=40: RIGHT(title, 10**6)[:longest],
}


def outcomes(monkeypatch, slug):
    monkeypatch.setattr(text.slug, "slug", slug)
    found = runpy.run_path("checks/test_slug.py")
    results = []
    for name, function in found.items():
        if name.startswith("test_") and callable(function):
            try:
                function()
                results.append(True)
            except Exception:
                results.append(False)
    return results


def test_they_pass_as_things_are(monkeypatch):
    found = outcomes(monkeypatch, RIGHT)
    assert found and all(found)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_slug_is_noticed(monkeypatch, name):
    assert not all(outcomes(monkeypatch, MUTANTS[name]))
"""
        },
        {
            "checks/test_slug.py": """\
from text.slug import slug


def test_letters_digits_and_hyphens():
    assert slug("  Crème brûlée -- 3 ways! ") == "creme-brulee-3-ways"


def test_it_is_cut():
    assert slug("x" * 50) == "x" * 40


def test_no_hyphen_is_left_by_a_cut():
    assert slug("ab cd", longest=3) == "ab"
"""
        },
    ),
)
