"""`scoresheet baseline`: does the pack tell right from wrong? The null agent must score 0, the oracle agent 1."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scoresheet.cli.app import say
from scoresheet.errors import counted

if TYPE_CHECKING:
    from scoresheet.documents.baselines import Baselines
    from scoresheet.documents.run_plan import Isolation
    from scoresheet.pack.folder import Pack


@click.command()
@click.argument("pack", type=click.Path(exists=True, file_okay=False))
@click.option("--out", type=click.Path(), metavar="DIR", help="Where both runs go [runs/PACK-TIME-baselines].")
@click.option("--repeats", type=click.IntRange(1), metavar="N", help="Episodes per task [the manifest's, else 5].")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Episodes at once [the cores, at most 4].")
@click.option("--isolation", type=click.Choice(["bwrap", "none"]), default="bwrap", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print baselines.json.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(pack: str, out: str | None, as_json: bool, quiet: bool, **given: Any) -> int:
    """Run the null and the oracle agent on every task of PACK, each repeated.

    The null agent does nothing and must score 0. The oracle agent is given calls and answer and must score 1. A pack
    that fails either is defective: PACK/baselines.jsonl says so, and `scoresheet check` refuses the pack. The verdict
    is kept in DIR/baselines.json, for `scoresheet run --baselines DIR`.

    \b
    Example: scoresheet baseline billing-v3 --out runs/baselines
             scoresheet run billing-v3 --agent 'python3 agent.py' --seat laptop-a --baselines runs/baselines
    """
    from scoresheet.cli.engine import default_out, verified
    from scoresheet.run import journal

    opened = verified(pack, None, quiet)
    place = Path(out or f"{default_out(opened)}-baselines")
    found = make(opened, place, given["isolation"], given["repeats"], given["jobs"], quiet)
    if as_json:
        click.echo(json.dumps(found.model_dump(mode="json")))
    else:
        for one in (found.null, found.oracle):
            click.echo(f"{one.agent}: {one.successes} of {counted(one.episodes, 'episode')} succeeded")
        click.echo(f"manifest_sha256: {found.manifest_sha256}")
    say(f"baselines: {place / journal.BASELINES}")
    return 0 if found.sound else 1


def make(
    pack: "Pack", place: Path, isolation: "Isolation", repeats: int | None, jobs: int | None, quiet: bool
) -> "Baselines":
    """Run both agents below `place`, and keep the verdict there; tasks that fail are said. Raises `Usage`."""
    from scoresheet import atomic_file
    from scoresheet.cli.engine import perform, sandbox_of
    from scoresheet.errors import Usage
    from scoresheet.run import baselines, journal, local
    from scoresheet.run.agents.null import null
    from scoresheet.run.agents.oracle import oracle
    from scoresheet.run.prepare import Asked, plan_of

    local.refuse_used(place)
    asked = Asked(repeats=repeats, jobs=jobs, isolation=isolation, seat="baseline")
    for agent in (null(), oracle()):
        kind = agent.identity.kind
        plan = plan_of(pack, agent.identity, asked, pack_verified=True)
        perform(pack, agent, plan, place / kind, sandbox_of(isolation), False, kind, quiet)
    found = baselines.of_runs(place)
    atomic_file.replace(place / journal.BASELINES, found.text())
    for one in (found.null, found.oracle):
        for task_id in one.failing:
            say(f"error: the {one.agent} agent {baselines.WANTED[one.agent]} — {task_id} [baseline-{one.agent}]")
    try:
        baselines.keep(pack.root, found)
    except Usage as error:
        say(f"note: the verdict was not left in the pack, so check can't know it: {error}")
    return found
