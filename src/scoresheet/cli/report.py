"""`scoresheet report`: the report of a run, or why it is not admissible."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scoresheet.cli import emphasis
from scoresheet.cli.app import say
from scoresheet.errors import Incomplete

if TYPE_CHECKING:
    from scoresheet.pack.folder import Pack
    from scoresheet.publish.figures import Method

_METHODS: Mapping[str | None, "Method | None"] = {"default": "cluster", "rows-v1": "rows-v1", None: None}


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json", "md", "html"]), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--pack",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="PACK",
    help="Judge card and receipts by the pack's bytes, not by what the run recorded of it.",
)
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write it as one HTML page to FILE."
)
@click.option("--replace", is_flag=True, help="Overwrite the FILE of --html.")
@click.option("--draft", is_flag=True, help="Print the figures of a run that is not admissible, under a DRAFT banner.")
@click.option(
    "--interval",
    type=click.Choice(["default", "rows-v1"]),
    help="rows-v1: the published row bootstrap, which understates the noise of repeated tasks.",
)
def command(
    run: Path,
    form: str,
    as_json: bool,
    pack: Path | None,
    html: Path | None,
    replace: bool,
    draft: bool,
    interval: str | None,
) -> int:
    """Print the report of RUN, or every reason why it is not admissible.

    A page is one self-contained file; with --pack it shows answers beside what was expected. What agents wrote is in
    it: read it before you publish it. Last line of --html: `<sha256> FILE`.

    Exit 0: printed. 1: not admissible. 4: the run is incomplete (with --draft the figures are printed all the same).

    \b
    Example: scoresheet report runs/careful --html careful.html
    """
    from scoresheet.pack.folder import Pack
    from scoresheet.publish import block, run_folder
    from scoresheet.publish.next_steps import next_steps
    from scoresheet.publish.report import refusal

    opened = Pack.open(pack) if pack is not None else None
    method = _METHODS[interval]
    form = "json" if as_json else form
    if html is not None or form == "html":
        return _page(run, opened, html, replace=replace, draft=draft, method=method)
    folder = run_folder.read(run, opened)
    unmet = folder.unmet
    incomplete = any(reason.incomplete for reason in unmet)
    if unmet and not draft:
        if form == "json":
            click.echo(refusal(folder.plan, unmet).text(), nl=False)
        else:
            click.echo(_shown(block.not_admissible(map(str, unmet))), nl=False)
        for step in next_steps(unmet, folder.plan, str(run)):
            say(f"next: {step}")
        return Incomplete.exit_code if incomplete else 1
    report = folder.report(method)
    match form:
        case "json":
            click.echo(report.text(), nl=False)
        case "md":
            click.echo(block.markdown(report), nl=False)
        case _:
            click.echo(_shown(block.text(report)), nl=False)
    return Incomplete.exit_code if incomplete else 0


def _page(
    run: Path, pack: "Pack | None", file: Path | None, *, replace: bool, draft: bool, method: "Method | None"
) -> int:
    """The page of the run, behind the same gate as its block."""
    from scoresheet.cli import page
    from scoresheet.publish import block, run_folder
    from scoresheet.publish.next_steps import next_steps
    from scoresheet.publish.page import folder

    render = page.renderer()
    found = folder.read(run, draft=draft, pack=pack, method=method)
    if isinstance(found, folder.Closed):
        click.echo(_shown(block.not_admissible(map(str, found.reasons))), nl=False, err=file is None)
        for step in next_steps(found.reasons, run_folder.plan_of(run), str(run)):
            say(f"next: {step}")
    else:
        page.give(render.run(found), file, replace=replace)
    return Incomplete.exit_code if found.incomplete else int(isinstance(found, folder.Closed))


def _shown(text: str) -> str:
    """The text with its keys bold, on a terminal."""
    return emphasis.shown(text, lambda key, _: key.replace("_", "").isalnum())
