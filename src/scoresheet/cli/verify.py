"""`scoresheet verify`: recompute a bundle or a run, offline, and say what can't be known."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from scoresheet.publish.audit import Audit
    from scoresheet.publish.signature import Signature


@click.command()
@click.argument("target", metavar="BUNDLE|RUN", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--allowed-signers",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Who may sign, in the form of ssh-keygen; without a good signature by one of them the answer is no.",
)
@click.option("--tag", metavar="REF", help="A signed git tag of the repository here, which must name this bundle.")
@click.option("--pack", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="PACK",
              help="The pack, when it is not in the bundle.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def command(target: Path, allowed_signers: Path | None, tag: str | None, pack: Path | None, as_json: bool) -> int:
    """Recompute every figure, chain and digest of BUNDLE or RUN; nothing is asked of the network.

    Three lists: what was checked, what could not be, what rests on the submitter's word. Exit 1: something does not
    hold, or a signer was asked for and none signed.

    \b
    Example: scoresheet verify careful.bundle.tar --allowed-signers signers
    """
    import tempfile

    from scoresheet.pack.folder import Pack
    from scoresheet.publish import audit, signature

    opened = Pack.open(pack) if pack is not None else None
    with tempfile.TemporaryDirectory(prefix="scoresheet-") as scratch:
        seen = audit.read(target, Path(scratch), opened)
        signed = signature.verify(seen, allowed_signers, tag)
    ok = seen.ok and not signed.findings
    if as_json:
        _print_json(seen, signed, ok)
    else:
        _print_text(seen, signed, ok)
    return 0 if ok else 1


def _print_text(seen: "Audit", signed: "Signature", ok: bool) -> None:
    from scoresheet.publish.block import one_line

    if seen.sha256 is not None:
        click.echo(f"bundle: {seen.sha256}")
    click.echo(f"signature: {one_line(signed.told)}")
    if seen.report is not None:
        click.echo(f"report: {'DRAFT, not admissible' if seen.report.draft else 'admissible'}")
    for title, lines in (
        ("checked", (*seen.checked, *signed.checked)),
        ("not checked", (*seen.unchecked, *signed.unchecked)),
        ("on the submitter's word", seen.word),
    ):
        click.echo(f"{title}:" if lines else f"{title}: nothing")
        for line in lines:
            click.echo(f"  - {one_line(line)}")
    findings = (*seen.findings, *signed.findings)
    if findings:
        click.echo("does not hold:")
        for finding in findings:
            click.echo(f"  - {one_line(str(finding))}")
    click.echo("verified" if ok else "not verified")


def _print_json(seen: "Audit", signed: "Signature", ok: bool) -> None:
    import json
    from dataclasses import asdict

    facts = {
        "verified": ok,
        "kind": seen.kind,
        "bundle_sha256": seen.sha256,
        "signature": {"state": signed.state, "principals": list(signed.principals), "told": signed.told},
        "draft": seen.report.draft if seen.report is not None else None,
        "manifest_sha256": seen.report.manifest_sha256 if seen.report is not None else None,
        "rows_sha256": seen.report.rows_sha256 if seen.report is not None else None,
        "figures_sha256": seen.report.figures_sha256 if seen.report is not None else None,
        "checked": [*seen.checked, *signed.checked],
        "not_checked": [*seen.unchecked, *signed.unchecked],
        "submitters_word": list(seen.word),
        "findings": [asdict(finding) for finding in (*seen.findings, *signed.findings)],
    }
    click.echo(json.dumps(facts, indent=2))
