"""`scoresheet confound`: what a person says may have moved a figure."""

from pathlib import Path

import click

from scoresheet.cli.app import say


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("text")
def command(run: Path, text: str) -> int:
    """Add TEXT, dated, to the confound log of RUN. Entries stand first in every report; none is ever removed.

    \b
    Example: scoresheet confound runs/careful "the fan failed at 14:10; the machine was throttled after it"
    """
    from scoresheet.documents.confound import Confound
    from scoresheet.errors import Usage
    from scoresheet.run import journal
    from scoresheet.run.prepare import now

    if not text.strip():
        raise Usage("the entry is empty", str(run), 'say what happened: scoresheet confound RUN "text"')
    journal.read_plan(run)
    entry = Confound(at=now(), by="person", kind="human", text=text.strip())
    journal.add_confounds(run, (entry,))
    click.echo(str(entry))
    say(f"confounds: {len(journal.read_confounds(run))} in {run / journal.CONFOUNDS}")
    return 0
