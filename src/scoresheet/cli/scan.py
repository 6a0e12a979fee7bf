"""`scoresheet scan`: leaks by file, line and rule, never the secret."""

import json
from typing import TYPE_CHECKING

import click

from scoresheet.cli.app import say
from scoresheet.errors import counted

if TYPE_CHECKING:
    from scoresheet.gate.leaks import Scan


@click.command()
@click.argument("path", type=click.Path(exists=True))
@click.option("--card", type=click.Path(exists=True, dir_okay=False), help="Whose leak_allow counts [PATH/card.yaml].")
@click.option("--second", type=click.Choice(["betterleaks"]), help="Another scanner that has to agree.")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as one JSON object.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(path: str, card: str | None, second: str | None, as_json: bool, quiet: bool) -> int:
    """Search PATH, a pack or any file or folder, for credentials, private keys and customers' data.

    Each finding is a file, a line and a rule, with the sha256 of what was found, so that a card can allow it: never the
    secret itself. Archives, compressions and encodings are undone; what can't be searched is listed as unknown. Exit 1
    when there are findings that no card allows, when anything is unknown, and when there was nothing to search.

    \b
    Example: scoresheet scan examples/packs/billing-v3
    """
    import os

    from scoresheet.cli.progress import bytes_bar
    from scoresheet.gate import leaks, second_scanner

    beside = os.path.join(path, "card.yaml")
    if card is None and os.path.isfile(beside):
        card = beside
    allow = leaks.allowances(card) if card is not None else ()
    with bytes_bar("scanning", quiet) as progress:
        found = leaks.scan(path, allow, progress, second_scanner.betterleaks if second else None)
    if as_json:
        click.echo(json.dumps(_facts(found, path, card), indent=2))
    else:
        _print(found, card)
    return 0 if found.clean else 1


def _facts(found: "Scan", path: str, card: str | None) -> dict[str, object]:
    from dataclasses import asdict

    from scoresheet.gate.leaks import leak_flag

    return {
        "target": path,
        "leak_flag": leak_flag(found),
        "findings": [asdict(finding.placed) | {"allowed": finding.allowed} for finding in found.findings],
        "unknown": [asdict(each) for each in found.unknown],
        "card": card,
        "unused_allowances": [each.match_sha256 for each in found.unused],
        "files": found.files,
        "size_bytes": found.size_bytes,
        "links": found.links,
        "rules": found.rules,
        "ruleset_sha256": found.ruleset_sha256,
    }


def _print(found: "Scan", card: str | None) -> None:
    for finding in found.findings:
        at = finding.placed
        place = f"{at.path}:{at.line}" if at.line else f"{at.path} (its name)"
        pointer = f" {at.pointer}" if at.pointer else ""
        state = "leak" if finding.allowed is None else "allowed"
        reason = f": {finding.allowed}" if finding.allowed is not None else ""
        click.echo(f"{state}: {place}{pointer} [{at.rule}] sha256 {at.match_sha256}{reason}")
    for each in found.unknown:
        click.echo(f"unknown: {each.path}: {each.reason}")
    for entry in found.unused:
        click.echo(f"warning: leak_allow {entry.match_sha256} matches nothing — {card} [leak-allow-unused]")
        click.echo("  mend: take the entry out of the card")
    if found.links:
        say(f"{counted(found.links, 'symbolic link')} not followed")
    size = f"{counted(found.files, 'file')}, {counted(found.size_bytes, 'byte')}, {counted(found.rules, 'rule')}"
    allowed = len(found.findings) - len(found.leaks)
    click.echo(f"{size}: {counted(len(found.leaks), 'leak')}, {allowed} allowed, {len(found.unknown)} unknown")
    if not found.files:
        click.echo("nothing was searched, so nothing is known")
    if found.leaks:
        click.echo("next: revoke what is real, take it out, and freeze or record again")
        click.echo("  what is harmless goes into the card: leak_allow: [{match_sha256: …, reason: …}]")
    if found.unknown:
        click.echo("next: take out what can't be searched, or put it there unpacked and unencrypted")
