"""Small frozen workspace packs: one broken module, and tasks whose prompt is what `tests/agents/act.sh` does."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scoresheet.pack import freezer
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import Settings
from scoresheet.run.workspace import Work, of

ACT = str(Path(__file__).parent.parent / "agents" / "act.sh")
BROKEN = "def page(items, number, size):\n    return items[number * size : (number + 1) * size - 1]\n"
RIGHT = BROKEN.replace(" - 1]", "]")
FIX = "sed -i 's/ - 1\\]/]/' shop.py"
"""A prompt that solves the task."""
TESTS = """\
from shop import page


def test_a_page_is_full():
    assert page(list(range(10)), 0, 4) == [0, 1, 2, 3]


def test_the_last_page_holds_the_rest():
    assert page(list(range(10)), 2, 4) == [8, 9]
"""
FILES = {
    "shop.py": BROKEN,
    "tests/test_shop.py": TESTS,
    "tests/conftest.py": "",
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n',
    "README.md": "A shop.\n",
}
ORACLE = {"kind": "pytest", "test_command": "python -m pytest tests", "tests": ["tests"], "timeout_s": 30}
PATCH = """\
--- a/shop.py
+++ b/shop.py
@@ -1,2 +1,2 @@
 def page(items, number, size):
-    return items[number * size : (number + 1) * size - 1]
+    return items[number * size : (number + 1) * size]
"""


def works(
    folder: Path,
    prompts: Mapping[str, str],
    files: Mapping[str, str | bytes] | None = None,
    oracle_files: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    **task: Any,
) -> Pack:
    """A pack with one workspace task for each prompt, all with the same files."""
    for task_id, prompt in prompts.items():
        value = {"task_id": task_id, "prompt": prompt, "kind": "workspace", "oracle": ORACLE} | task
        put(folder / "tasks" / f"{task_id}.json", json.dumps(value))
        for path, content in (FILES if files is None else files).items():
            put(folder / "workspaces" / task_id / path, content)
        for path, content in ({"solution.patch": PATCH} if oracle_files is None else oracle_files).items():
            put(folder / "oracles" / task_id / path, content)
    freezer.write(folder, Settings(**({"repeats": 1} | dict(settings or {}))))
    return Pack.open(folder)


def work_of(pack: Pack, task_id: str) -> Work:
    """The workspace of a task that has one."""
    found = of(pack, pack.task(task_id))
    assert found is not None
    return found


def put(path: Path, content: str | bytes) -> None:
    """A file with that content; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
