"""`scoresheet freeze`: check a pack, then pin every byte of it under one digest."""

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from scoresheet.cli.app import say
from scoresheet.errors import Refused

_PAIRED = ("exclude", "exclude_task", "upstream")
_SWITCH_S = 0.0002
"""How long a thread that has hashed its part waits for one that loads modules."""


@click.command()
@click.argument("pack", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--timeout-s", type=click.FloatRange(0, min_open=True), metavar="S", help="Wall clock of an episode [30]."
)
@click.option("--retries", type=click.IntRange(0), metavar="N", help="More attempts at what did not succeed [0].")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of the suite [20260922].")
@click.option("--repeats", type=click.IntRange(1), metavar="N", help="Episodes per task, v2 [5].")
@click.option("--on-mismatch", type=click.Choice(["stop", "continue"]), help="After an unrecorded call, v2 [stop].")
@click.option(
    "--on-exhausted", type=click.Choice(["last", "refuse"]), help="After the last recorded answer, v2 [last]."
)
@click.option("--exclude", multiple=True, metavar="TOOL=REASON", help="A tool that is left out on purpose, v2.")
@click.option("--exclude-task", multiple=True, metavar="TASK=REASON", help="A task that is left out on purpose, v2.")
@click.option("--upstream", multiple=True, metavar="NAME=HOST", help="The host that was recorded under a name, v2.")
@click.option(
    "--protocol", type=click.Choice(["tool-replay-v1", "tool-replay-v2"]), help="Default: v1 for a flat pack."
)
@click.option("--tar", type=click.Path(dir_okay=False), metavar="FILE", help="Also write the pack's tarball.")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as one JSON object.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, no warnings.")
def command(pack: str, tar: str | None, as_json: bool, quiet: bool, **given: Any) -> None:
    """Check PACK, then write its manifest.json: its sha256 names the pack. Nothing is written when a rule is broken.

    \b
    The last line is the digest and the manifest's path.
    Example: scoresheet freeze billing-v3 --timeout-s 60 --tar billing-v3.tar
    """
    from scoresheet.cli.progress import bytes_bar
    from scoresheet.pack import tree

    for option in _PAIRED:
        given[option] = _pairs("--" + option.replace("_", "-"), given[option])
    with _quick_turns(), tree.hashing_ahead(pack) as ahead, bytes_bar("freezing", quiet) as progress:
        from scoresheet.pack import archive, freezer  # here: large files are hashed while the formats are loaded

        if tar:
            archive.refuse_unwritable(pack, Path(tar))
        try:
            written = freezer.write(pack, _settings(pack, given), progress=progress, ahead=ahead)
        except Refused as refused:
            raise _with_path(refused, pack) from refused
    if not quiet:
        for finding in written.warnings:
            say(f"{finding.severity}: {finding.what} — {finding.where} [{finding.rule}]")
            if finding.mend:
                say(f"  mend: {finding.mend}")
    if not quiet and _blank_card(Path(pack)):
        say(f"note: card.yaml still holds blanks, and nothing is scored with such a card: scoresheet check {pack}")
    tarball = archive.write(pack, written.digests, tar) if tar else None
    if as_json:
        facts: dict[str, Any] = {
            "manifest_sha256": written.sha256,
            "path": str(written.path),
            "frozen_at": written.frozen_at,
        }
        facts |= {"tasks": written.tasks, "files": len(written.digests), "protocol": written.protocol}
        click.echo(json.dumps(facts | ({"tar": tar, "fixture_hash": tarball} if tarball else {})))
        return
    if tarball:
        click.echo(f"{tarball} {tar}")
    click.echo(f"{written.sha256} {written.path}")


def _blank_card(pack: Path) -> bool:
    """True for a card beside the pack that still holds blanks of the template."""
    from scoresheet import yaml12
    from scoresheet.pack.blanks import BLANK
    from scoresheet.pack.freeze import CARD

    try:
        with (pack / CARD).open("rb") as file:
            lines = file.read(yaml12.MAX_BYTES).split(b"\n")
    except OSError:
        return False
    return any(BLANK.encode() in line and not line.lstrip().startswith(b"#") for line in lines)


@contextlib.contextmanager
def _quick_turns() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def _with_path(refused: Refused, pack: str) -> Refused:
    """The same refusal; what is said of the whole folder names it."""
    placed = [replace(each, where=pack) if each.where == "." else each for each in refused.findings]
    return Refused(refused.what, placed, refused.where, refused.mend)


def _settings(pack: str, given: dict[str, Any]) -> Any:
    from scoresheet.documents.manifest import Exclusion
    from scoresheet.pack.freeze import Settings
    from scoresheet.pack.freezer import recorded_hosts

    excluded = [Exclusion(tool=name, reason=why) for name, why in given.pop("exclude")]
    excluded += [Exclusion(task=name, reason=why) for name, why in given.pop("exclude_task")]
    hosts = dict(recorded_hosts(pack)) | dict(given.pop("upstream"))
    timeout_s = given.pop("timeout_s")
    if timeout_s is not None and timeout_s.is_integer():
        timeout_s = int(timeout_s)
    return Settings(timeout_s=timeout_s, excluded=tuple(excluded), upstreams=tuple(sorted(hosts.items())), **given)


def _pairs(option: str, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = [text.partition("=")[::2] for text in texts]
    for text, (name, value) in zip(texts, pairs, strict=True):
        if not name or not value.strip():
            raise click.BadParameter(f"{text!r} is not NAME=TEXT", param_hint=option)
    return [(name, value) for name, value in pairs]
