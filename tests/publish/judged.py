"""A run that waits for a human, as it lies on the disk."""

import json
from pathlib import Path
from typing import Any

from scoresheet import digest
from scoresheet.documents.row import Row
from tests.publish.runs import baselines, plan, row, write

PATCH = b"--- a/say.py\n+++ b/say.py\n@@ -1 +1 @@\n-print('no')\n+print('\x1b[2Jyes')\n"


def waiting(folder: Path, tasks: int = 3, repeats: int = 2, answer: Any = None, **more: Any) -> Path:
    """A run of `tasks` tasks, none of them judged; the agent is called `secret-agent`."""
    found: list[Row] = []
    for task in range(tasks):
        for repeat in range(repeats):
            task_id = f"t{task:02}"
            place = folder / "episodes" / task_id / f"{repeat}.0"
            place.mkdir(parents=True)
            view = {"task_id": task_id, "prompt": f"Write a greeting, number {task}.", "tools": []}
            (place / "task.json").write_text(json.dumps(view))
            (place / "patch.diff").write_bytes(PATCH)
            given = {"text": f"hello {task}"} if answer is None else answer
            measured: dict[str, Any] = {"patch_lines": 2, "patch_sha256": digest.of(PATCH)}
            found.append(row(task_id, repeat, None, answer=given, host="secret-host", **measured | more))
    the_plan = plan(tasks, repeats)
    agent = the_plan.agent.model_copy(update={"spec": "python3 secret-agent.py"})
    the_plan = the_plan.model_copy(update={"agent": agent})
    return write(folder, the_plan, found, confounds=b"", baselines=baselines().text())
