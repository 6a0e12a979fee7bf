"""Reads the runs that were named, and again when their files have changed. Nothing is ever written, no link followed.

A run directory may come from anywhere: a link, a pipe or a device among its files is a reason not to read it.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from scoresheet.documents.comparison import Comparison
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Refused, ScoresheetError, Usage, counted
from scoresheet.pack.folder import Pack
from scoresheet.publish import comparable, comparison, comparison_text, laid, run_folder
from scoresheet.publish.comparable import Entrant
from scoresheet.publish.page import comparing, folder
from scoresheet.publish.page.comparing import Unlike
from scoresheet.publish.page.folder import Closed, Open
from scoresheet.publish.page.listing import Listed, Standing
from scoresheet.publish.run_folder import RUN, RunFolder
from scoresheet.publish.view import stamp as stamps
from scoresheet.publish.view.pages import Pages
from scoresheet.publish.view.stamp import Stamp
from scoresheet.stats import resample

_SHOWN = ("unauthorized_rate", "timeout_rate")
_MOST_REASONS = 20


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A run that can't be read, and why."""

    name: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as it was when it was read last."""

    stamp: Stamp | None
    listed: Listed
    found: Open | Closed | Unreadable


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Why there is no comparison."""

    what: str
    reasons: tuple[str, ...]
    fields: tuple[Unlike, ...] = ()
    """In what the runs differ, where they are not alike."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the runs lie that were named."""

    paths: tuple[Path, ...]
    packs: tuple[Pack, ...] = ()
    """Of the bundles that hold theirs."""
    faults: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    """What does not hold in a bundle, which is not read on then."""
    passed: tuple[str, ...] = ()
    """What was passed over, and why."""


def find(paths: Sequence[Path], scratch: Path) -> Sources:
    """The run directories among `paths` and right below them; bundles are verified, and laid out in `scratch`.

    Raises `Usage`, naming every path that is neither.
    """
    found: list[Path] = []
    packs: list[Pack] = []
    faults: dict[Path, tuple[str, ...]] = {}
    passed: list[str] = []
    neither: list[str] = []
    named = tuple(dict.fromkeys(paths))
    for number, path in enumerate(named):
        try:
            if not path.is_dir():
                place = scratch / str(number)
                (place / "named").mkdir(parents=True)
                there = laid.lay(path, place)
                if there.audit.sha256 is None:
                    raise Usage(there.faults[0].what)
                root = there.root.rename(place / "named" / path.name)
                found.append(root)
                packs += [there.pack] if there.pack is not None else []
                if there.faults or there.audit.run is None:
                    faults[root] = tuple(map(str, there.audit.findings[:_MOST_REASONS]))
            elif os.path.lexists(path / RUN):
                found.append(path)
            else:
                below, over = _below(path)
                found += below
                passed += over
        except Usage as error:
            neither.append(f"{path} ({error.what})")
    if neither:
        what = "no run lies here" if len(named) == 1 else f"no run lies in {len(neither)} of the {len(named)} paths"
        mend = "name directories that `scoresheet run --out DIR` wrote, or that hold some, or bundles"
        raise Usage(what, ", ".join(neither), mend)
    return Sources(tuple(dict.fromkeys(found)), tuple(packs), faults, tuple(passed))


