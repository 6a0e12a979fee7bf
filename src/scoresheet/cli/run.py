"""`scoresheet run`: an agent on a frozen pack, isolated, scored; the report block at the end."""

import signal
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scoresheet.cli.app import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scoresheet.documents.run_plan import RunPlan
    from scoresheet.pack.folder import Pack
    from scoresheet.sandbox.spec import Sandbox


@click.command()
@click.argument("pack", type=click.Path(exists=True, file_okay=False))
@click.option("--agent", required=True, metavar="SPEC", help="A command line, or py:FILE_OR_MODULE:FUNCTION.")
@click.option("--seat", metavar="LABEL", help="Who or what runs this: without a seat nothing is run.")
@click.option("--expect", metavar="DIGEST", help="Abort before any episode when the pack has another digest.")
@click.option("--repeats", type=click.IntRange(1), metavar="N", help="Episodes per task [the manifest's, else 5].")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Episodes at once [the cores, at most 4].")
@click.option("--tasks", default="*", metavar="GLOB", help="Only tasks with such an id.")
@click.option("--out", type=click.Path(), metavar="DIR", help="The run directory [runs/PACK-TIME].")
@click.option("--mount", multiple=True, type=click.Path(), metavar="PATH", help="Show the agent this path, read-only.")
@click.option("--isolation", type=click.Choice(["bwrap", "none"]), default="bwrap", show_default=True)
@click.option("--interval", type=click.Choice(["cluster", "rows-v1"]), default="cluster", show_default=True)
@click.option("--baselines", type=click.Path(exists=True), metavar="DIR", help="What `scoresheet baseline` wrote.")
@click.option("--resume", is_flag=True, help="Continue the run in --out.")
@click.option("--draft", is_flag=True, help="A draft is what is wanted: do not say why it is one.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(pack: str, quiet: bool, draft: bool, as_json: bool, **given: Any) -> int:
    """Run an agent on every task of PACK, each repeated, and print the report block.

    \b
    Example: scoresheet run billing-v3 --agent 'python3 agent.py' --seat laptop-a
             scoresheet run billing-v3 --agent py:agent.py:solve --seat laptop-a --out runs/a --resume
    """
    from scoresheet.errors import Incomplete, ScoresheetError
    from scoresheet.run.agents.spec import agent_of
    from scoresheet.run.prepare import Asked, plan_of

    if not given["seat"]:
        raise ScoresheetError("no seat: nothing was run", mend="name who or what runs this: --seat LABEL")
    if given["resume"] and not given["out"]:
        raise click.UsageError("--resume needs the run directory: --out DIR")
    opened = verified(pack, given["expect"], quiet)
    out = Path(given["out"] or default_out(opened))
    hidden = (opened.root.absolute(), opened.root.resolve(), out.absolute(), out.resolve(), Path("runs").absolute())
    agent = agent_of(given["agent"], Path.cwd(), [Path(mount) for mount in given["mount"]], hidden)
    asked = Asked(**{name: given[name] for name in ("repeats", "jobs", "tasks", "isolation", "interval", "seat")})
    plan = plan_of(opened, agent.identity, asked, pack_verified=True)
    for note in agent.notes:
        say(f"note: {note}")
    if not draft:
        for reason in plan.draft:
            say(f"draft: {reason}")
    with baselines_for(given["baselines"], opened, out) as keep:
        ended = perform(opened, agent, plan, out, sandbox_of(asked.isolation), given["resume"], "run", quiet)
        keep()
    if ended.status == "incomplete":
        raise Incomplete(
            "episodes were lost to failures on our side", str(out), f"scoresheet run … --out {out} --resume"
        )
    show_report(out, as_json)
    say(f"run: {out}")
    return 0


def verified(path: str, expect: str | None, quiet: bool) -> "Pack":
    """The pack, every byte checked against its manifest. Raises `Refused`, `ScoresheetError`."""
    from scoresheet import digest
    from scoresheet.cli.progress import bytes_bar
    from scoresheet.errors import Refused, ScoresheetError
    from scoresheet.pack.folder import Pack

    pack = Pack.open(path)
    if expect is not None and digest.parse(expect, "--expect") != pack.manifest_sha256:
        what = f"the pack is {pack.manifest_sha256}, not {expect.removeprefix('sha256:')}: nothing was run"
        raise ScoresheetError(what, str(pack.root), "get the pack that was named, or expect the one that is here")
    with bytes_bar("verifying", quiet) as progress:
        findings = pack.verify(progress)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise Refused("the pack is not what was frozen: nothing was run", errors, str(pack.root))
    return pack


def default_out(pack: "Pack") -> Path:
    """A new folder below `runs`."""
    return Path("runs") / f"{pack.root.resolve().name}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z"


def sandbox_of(isolation: str) -> "Sandbox":
    """The backend of that name."""
    if isolation == "none":
        from scoresheet.sandbox.unisolated import UnisolatedSandbox

        return UnisolatedSandbox()
    from scoresheet.sandbox.bwrap import BwrapSandbox

    return BwrapSandbox()


def perform(
    pack: "Pack", agent: Any, plan: "RunPlan", out: Path, sandbox: "Sandbox", resume: bool, label: str, quiet: bool
) -> "RunPlan":
    """Run, with progress; SIGTERM is taken as an interrupt, and how to go on is said."""
    from scoresheet.cli.run_progress import run_progress
    from scoresheet.run import local

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with run_progress(label, quiet) as progress:
            return local.run(pack, agent, plan, out, sandbox, resume, progress)
    except KeyboardInterrupt:
        say(f"the run can be continued: the same command with --out {out} --resume")
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def baselines_for(source: str | None, pack: "Pack", out: Path) -> "Iterator[Any]":
    """A function that puts the baselines beside the run. Raises `ScoresheetError` when they are another pack's."""
    from scoresheet.documents.baselines import Baselines
    from scoresheet.errors import ScoresheetError
    from scoresheet.run import journal

    if source is None:
        yield lambda: None
        return
    path = Path(source) / journal.BASELINES if Path(source).is_dir() else Path(source)
    data = path.read_bytes()
    found = Baselines.from_bytes(data, path.name)
    if found.manifest_sha256 != pack.manifest_sha256:
        what = f"these baselines are of the pack {found.manifest_sha256}"
        raise ScoresheetError(what, str(path), f"scoresheet baseline {pack.root} --out DIR")
    yield lambda: journal.replace_file(out / journal.BASELINES, data)


def show_report(out: Path, as_json: bool) -> None:
    """The report block of a run, on stdout: a draft until it is admissible."""
    from scoresheet.publish import block, run_folder

    report = run_folder.read(out).report()
    click.echo(report.text() if as_json else block.text(report), nl=False)
