"""What the git repository around a card knows: asked of git itself, without network, hooks or writes."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PATIENCE_S = 20


@dataclass(frozen=True, slots=True)
class Commit:
    """Whether a repository holds a commit."""

    known: bool | None
    """`None`: it could not be judged."""
    why_not: str = ""
    """Why it could not be judged."""


def commit(folder: str | Path, sha: str) -> Commit:
    """Whether the repository around `folder` holds the commit `sha` (40 or 64 hex digits)."""
    try:
        inside = _git(folder, "rev-parse", "--is-inside-work-tree", "--is-shallow-repository")
    except FileNotFoundError:
        return Commit(None, "git is not installed")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Commit(None, f"git could not be asked: {error}")
    if inside.returncode != 0:
        said = inside.stderr.strip().splitlines()
        if said and "not a git repository" not in said[0]:
            return Commit(None, f"git could not be asked: {said[0]}")
        return Commit(None, "the card lies in no git repository")
    try:
        if _git(folder, "cat-file", "-e", f"{sha}^{{commit}}").returncode == 0:
            return Commit(True)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Commit(None, f"git could not be asked: {error}")
    if inside.stdout.split()[-1:] == ["true"]:
        return Commit(None, "the clone is shallow and does not hold the commit: fetch it with `git fetch --unshallow`")
    return Commit(False)


def uncommitted(folder: str | Path, names: Sequence[str]) -> tuple[str, ...]:
    """Those of the files that the repository around `folder` does not hold as they are; none when there is none."""
    try:
        found = _git(folder, "status", "--porcelain", "-z", "--ignored", "--untracked-files=all", "--", *names)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if found.returncode != 0:
        return ()
    changed = {entry[3:].rpartition("/")[2] for entry in found.stdout.split("\0") if entry[2:3] == " "}
    return tuple(name for name in names if name in changed)


def top(folder: str | Path) -> str | None:
    """The work tree's root around `folder`; `None` when there is none, or no git."""
    try:
        found = _git(folder, "rev-parse", "--show-toplevel")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.rstrip("\n") if found.returncode == 0 and found.stdout.strip() else None


def _git(folder: str | Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    # Variables such as GIT_DIR (set inside hooks) would name another repository than the card's.
    environment = {
        name: value for name, value in os.environ.items() if name[:4] != "GIT_" or name.startswith("GIT_CONFIG")
    }
    environment |= {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_PATIENCE_S,
        check=False,
    )
