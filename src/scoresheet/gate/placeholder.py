"""Is a text a blank that somebody meant to fill in? Pure."""

import re
import unicodedata

_WHOLE = frozenset(
    ("", "replace me", "todo", "tbd", "tba", "fixme", "xxx", "n/a", "na", "?", "-", "…", "lorem", "lorem ipsum", "...")
)
_NAMES = frozenset("".join(mark for mark in word if mark.isalnum()) for word in _WHOLE)
_PREFIX = ("replace me", "todo", "tbd", "fixme", "xxx", "n/a")
_BEGINS = re.compile(rf"(?:{'|'.join(map(re.escape, _PREFIX))})(?![a-z0-9])").match
_BRACKETED = re.compile(r"<[^<>]*>|\{\{.*\}\}|\$\{.*\}|\.\.\.+", re.DOTALL)
_BEFORE = " \t\n\"'`*_[("
_AFTER = " \t\n\"'`*_])!.:;,"


def is_placeholder(text: str) -> bool:
    """True for REPLACE_ME, TODO: …, TBD, n/a, `<…>`, `{{…}}`, `...` in any case, width or zero-width disguise.

    As whole value or prefix, never inside a word: `mastodon` is no TODO.
    """
    plain = unicodedata.normalize("NFKC", text)
    plain = "".join(mark for mark in plain if unicodedata.category(mark) not in ("Cf", "Cc") or mark in "\n\t ")
    plain = plain.strip()
    if _BRACKETED.match(plain):
        return True
    if plain in ("?", "-"):
        return True
    folded = re.sub(r"[\s_-]+", " ", plain.lstrip(_BEFORE).rstrip(_AFTER).casefold()).strip()
    return folded in _WHOLE or _BEGINS(folded) is not None


def is_blank_name(text: str) -> bool:
    """`is_placeholder` for ids and names: only as the whole value. `todo_write` is a tool, `todo-app.1` a task."""
    if not is_placeholder(text):
        return False
    plain = unicodedata.normalize("NFKC", text)
    letters = "".join(mark for mark in plain.casefold() if mark.isalnum())
    return letters in _NAMES or letters.startswith("replaceme") or _BRACKETED.match(plain.strip()) is not None
