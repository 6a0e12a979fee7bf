"""`scoresheet judge`: people decide, blind, what no program could."""

import getpass
import json
import sys
from pathlib import Path

import click

from scoresheet.cli.app import say
from scoresheet.errors import counted


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--judge", "name", metavar="NAME", help="Who judges: recorded with every decision [the login name].")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(run: Path, name: str | None, as_json: bool) -> int:
    """Judge the episodes of RUN that wait for a human: one key a decision, kept the moment it is made.

    Judging is blind: agent and repeat are hidden, and the order is shuffled by the run's seed. You see the prompt, the
    answer and the patch; what an agent wrote stands behind a bar, control characters made visible. A decision is undone
    by a line of its own, never rewritten. The first judge of an episode is the one. Without a terminal, keys are read
    from stdin, one a line. Exit 4: episodes still wait; the next call goes on there.

    \b
    Example: scoresheet judge runs/careful --judge alice
    """
    from scoresheet.cli.judge_screen import Keyboard, piped, session
    from scoresheet.cli.run import keep_report
    from scoresheet.errors import Incomplete
    from scoresheet.run.judging import judge_of

    judge = judge_of(run, name if name is not None else _login())
    if sys.stdin.isatty():
        with Keyboard() as keyboard:
            done = session(judge, keyboard, keyboard.fresh)
    else:
        done = session(judge, piped)
    keep_report(run)
    facts = {"judge": judge.name, "decided": done.decided, "pending": done.pending, "judgments": judge.known().lines}
    if as_json:
        click.echo(json.dumps(facts))
    else:
        click.echo(f"judged: {done.decided}, pending: {done.pending}")
    if not done.pending:
        say(f"nothing waits for a judge: scoresheet report {run}")
        return 0
    what = f"{counted(done.pending, 'episode')} {'waits' if done.pending == 1 else 'wait'} for a judge"
    raise Incomplete(what, mend=f"scoresheet judge {run} goes on")


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
