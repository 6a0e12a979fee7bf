"""Human judging of a run on the disk: what waits for a judge, what the judge is shown, and decisions that only grow."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scoresheet import bounded_file, canonical, digest, growing_file
from scoresheet.documents.judgment import Decided, Judgment
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Malformed, Refused, Usage
from scoresheet.run import journal, judgments
from scoresheet.run.judgments import JUDGMENTS, TASK_VIEW, Judgments, Material, Pending
from scoresheet.run.patch import PATCH
from scoresheet.run.plan import Episode
from scoresheet.run.prepare import now

_MOST_BYTES = 256 << 20
"""Of the judgments of a run."""


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge at work on one run."""

    out: Path
    plan: RunPlan
    name: str

    def rows(self) -> tuple[Pending, ...]:
        """Every row that is for a human to decide, judged or not. Raises `Malformed`, `Usage`."""
        found = []
        planned = {task.task_id for task in self.plan.tasks}
        for data in _lines(self.out / journal.ROWS):
            where = f"{self.out / journal.ROWS}"
            try:
                row = Row.from_bytes(data, where)
            except Refused as refused:
                raise Malformed(f"a row can't be read: {refused.what}", where) from refused
            if row.success is None and row.task_id in planned:
                found.append(Pending(row, digest.of(data)))
        return tuple(found)

    def known(self) -> Judgments:
        """The decisions so far. Raises `Refused` when the file is not as it was written."""
        return _sound(_read(self.out), self.out)

    def queue(self) -> tuple[Pending, ...]:
        """What waits for a judge, in the order of this run's seed."""
        standing = self.known().standing
        return judgments.order((each for each in self.rows() if each.sha256 not in standing), self.plan.seed)

    def material(self, pending: Pending) -> Material:
        """What is shown of an episode. Raises `Malformed` when it is not what the agent got, or left."""
        row = pending.row
        folder = self.out / Episode(row.task_id, row.repeat, row.attempt, row.episode_seed).folder
        try:
            task = canonical.as_object(canonical.loads((folder / TASK_VIEW).read_bytes()))
        except (OSError, canonical.JsonError) as error:
            mend = "restore the episode's folder, as `scoresheet run` wrote it"
            raise Malformed(f"what the agent was asked can't be read: {error}", row.task_id, mend) from error
        patch = b""
        if row.patch_sha256 is not None:
            try:
                patch = (folder / PATCH).read_bytes()
            except OSError as error:
                raise Malformed(f"the patch can't be read: {error.strerror}", row.task_id) from error
            if digest.of(patch) != row.patch_sha256:
                raise Malformed("the patch is not the one that the row names", row.task_id, "restore patch.diff")
        return Material(str(task.get("prompt", "")), row.answer, patch, row.patch_left_out)

    def decide(self, pending: Pending, verdict: Decided, shown_sha256: str) -> Judgment | None:
        """Append a decision, synced; `None` when another judge was faster (or there is nothing to withdraw)."""
        row = pending.row
        with growing_file.held(self.out / JUDGMENTS, "the judgments") as file:
            there = _sound(judgments.read(file.lines()), self.out)
            standing = there.standing.get(pending.sha256)
            if (standing is not None) != (verdict == "withdrawn"):
                return None
            if verdict == "withdrawn" and standing is not None and standing.judge != self.name:
                return None
            made = Judgment(
                task_id=row.task_id,
                repeat=row.repeat,
                attempt=row.attempt,
                row_sha256=pending.sha256,
                shown_sha256=shown_sha256,
                verdict=verdict,
                judge=self.name,
                at=now(),
                previous=there.head,
            )
            file.append(judgments.line(made))
        return made

    def last(self) -> Pending | None:
        """The episode of this judge's latest decision that stands."""
        latest = self.known().last_of(self.name)
        return None if latest is None else next((r for r in self.rows() if r.sha256 == latest.row_sha256), None)


def judge_of(out: Path, name: str) -> Judge:
    """The judge `name` of the run in `out`. Raises `Usage` when it is no run, or the name is none."""
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise Usage(f"{name!r} is no name of a judge", "--judge", "say who judges: --judge NAME, up to 100 characters")
    return Judge(out, journal.read_plan(out), name.strip())


def _read(out: Path) -> Judgments:
    try:
        data = bounded_file.read(out / JUDGMENTS, _MOST_BYTES)
    except FileNotFoundError:
        return Judgments()
    except OSError as error:
        raise Usage(f"the judgments can't be read: {error.strerror}", str(out / JUDGMENTS)) from error
    return judgments.read(data[: data.rfind(b"\n") + 1])


def _sound(found: Judgments, out: Path) -> Judgments:
    if found.findings:
        raise Refused("the judgments are not as they were written", found.findings, str(out / JUDGMENTS))
    return found


def _lines(path: Path) -> Iterator[bytes]:
    """Whole lines, without their newline."""
    try:
        with path.open("rb") as file:
            for data in file:
                if data.endswith(b"\n"):
                    yield data[:-1]
    except OSError as error:
        raise Usage(f"the rows can't be read: {error.strerror}", str(path)) from error


__all__ = ["JUDGMENTS", "PATCH", "TASK_VIEW", "Judge", "judge_of"]
