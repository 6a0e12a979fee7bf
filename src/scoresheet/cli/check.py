"""`scoresheet check`: every finding at once, of packs, protocol cards and task cards."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scoresheet.cli.app import say

if TYPE_CHECKING:
    from scoresheet.documents.check_result import CheckTarget

FORMS = ("text", "json", "github", "sarif", "junit")


@click.command()
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--fixture", type=click.Path(exists=True, dir_okay=False), help="The tarball of suite.fixture_hash.")
@click.option("--format", "form", type=click.Choice(FORMS), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(targets: tuple[str, ...], fixture: str | None, form: str, as_json: bool, quiet: bool) -> int:
    """Check packs, protocol cards and task cards: every finding is printed, each with its mend; exit 1 when one is an
    error.

    A card beside a frozen pack (PACK/card.yaml) is held against it, and its fixture_hash against the tarball that
    `freeze --tar` would write, or against --fixture FILE as it lies. What could not be judged is said, never passed.

    \b
    Example: scoresheet check examples/packs/catalog-v1/card.yaml
    """
    from scoresheet.gate import output

    checked = output.result([verdict for target in targets for verdict in _check(target, fixture, quiet)])
    match "json" if as_json else form:
        case "json":
            told = output.as_json(checked)
        case "github":
            told = output.github(checked, _from_root())
        case "sarif":
            from scoresheet import __version__

            told = output.sarif(checked, __version__, _from_root())
        case "junit":
            told = output.junit(checked)
        case _:
            told = output.text(checked)
    click.echo(told, nl=False)
    for verdict in checked.targets:
        for unseen in verdict.not_judged:
            say(f"not judged: {output.plain(unseen)} — {output.plain(verdict.target)}")
    if checked.cards:
        say(output.count(checked))
    return 0 if checked.ok else 1


def _check(target: str, fixture: str | None, quiet: bool) -> "list[CheckTarget]":
    """The verdict on a card, or on a pack and the card beside it."""
    if not os.path.isdir(target):
        return [_card(target, fixture)]
    from scoresheet.gate import card
    from scoresheet.pack.folder import refuse_run

    refuse_run(Path(target))
    beside = card.card_of(target)
    found = [_pack(target, quiet, with_blanks=beside is not None)]
    if beside is not None:
        found.append(_card(str(beside), fixture))
    return found


def _pack(target: str, quiet: bool, with_blanks: bool) -> "CheckTarget":
    from scoresheet.cli.progress import bytes_bar
    from scoresheet.documents.check_result import CheckTarget
    from scoresheet.gate import output, suite
    from scoresheet.pack import checker
    from scoresheet.run import baselines

    with bytes_bar("checking", quiet) as progress:
        checked = checker.check(target, progress)
    blanks = tuple(suite.blank_findings(target)) if with_blanks and checked.manifest_sha256 is None else ()
    defects = baselines.defects(Path(target), checked.manifest_sha256)
    placed = [
        replace(each, where=target if each.where == "." else os.path.join(target, each.where))
        for each in (
            *(each for each in checked.findings if each.rule != "task-blank" or not with_blanks),
            *blanks,
            *defects,
        )
    ]
    unfrozen = ("the manifest: the pack is not frozen yet; scoresheet freeze pins it",)
    return CheckTarget(
        target=target,
        kind="pack",
        ok=checked.ok and not blanks and not defects,
        files=checked.files,
        tasks=checked.tasks,
        manifest_sha256=checked.manifest_sha256,
        findings=tuple(map(output.finding, placed)),
        not_judged=unfrozen if checked.manifest_sha256 is None else (),
    )


def _card(target: str, fixture: str | None) -> "CheckTarget":
    from scoresheet.documents.check_result import CheckTarget
    from scoresheet.errors import Malformed, Usage
    from scoresheet.gate import card, output, reading, task_card

    try:
        file = reading.read(target)
    except Malformed as error:
        found = card.unreadable(target, error)
        return CheckTarget(
            target=target, kind="protocol card", ok=False, rules=1, findings=tuple(map(output.finding, found.findings))
        )
    match file.kind:
        case "task":
            mend = f"scoresheet check {os.path.dirname(target) or '.'}"
            raise Usage("this is a task of a pack, which is checked with its pack", target, mend)
        case "task card":
            judged = task_card.check_file(file)
            return CheckTarget(
                target=target,
                kind="task card",
                ok=judged.ok,
                sha256=judged.sha256,
                rules=judged.rules,
                findings=tuple(map(output.finding, judged.findings)),
            )
        case "protocol card":
            checked = card.check_file(file, fixture=fixture)
            document = checked.card
            return CheckTarget(
                target=target,
                kind="protocol card",
                ok=checked.ok,
                sha256=checked.sha256,
                rules=checked.rules,
                primary=document.metrics.primary if document else None,
                holdout=len(document.dataset_split.holdout) if document else None,
                findings=tuple(map(output.finding, checked.findings)),
                not_judged=checked.not_judged,
            )


def _from_root() -> "_FromRoot":
    from scoresheet.gate import repository

    return _FromRoot(repository.top(os.getcwd()) or os.getcwd())


class _FromRoot:
    """A path as the command reached it → from the root of the repository (or of where the command ran)."""

    def __init__(self, root: str) -> None:
        self._root = root

    def __call__(self, path: str) -> str:
        found = os.path.relpath(os.path.realpath(os.path.dirname(path) or "."), os.path.realpath(self._root))
        placed = os.path.normpath(os.path.join(found, os.path.basename(path)))
        return (os.path.realpath(path) if placed.startswith("..") else placed).replace(os.sep, "/")
