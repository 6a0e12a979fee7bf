"""What rows say of workspaces, derived again from the patches that agents left and from the pack."""

import hashlib
import platform
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from scoresheet import __version__
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.documents.task import Task
from scoresheet.errors import Finding, Malformed, ScoresheetError
from scoresheet.pack.folder import Pack
from scoresheet.run import grading, harvest, patch_reading, surface, workspace
from scoresheet.run.patch import Change, Entry, File
from scoresheet.run.workspace import Work

_KEPT = 8
"""Workspaces whose paths are at hand at once."""


@dataclass(slots=True)
class Works:
    """The patches of one run, one after another; without a pack only their lines are counted."""

    plan: RunPlan
    pack: Pack | None
    counted: int = 0
    divided: int = 0
    """Whose files were held against the tests that the pack freezes."""
    judged: int = 0
    """Whose output file was judged again."""
    _works: dict[str, Work | None] = field(default_factory=dict)

    @property
    def comparable(self) -> bool:
        """True when this version told what bends grading, on this Python: others know other modules and plugins."""
        python = platform.python_version_tuple()[:2]
        same = self.plan.versions.get("scoresheet") == __version__
        return same and not self.plan.resumed_at and tuple(self.plan.host.python.split(".")[:2]) == python

    def check(self, row: Row, where: str, place: str, lines: Iterable[bytes], task: Task | None) -> Iterator[Finding]:
        """What does not hold of an episode whose patch lies at `place`; `task`: its task, where the pack is at hand."""
        name = f"{row.task_id} {row.repeat}.{row.attempt}"
        work = None if task is None else self._work(task)
        hashed = hashlib.sha256()

        def passing() -> Iterator[bytes]:
            for line in lines:
                hashed.update(line)
                yield line

        passed, fault, total = passing(), None, 0
        changes: list[Change] = []
        try:
            for section in patch_reading.sections(passed):
                total += section.lines
                if work is not None:
                    _take(changes, section, work)
        except Malformed as error:
            fault = Finding("row-patch", place, f"{name}: {error}")
        except ScoresheetError:  # a file of the pack, which is told elsewhere
            work = None
        for _ in passed:
            pass
        if row.patch_sha256 is None:  # told of its row
            return
        if row.patch_sha256.removeprefix("sha256:") != hashed.hexdigest():
            yield Finding("row-patch", place, f"not the patch of {name}")
            return
        if fault is not None:
            yield fault
            return
        self.counted += 1
        told: dict[str, tuple[object, object]] = {"patch_lines": (row.patch_lines, total)}
        if work is not None and task is not None:
            self.divided += 1
            told |= self._of_tests(row, changes, work)
            yield from self._of_output(row, where, changes, work, task)
        for member, (said, seen) in told.items():
            if said != seen:
                yield Finding(
                    "row-follows", where, f"{name}: {member} does not follow from {place} ({said}, not {seen})"
                )

    def _of_tests(self, row: Row, changes: list[Change], work: Work) -> dict[str, tuple[object, object]]:
        """Member → (what the row says, what patch and pack give)."""
        found = surface.judged(changes, work.frozen)
        shown = bool(surface.frozen_paths(work.files, work.tests))
        large = tuple(path for path in row.tests_changed if path not in found.tests_changed and _left_out(row, path))
        told: dict[str, tuple[object, object]] = {
            "tests_changed": (row.tests_changed, tuple(sorted((*found.tests_changed, *large)))),
            "tests_identical": (row.tests_identical is not None, shown),
            "test_files_changed": (row.test_files_changed is not None, shown),
        }
        if self.comparable:
            told["tests_added"] = row.tests_added, found.tests_added
            told["grading_surface"] = row.grading_surface, found.touched
        return told

    def _of_output(self, row: Row, where: str, changes: list[Change], work: Work, task: Task) -> Iterator[Finding]:
        """The verdict on a named output file, made again; tests are run by nobody but a rerun."""
        output = None if task.oracle is None else task.oracle.output_file
        if output is None or row.exit_reason != "completed" or row.mismatches:
            return
        self.judged += 1
        verdict = grading.of_output(task, harvest.output(tuple(changes), work, output.encode()))
        if row.success != int(verdict.success):
            name = f"{row.task_id} {row.repeat}.{row.attempt}"
            yield Finding("row-oracle", where, f"{name}: success {row.success} does not follow from its {output}")

    def _work(self, task: Task) -> Work | None:
        if self.pack is None:
            return None
        if task.task_id not in self._works:
            while len(self._works) >= _KEPT:
                del self._works[next(iter(self._works))]
            self._works[task.task_id] = None
            with suppress(ScoresheetError):  # told by the pack
                self._works[task.task_id] = workspace.of(self.pack, task)
        return self._works[task.task_id]


def _take(changes: list[Change], section: patch_reading.Section, work: Work) -> None:
    """Add what a section says; a file that became a link (or back) goes and comes, in two of them."""
    last = changes[-1] if changes else None
    if last is not None and last.path >= section.path:
        if last.path > section.path or last.after is not None or last.before is None:
            raise Malformed(f"{section.path.decode('utf-8', 'backslashreplace')} stands there twice, or in no order")
        changes[-1] = Change(last.path, last.before, section.change(None).after)
        return
    before: Entry | None = None
    if section.path in work.files:
        before = File(work.content(section.path), work.files[section.path].exec)
    changes.append(section.change(before))


def _left_out(row: Row, path: str) -> bool:
    """Whether the row says that a path was too large to be in the patch."""
    said = f"{path[:200]}: too large: "
    return any(each.startswith((said, "and ")) for each in row.patch_left_out)
