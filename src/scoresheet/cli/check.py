"""`scoresheet check`: every finding at once."""

import json
import os
from typing import Any

import click

from scoresheet.cli.app import say


@click.command()
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(targets: tuple[str, ...], form: str, as_json: bool, quiet: bool) -> int:
    """Check packs: rules, and the manifest when they are frozen. All findings are printed; exit 1 when one is an error.

    \b
    Example: scoresheet check examples/packs/billing-v3
    """
    results = [_check(target, quiet) for target in targets]
    if as_json or form == "json":
        click.echo(json.dumps({"targets": results, "ok": all(result["ok"] for result in results)}, indent=2))
    else:
        for result in results:
            _print(result)
    return 0 if all(result["ok"] for result in results) else 1


def _check(target: str, quiet: bool) -> dict[str, Any]:
    from scoresheet.errors import Usage

    if not os.path.isdir(target):
        mend = "give the folder of a pack; cards are checked by a later version"
        raise Usage("only packs can be checked so far: this file was not judged", target, mend)
    from scoresheet.cli.progress import bytes_bar
    from scoresheet.pack import checker

    with bytes_bar("checking", quiet) as progress:
        checked = checker.check(target, progress)
    findings = [
        {"rule": f.rule, "severity": f.severity, "where": f.where, "what": f.what, "mend": f.mend}
        for f in checked.findings
    ]
    return {
        "target": target,
        "ok": checked.ok,
        "files": checked.files,
        "tasks": checked.tasks,
        "manifest_sha256": checked.manifest_sha256,
        "findings": findings,
    }


def _print(result: dict[str, Any]) -> None:
    for finding in result["findings"]:
        place = os.path.join(result["target"], finding["where"])
        click.echo(f"{finding['severity']}: {finding['what']} — {place} [{finding['rule']}]")
        if finding["mend"]:
            click.echo(f"  mend: {finding['mend']}")
    if result["manifest_sha256"] is None:
        say(f"{result['target']}: not frozen yet, so only its rules were checked; scoresheet freeze pins it")
    click.echo(f"{result['files']} files, {result['tasks']} tasks checked: {'ok' if result['ok'] else 'refused'}")
