"""`scoresheet triage`: which leaf a task gets, why, and what to do now. Every decision leaves a receipt."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scoresheet.cli import seat as seats
from scoresheet.cli.app import say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scoresheet.documents.receipt import ChainedReceipt
    from scoresheet.gate.pack_triage import PackTriage

_MOST_FINDINGS = 20


@click.command()
@click.argument("target", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--bundle", type=click.Path(exists=True, file_okay=False), metavar="DIR", help="The fixtures of a task card."
)
@click.option(
    "--seat", callback=seats.label, metavar="LABEL", help="Who or what would run it; bound to score leaves only."
)
@click.option(
    "--receipts",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the receipts go [receipts.jsonl in the pack, or beside the card].",
)
@click.option("--json", "as_json", is_flag=True, help="Print the receipts as JSON lines.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(
    target: Path, bundle: str | None, seat: str | None, receipts: Path | None, as_json: bool, quiet: bool
) -> int:
    """Decide on TARGET, a task card or every task of a frozen pack: refuse, quarantine, refresh or score.

    The first rule that matches decides: no oracle, or a leak → refuse. A scope beyond the workspace → quarantine. No
    digest, or too old → refresh. Else score. Exit 0 only when every leaf is score.

    \b
    Example: scoresheet triage examples/packs/billing-v3 --seat laptop-a
             scoresheet triage task.yaml --bundle fixtures
    """
    from scoresheet.errors import Usage
    from scoresheet.gate import receipts as log

    if target.is_dir():
        if bundle is not None:
            raise Usage("a pack holds its own files", "--bundle", "leave --bundle out, or name a task card")
        found = _pack(target, seat, receipts, quiet)
        place = receipts or target / "receipts.jsonl"
    else:
        place = receipts or target.parent / "receipts.jsonl"
        found = (_card(target, bundle, seat, place, quiet),)
    head = log.append(place, lambda _: found)
    for receipt in found:
        if as_json:
            click.echo(json.dumps(receipt.model_dump(mode="json", exclude={"previous"}), ensure_ascii=False))
        else:
            click.echo(f"{receipt.leaf}: {receipt.task_id or target.name}: {receipt.reason}. {receipt.next_action}")
    say(f"receipts: {place}: {head}")
    return 0 if all(receipt.leaf == "score" for receipt in found) else 1


def _pack(target: Path, seat: str | None, receipts: Path | None, quiet: bool) -> "tuple[ChainedReceipt, ...]":
    from scoresheet.cli.progress import bytes_bar
    from scoresheet.gate import pack_triage
    from scoresheet.pack.folder import Pack
    from scoresheet.run.prepare import now

    with bytes_bar("scanning", quiet) as progress:
        triage = pack_triage.look(Pack.open(target), progress, receipts)
    say_findings(triage, str(target))
    return triage.receipts(seat, now())


def _card(target: Path, bundle: str | None, seat: str | None, place: Path, quiet: bool) -> "ChainedReceipt":
    from scoresheet.cli.progress import bytes_bar
    from scoresheet.gate import bundle_triage
    from scoresheet.run.prepare import now

    with bytes_bar("scanning", quiet) as progress:
        triage = bundle_triage.look(target, bundle, place, progress)
    if triage.scan is not None:
        _say_leaks(bundle or "", triage.scan.leaks, triage.scan.unknown)
    for note in triage.notes:
        say(f"note: {note}")
    return triage.receipt(seat, now())


def say_findings(triage: "PackTriage", root: str) -> None:
    """What was found on the way, on stderr: leaks by file, line and rule, never what leaks."""
    if triage.card is not None and triage.card.file is None:
        for finding in triage.card.findings:
            say(f"error: the protocol card can't be read: {finding.what} — {finding.where} [{finding.rule}]")
    for finding in triage.findings[:_MOST_FINDINGS]:
        say(f"error: {finding.what} — {root}/{finding.where} [{finding.rule}]")
    _say_leaks(root, triage.scan.leaks, triage.scan.unknown)
    for task_id, why in list(triage.record.barred.items())[:_MOST_FINDINGS]:
        say(f"note: {task_id}: an earlier receipt keeps these bytes from score ({why}); an edit makes a new digest")


def _say_leaks(root: str, found: "Iterable[object]", unknown: "Iterable[object]") -> None:
    from scoresheet.gate.leak_content import Unknown
    from scoresheet.gate.leaks import Finding

    lines = []
    for each in found:
        assert isinstance(each, Finding)
        placed = each.placed
        lines.append(f"leak: {placed.rule} — {root}/{placed.path}:{placed.line} [match {placed.match_sha256[:12]}]")
    for each in unknown:
        assert isinstance(each, Unknown)
        lines.append(f"not searched: {each.reason} — {root}/{each.path}")
    for line in lines[:_MOST_FINDINGS]:
        say(line)
    if len(lines) > _MOST_FINDINGS:
        say(f"and {len(lines) - _MOST_FINDINGS} more; `scoresheet scan` lists them all")
