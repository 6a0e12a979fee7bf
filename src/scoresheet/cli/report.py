"""`scoresheet report`: the report of a run, or why it is not admissible."""

import os
import sys
from pathlib import Path

import click

INCOMPLETE = 4


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json", "md"]), default="text", show_default=True)
@click.option(
    "--pack",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="PACK",
    help="Judge card and receipts by the pack's bytes, not by what the run recorded of it.",
)
@click.option("--draft", is_flag=True, help="Print the figures of a run that is not admissible, under a DRAFT banner.")
@click.option(
    "--interval",
    type=click.Choice(["default", "rows-v1"]),
    help="rows-v1: the published row bootstrap, which understates the noise of repeated tasks.",
)
def command(run: Path, form: str, pack: Path | None, draft: bool, interval: str | None) -> int:
    """Print the report of RUN, or every reason why it is not admissible.

    Exit 0: printed. 1: not admissible. 4: the run is incomplete (with --draft the figures are printed all the same).

    \b
    Example: scoresheet report runs/careful --format md --draft
    """
    from scoresheet.pack.folder import Pack
    from scoresheet.publish import block, run_folder
    from scoresheet.publish.report import refusal

    folder = run_folder.read(run, Pack.open(pack) if pack is not None else None)
    unmet = folder.unmet
    incomplete = any(reason.incomplete for reason in unmet)
    if unmet and not draft:
        if form == "json":
            click.echo(refusal(folder.plan, unmet).text(), nl=False)
        else:
            click.echo(_shown(block.not_admissible(map(str, unmet))), nl=False)
        return INCOMPLETE if incomplete else 1
    report = folder.report({"default": "cluster", "rows-v1": "rows-v1", None: None}[interval])
    match form:
        case "json":
            click.echo(report.text(), nl=False)
        case "md":
            click.echo(block.markdown(report), nl=False)
        case _:
            click.echo(_shown(block.text(report)), nl=False)
    return INCOMPLETE if incomplete else 0


def _shown(text: str) -> str:
    """The text with its keys bold, on a terminal; as it is elsewhere."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    lines = []
    for line in text.splitlines():
        key, separator, value = line.partition(": ")
        if line.startswith(("DRAFT", "not admissible")):
            lines.append(click.style(line, fg="red", bold=True))
        elif separator and key.replace("_", "").isalnum():
            lines.append(f"{click.style(key, bold=True)}{separator}{value}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
