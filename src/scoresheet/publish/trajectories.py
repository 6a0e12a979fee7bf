"""A run's trajectories, made again from its journals, its model calls and its pack, and compared byte for byte."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from scoresheet import __version__
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.documents.task import Task
from scoresheet.errors import Finding, ScoresheetError
from scoresheet.model.entry import MODEL_LOG, Entry
from scoresheet.model.observed import Exchange
from scoresheet.pack.folder import Pack
from scoresheet.publish.run_folder import opened
from scoresheet.replay.journal import read_back
from scoresheet.replay.session import Tape
from scoresheet.run import trajectory
from scoresheet.run.model_calls import Reading
from scoresheet.run.plan import Episode

_KEPT = 8
"""Tapes that are at hand at once."""


@dataclass(slots=True)
class Trajectories:
    """Those of one run directory."""

    run: Path
    plan: RunPlan
    pack: Pack
    same: int = 0
    absent: int = 0
    _tapes: dict[str, tuple[Task, Tape]] = field(default_factory=dict)

    @property
    def comparable(self) -> bool:
        """True when this version wrote them: another may tell the same episode in other words."""
        return self.plan.versions.get("scoresheet") == __version__

    def check(self, row: Row, folder: str) -> Iterator[Finding]:
        """What does not hold of one episode's; journals that can't be read are told by others."""
        if row.exit_reason == "harness_error":
            return
        try:
            with opened(self.run / folder / trajectory.TRAJECTORY) as file:
                there = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            self.absent += 1
            return
        try:
            made = self._made(row, folder)
        except (ScoresheetError, OSError):
            return
        if made == there:
            self.same += 1
        else:
            what = f"{row.task_id} {row.repeat}.{row.attempt}: not what its calls and model calls give"
            yield Finding("row-trajectory", f"{folder}/{trajectory.TRAJECTORY}", what)

    def _made(self, row: Row, folder: str) -> str:
        task, tape = self._tape(row.task_id)
        models = row.model_calls is not None
        episode = Episode(row.task_id, row.repeat, row.attempt, row.episode_seed)
        about = trajectory.About(self.plan.manifest_sha256, episode, task, self.plan.agent, models)
        hashed = hashlib.sha256()
        with ExitStack() as stack:
            calls = map(read_back, stack.enter_context(opened(self.run / folder / "calls.jsonl")))
            spoken: Iterator[tuple[Entry, Exchange]] = iter(())
            if models:
                spoken = Reading(stack.enter_context(opened(self.run / folder / MODEL_LOG)), None).exchanges()
            for piece in trajectory.written(about, tape, calls, spoken):
                hashed.update(piece)
        return hashed.hexdigest()

    def _tape(self, task_id: str) -> tuple[Task, Tape]:
        if task_id not in self._tapes:
            while len(self._tapes) >= _KEPT:
                del self._tapes[next(iter(self._tapes))]
            task, manifest = self.pack.task(task_id), self.pack.manifest
            self._tapes[task_id] = task, Tape.of(task, self.pack.tools, manifest.protocol, manifest.on_exhausted)
        return self._tapes[task_id]