def _below(path: Path) -> tuple[list[Path], list[str]]:
    """The runs right below, and what was passed over. Raises `Usage` where there is none."""
    found: list[Path] = []
    empty: list[Path] = []
    passed: list[str] = []
    try:
        entries = sorted(os.scandir(path), key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        raise Usage(f"the directory can't be read: {error.strerror}", str(path)) from error
    for entry in entries:
        if entry.is_symlink():
            passed.append(f"{entry.name} in {_name(path)} is a link, and was not followed")
        elif entry.is_dir(follow_symlinks=False):
            holds = os.path.lexists(path / entry.name / RUN)
            (found if holds else empty).append(path / entry.name)
        elif entry.name.endswith(".tar"):
            passed.append(f"{entry.name} in {_name(path)} was not read: name a bundle itself")
    if not found:
        bundles = any(each.endswith("name a bundle itself") for each in passed)
        raise Usage(
            "it holds bundles: name them themselves" if bundles else f"neither it nor a folder in it has a {RUN}"
        )
    if empty:
        shown = ", ".join(each.name for each in empty[:_MOST_REASONS]) + (", …" if len(empty) > _MOST_REASONS else "")
        passed.append(f"no run lies in {counted(len(empty), 'folder')} of {_name(path)}: {shown}")
    return found, passed


class Runs:
    """The runs that are served. Safe to be asked by several threads."""

    def __init__(self, sources: Sources, packs: Sequence[Pack] = (), *, draft: bool = False) -> None:
        self._paths = {f"r{number}": path for number, path in enumerate(sources.paths, 1)}
        self._packs: Mapping[str, Pack] = {pack.manifest_sha256: pack for pack in (*sources.packs, *packs)}
        self._faults = sources.faults
        self._draft = draft
        self.pages = Pages()
        self._seen: dict[str, Seen] = {}
        self._locks = {key: threading.Lock() for key in self._paths}

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def seen(self, key: str) -> Seen | None:
        """The run of that key as it lies now; `None` when there is none."""
        path = self._paths.get(key)
        if path is None:
            return None
        if path in self._faults:
            wrong = Unreadable(_name(path), self._faults[path])
            return Seen(None, Listed(key, wrong.name, "can't be read", reasons=wrong.why), wrong)
        with self._locks[key]:
            try:
                stamp = stamps.of_run(path)
                known = self._seen.get(key)
                if known is None or known.stamp is None or not known.stamp.still(stamp):
                    known = self._seen[key] = self._read(key, path, stamp)
                return known
            except (ScoresheetError, OSError, ValueError) as error:
                self._seen.pop(key, None)
                found = Unreadable(_name(path), told(error))
                return Seen(None, Listed(key, found.name, "can't be read", reasons=found.why), found)

    def read_all(self) -> None:
        """Read every run now, so that whoever asks later need not wait."""
        resample.import_numpy()
        for key in self:
            self.seen(key)

    def listed(self) -> tuple[Listed, ...]:
        """Every run, in the order in which they were named."""
        return tuple(seen.listed for key in self if (seen := self.seen(key)) is not None)

    def compare(self, keys: Sequence[str], metrics: Sequence[str] = ()) -> Comparison | NotCompared:
        """The comparison of those runs, behind the gate of `scoresheet compare`, or why there is none."""
        chosen: list[Entrant] = []
        for key in dict.fromkeys(keys):
            seen = self.seen(key)
            if seen is None:
                return NotCompared("No such run", (f"there is no run {key!r}",))
            if isinstance(seen.found, Unreadable):
                return NotCompared("A run can't be read", tuple(f"{seen.found.name}: {why}" for why in seen.found.why))
            try:
                run = self._run(key)
            except (ScoresheetError, OSError, ValueError) as error:
                return NotCompared("A run can't be read", tuple(f"{seen.listed.name}: {why}" for why in told(error)))
            chosen.append(Entrant("", _name(self._paths[key]), run.plan, run.outcomes, run.evidence, run.rows_sha256))
        entrants = comparable.labelled(chosen)
        if sum(not each.baseline for each in entrants) < 2:
            return NotCompared("A comparison needs two runs", ("choose the runs of two agents; baselines never rank",))
        same = tuple(f"{one.name} and {other.name}" for one, other in comparable.same_rows(entrants))
        if same:
            return NotCompared("They are one and the same run", same)
        differing = comparable.differences(entrants)
        if differing:
            named = {each.label: f"{each.label} {each.name}" for each in entrants}
            reasons = tuple(finding.what for finding in comparison_text.findings(differing))
            return NotCompared("The runs are not comparable", reasons, tuple(comparing.unlike(differing, named)))
        unmet = tuple(f"{each.name}: {reason}" for each in entrants for reason in each.unmet)
        if unmet and not self._draft:
            return NotCompared("A run is not admissible", unmet)
        return comparison.build(entrants, [each for each in comparison.METRICS if each in metrics])

    def _run(self, key: str) -> RunFolder:
        """The run, behind the same gate as in the list: judged by its pack's bytes where they are at hand."""
        path = self._paths[key]
        return run_folder.read(path, self._packs.get(run_folder.plan_of(path).manifest_sha256))

    def _read(self, key: str, path: Path, stamp: Stamp) -> Seen:
        plan = run_folder.plan_of(path)
        found = folder.read(path, draft=self._draft, pack=self._packs.get(plan.manifest_sha256))
        return Seen(stamp, _listed(key, plan, found), found)


def _listed(key: str, plan: RunPlan, found: Open | Closed) -> Listed:
    reasons = tuple(map(str, found.reasons)) if isinstance(found, Closed) else found.page.reasons
    about = Listed(
        key,
        name=found.name if isinstance(found, Closed) else found.page.name,
        standing="baseline",
        agent=plan.agent.spec,
        pack=plan.pack,
        manifest_sha256=plan.manifest_sha256,
        seat=plan.seat or "none",
        started_at=plan.started_at,
        planned=f"{len(plan.tasks)} {'task' if len(plan.tasks) == 1 else 'tasks'} × {plan.repeats}",
    )
    if plan.agent.kind in comparable.BASELINES:
        return about
    if isinstance(found, Closed) or found.page.draft:
        standing: Standing = "incomplete" if found.incomplete else "not admissible"
        more = len(reasons) - _MOST_REASONS
        cut = (*reasons[:_MOST_REASONS], *((f"and {more} more",) if more > 0 else ()))
        return replace(about, standing=standing, reasons=cut)
    marks = {mark.name: mark.text for mark in found.page.marks}
    first = found.page.marks[0].name
    confounds = found.page.confounds or ()
    return replace(
        about,
        standing="admissible",
        figures=tuple((name, marks[name]) for name in (first, *_SHOWN)),
        confounds=str(len(confounds)),
    )


def told(error: Exception) -> tuple[str, ...]:
    """Why a run can't be read, line by line."""
    if isinstance(error, Refused) and error.findings:
        return tuple(map(str, error.findings[:_MOST_REASONS]))
    if isinstance(error, OSError):
        place = f"{os.path.basename(os.fsdecode(error.filename))}: " if error.filename else ""
        return (f"{place}{error.strerror or 'it can not be read'}",)
    return (" ".join(str(error).split())[:500],)


def _name(path: Path) -> str:
    return os.fsencode(path.resolve().name).decode("utf-8", "backslashreplace")
