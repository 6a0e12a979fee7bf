"""`scoresheet run`: an agent on a frozen pack, isolated, scored; the report block at the end."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scoresheet.cli import model_options
from scoresheet.cli import seat as seats
from scoresheet.cli.app import say
from scoresheet.errors import counted

if TYPE_CHECKING:
    from scoresheet.documents.baselines import Baselines
    from scoresheet.documents.report import Report
    from scoresheet.documents.run_plan import RunPlan
    from scoresheet.gate.pack_triage import PackTriage
    from scoresheet.pack.folder import Pack
    from scoresheet.run.admission import Admission

_MOST_TOLD = 20
"""Tasks that are told one by one."""


@click.command()
@click.argument("pack", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--agent",
    required=True,
    metavar="SPEC",
    help="A command line, py:FILE_OR_MODULE:FUNCTION, or a ready-made agent's name.",
)
@click.option(
    "--seat", callback=seats.label, metavar="LABEL", help="Who or what runs this: without a seat nothing is run."
)
@click.option("--expect", metavar="DIGEST", help="Abort before any episode when the pack has another digest.")
@click.option("--repeats", type=click.IntRange(1), metavar="N", help="Episodes per task [the manifest's, else 5].")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Episodes at once [the cores, at most 4].")
@click.option("--tasks", default="*", metavar="GLOB", help="Only tasks with such an id.")
@click.option("--out", type=click.Path(), metavar="DIR", help="The run directory [runs/PACK-TIME].")
@click.option("--mount", multiple=True, type=click.Path(), metavar="PATH", help="Show the agent this path, read-only.")
@model_options.options(
    prices="What a million tokens cost, model by model (YAML or JSON, docs/model): costs are reported."
)
@click.option("--isolation", type=click.Choice(["bwrap", "none"]), default="bwrap", show_default=True)
@click.option("--interval", type=click.Choice(["cluster", "rows-v1"]), default="cluster", show_default=True)
@click.option(
    "--baselines",
    type=click.Path(exists=True),
    metavar="DIR",
    help="What `scoresheet baseline` wrote [found beside --out, else run first, one episode a task].",
)
@click.option("--resume", is_flag=True, help="Continue the run in --out.")
@click.option("--draft", is_flag=True, help="A draft is wanted: no baselines, and no word on why it is one.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(pack: str, quiet: bool, draft: bool, as_json: bool, **given: Any) -> int:
    """Run an agent on every task of PACK, each repeated, and print the report.

    First every task is triaged, and gets a receipt; only those with leaf score are started, and only with a seat. The
    report is admissible when the protocol card (PACK/card.yaml) is complete and nothing else is amiss; what is known
    to make it a draft is said before the first episode. Exit 1: nothing could be started.

    Ready-made agents: openai-tools, codex, claude-code, mini-swe-agent. They need --model, and what they do of
    their own is in docs/ready-made.md.

    \b
    Example: scoresheet run billing-v3 --agent 'python3 agent.py' --seat laptop-a
             scoresheet run billing-v3 --agent py:agent.py:solve --seat laptop-a --out runs/a --resume
             scoresheet run billing-v3 --agent 'python3 agent.py' --seat laptop-a --replay-model runs/a
    """
    from scoresheet.cli.engine import default_out, perform, sandbox_of, verified
    from scoresheet.cli.failures import say_failures
    from scoresheet.errors import Incomplete, Usage
    from scoresheet.run import baselines as baseline_runs
    from scoresheet.run import local
    from scoresheet.run.agents.ready import refuse_unready
    from scoresheet.run.agents.spec import agent_of
    from scoresheet.run.prepare import Asked, plan_of

    if given["resume"] and not given["out"]:
        raise Usage("no run directory is named to go on with", "--resume", "give --out DIR, the folder of that run")
    model_options.refuse_contrary(given)
    opened = verified(pack, given["expect"], quiet)
    out = Path(given["out"] or default_out(opened))
    if not given["resume"]:
        local.refuse_used(out)
    admission = admitted(opened, given["seat"], quiet)
    hidden = (opened.root.absolute(), opened.root.resolve(), out.absolute(), out.resolve(), Path("runs").absolute())
    replay = given["replay_model"]
    hidden += (replay.absolute(), replay.resolve()) if replay else ()
    agent = agent_of(given["agent"], Path.cwd(), [Path(mount) for mount in given["mount"]], hidden)
    asked = Asked(**{name: given[name] for name in ("repeats", "jobs", "tasks", "isolation", "interval", "seat")})
    plan = plan_of(opened, agent.identity, asked, pack_verified=True, admission=admission)
    models, plan = model_options.models_of(plan, admission, given)
    refuse_unready(agent.needs, models.kinds, models.controls, bool(opened.tools))
    for note in agent.notes:
        say(f"note: {note}")
    baselines = (
        None if draft and not given["baselines"] else baselines_for(given["baselines"], opened, out, plan, quiet)
    )
    if baselines is not None and not baselines.sound:
        defect = "the pack is defective: a baseline does not score what it must"
        plan = plan.model_copy(update={"draft": (*plan.draft, defect)})
    if not draft:
        for reason in plan.draft:
            say(f"draft: {reason}")
    sandbox = sandbox_of(asked.isolation)
    ended = perform(opened, agent, plan, out, sandbox, given["resume"], "run", quiet, admission, models)
    if baselines is not None:
        baseline_runs.lay(baselines, out, given["baselines"])
    refuse_incomplete(ended, out, f"scoresheet run … --out {out} --resume")
    if given["record_model"]:
        seal(ended, out)
    report = show_report(out, as_json)
    say_failures(out)
    say(f"run: {out}")
    if report.pending:
        what = f"{counted(report.pending, 'episode')} {'waits' if report.pending == 1 else 'wait'} for a human"
        raise Incomplete(what, str(out), f"scoresheet judge {out}")
    return 0


def refuse_incomplete(ended: "RunPlan", out: Path, mend: str) -> None:
    """Raise `Incomplete` for a run that has not all its rows; why a budget stopped it is told, and how to go on."""
    from scoresheet.errors import Incomplete

    if ended.status != "incomplete":
        return
    if ended.budget is None or ended.budget.stopped is None:
        raise Incomplete("episodes were lost to failures on our side", str(out), mend)
    report = keep_report(out)
    left = [f"{task.task_id} ({task.episodes})" for task in report.negative_results.not_run if task.episodes]
    count = sum(task.episodes for task in report.negative_results.not_run)
    shown = ", ".join(left[:_MOST_TOLD]) + (" and more" if len(left) > _MOST_TOLD else "")
    say(f"not run: {counted(count, 'episode')}: {shown}")
    what = f"{ended.budget.stopped}; {count} of {report.planned} episodes were not run"
    raise Incomplete(what, str(out), f"the same command with a higher budget and --out {out} --resume")


def seal(ended: "RunPlan", out: Path) -> None:
    """Seal what the model answered in a run that is over, and say its digest."""
    from scoresheet.run import journal, model_recording

    sealed = model_recording.seal(out, ended)
    journal.write_plan(out, ended.model_copy(update={"model_recording_sha256": sealed}))
    say(f"the model's answers are recorded: {sealed}")


def admitted(pack: "Pack", seat: str | None, quiet: bool, issued_at: str | None = None) -> "Admission":
    """The pack triaged, and what was found said; the pack's receipts file holds what is new.

    A replication is judged as of the day of the first run: `issued_at`.

    Raises `ScoresheetError` when nothing can be started: then every receipt is in the pack's receipts file.
    """
    from scoresheet import digest
    from scoresheet.cli.progress import bytes_bar
    from scoresheet.cli.triage import say_findings
    from scoresheet.errors import ScoresheetError
    from scoresheet.gate import pack_triage, repository
    from scoresheet.pack.freeze import CARD, MANIFEST, RECEIPTS
    from scoresheet.run import admission
    from scoresheet.run.prepare import now

    with bytes_bar("scanning", quiet) as progress:
        triage = pack_triage.look(pack, progress, verified=True)
    say_findings(triage, str(pack.root))
    issued_at = issued_at or now()
    found = triage.receipts(seat, issued_at)
    score = sum(receipt.leaf == "score" for receipt in found)
    if not score or not seat:
        admission.keep_all(pack.root, found)
        held = [receipt for receipt in found if receipt.leaf != "score"]
        for receipt in held[:_MOST_TOLD]:
            say(f"{receipt.leaf}: {receipt.task_id}: {receipt.reason}. {receipt.next_action}")
        if len(held) > _MOST_TOLD:
            say(f"and {counted(len(held) - _MOST_TOLD, 'more task')}; scoresheet triage {pack.root} tells them all")
        what = "no seat" if score else "no task has leaf score"
        mend = "name who or what runs this: --seat LABEL" if score else _mend(found[0].reason, triage, pack.root)
        place = f"{counted(len(found), 'receipt')} in {pack.root / RECEIPTS}"
        raise ScoresheetError(f"{what}: nothing was run", place, mend)
    if not quiet:
        say(f"triage: {score} of {counted(len(found), 'task')} may be started")
    unwritten = admission.keep_news(pack.root, found)
    if unwritten:
        say(f"note: the pack's own receipts were left as they are: {unwritten} — {pack.root / RECEIPTS}")
    card = (pack.root / CARD).read_bytes() if triage.card is not None else None
    if card is not None and triage.card is not None and digest.of(card) != (triage.card.sha256 or digest.of(card)):
        raise ScoresheetError("the card changed while it was read", str(pack.root / CARD), "run again")
    return admission.Admission(
        triage,
        found,
        issued_at,
        card,
        repository.uncommitted(pack.root, (MANIFEST, CARD) if triage.card is not None else (MANIFEST,)),
    )


def _mend(reason: str, triage: "PackTriage", root: Path) -> str:
    if triage.findings:  # a pack that its files contradict has no digest that could be scored
        return f"correct what is named above, then scoresheet freeze {root}"
    if reason == "no stale window":
        return f"say in {root / 'card.yaml'} how long recordings may be trusted: controls: {{stale_after_hours: 720}}"
    return f"scoresheet triage {root} says why, task by task"


def baselines_for(source: str | None, pack: "Pack", out: Path, plan: "RunPlan", quiet: bool) -> "Baselines | None":
    """The baselines of the pack: given, else found beside the run, else run now; `None` for a partial run.

    Raises `ScoresheetError` when those given are another pack's.
    """
    from scoresheet import bounded_file
    from scoresheet.cli.baseline import make
    from scoresheet.documents.baselines import Baselines
    from scoresheet.errors import ScoresheetError, Usage
    from scoresheet.run import baselines, journal

    if source is not None:
        path = Path(source) / journal.BASELINES if Path(source).is_dir() else Path(source)
        try:
            found = Baselines.from_bytes(bounded_file.read(path), path.name)
        except OSError as error:
            mend = f"scoresheet baseline {pack.root} --out DIR writes it: --baselines DIR"
            raise Usage(f"the baselines can't be read: {error.strerror}", str(path), mend) from error
        if found.manifest_sha256 != pack.manifest_sha256:
            what = f"these baselines are of the pack {found.manifest_sha256}"
            raise ScoresheetError(what, str(path), f"scoresheet baseline {pack.root} --out DIR")
        return found
    if (out / journal.BASELINES).exists():  # the run goes on
        return Baselines.from_bytes(bounded_file.read(out / journal.BASELINES), journal.BASELINES)
    if plan.isolation == "none" or len(plan.tasks) < (plan.pack_tasks or 0) or plan.not_started:
        return None
    known = baselines.beside(out, pack.manifest_sha256)
    if known is not None:
        return known
    places = (out.with_name(f"{out.name}-baselines{number or ''}") for number in range(1000))
    place = next(place for place in places if not place.exists())  # one that was interrupted is left as it is
    return make(pack, place, plan.isolation, 1, plan.jobs, quiet)


def show_report(out: Path, as_json: bool) -> "Report":
    """The report of a run, on stdout and in the run directory: a draft until admissible."""
    from scoresheet.publish import block

    report = keep_report(out)
    click.echo(report.text() if as_json else block.text(report), nl=False)
    return report


def keep_report(out: Path) -> "Report":
    """The report of a run, written into the run directory as text, JSON and Markdown."""
    from scoresheet import atomic_file
    from scoresheet.publish import block, run_folder

    report = run_folder.read(out).report()
    for name, content in (("txt", block.text(report)), ("json", report.text()), ("md", block.markdown(report))):
        atomic_file.replace(out / f"report.{name}", content.encode())
    return report
