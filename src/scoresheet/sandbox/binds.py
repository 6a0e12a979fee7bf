"""What lies in a tree of the host that is to be bound: looked through once a run."""

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from scoresheet.errors import Usage


@dataclass(frozen=True, slots=True)
class Tree:
    """What matters of a tree before it is shown to an agent."""

    sockets: tuple[str, ...]
    """Unix sockets in it: that they are bound read-only does not stop `connect()`."""
    private: bool
    """Something in it can't be read by an account that owns nothing."""


def look_through(source: Path) -> Tree:
    """The tree, symbolic links not followed. Raises `Usage` when nothing is there."""
    if not source.exists():
        raise Usage("there is nothing to bind", where=str(source))
    sockets: list[str] = []
    private = not readable(source.stat().st_mode)
    for top, folders, names, descriptor in os.fwalk(source):
        for name in (*folders, *names):
            with contextlib.suppress(OSError):
                mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
                if stat.S_ISSOCK(mode):
                    sockets.append(os.path.join(top, name))
                elif not readable(mode):
                    private = True
    return Tree(tuple(sorted(sockets)), private)


def readable(mode: int) -> bool:
    """Whether others may read such a file, or list and enter such a folder."""
    if stat.S_ISLNK(mode):
        return True
    needed = 0o005 if stat.S_ISDIR(mode) else 0o004
    return mode & needed == needed
