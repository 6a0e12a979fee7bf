"""`scoresheet export`: an admissible run in the format of another tool."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scoresheet.cli.app import say
from scoresheet.errors import Incomplete

if TYPE_CHECKING:
    from scoresheet.publish.exports.formats import Format
    from scoresheet.publish.exports.subject import Subject
    from scoresheet.publish.exports.writer import Written

FORMATS = ("csv", "every-eval-ever", "huggingface", "inspect", "junit")


@click.command()
@click.argument("run", metavar="RUN|BUNDLE", type=click.Path(exists=True, path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), help="What to write; it has to be said.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to: a new file, or a new folder for every-eval-ever; `-` prints it [RUN with the format's suffix].",
)
@click.option(
    "--pack",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="PACK",
    help="Put the tasks' prompts in, when every receipt lets the pack travel; expected answers never go out.",
)
@click.option("--organization", metavar="NAME", help="every-eval-ever: who publishes the result.")
@click.option(
    "--relationship",
    type=click.Choice(["first_party", "third_party", "collaborative", "other"]),
    default="other",
    show_default=True,
    help="every-eval-ever: of the organization to the model's maker.",
)
@click.option("--model", metavar="DEVELOPER/NAME", help="every-eval-ever, inspect: the name to file it under.")
@click.option("--dataset", metavar="OWNER/NAME", help="huggingface, every-eval-ever: the suite's dataset on the Hub.")
@click.option("--task", metavar="ID", help="huggingface: the task, as the dataset's eval.yaml names it.")
@click.option("--source", metavar="URL", help="huggingface, every-eval-ever: where the bundle can be had.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def command(
    run: Path,
    form: str | None,
    out: Path | None,
    pack: Path | None,
    organization: str | None,
    relationship: str,
    model: str | None,
    dataset: str | None,
    task: str | None,
    source: str | None,
    as_json: bool,
) -> int:
    """Write an admissible RUN (or the one in a BUNDLE, verified first) in the format of another tool.

    The protocol sheet goes along. A run that is not admissible is not exported (exit 1, or 4 when it is incomplete;
    every reason is printed), and nothing is ever overwritten. The same run gives the same bytes anywhere. Last line:
    `<sha256> <file>`.

    \b
    Example: scoresheet export runs/careful --format junit -o careful.xml
    """
    from scoresheet.errors import Finding, Refused, Usage
    from scoresheet.pack.folder import Pack
    from scoresheet.publish import block
    from scoresheet.publish.exports import formats, reader
    from scoresheet.publish.exports.subject import Names
    from scoresheet.publish.next_steps import next_steps

    if form is None:
        raise Usage("no format is named", "--format", f"--format {'|'.join(FORMATS)}")
    names = Names(organization, relationship, model, dataset, task, source)
    chosen = formats.FORMATS[form]
    with reader.opened(run, Pack.open(pack) if pack is not None else None) as candidate:
        if candidate.unmet:
            click.echo(block.not_admissible(map(str, candidate.unmet)), nl=False)
            for step in next_steps(candidate.unmet, candidate.run.plan, str(run)):
                say(f"next: {step}")
            return Incomplete.exit_code if any(reason.incomplete for reason in candidate.unmet) else 1
        if chosen.calls and candidate.why_no_prompts:
            say(f"note: {candidate.why_no_prompts}")
        try:
            written = _write(chosen, candidate.subject(names, chosen.calls), run, out)
        except (ValueError, OverflowError) as error:  # a time that is none, or ends after the last year there is
            what = f"it holds a value that {form} can't: {error}"
            raise Refused("not exported", [Finding("export-value", run.name, what)]) from error
    if written is not None:
        _tell(written, form, as_json)
    return 0


def _write(chosen: "Format", subject: "Subject", run: Path, out: Path | None) -> "tuple[Written, ...] | None":
    """Write the export; `None` when it was printed."""
    from scoresheet.errors import Usage
    from scoresheet.publish.exports import writer

    if out == Path("-"):
        if chosen.kind != "file":
            raise Usage(
                f"{'a folder' if chosen.kind == 'folder' else 'an archive'} can't be printed",
                "-o -",
                "name it: -o FILE",
            )
        writer.stream(sys.stdout.buffer, chosen.build(subject))
        return None
    if out is None:
        place = run if run.name not in ("", "..") else run.resolve()
        out = place.with_name(f"{run.resolve().name.removesuffix('.bundle.tar').removesuffix('.tar')}{chosen.suffix}")
    if run.is_dir() and out.resolve().is_relative_to(run.resolve()):
        raise Usage("the export would lie inside the run", str(out), "write it beside the run")
    match chosen.kind:
        case "file":
            return writer.file(out, chosen.build(subject))
        case "archive":
            return writer.archive(out, chosen.build(subject))
        case "folder":
            return writer.folder(out, chosen.build(subject))


def _tell(written: "tuple[Written, ...]", form: str, as_json: bool) -> None:
    import json

    if as_json:
        files = [{"file": str(each.path), "sha256": each.sha256, "size": each.size_bytes} for each in written]
        click.echo(json.dumps({"format": form, "files": files}, indent=2))
        return
    for each in written:
        click.echo(f"{each.sha256} {each.path}")
