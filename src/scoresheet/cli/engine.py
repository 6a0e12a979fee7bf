"""What `run` and `baseline` have in common: the verified pack, the sandbox, a run with its progress."""

import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoresheet.cli.app import say

if TYPE_CHECKING:
    from scoresheet.documents.run_plan import RunPlan
    from scoresheet.pack.folder import Pack
    from scoresheet.run.admission import Admission
    from scoresheet.run.models import Models
    from scoresheet.sandbox.spec import Sandbox


def verified(path: str, expect: str | None, quiet: bool) -> "Pack":
    """The pack, every byte checked against its manifest.

    Raises `Usage` for an `expect` that is no digest, `Refused` and `ScoresheetError` for a pack that is not the one.
    """
    from scoresheet import digest
    from scoresheet.cli.progress import bytes_bar
    from scoresheet.errors import Malformed, Refused, ScoresheetError, Usage
    from scoresheet.pack.folder import Pack

    pack = Pack.open(path)
    try:
        expected = None if expect is None else digest.parse(expect)
    except Malformed as error:
        mend = "give the 64 hex digits that `scoresheet freeze` printed: --expect DIGEST"
        raise Usage(error.what, "--expect", mend) from error
    if expect is not None and expected != pack.manifest_sha256:
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
    pack: "Pack",
    agent: Any,
    plan: "RunPlan",
    out: Path,
    sandbox: "Sandbox",
    resume: bool,
    label: str,
    quiet: bool,
    admission: "Admission | None" = None,
    models: "Models | None" = None,
) -> "RunPlan":
    """Run, with progress; SIGTERM is taken as an interrupt, and how to go on is said."""
    from scoresheet.cli.run_progress import run_progress
    from scoresheet.run import local
    from scoresheet.run.models import NO_MODELS

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with run_progress(label, quiet) as progress:
            return local.run(pack, agent, plan, out, sandbox, resume, progress, admission, models or NO_MODELS)
    except KeyboardInterrupt:
        say(f"the run can be continued: the same command with --out {out} --resume")
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
