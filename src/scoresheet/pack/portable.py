"""Names that every system can hold, and paths that stay inside a pack. Pure."""

import re
import unicodedata
from collections.abc import Iterable

_EVERYDAY = re.compile(r"(?![cCpPaAnNlL][a-zA-Z]{2}[1-9]?(?:\.|\Z))[A-Za-z0-9_.+-]{0,200}[A-Za-z0-9_+-]")
"""Names that need no closer look: most of them."""
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[1-9¹²³]|lpt[1-9¹²³])(?:\..*)?", re.IGNORECASE | re.DOTALL)
_FORBIDDEN = frozenset('<>:"|?*\\')
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
_LONGEST = 255


def fault(name: str) -> str:
    """What is wrong with one file name, `""` when nothing is."""
    if _EVERYDAY.fullmatch(name):
        return ""
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        return "is not UTF-8"
    if name in ("", ".", ".."):
        return "is no name"
    if "/" in name or "\0" in name:
        return "holds a separator"
    if any(unicodedata.category(character) in _UNSEEN for character in name):
        return "holds a control or formatting character"
    if unicodedata.normalize("NFC", name) != name:
        return "is not in Unicode's composed form (NFC)"
    if _FORBIDDEN & set(name):
        return 'holds one of < > : " | ? * \\, which not every system allows'
    if name[-1] in ". ":
        return "ends in a dot or a space, which not every system allows"
    if _DEVICES.fullmatch(name):
        return "is a device's name on Windows"
    if length > _LONGEST:
        return f"is longer than {_LONGEST} bytes"
    return ""


def path_fault(path: str) -> str:
    """What is wrong with a relative POSIX path inside a pack, `""` when nothing is."""
    if path.startswith("/"):
        return "is absolute"
    for name in path.split("/"):
        if name in ("", ".", ".."):
            return "is not a plain relative path"
        what = fault(name)
        if what:
            return f"holds a name that {what}"
    return ""


def collisions(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of different paths, folders included, that one folder of a case-blind system can't hold both."""
    seen: dict[str, str] = {}
    found: dict[tuple[str, str], None] = {}
    folders: set[str] = set()
    for path in paths:
        ways = [path]
        folder = path.rpartition("/")[0] if "/" in path else ""
        while folder and folder not in folders:
            folders.add(folder)
            ways.append(folder)
            folder = folder.rpartition("/")[0]
        for way in ways:
            first = seen.setdefault(way.lower() if way.isascii() else _folded(way), way)
            if first is not way and first != way:
                found[first, way] = None
    return tuple(found)


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())
