"""What may grade an agent's work: its patch without anything that could bend the grading, and what that was. Pure.

The grading surface is everything beside the frozen tests that decides what a test run does: runner configuration,
conftest.py, plugins, start-up files of the interpreter, compiled files, names that hide a module of the runner.
"""

import configparser
import posixpath
import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from scoresheet.canonical import JsonValue
from scoresheet.run.patch import Change, Entry, File, Link

_CONFIGURATION = frozenset((b"pytest.ini", b".pytest.ini", b"pytest.toml", b".pytest.toml"))
_PARTLY = frozenset((b"pyproject.toml", b"setup.cfg", b"tox.ini"))
"""Of these only what they say to the test runner counts."""
_STARTED = frozenset((b"sitecustomize", b"usercustomize"))
_ENDINGS = ((b".pth", "path file"), (b".egg-link", "path file"))
_INSTALLED = (b".dist-info", b".egg-info")
_COMPILED = (b".pyc", b".pyo")
_CACHES = frozenset((b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache", b".hypothesis"))
_RUNNER = frozenset(("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments"))
_HIDES = (_RUNNER | sys.stdlib_module_names) - {"__main__", "antigravity", "this"}
_IMPORT_ROOTS = (b"", b"src", b"lib")
_SOURCES = (b".py", b".so", b".pyd")
_RUNNER_NAMED = re.compile(rb"\b_?pytest\b|\bjunitxml\b|/run/answer\b")
SPEAKS = "speaks of the test runner, and was graded with it"
_UNCHECKED = 0b01
"""Flags of a compiled file that is taken whatever its source is (PEP 552)."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """What the pack holds of a workspace task's tests."""

    start: Collection[bytes]
    """Paths of the workspace at the start."""
    tests: tuple[bytes, ...]
    """Files or folders that hold the frozen tests."""
    over: Collection[bytes] = ()
    """Paths that the oracle lays over the workspace: the agent never saw them."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A patch, divided."""

    kept: tuple[Change, ...]
    """What is graded."""
    touched: tuple[str, ...]
    """The grading surface that was touched, `path: what`; nothing of it is in `kept`, but for code that `SPEAKS`."""
    tests_changed: tuple[str, ...]
    """Frozen tests that the agent saw and that are no longer what they were."""
    tests_added: tuple[str, ...]
    """Test files that it added."""


def is_cache(path: bytes, paths: Collection[bytes], content: bytes | None) -> bool:
    """Whether a new file is what an honest test run leaves: it is in no patch, and not reported.

    A compiled file is one only beside its source, and when it is not of the kind that is taken whatever that says.
    """
    parts = path.split(b"/")
    if not _CACHES & set(parts[:-1]):
        return False
    if not path.endswith(_COMPILED):
        return True
    source = posixpath.join(*parts[:-2], parts[-1].split(b".")[0] + b".py")
    flags = int.from_bytes(content[4:8], "little") if content is not None and len(content) >= 16 else 0
    return parts[-2:-1] == [b"__pycache__"] and source in paths and flags != _UNCHECKED


def judged(changes: Sequence[Change], frozen: Frozen) -> Judged:
    """The changes, each where it belongs."""
    start, over = set(frozen.start), set(frozen.over)
    above = _folders((*(path for path in start | over if _within(path, frozen.tests)), *over))
    kept: list[Change] = []
    touched: list[tuple[bytes, str]] = []
    changed: list[bytes] = []
    added: list[bytes] = []
    for change in changes:
        path = change.path
        what = _surface(change)
        if not what and path in above and change.after is not None:
            what = "in the place of a folder of tests"
        if what:
            touched.append((path, what))
        if _within(path, frozen.tests) or path in over:
            if path in start:
                changed.append(path)
            elif change.after is not None and not what:
                added.append(path)
        elif not what:
            kept.append(change)
            if _speaks(change):
                touched.append((path, SPEAKS))
            if change.before is None and _is_test(path):
                added.append(path)
    kept, conflicts = _without_conflicts(kept, start, over)
    touched += [(path, "in the place of what is laid back") for path in conflicts]
    return Judged(
        tuple(kept),
        tuple(f"{shown(path)}: {what}" for path, what in sorted(touched)),
        tuple(shown(path) for path in sorted(changed)),
        tuple(shown(path) for path in sorted(added)),
    )


def shown(path: bytes) -> str:
    """The path as text, what is no plain text escaped."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def frozen_paths(paths: Iterable[bytes], tests: Sequence[bytes]) -> tuple[bytes, ...]:
    """Those of the paths that are, or lie below, one of `tests`."""
    return tuple(path for path in paths if _within(path, tests))


def configuration(files: Mapping[bytes, bytes]) -> bytes | None:
    """The file at the root that configures pytest, in its order of precedence; `None` when none does."""
    for name in (b"pytest.toml", b".pytest.toml", b"pytest.ini", b".pytest.ini"):
        if name in files:
            return name
    for name in (b"pyproject.toml", b"tox.ini", b"setup.cfg"):
        if name in files and spoken(name, files[name]) not in (None, {}):
            return name
    return None


def spoken(name: bytes, content: bytes) -> JsonValue:
    """What a file that only partly concerns the test runner says to it; its bytes as text when it can't be read."""
    try:
        text = content.decode()
        if name == b"pyproject.toml":
            tool = tomllib.loads(text).get("tool", {})
            return {"pytest": repr(tool["pytest"])} if "pytest" in tool else None
        reader = configparser.ConfigParser(interpolation=None, strict=False)
        reader.read_string(text)
    except (ValueError, AttributeError, configparser.Error):
        return "unreadable: " + content.hex()
    found = {section: dict(reader[section]) for section in ("pytest", "tool:pytest") if reader.has_section(section)}
    if name == b"setup.cfg" and reader.has_section("options.entry_points"):
        found["options.entry_points"] = dict(reader["options.entry_points"])
    return dict(found) or None


def _surface(change: Change) -> str:
    """Why a change touches the grading surface; empty when it does not."""
    path = change.path
    parts = path.split(b"/")
    name, folder = parts[-1], b"/".join(parts[:-1])
    if name == b"conftest.py" or b"conftest.py" in parts:
        return "conftest.py"
    if name in _CONFIGURATION:
        return "configuration of pytest"
    if name in _PARTLY and _says_other(name, change):
        return "configuration of pytest"
    if (name.split(b".")[0] in _STARTED and name.endswith(_SOURCES)) or _STARTED & set(parts[:-1]):
        return "run whenever the interpreter starts"
    for ending, what in _ENDINGS:
        if name.endswith(ending):
            return what
    if any(part.endswith(_INSTALLED) for part in parts):
        return "metadata of an installed package, such as plugins of pytest"
    if name.endswith(_COMPILED) or _CACHES & set(parts[:-1]):
        return "compiled or cached"
    if isinstance(change.after, Link) and _leaves(folder, change.after.target):
        return "a link out of the workspace"
    if change.before is None:
        module = parts[0] if len(parts) > 1 and parts[0] not in _IMPORT_ROOTS else b""
        for root in _IMPORT_ROOTS:
            below = path[len(root) + 1 :] if root and path.startswith(root + b"/") else path if not root else b""
            top, _, rest = below.partition(b"/")
            stem = top if rest else top.split(b".")[0] if top.endswith(_SOURCES) else b""
            if stem.decode("latin-1") in _HIDES and not _ordinary(module, below):
                return "hides a module of the interpreter or of the test runner"
        if path == b"__init__.py":
            return "makes the workspace itself a package"
    return ""


def _ordinary(module: bytes, below: bytes) -> bool:
    """A folder that has a module's name but holds no module, such as `test/data.txt`."""
    return bool(module) and module.decode("latin-1") == "test" and not below.endswith(b"__init__.py")


def _speaks(change: Change) -> bool:
    """Whether code that is no test now names the runner: it runs in one process with it, so somebody should look."""
    if not isinstance(change.after, File) or not change.path.endswith(b".py") or _is_test(change.path):
        return False
    before = b"" if change.before is None else change.before.content
    return bool(_RUNNER_NAMED.search(change.after.content)) and not _RUNNER_NAMED.search(before)


def _says_other(name: bytes, change: Change) -> bool:
    sides = []
    for entry in (change.before, change.after):
        if isinstance(entry, Link):
            return True
        sides.append(None if entry is None else spoken(name, entry.content))
    return sides[0] != sides[1]


def _leaves(folder: bytes, target: bytes) -> bool:
    if target.startswith(b"/"):
        return True
    where = posixpath.normpath(posixpath.join(folder, target))
    return where == b".." or where.startswith(b"../")


def _is_test(path: bytes) -> bool:
    name = path.rpartition(b"/")[2]
    return name.endswith(b".py") and (name.startswith(b"test_") or name.endswith(b"_test.py"))


def _within(path: bytes, places: Iterable[bytes]) -> bool:
    return any(path == place or path.startswith(place + b"/") for place in places)


def _folders(paths: Iterable[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for path in paths:
        while b"/" in path:
            path = path.rpartition(b"/")[0]
            found.add(path)
    return found


def _without_conflicts(kept: Sequence[Change], start: set[bytes], over: set[bytes]) -> tuple[list[Change], list[bytes]]:
    """What can be laid out together with what is restored: no file where a folder must be, and the other way."""
    gone = {change.path for change in kept if change.after is None}
    stays = (start - gone) | over
    folders = _folders(stays)
    good: list[Change] = []
    bad: list[bytes] = []
    for change in kept:
        if change.after is not None and (change.path in folders or _folders((change.path,)) & stays):
            bad.append(change.path)
        else:
            good.append(change)
    return good, bad


def tree(
    start: Mapping[bytes, Entry | None], kept: Iterable[Change], over: Mapping[bytes, File]
) -> dict[bytes, Entry | None]:
    """Path → entry of the tree that is graded; `None` stands for a file of the workspace as it was."""
    made = dict(start)
    for change in kept:
        if change.after is None:
            made.pop(change.path, None)
        else:
            made[change.path] = change.after
    made.update(over)
    return made
