"""The verdict of the baselines, made again from their rows where these lie beside it."""

from collections.abc import Iterator
from pathlib import Path

from scoresheet import bounded_file
from scoresheet.documents.baselines import Baselines
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Finding, Refused, ScoresheetError
from scoresheet.publish.outcomes import Ledger
from scoresheet.publish.run_folder import BASELINES, ROWS, RUN
from scoresheet.run import baselines
from scoresheet.run.baselines import FOLDER

_MEMBERS = ("isolation", "null", "oracle")


def findings(run: Path, plan: RunPlan) -> tuple[Finding, ...] | None:
    """Everything in which `run`/baselines.json does not follow from its rows; `None` where they are not there."""
    folder = run / FOLDER
    if not folder.is_dir() or not (run / BASELINES).exists():
        return None
    try:
        told = Baselines.from_bytes(bounded_file.read(run / BASELINES), BASELINES)
    except Refused:
        return ()  # told by the report
    found: list[Finding] = []
    try:
        for kind in ("null", "oracle"):
            found += _of_run(folder, kind, plan)
        made = baselines.of_runs(folder)
    except Refused as error:
        return (*found, *error.findings)
    except (ScoresheetError, OSError) as error:
        why = error.what if isinstance(error, ScoresheetError) else error.strerror
        return (*found, Finding("audit-baselines", FOLDER, f"the verdict can't be made again: {why}"))
    for name in _MEMBERS:
        said, gives = getattr(told, name), getattr(made, name)
        if said != gives:
            if name != "isolation":
                said, gives = f"{said.successes} of {said.episodes}", f"{gives.successes} of {gives.episodes}"
            found.append(Finding("audit-baselines", BASELINES, f"{name} says {said}, its rows give {gives}"))
    return tuple(found)


def _of_run(folder: Path, kind: str, plan: RunPlan) -> Iterator[Finding]:
    """What is wrong with one of the two runs in itself."""
    place = f"{FOLDER}/{kind}"
    known = RunPlan.from_bytes(bounded_file.read(folder / kind / RUN), f"{place}/{RUN}")
    if known.manifest_sha256 != plan.manifest_sha256 or known.agent.kind != kind:
        what = f"a run of {known.agent.kind} on {known.manifest_sha256[:12]}…, not of {kind} on this pack"
        yield Finding("audit-baselines", f"{place}/{RUN}", what)
    ledger = Ledger(known, name=f"{place}/{ROWS}")
    with (folder / kind / ROWS).open("rb") as file:
        for number, line in enumerate(file, 1):
            ledger.add(Row.from_bytes(line, f"{place}/{ROWS}:{number}"), number)
    outcomes = ledger.close()
    yield from outcomes.findings
    missing = outcomes.count("missing")
    if missing:
        yield Finding("audit-baselines", f"{place}/{ROWS}", f"{missing} of {known.planned} episodes have no row")
