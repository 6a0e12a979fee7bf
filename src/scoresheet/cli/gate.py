"""`scoresheet gate`: may this change be merged, as far as its scores go?"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scoresheet.cli.app import say

if TYPE_CHECKING:
    from scoresheet.publish.change import Repository
    from scoresheet.publish.judgment import Judgment

FORMS = ("text", "json", "github", "sarif", "junit")


@click.command()
@click.option(
    "--base", metavar="REV", help="What the change is to be merged into (default: as CI says, or origin/HEAD)."
)
@click.option(
    "--accept", type=click.Path(path_type=Path), metavar="FILE", help="Old scores that are let be, by digest."
)
@click.option(
    "--repo",
    default=".",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The git repository [this one].",
)
@click.option("--format", "form", type=click.Choice(FORMS), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--print-accept", is_flag=True, help="Print the lines that would accept what is refused; still exit 1.")
@click.option(
    "--summary", type=click.Path(path_type=Path), metavar="FILE", help="Append the verdict there as Markdown."
)
def command(
    base: str | None,
    accept: Path | None,
    repo: Path,
    form: str,
    as_json: bool,
    print_accept: bool,
    summary: Path | None,
) -> int:
    """Refuse a change (base...HEAD, by its commits) that adds or edits a score, or what a score rests on, unless card,
    manifest, rows and receipts are there and give the very same figures.

    Exit 0: no score changed, or every one holds. 1: refused. 2: what changed can't be known.

    \b
    Example: scoresheet gate --base origin/main --accept .scoresheet-accept
    """
    from scoresheet.publish import judgment
    from scoresheet.publish.change import Repository

    with Repository(repo) as repository:
        base, why = _base(repository, base)
        change = repository.change(base)
        judged = judgment.judge(repository, change, _accepted(repository, accept, change.base))
    say(f"base: {base} ({why}), from {change.merge_base[:12]} to {change.head[:12]}")
    told = _told(judged, "json" if as_json else form)
    if print_accept:
        told = "".join(f"{one.digest}  {one.place}\n" for one in judged.scores if one.state == "refused" and one.digest)
    click.echo(told, nl=False)
    if summary is not None:
        from scoresheet.publish import gate_text

        with summary.open("a", encoding="utf-8") as file:
            file.write(gate_text.markdown(judged))
    return 0 if judged.ok else 1


def _base(repository: "Repository", given: str | None) -> tuple[str, str]:
    """The base, and who says so."""
    from scoresheet.errors import Usage
    from scoresheet.publish.change import FULL_HISTORY

    if given is not None:
        return given, "--base"
    branch = os.environ.get("GITHUB_BASE_REF")
    if branch:
        return f"refs/remotes/origin/{branch}", "GITHUB_BASE_REF"
    before = os.environ.get("PRE_COMMIT_FROM_REF")
    if before and repository.commit(before):
        return before, "PRE_COMMIT_FROM_REF"
    if repository.commit("refs/remotes/origin/HEAD"):
        return "refs/remotes/origin/HEAD", "the default branch of origin"
    mend = f"name it with --base; on CI {FULL_HISTORY}"
    raise Usage("nothing says what this change is to be merged into", str(repository.root), mend)


def _accepted(repository: "Repository", file: Path | None, base: str) -> frozenset[str]:
    """The accepted digests. A list in the repository counts as it lies at base: a change can't accept itself."""
    from scoresheet.errors import Usage
    from scoresheet.publish import claims

    if file is None:
        return frozenset()
    top = repository.top()
    path = file if file.is_absolute() else repository.root / file
    if top is not None and path.resolve().is_relative_to(top.resolve()):
        inside = path.resolve().relative_to(top.resolve()).as_posix()
        entry = repository.files(base).get(inside)
        if entry is None or not entry.regular:
            say(f"accepted: none yet, for {inside} is not at the base: a change can't accept its own scores")
            return frozenset()
        return claims.accepted(repository.read(entry, 1 << 24).data, inside)
    try:
        from scoresheet import bounded_file

        return claims.accepted(bounded_file.read(path), str(file))
    except OSError as error:
        raise Usage(f"the list can't be read: {error.strerror}", str(file)) from error


def _told(judged: "Judgment", form: str) -> str:
    from scoresheet import __version__
    from scoresheet.gate import output
    from scoresheet.publish import gate_text

    match form:
        case "json":
            return gate_text.as_json(judged)
        case "github":
            return output.github(gate_text.checked(judged), str) + gate_text.text(judged)
        case "sarif":
            return output.sarif(gate_text.checked(judged), __version__, str)
        case "junit":
            return output.junit(gate_text.checked(judged), "scoresheet gate")
        case _:
            return gate_text.text(judged)
