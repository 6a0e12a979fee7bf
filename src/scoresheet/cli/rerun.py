"""`scoresheet rerun`: a stranger runs what a bundle holds, and gets the verdict of `replicate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scoresheet.cli import seat as seats
from scoresheet.cli.app import say

if TYPE_CHECKING:
    from scoresheet.documents.run_plan import RunPlan
    from scoresheet.pack.folder import Pack
    from scoresheet.run.admission import Admission
    from scoresheet.run.agents.agent import Agent
    from scoresheet.run.models import Models

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
@click.option("--model", multiple=True, metavar="KIND=URL", help="A model, as `run` takes it.")
@click.option("--model-key-env", multiple=True, metavar="KIND=NAME", help="Its key: a variable that no agent sees.")
@click.option(
    "--replay-model",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="RUN",
    help="Answer model calls from that run, as `run` does.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(bundle: Path, agent: str, seat: str, out: Path | None, pack: str | None, **given: Any) -> int:
    """Verify BUNDLE, run its pack again here, and say whether the first run was replicated.

    Repeats, limits and interval are the first run's, and receipts are judged as of its day, so that age alone refuses
    nothing. Nothing runs when the bundle does not hold. Exit 0: replicated. 1: it was not, or nothing could be run.

    \b
    Example: scoresheet rerun careful.bundle.tar --agent 'python3 agent.py' --seat second-host
    """
    import tempfile

    from scoresheet.cli.engine import default_out, verified
    from scoresheet.cli.replicate import show
    from scoresheet.errors import Refused, ScoresheetError
    from scoresheet.publish import audit
    from scoresheet.run import local

    with tempfile.TemporaryDirectory(prefix="scoresheet-") as scratch:
        unpacked = Path(scratch)
        seen = audit.of_bundle(bundle, unpacked, keep_agent=True)
        if not seen.ok or seen.run is None:
            raise Refused("the bundle does not hold: nothing was run", seen.findings, str(bundle))
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
        local.refuse_used(out)
        chosen = _agent(agent, first, unpacked, opened, out, given["mount"])
        issued_at = next((receipt.issued_at for receipt in (seen.run.evidence.receipts or {}).values()), None)
        _run(opened, chosen, first, out, seat, issued_at, given)
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


def _agent(text: str, first: "RunPlan", unpacked: Path, pack: "Pack", out: Path, mounts: tuple[str, ...]) -> "Agent":
    from scoresheet.errors import ScoresheetError
    from scoresheet.run.agents.spec import agent_of

    folder = Path.cwd()
    if text == BUNDLED:
        if not (unpacked / "agent").exists():
            raise ScoresheetError("the bundle holds no agent: nothing was run", "agent/", "name one: --agent SPEC")
        folder, text = unpacked / "agent", first.agent.spec
    hidden = (pack.root.absolute(), pack.root.resolve(), unpacked / "run", out.absolute(), Path("runs").absolute())
    return agent_of(text, folder, [Path(mount) for mount in mounts], hidden)


def _run(
    pack: "Pack", agent: "Agent", first: "RunPlan", out: Path, seat: str, issued_at: str | None, given: dict[str, Any]
) -> None:
    """The same run by this seat: its receipts, its baselines, its episodes, its report."""
    from scoresheet.cli.engine import perform, sandbox_of
    from scoresheet.cli.run import admitted, baselines_for, keep_report
    from scoresheet.errors import Incomplete
    from scoresheet.run import baselines as baseline_runs
    from scoresheet.run.agents.ready import refuse_unready
    from scoresheet.run.prepare import Asked, plan_of

    quiet = given["quiet"]
    admission = admitted(pack, seat, quiet, issued_at)
    asked = Asked(repeats=first.repeats, jobs=given["jobs"] or first.jobs, interval=first.interval, seat=seat)
    plan = plan_of(pack, agent.identity, asked, pack_verified=True, admission=admission)
    models, plan = _models(plan, first, admission, given)
    refuse_unready(agent.needs, models.kinds, models.controls, bool(pack.tools))
    for note in agent.notes:
        say(f"note: {note}")
    baselines = baselines_for(None, pack, out, plan, quiet)
    ended = perform(pack, agent, plan, out, sandbox_of(asked.isolation), False, "rerun", quiet, admission, models)
    if baselines is not None:
        baseline_runs.lay(baselines, out)
    if ended.status == "incomplete":
        raise Incomplete("episodes were lost to failures on our side", str(out), "run `rerun` again with another --out")
    keep_report(out)


def _models(
    plan: "RunPlan", first: "RunPlan", admission: "Admission", given: dict[str, Any]
) -> tuple["Models", "RunPlan"]:
    """The models that stand in the first run's place, and the plan that names them."""
    from scoresheet.errors import ScoresheetError
    from scoresheet.run import model_recording
    from scoresheet.run.models import Models

    replay = given["replay_model"]
    if replay is not None and (given["model"] or given["model_key_env"]):
        raise click.UsageError("--replay-model stands in the place of a model: leave --model out")
    if replay is not None:
        recorded = model_recording.Recorded.of(replay, plan.manifest_sha256)
        models = Models.replayed(recorded, admission.card_value)
        plan = plan.model_copy(update={"model_replayed": recorded.planned})
    else:
        models = Models.of(given["model"], given["model_key_env"], plan.manifest.upstreams, admission.card_value)
    missing = [kind for kind in first.model_kinds if kind not in models.kinds]
    if missing:
        models.close()
        mend = f"name one: --model {missing[0]}=URL"
        raise ScoresheetError(f"the first run's agents had a model, {missing[0]}: nothing was run", "--model", mend)
    return models, plan.model_copy(update={"model_endpoints": models.places, "model_kinds": models.kinds})
