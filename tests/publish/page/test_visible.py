import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.publish.page.visible import decoded, line, visible


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\u001b[31mred\\u001b[0m"),
        ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
        ("gpj.\u202eexe", "gpj.\\u202eexe"),
        ("\u2066a\u2069", "\\u2066a\\u2069"),
        ("a\u200bb\ufeffc", "a\\u200bb\\ufeffc"),
        ("\ud800", "\\ud800"),
        ("x\x00y", "x\\u0000y"),
        ("back\rover", "back\\u000dover"),
        ("\U000e0041", "\\U000e0041"),
        ("a\ufe0f", "a\\ufe0f"),
        ("e" + "\u0301" * 50, "e" + "\u0301" * 4 + "…"),
        ("one\ntwo\tthree", "one\ntwo\tthree"),
        ("naïve 漢字 עברית 😀", "naïve 漢字 עברית 😀"),
        ("</script><script>", "</script><script>"),
    ],
)
def test_what_can_not_be_seen_is_named(hostile, shown):
    assert visible(hostile) == shown


def test_one_line_stays_one_line():
    assert line("a\nb\tc\r\u2028d") == "a\\nb\\tc\\u000d\\u2028d"


def test_bytes_that_are_no_text_are_shown_as_bytes():
    assert decoded(b"ok\xff\xfe\x1b") == "ok\\xff\\xfe\\u001b"


@given(st.text(st.characters(codec=None)))
def test_what_is_visible_stays_as_it_is_and_fits_utf_8(text):
    shown = visible(text)
    assert visible(shown) == shown
    shown.encode()
    assert not any(0xD800 <= ord(each) < 0xE000 or each in "\x1b\u202e\u2066" for each in shown)
