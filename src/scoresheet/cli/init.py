"""`scoresheet init`: a new suite, whose blanks `check` lists."""

import os
from pathlib import Path

import click

from scoresheet.cli.app import say


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--kind", type=click.Choice(["replay", "workspace"]), default="replay", show_default=True)
def command(folder: str, kind: str) -> None:
    """Write a new suite into DIR: card.yaml, one example task, README.md and .gitattributes. Every blank says
    REPLACE_ME, and `check` lists exactly those. Nothing is overwritten.

    \b
    Example: scoresheet init refunds && scoresheet check refunds
    """
    from scoresheet.errors import Finding, Refused, Usage
    from scoresheet.gate import template

    files = template.files("workspace" if kind == "workspace" else "replay")
    mend = "choose another DIR, or move it away"
    there = [
        Finding("pack-init", os.path.join(folder, path), "already there: nothing is overwritten", mend)
        for path in (*files, "manifest.json")
        if os.path.lexists(os.path.join(folder, path))
    ]
    if there:
        raise Refused("nothing was written", there, folder)
    try:
        for path, data in files.items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as file:
                file.write(data)
            click.echo(str(place))
    except OSError as error:
        raise Usage(f"the suite can't be written: {error.strerror}", str(error.filename or folder)) from error
    say("5 tasks are needed for an interval; this suite has 1, an example")
    say(f"scoresheet check {folder} lists every blank")
