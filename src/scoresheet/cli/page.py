"""What `report` and `compare` have in common when they write a page."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scoresheet.errors import Usage

if TYPE_CHECKING:
    from types import ModuleType


def renderer() -> "ModuleType":
    """The module that writes pages. Raises `Usage` without the extra `html`."""
    try:
        from scoresheet.publish.page import render
    except ImportError as error:
        raise Usage(f"a page can't be written: {error}", "--html", "pip install 'scoresheet[html]'") from error
    return render


def give(pieces: Iterable[str], file: Path | None, *, replace: bool) -> None:
    """Write the page to the file, and print `<digest> <file>`; without a file print the page."""
    from scoresheet.publish.page import file as page_file

    if file is not None:
        click.echo(f"{page_file.write(file, pieces, replace=replace)} {file}")
        return
    for piece in _together(pieces):
        click.echo(piece.encode(), nl=False)


def _together(pieces: Iterable[str]) -> Iterator[str]:
    """The same text in pieces of a useful size."""
    held: list[str] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > 1 << 16:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)
