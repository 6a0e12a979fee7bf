"""Writes the pack `pagination-v1`: the same bytes every time.

    python3 examples/packs/make_pagination.py            # into examples/packs/pagination-v1
    python3 examples/packs/make_pagination.py DIR

Small coding tasks over four small code bases (`pagination/bases.py`); `pagination/tasks.py` says how each is broken,
what is asked and what tests it. To change a task, change it there and run this again, then `scoresheet freeze`.
"""

import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "pagination"))

from tasks import TASKS, Made

from scoresheet.run.patch import Change, File, patch

CONFIGURATION = '[project]\nname = "{name}"\nversion = "1.0"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n'
TEST_COMMAND = "python -m pytest -q"


def broken(task: Made) -> dict[str, str]:
    """The files that the agent is given."""
    files = dict(task.base)
    for path, changes in task.breaks.items():
        for right, wrong in changes:
            if files[path].count(right) != 1:
                raise SystemExit(f"{task.name}: {right!r} is not once in {path}")
            files[path] = files[path].replace(right, wrong)
    return files | {"pyproject.toml": CONFIGURATION.format(name=task.name.partition(".")[0])}


def solution(task: Made) -> bytes:
    """The patch that solves a task."""
    before = broken(task)
    right = {path: task.base[path] for path in task.breaks} | task.solution
    if task.name == "pages.one-window":
        right["pages/offset.py"] += (
            "\n\ndef shown(number, count):\n"
            '    """Numbers of the pages to show around one."""\n    return window(number, count)\n'
        )
    changes = []
    for path, text in right.items():
        old = before.get(path)
        changes.append(Change(path.encode(), None if old is None else File(old.encode()), File(text.encode())))
    return patch(changes).text


def write(root: Path) -> None:
    """Every file of the pack; what lies beside the frozen pack stays."""
    for name in ("tasks", "workspaces", "oracles"):
        shutil.rmtree(root / name, ignore_errors=True)
    for task in TASKS:
        value = {
            "task_id": task.name,
            "prompt": task.prompt + "\nRun the tests with: python3 -m pytest -q",
            "kind": "workspace",
            "oracle": {
                "kind": "pytest",
                "test_command": TEST_COMMAND,
                "tests": ["tests"],
                "timeout_s": 60,
                "case_timeout_s": 10,
            },
            "limits": {"wall_clock_s": 10},
            "origin": "synthetic",
            "licence": "Apache-2.0",
            "tags": [task.kind],
        }
        put(root / "tasks" / f"{task.name}.json", json.dumps(value, indent=2) + "\n")
        for path, text in (broken(task) | task.tests).items():
            put(root / "workspaces" / task.name / path, text)
        for path, text in task.hidden.items():
            put(root / "oracles" / task.name / path, text)
        (root / "oracles" / task.name / "solution.patch").write_bytes(solution(task))


def put(path: Path, text: str) -> None:
    """One file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pagination-v1")
