"""`scoresheet bundle`: a run as one file that anybody can verify offline."""

from pathlib import Path

import click

from scoresheet.cli.app import say


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="The bundle [RUN.bundle.tar].")
@click.option(
    "--pack",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="PACK",
    help="Put the pack in too, when every receipt lets it travel; else only its digest goes in.",
)
@click.option(
    "--with-agent",
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Put the agent in too: a file, or a folder.",
)
@click.option("--sign", type=click.Path(exists=True, path_type=Path), metavar="KEY", help="Sign with this OpenSSH key.")
@click.option("--replace", is_flag=True, help="Overwrite FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def command(
    run: Path,
    out: Path | None,
    pack: Path | None,
    with_agent: Path | None,
    sign: Path | None,
    replace: bool,
    as_json: bool,
) -> int:
    """Put RUN into one file: rows, receipts, card, confounds, journals and evidence of every episode, the report.

    The same run gives the same bytes anywhere. A run that contradicts itself is not bundled (exit 1); a draft is, and
    says so. Last line: `<digest of bundle.json> <file>`.

    \b
    Example: scoresheet bundle runs/careful --pack billing-v3 --sign ~/.ssh/id_ed25519
    """
    import json

    from scoresheet.errors import Refused
    from scoresheet.pack.folder import Pack
    from scoresheet.publish import audit, bundle, run_folder

    out = out or run.with_name(f"{run.resolve().name}.bundle.tar")
    bundle.refuse_unwritable(out, run, replace=replace)
    opened = Pack.open(pack) if pack is not None else None
    seen = audit.of_run(run, opened, printed=False)
    if not seen.ok or seen.run is None or seen.report is None:
        raise Refused("the run is not what it says, so there is nothing to bundle", seen.findings, str(run))
    carried, why_not = bundle.carried(run, opened)
    ready = bundle.Ready(run, seen.run.plan, seen.report, run_folder.frozen_at(run), carried, with_agent)
    signer = None
    if sign is not None:
        from scoresheet.publish import signing

        signer = signing.signer(sign)
    written = bundle.write(ready, out, signer, replace=replace)
    if why_not:
        say(f"note: {why_not}")
    for reason in seen.report.reasons:
        say(f"draft: {reason}")
    if as_json:
        facts = {
            "bundle_sha256": written.sha256,
            "file": str(out),
            "file_sha256": written.file_sha256,
            "size": written.size,
            "signed": sign is not None,
            "index": written.index.model_dump(mode="json"),
        }
        click.echo(json.dumps(facts, indent=2))
    else:
        click.echo(f"files: {written.index.files}, {written.size} bytes")
        click.echo(f"pack: {written.index.pack}")
        click.echo(f"signature: {'by ' + sign.name if sign is not None else 'none'}")
        click.echo(f"{written.sha256} {out}")
    return 0
