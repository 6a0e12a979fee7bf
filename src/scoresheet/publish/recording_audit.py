"""A run's sealed recording, held against the name that run.json gives it and against the logs that it seals."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Finding, ScoresheetError
from scoresheet.publish.run_folder import RUN, opened
from scoresheet.run import model_recording
from scoresheet.run.model_recording import RECORDING


def findings(run: Path, plan: RunPlan, rows: Iterable[Row]) -> tuple[Finding, ...]:
    """What does not hold of the recording that `plan` names; `rows` are the run's, in any order, one at a time.

    Where a log is missing or can't be read nothing is sealed again: that is told of its row.
    """
    found = []
    try:
        with opened(run / RECORDING) as file:
            there = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        what = (
            f"not there, though {RUN} names {_short(plan.model_recording_sha256)} as the recording of its model calls"
        )
        return (Finding("audit-recording", RECORDING, what),)
    if there != plan.model_recording_sha256:
        what = f"it is {_short(there)}, {RUN} names {_short(plan.model_recording_sha256)}"
        found.append(Finding("audit-recording", RECORDING, what))
    try:
        hashed = hashlib.sha256()
        for piece in model_recording.pieces(run, plan, rows):
            hashed.update(piece)
    except ScoresheetError:
        return tuple(found)
    if there != hashed.hexdigest():
        what = "not what is sealed from the model.jsonl of the run's episodes"
        found.append(Finding("audit-recording", RECORDING, what))
    return tuple(found)


def _short(sha256: str | None) -> str:
    return f"{(sha256 or '')[:12]}…"
