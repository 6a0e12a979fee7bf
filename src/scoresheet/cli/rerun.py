"""`scoresheet rerun`: a stranger runs what a bundle holds, and gets the verdict of `replicate`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scoresheet.cli import model_options
from scoresheet.cli import seat as seats
from scoresheet.cli.app import say

if TYPE_CHECKING:
    from scoresheet.documents.run_plan import RunPlan
    from scoresheet.pack.folder import Pack
    from scoresheet.run.agents.agent import Agent
    from scoresheet.run.models import Models
    from scoresheet.run.prices import Prices

BUNDLED = "bundled"


@click.command()
@click.argument("bundle", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--agent", required=True, metavar="SPEC", help=f"As `run` takes it, or `{BUNDLED}`: the one in the bundle."
)
@click.option(
    "--seat",
    callback=seats.label,
    required=True,
    metavar="LABEL",
    help="Who or what runs this: another than the first run's.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="The new run directory [runs/PACK-TIME].")
@click.option("--pack", type=click.Path(exists=True, file_okay=False), metavar="PACK",
              help="The pack, when it is not in the bundle.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Episodes at once [as the first run].")
@click.option("--mount", multiple=True, type=click.Path(), metavar="PATH", help="Show the agent this path, read-only.")
@model_options.options(prices="What a million tokens cost [the bundle's own table, where it holds one].")
@click.option("--resume", is_flag=True, help="Continue the run in --out.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(bundle: Path, agent: str, seat: str, out: Path | None, pack: str | None, **given: Any) -> int:
    """Verify BUNDLE, run its pack again here, and say whether the first run was replicated.

    Repeats, limits and interval are the first run's, and receipts are judged as of its day, so that age alone refuses
    nothing. Where the first run's tokens were priced, so are these, by the same table unless --prices names another.
    Nothing runs when the bundle does not hold. Exit 0: replicated. 1: it was not, or nothing could be run. 4: the run
    is incomplete, and goes on with --resume.

    \b
    Example: scoresheet rerun careful.bundle.tar --agent 'python3 agent.py' --seat second-host
             scoresheet rerun careful.bundle.tar --agent bundled --seat second-host --model openai=https://…
    """
    import tempfile

    from scoresheet.cli.engine import default_out, verified
    from scoresheet.cli.replicate import show
    from scoresheet.errors import Refused, ScoresheetError, Usage
    from scoresheet.publish import audit
    from scoresheet.run import local, prices

    if given["resume"] and out is None:
        raise Usage("no run directory is named to go on with", "--resume", "give --out DIR, the folder of that run")
    model_options.refuse_contrary(given, priced=True)
    with tempfile.TemporaryDirectory(prefix="scoresheet-") as scratch:
        unpacked = Path(scratch)
        seen = audit.of_bundle(bundle, unpacked, keep_agent=True)
        seen.refuse_no_bundle(bundle)
        if not seen.ok or seen.run is None:
            mend = f"get the bundle again; scoresheet verify {bundle} says all that does not hold"
            raise Refused("the bundle does not hold: nothing was run", seen.findings, str(bundle), mend)
        first = seen.run.plan
        if seat == first.seat:
            mend = "say who or what you are: --seat LABEL"
            raise ScoresheetError(f"the first run has the seat {seat!r}: nothing was run", str(bundle), mend)
        if not (unpacked / "pack").exists() and pack is None:
            mend = f"get the pack {first.manifest_sha256} and name it: --pack PACK"
            raise ScoresheetError("the bundle holds only the digest of its pack: nothing was run", str(bundle), mend)
        place = _pack(unpacked, pack)
        opened = verified(str(place), first.manifest_sha256, given["quiet"])
        out = out or default_out(opened)
        if not given["resume"]:
            local.refuse_used(out)
        recorded = () if given["replay_model"] is None else (given["replay_model"].absolute(),)
        hidden = (opened.root.absolute(), opened.root.resolve(), unpacked / "run", out.absolute(), *recorded)
        chosen = _agent(agent, first, unpacked, hidden, given["mount"])
        issued_at = next((receipt.issued_at for receipt in (seen.run.evidence.receipts or {}).values()), None)
        table = prices.kept(unpacked / "run") if first.prices_sha256 is not None else None
        model_options.refuse_contrary(given, priced=table is not None)
        _run(opened, chosen, first, out, seat, issued_at, given, table)
    say(f"run: {out}")
    return show(bundle, out, given["as_json"])


def _pack(unpacked: Path, pack: str | None) -> Path:
    """Where the pack lies, with the card of the first run beside it."""
    import shutil

    place = unpacked / "pack"
    if not place.exists():
        assert pack is not None
        shutil.copytree(pack, place, symlinks=True)
    if (unpacked / "run" / "card.yaml").exists():
        shutil.copyfile(unpacked / "run" / "card.yaml", place / "card.yaml")
    return place


def _agent(text: str, first: "RunPlan", unpacked: Path, hidden: tuple[Path, ...], mounts: tuple[str, ...]) -> "Agent":
    from scoresheet.errors import ScoresheetError
    from scoresheet.run.agents.spec import agent_of

    folder = Path.cwd()
    if text == BUNDLED:
        if not (unpacked / "agent").exists():
            raise ScoresheetError("the bundle holds no agent: nothing was run", "agent/", "name one: --agent SPEC")
        folder, text = unpacked / "agent", first.agent.spec
    return agent_of(text, folder, [Path(mount) for mount in mounts], (*hidden, Path("runs").absolute()))


def _run(
    pack: "Pack",
    agent: "Agent",
    first: "RunPlan",
    out: Path,
    seat: str,
    issued_at: str | None,
    given: dict[str, Any],
    table: "Prices | None",
) -> None:
    """The same run by this seat: its receipts, its baselines, its episodes, its report."""
    from scoresheet.cli.engine import perform, sandbox_of
    from scoresheet.cli.run import admitted, baselines_for, keep_report, refuse_incomplete, seal
    from scoresheet.run import baselines as baseline_runs
    from scoresheet.run.agents.ready import refuse_unready
    from scoresheet.run.prepare import Asked, plan_of

    quiet = given["quiet"]
    admission = admitted(pack, seat, quiet, issued_at)
    asked = Asked(repeats=first.repeats, jobs=given["jobs"] or first.jobs, interval=first.interval, seat=seat)
    plan = plan_of(pack, agent.identity, asked, pack_verified=True, admission=admission)
    models, plan = model_options.models_of(plan, admission, given, table)
    _refuse_missing(models, first)
    refuse_unready(agent.needs, models.kinds, models.controls, bool(pack.tools))
    for note in (*agent.notes, *_priced(models, table), *_unlike(plan, first)):
        say(f"note: {note}")
    baselines = baselines_for(None, pack, out, plan, quiet)
    ended = perform(
        pack, agent, plan, out, sandbox_of(asked.isolation), given["resume"], "rerun", quiet, admission, models
    )
    if baselines is not None:
        baseline_runs.lay(baselines, out)
    refuse_incomplete(ended, out, f"the same command with --out {out} --resume")
    if given["record_model"]:
        seal(ended, out)
    keep_report(out)


def _refuse_missing(models: "Models", first: "RunPlan") -> None:
    from scoresheet.errors import ScoresheetError

    missing = [kind for kind in first.model_kinds if kind not in models.kinds]
    if missing:
        models.close()
        mend = f"name one: --model {missing[0]}=URL"
        raise ScoresheetError(f"the first run's agents had a model, {missing[0]}: nothing was run", "--model", mend)


def _priced(models: "Models", table: "Prices | None") -> Iterator[str]:
    """By which table the tokens are priced, where the first run's were."""
    if models.prices is None or table is None:
        return
    same = models.prices.sha256 == table.sha256
    what = "by the bundle's own table" if same else "not by the bundle's table"
    priced = models.prices.table
    yield f"tokens are priced {what}: {priced.currency}, prices of {priced.date} (sha256:{models.prices.sha256})"


def _unlike(plan: "RunPlan", first: "RunPlan") -> Iterator[str]:
    """That a model's answers are replayed in one of the two runs alone: known before anything is paid."""
    if first.model_kinds and (first.model_replayed is None) != (plan.model_replayed is None):
        asked, replayed = ("this run", "the first") if first.model_replayed else ("the first run", "this one")
        yield f"the model is asked in {asked} and replayed in {replayed}: figures to look at, but no replication"
