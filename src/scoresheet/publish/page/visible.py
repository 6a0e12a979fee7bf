"""What an agent wrote, made harmless to look at: nothing invisible, nothing that turns text around. Pure.

HTML's own signs are the templates' business; this is about what a browser or a terminal would obey without a sign.
"""

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters: terminals obey them
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"  # no width, bidi controls, separators, selectors, fillers
    "\ud800-\udfff"  # lone surrogates: no UTF-8 holds them
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"  # musical controls, tags, selectors
)
"""Written out: what Python calls printable changes with its Unicode version, and so would the bytes of a page."""

_MARKS = re.compile(
    r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)


def visible(text: str) -> str:
    """`text` with what can't be seen, or steers what shows it, as `\\u202e`; line feeds and tabs stay."""
    if text.isascii() and text.isprintable():  # most of what is shown: nothing to look for
        return text
    return _MARKS.sub(r"\1…", _UNSEEN.sub(_named, text))


def line(text: str) -> str:
    """The same on one line: line feeds and tabs as `\\n` and `\\t`."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def decoded(data: bytes) -> str:
    """Bytes as visible text: what is not UTF-8 as `\\xff`."""
    return visible(data.decode("utf-8", "backslashreplace"))


def _named(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
