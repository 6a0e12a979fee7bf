"""Text as a terminal shows it: what is first in a line stands out."""

import os
import sys
from collections.abc import Callable

import click


def shown(text: str, is_key: Callable[[str, str], bool]) -> str:
    """The text with its keys bold and what bars it red, on a terminal; as it is elsewhere.

    A key is what stands before `: ` in a line, where `is_key` holds of it and of what follows.
    """
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return "".join(f"{_line(line, is_key)}\n" for line in text.splitlines())


def _line(line: str, is_key: Callable[[str, str], bool]) -> str:
    if line.startswith(("DRAFT", "not admissible")):
        return click.style(line, fg="red", bold=True)
    key, separator, value = line.partition(": ")
    return f"{click.style(key, bold=True)}{separator}{value}" if separator and is_key(key, value) else line
