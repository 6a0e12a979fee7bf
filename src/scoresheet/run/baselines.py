"""What the null and the oracle run of a pack amount to."""

import os
import stat
from pathlib import Path
from typing import Literal

from scoresheet import atomic_file, bounded_file, canonical, digest
from scoresheet.documents.baselines import Baseline, Baselines
from scoresheet.errors import Finding, Incomplete, ScoresheetError, Usage
from scoresheet.pack.freeze import BASELINES
from scoresheet.run import journal
from scoresheet.run.prepare import now

WANTED = {"null": "must never succeed", "oracle": "must always succeed"}
"""What each agent does on a sound pack."""

FOLDER = "baselines"
"""In a run directory: what its baselines.json was made of."""
FILES = (journal.ROWS, journal.PLAN)
"""Of each of the two runs, in a folder named as its agent is."""
_MOST = 50
"""Folders beside a run that are looked at."""


def of_runs(folder: Path) -> Baselines:
    """The verdict of the runs `folder/null` and `folder/oracle`. Raises `Incomplete` when one lost episodes."""
    plan = journal.read_plan(folder / "null")
    states = {row.isolation for kind in ("null", "oracle") for row in journal.read_rows(folder / kind / journal.ROWS)}
    return Baselines(
        manifest_sha256=plan.manifest_sha256,
        isolation="proved" if states == {"proved"} else "not_isolated" if "not_isolated" in states else "not_proved",
        null=_baseline(folder / "null", "null", 0),
        oracle=_baseline(folder / "oracle", "oracle", 1),
        ended_at=now(),
    )


def beside(out: Path, manifest_sha256: str) -> Baselines | None:
    """The newest isolated baselines of that pack in a folder beside the run directory `out`; `None`: there are none.

    They are computed again from the rows that lie there: a verdict alone is not taken.
    """
    for path in _places(out):
        try:
            known = Baselines.from_bytes(bounded_file.read(path), path.name)
            if known.manifest_sha256 != manifest_sha256 or known.isolation != "proved":
                continue
            found = of_runs(path.parent)
        except (OSError, ScoresheetError):
            continue
        if found.model_copy(update={"ended_at": known.ended_at}) == known:
            return known
    return None


def _places(out: Path) -> list[Path]:
    places = sorted(out.absolute().parent.glob(f"*/{journal.BASELINES}"), key=lambda path: -path.stat().st_mtime)
    return places[:_MOST]


def lay(found: Baselines, out: Path, given: str | None = None) -> None:
    """Put the verdict into the run directory `out`, with the rows and plans of both runs for whoever makes it again.

    They are looked for in the folder that was `given`, then in those beside `out`, and known by their digests. Where
    they are not found the verdict lies there alone. Raises `Usage` when the directory can't be written.
    """
    atomic_file.replace(out / journal.BASELINES, found.text())
    beside = (folder for path in _places(out) for folder in (path.parent, path.parent / FOLDER))
    for place in (*((Path(given), Path(given).parent) if given is not None else ()), *beside):
        try:
            files = {
                f"{one.agent}/{name}": (place / one.agent / name).read_bytes()
                for one in (found.null, found.oracle)
                for name in FILES
            }
        except OSError:
            continue
        if all(digest.of(files[f"{one.agent}/{FILES[0]}"]) == one.rows_sha256 for one in (found.null, found.oracle)):
            break
    else:
        return
    try:
        for name, data in files.items():
            path = out / FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_file.replace(path, data)
    except OSError as error:
        raise Usage(f"can't be written: {error.strerror}", str(out / FOLDER)) from error


def keep(pack: Path, found: Baselines) -> None:
    """Leave the verdict on a defective pack in its folder, for `defects`; one on a sound pack takes an older one away.

    Raises `Usage` when the folder can't be written.
    """
    place = pack / BASELINES
    try:
        if found.sound:
            place.unlink(missing_ok=True)
        else:
            atomic_file.replace(place, canonical.line(found.model_dump(mode="json")))
    except OSError as error:
        raise Usage(f"can't be written: {error.strerror}", str(place)) from error


def defects(pack: Path, manifest_sha256: str | None) -> tuple[Finding, ...]:
    """Each task that the verdict in the pack's folder names; one on another manifest says nothing."""
    place = pack / BASELINES
    if manifest_sha256 is None or not os.path.lexists(place):
        return ()
    try:
        if not stat.S_ISREG(place.lstat().st_mode):
            raise Usage("not a regular file", BASELINES)
        found = Baselines.from_bytes(bounded_file.read(place), BASELINES)
    except (OSError, ScoresheetError) as error:
        mend = f"remove it, then scoresheet baseline {pack}"
        return (Finding("baselines", BASELINES, f"the verdict can't be read: {error}", mend),)
    if found.manifest_sha256 != manifest_sha256:
        return ()
    mend = f"mend the task, freeze the pack again, then scoresheet baseline {pack}"
    return tuple(
        Finding(f"baseline-{one.agent}", BASELINES, f"the {one.agent} agent {WANTED[one.agent]}: {task_id}", mend)
        for one in (found.null, found.oracle)
        for task_id in one.failing
    )


def _baseline(run: Path, agent: Literal["null", "oracle"], wanted: int) -> Baseline:
    plan = journal.read_plan(run)
    if plan.status != "finished":
        raise Incomplete(f"the {agent} run is {plan.status}", str(run), "run the baseline again")
    last: dict[tuple[str, int], int | None] = {}
    for row in journal.read_rows(run / journal.ROWS):
        last[row.task_id, row.repeat] = row.success
    unjudged = sum(success is None for success in last.values()) if agent == "oracle" else 0
    open_to_judges = {None} if agent == "oracle" else set()
    failing = sorted({task_id for (task_id, _), success in last.items() if success not in {wanted, *open_to_judges}})
    return Baseline(
        agent=agent,
        successes=sum(success == 1 for success in last.values()),
        episodes=plan.planned,
        failing=tuple(failing),
        unjudged=unjudged,
        rows_sha256=digest.of_file(run / journal.ROWS).sha256,
    )
