"""Who an agent is: one digest of its command line, its own files and the programs that run them, without host paths."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from scoresheet import canonical, digest
from scoresheet.canonical import JsonValue
from scoresheet.digest import Digest
from scoresheet.errors import Refused, Usage

_SKIPPED = frozenset({".git", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"})
"""Made by tools beside the agent's own files; they change without the agent changing."""


def of(
    words: Sequence[str],
    roots: Sequence[Path],
    programs: Iterable[Mapping[str, JsonValue]],
    hidden: Collection[Path] = (),
) -> Digest:
    """The digest of a command line (host paths in it named by their root), the files below `roots`, and programs.

    What is `hidden` from the agent is no part of it. The same files in another folder, on another host, give the same
    digest.
    """
    value = {
        "argv": [_named(word, roots) for word in words],
        "files": [entry for number, root in enumerate(roots) for entry in _files(number, root, hidden)],
        "programs": [dict(program) for program in programs],
        "schema": "agent-identity/v1",
    }
    return digest.of(canonical.jcs(value))


def of_bytes(content: bytes, program: Mapping[str, JsonValue]) -> Digest:
    """The digest of one of our own programs as an agent."""
    named = {"program": dict(program), "schema": "agent-identity/v1", "sha256": digest.of(content)}
    return digest.of(canonical.jcs(named))


def shown(words: Sequence[str], roots: Sequence[Path]) -> str:
    """The command line for people, each host path cut to what follows its root's parent."""
    return " ".join(_short(word, roots) for word in words)


def packages(prefix: Path) -> tuple[str, ...]:
    """Installed distributions of a virtual environment, `name-version`, sorted."""
    found = prefix.glob("lib/python*/site-packages/*.dist-info")
    return tuple(sorted({folder.name.removesuffix(".dist-info") for folder in found}))


def walk(root: Path, hidden: Collection[Path] = ()) -> Iterator[Path]:
    """Files and symlinks below `root` (or `root` itself) that belong to an agent, in path order."""
    if root.is_symlink() or not root.is_dir():
        yield root
        return
    for entry in sorted(os.scandir(root), key=lambda entry: os.fsencode(entry.name)):
        path = Path(entry.path)
        if entry.name in _SKIPPED or path in hidden:
            continue
        if entry.is_dir(follow_symlinks=False):
            if not (path / "pyvenv.cfg").is_file():
                yield from walk(path, hidden)
        elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
            yield path


def answers_below(folder: Path) -> Iterator[Path]:
    """Frozen packs and run directories below `folder`: what lies in them can hold right answers."""
    for place, folders, files in os.walk(folder):
        here = Path(place)
        if ("run.json" in files and _holds(here / "run.json", b'"scoresheet-run/')) or (
            "manifest.json" in files and _holds(here / "manifest.json", b'"protocol": "tool-replay-v')
        ):
            folders.clear()
            yield here
        else:
            folders[:] = [
                name for name in folders if name not in _SKIPPED and not (here / name / "pyvenv.cfg").exists()
            ]


def _holds(path: Path, marker: bytes) -> bool:
    try:
        return marker in path.read_bytes()
    except OSError:
        return False


def _files(number: int, root: Path, hidden: Collection[Path]) -> Iterator[dict[str, JsonValue]]:
    for path in walk(root, hidden):
        name = f"{number}/{path.relative_to(root)}" if path != root else f"{number}"
        if path.is_symlink():
            yield {"path": name, "link": os.readlink(path)}
            continue
        try:
            found = digest.of_file(path)
        except (OSError, Refused) as error:
            raise Usage(f"a file of the agent can't be read: {error}", str(path)) from error
        executable = bool(path.stat().st_mode & stat.S_IXUSR)
        yield {"path": name, "sha256": found.sha256, "size": found.size, "exec": executable}


def _named(word: str, roots: Sequence[Path]) -> str:
    option, equals, value = word.rpartition("=")
    for number, root in enumerate(roots):
        if value == str(root):
            return f"{option}{equals}{{{number}}}"
        if value.startswith(f"{root}/"):
            return f"{option}{equals}{{{number}}}{value[len(str(root)) :]}"
    return word


def _short(word: str, roots: Sequence[Path]) -> str:
    option, equals, value = word.rpartition("=")
    for root in roots:
        if value == str(root):
            return f"{option}{equals}{root.name}"
        if value.startswith(f"{root}/"):
            return f"{option}{equals}{value[len(str(root)) + 1 :]}"
    return word if "/" not in value or not value.startswith("/") else f"{option}{equals}{Path(value).name}"
