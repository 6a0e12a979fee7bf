"""`scoresheet compare`: do agents differ, by runs of one pack under one protocol?"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scoresheet.cli import emphasis
from scoresheet.cli.app import say
from scoresheet.errors import Incomplete

if TYPE_CHECKING:
    from scoresheet.documents.comparison import Comparison
    from scoresheet.publish.comparable import Entrant


@click.command()
@click.argument("runs", metavar="RUN RUN…", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json", "md", "html"]), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    type=click.Choice(["schema_ok", "unauthorized", "timeout"]),
    help="Show this rate, too; success alone ranks. May be given again.",
)
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write it as one HTML page to FILE."
)
@click.option("--replace", is_flag=True, help="Overwrite the FILE of --html.")
@click.option("--draft", is_flag=True, help="Compare runs that are not admissible, under a DRAFT banner.")
def command(
    runs: tuple[Path, ...],
    form: str,
    as_json: bool,
    metrics: tuple[str, ...],
    html: Path | None,
    replace: bool,
    draft: bool,
) -> int:
    """Compare agents by their runs (directories or bundles), paired by task.

    Runs that differ in anything but the agent are refused, each field with both sides. A ranking that moves less than
    the interval is a tie. Baselines are shown, and never ranked. Exit 1: not comparable, or not admissible. 4: a run
    is incomplete.

    \b
    Example: scoresheet compare runs/careful runs/hasty --metric unauthorized
    """
    from scoresheet.documents.comparison import NotComparable
    from scoresheet.errors import Refused, Usage
    from scoresheet.publish import comparable, comparison, comparison_text

    form = "json" if as_json else form
    entrants = comparable.labelled([_read(path) for path in runs])
    for one, other in comparable.same_rows(entrants):
        raise Usage(
            f"{one.label} and {other.label} are one and the same run", other.name, "name the runs of two agents"
        )
    if sum(not each.baseline for each in entrants) < 2:
        named = ", ".join(f"{each.name} ({'a baseline' if each.baseline else 'a run'})" for each in entrants)
        raise Usage("a comparison needs two runs; baselines are not ranked", named, "name the runs of two agents")
    differences = comparable.differences(entrants)
    if differences:
        if form == "json":
            click.echo(NotComparable(differences=differences, reasons=()).text(), nl=False)
        named = ", ".join(f"{each.label} = {each.name}" for each in entrants)
        mend = "run the agents on one pack, with one card and the same options"
        raise Refused("the runs are not comparable", [*comparison_text.findings(differences)], named, mend)
    unmet = [(each, reason) for each in entrants for reason in each.unmet]
    incomplete = any(reason.incomplete for _, reason in unmet)
    if unmet and not draft:
        lines = tuple(f"{each.label}: {reason}" for each, reason in unmet)
        if form == "json":
            click.echo(NotComparable(differences=(), reasons=lines).text(), nl=False)
        else:
            click.echo(comparison_text.not_admissible(lines), nl=False)
        for place in dict.fromkeys(place for place, each in zip(runs, entrants, strict=True) if each.unmet):
            say(f"next: scoresheet {'report' if place.is_dir() else 'verify'} {place} says more of it")
        return Incomplete.exit_code if incomplete else 1
    found = comparison.build(entrants, [each for each in comparison.METRICS if each in metrics])
    if html is not None or form == "html":
        from scoresheet.cli import page

        page.give(page.renderer().comparison(found), html, replace=replace)
        return Incomplete.exit_code if incomplete else 0
    match form:
        case "json":
            click.echo(found.text(), nl=False)
        case "md":
            click.echo(comparison_text.markdown(found), nl=False)
        case _:
            click.echo(_shown(comparison_text.text(found, _table(found))), nl=False)
    return Incomplete.exit_code if incomplete else 0


def _read(path: Path) -> "Entrant":
    """The run in a directory, or in a bundle that was verified."""
    from dataclasses import replace
    from tempfile import TemporaryDirectory

    from scoresheet.errors import Refused
    from scoresheet.publish import audit, run_folder
    from scoresheet.publish.comparable import Entrant

    if path.is_dir():
        run = run_folder.read(path)
    else:
        with TemporaryDirectory(prefix="scoresheet-") as scratch:
            seen = audit.read(path, Path(scratch))
        seen.refuse_no_bundle(path)
        if seen.run is None:
            mend = f"scoresheet verify {path} says all that does not hold"
            raise Refused("there is no run to compare", seen.findings, str(path), mend)
        run = seen.run
        faults = (finding for finding in seen.findings if finding.severity == "error")
        run = replace(run, evidence=replace(run.evidence, findings=(*run.evidence.findings, *faults)))
    return Entrant("", path.resolve().name, run.plan, run.outcomes, run.evidence, run.rows_sha256)


def _table(found: "Comparison") -> Iterable[str] | None:
    """The table of tasks as a terminal shows it; `None` elsewhere."""
    if not sys.stdout.isatty():
        return None
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from scoresheet.publish import comparison_text

    heading, *rows = comparison_text.rows(found)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(heading):
        table.add_column(name, justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, _style(cell) if index else "") for index, cell in enumerate(row)))
    console = Console(highlight=False)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines() if line.strip()]


def _style(cell: str) -> str:
    return {"+": "green", "-": "red"}.get(cell[0], "")


def _shown(text: str) -> str:
    """The text with banner and verdicts bold, on a terminal."""
    return emphasis.shown(text, lambda key, value: not key.startswith(" ") and "\x1b" not in key + value)
