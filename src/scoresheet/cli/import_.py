"""`scoresheet import`: recordings that people already have become a task of a pack."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scoresheet.cli.app import say
from scoresheet.errors import Usage

if TYPE_CHECKING:
    from scoresheet.errors import Finding
    from scoresheet.record.importing import Import

_SHOWN = 10


@click.command("import")
@click.argument("format_name", metavar="FORMAT")
@click.argument("files", nargs=-1, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--out", "pack", required=True, metavar="PACK", type=click.Path(path_type=Path), help="The pack.")
@click.option("--task", required=True, help="Id of the task.")
@click.option("--prompt", default="", help="What the agent is asked; some formats say it themselves.")
@click.option("--expected", metavar="JSON", help="The right answer: a JSON object.")
@click.option("--upstream", "upstreams", multiple=True, metavar="NAME=HOST", help="Take only this host, by this name.")
@click.option("--compare", multiple=True, metavar="FILE", type=click.Path(path_type=Path), help="A repeat of the work.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Let a member not count: /json/nonce, /query/t.")
@click.option("--not-secret", multiple=True, metavar="NAME", help="A member of this name is no credential.")
@click.option("--states", is_flag=True, help="Say which answers changed with what was written before.")
@click.option("--replace", is_flag=True, help="Import a task anew.")
@click.option("--strict", is_flag=True, help="Import nothing when an entry can't be.")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def command(
    format_name: str,
    files: tuple[Path, ...],
    pack: Path,
    task: str,
    prompt: str,
    expected: str | None,
    upstreams: tuple[str, ...],
    compare: tuple[Path, ...],
    ignore: tuple[str, ...],
    not_secret: tuple[str, ...],
    states: bool,
    replace: bool,
    strict: bool,
    as_json: bool,
) -> int:
    """Import recordings that you already have: FILEs of FORMAT become one task of PACK.

    \b
    FORMAT is one of
      har        HAR 1.2, of browsers, proxies and Polly.JS
      vcr        VCR.py cassettes, YAML and JSON (pytest-recording)
      mcp        logs of MCP's JSON-RPC messages
      openai     tool calls of OpenAI transcripts, JSON or JSON lines
      atif       tool calls of ATIF trajectories
      mitmproxy  flow files of mitmproxy
      wiremock   WireMock mappings that name one request, and their __files
      openapi    examples in OpenAPI 3 descriptions
      betamax    Betamax and Ruby VCR cassettes
      hoverfly   Hoverfly simulations of exact requests
      nock       nock's recordings of Node programs, as JSON
      postman    responses saved in Postman collections

    Every entry is imported, or is named with the reason why not; what changed on the way is counted. Credentials are
    never written. --compare names a second recording of the same work: what differs is suggested as --ignore.

    \b
    Example: scoresheet import har session.har --out packs/shop --task refund-17 \\
               --prompt 'May order 17 be refunded?' --expected '{"refundable": true}' \\
               --upstream SHOP=shop.example.com
             scoresheet import vcr tests/cassettes --out packs/shop --task smoke --prompt 'Is the shop open?'
    """
    from scoresheet.record.importers.formats import FORMATS
    from scoresheet.record.importers.hosts import Host
    from scoresheet.record.importing import Settings, bring_in, sources
    from scoresheet.record.plan import expected_of

    kind = FORMATS.get(format_name)
    if kind is None:
        raise Usage(f"{format_name!r} is no format that can be imported", "FORMAT", f"known are {', '.join(FORMATS)}")
    if not files:
        raise Usage("no file to import", "FILE", "name the recordings")
    answer = {} if expected is None else expected_of(expected, "--expected")
    hosts = tuple(map(Host.parse, upstreams))
    settings = Settings(pack, task, prompt, answer, hosts, ignore, not_secret, replace, strict, states)
    imported = bring_in(kind, sources(kind, files), settings, sources(kind, compare))
    if as_json:
        click.echo(json.dumps(imported.as_json(), indent=2, ensure_ascii=False))
    else:
        click.echo(_line(imported))
    _tell(imported)
    say(f"next: scoresheet freeze {pack}")
    return 0


def _line(imported: "Import") -> str:
    total = imported.calls + len(imported.left_out)
    return (
        f"{imported.task_id}: {imported.calls} call{'s' * (imported.calls != 1)} of {total}; "
        f"tools: {', '.join(imported.tools) or 'none'}"
    )


def _tell(imported: "Import") -> None:
    """What a person must know beside the line."""
    for name, host in imported.upstreams.items():
        say(f"  upstream {name}: {host}")
    for scenario, names in imported.scenarios.items():
        say(f"  states of {scenario}: {', '.join(names)}")
    _tell_left_out(imported.left_out)
    for what, count in imported.changed:
        say(f"  changed in {count}: {what}")
    for replacement in imported.redactions[:_SHOWN]:
        say(f"  redacted: {replacement}")
    if len(imported.redactions) > _SHOWN:
        say(f"  redacted: {len(imported.redactions) - _SHOWN} more (--json names all)")
    if imported.ignored:
        say(f"  ignored in matching from now on: {', '.join(imported.ignored)}")
    for warning in imported.warnings[:_SHOWN]:
        say(f"  warning: {warning.what} — {warning.where} [{warning.rule}]")
        if warning.mend:
            say(f"    mend: {warning.mend}")
    if len(imported.warnings) > _SHOWN:
        say(f"  warning: {len(imported.warnings) - _SHOWN} more (--json names all)")
    for suggestion in imported.suggestions:
        say(f"  volatile, perhaps: {suggestion}; to let it not count: --replace --ignore '{suggestion.rule}'")
    if imported.dropped_headers:
        say("request headers left out: " + ", ".join(f"{name} ({count})" for name, count in imported.dropped_headers))


def _tell_left_out(findings: "tuple[Finding, ...]") -> None:
    """Every reason, with the first places of each."""
    counts = Counter(finding.rule for finding in findings)
    shown: Counter[str] = Counter()
    for finding in findings:
        shown[finding.rule] += 1
        if shown[finding.rule] <= _SHOWN:
            say(f"  left out: {finding.what} — {finding.where} [{finding.rule}]")
            if finding.mend and shown[finding.rule] == 1:
                say(f"    mend: {finding.mend}")
    for rule, count in counts.items():
        if count > _SHOWN:
            say(f"  left out: {count - _SHOWN} more by {rule} (--json names all)")
