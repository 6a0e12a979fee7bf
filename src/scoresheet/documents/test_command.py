"""The words of a task's test command, and whether its report can be read. Pure."""

import re
import shlex
from dataclasses import dataclass

_PYTHON = re.compile(r"python(3(\.\d+)?)?").fullmatch
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL).fullmatch


@dataclass(frozen=True, slots=True)
class Command:
    """A test command, read."""

    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    pytest: bool = False
    """It runs pytest: its report is read. Any other counts by its exit status alone."""
    here: bool = False
    """`python -m pytest`: the workspace goes on the module path."""
    python: bool = False
    """Its first word is the interpreter."""


def command(text: str) -> Command:
    """The command in `text`. Raises `ValueError` when it can't be split or is empty."""
    words = shlex.split(text)
    environment = []
    while words and (assigned := _ASSIGNMENT(words[0])):
        environment.append((assigned[1], assigned[2]))
        words.pop(0)
    if not words:
        raise ValueError("the test command is empty")
    pairs = tuple(environment)
    if words[0] in ("pytest", "py.test"):
        return Command(tuple(words[1:]), pairs, pytest=True)
    if _PYTHON(words[0]):
        if words[1:3] == ["-m", "pytest"]:
            return Command(tuple(words[3:]), pairs, pytest=True, here=True)
        return Command(tuple(words[1:]), pairs, python=True)
    return Command(tuple(words), pairs)
