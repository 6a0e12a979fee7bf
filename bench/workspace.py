"""Bench: a workspace laid out against `cp -a`, and patch and grading against plain `git diff` and `pytest`.

    python bench/workspace.py [--mib 200] [--files 2000] [--rounds 5] [--folder DIR]

The same files on both sides, in turns, the best of the rounds. Ours verifies every byte while it copies, reads the
workspace back as hostile input, and grades in a sandbox of its own on a copy of its own; the peers do none of that.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from parts.clock import best

from scoresheet.pack import freezer
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import Settings
from scoresheet.run import grading, harvest, surface, workspace
from scoresheet.run.patch import patch
from scoresheet.sandbox.bwrap import BwrapSandbox

SOURCE = "def page(items, number, size):\n    return items[number * size : (number + 1) * size - 1]\n"
TEST = "from shop import page\n\n\ndef test_page():\n    assert page(list(range(9)), 1, 4) == [4, 5, 6, 7]\n"


def made(folder: Path, mib: int, files: int) -> Pack:
    """A pack of one task with `mib` MiB in `files` files beside a broken module."""
    inside = folder / "workspaces/t"
    (inside / "tests").mkdir(parents=True)
    (inside / "shop.py").write_text(SOURCE)
    (inside / "tests/test_shop.py").write_text(TEST)
    size = (mib << 20) // files
    for number in range(files):
        place = inside / f"data/{number % 50}/{number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((b"%032x\n" % number) * (size // 33))
    (folder / "tasks").mkdir()
    oracle = {"kind": "pytest", "test_command": "python -m pytest -q tests", "tests": ["tests"]}
    task = {"task_id": "t", "prompt": "Mend it.", "kind": "workspace", "oracle": oracle}
    (folder / "tasks/t.json").write_text(json.dumps(task))
    freezer.write(folder, Settings())
    return Pack.open(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=200)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=asked.folder))
    try:
        measure(folder, asked.mib, asked.files, asked.rounds)
    finally:
        shutil.rmtree(folder)


def measure(folder: Path, mib: int, files: int, rounds: int) -> None:
    pack = made(folder / "pack", mib, files)
    task = pack.task("t")
    work = workspace.of(pack, task)
    assert work is not None
    assert task.oracle is not None

    def copied() -> None:
        shutil.rmtree(folder / "cp", ignore_errors=True)
        subprocess.run(["cp", "-a", pack.root / "workspaces/t", folder / "cp"], check=True)

    def laid() -> None:
        workspace.remove(folder / "laid")
        workspace.lay(work, folder / "laid")

    plain, ours = best(rounds, copied, laid, synced=True)
    what = f"laid out and verified, {mib} MiB in {files} files"
    print(f"{what}: {ours:.2f} s, cp -a {plain:.2f} s: {ours / plain:.2f} times")

    git = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "start")):
        subprocess.run(["git", *words], cwd=folder / "cp", env=git, check=True)
    for tree in ("cp", "laid"):
        (folder / tree / "shop.py").write_text(SOURCE.replace(" - 1]", "]"))
        (folder / tree / "new.py").write_text("x = 1\n" * 500)
    found = harvest.harvest(folder / "laid", work)

    def diffed() -> None:
        subprocess.run(["git", "add", "-A"], cwd=folder / "cp", env=git, check=True)
        subprocess.run(
            ["git", "diff", "--cached", "--binary"], cwd=folder / "cp", env=git, check=True, capture_output=True
        )

    plain, ours = best(rounds, diffed, lambda: patch(harvest.harvest(folder / "laid", work).changes), synced=True)
    print(
        f"patch: {ours:.3f} s (every byte hashed), git diff {plain:.3f} s (by size and time): {ours / plain:.2f} times"
    )

    kept = surface.judged(found.changes, work.frozen).kept
    bounds = grading.limits_for(task.oracle, None, 1 << 30, 256)
    with BwrapSandbox() as sandbox:
        grader = grading.Grader(sandbox)

        def graded() -> None:
            assert grader.grade(task, work, kept, folder / "grading", bounds).success

        def tested() -> None:
            command = [sys.executable, "-m", "pytest", "-q", "tests", "-p", "no:cacheprovider"]
            subprocess.run(command, cwd=folder / "cp", check=True, capture_output=True)

        plain, ours = best(rounds, tested, graded, synced=True)
    print(
        f"graded on a copy of its own in a proved sandbox: {ours:.2f} s, pytest {plain:.2f} s: {ours / plain:.2f} times"
    )


if __name__ == "__main__":
    main()
