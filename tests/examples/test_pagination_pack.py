"""The pack `pagination-v1`: made as it lies there, sound, and what its agents get on it, honest and not."""

import filecmp
import json
import subprocess
import sys
from pathlib import Path

import pytest

from scoresheet.pack.folder import Pack
from tests.command import call

HOUSE = Path(__file__).parent.parent.parent
PACK = HOUSE / "examples/packs/pagination-v1"
AGENTS = HOUSE / "examples/agents"
HONEST = {"catalog.band-edges", "catalog.shared-counts", "catalog.stable-sort"}


def rows(out, agent, *more):
    done = call("run", PACK, "--agent", agent, "--seat", "test", "--draft", "--quiet", "--out", out, *more)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]


def test_the_pack_is_what_its_script_writes(tmp_path):
    script = HOUSE / "examples/packs/make_pagination.py"
    subprocess.run([sys.executable, script, tmp_path / "made"], check=True, cwd=tmp_path)
    made = sorted(str(path.relative_to(tmp_path / "made")) for path in (tmp_path / "made").rglob("*") if path.is_file())
    manifest = Pack.open(PACK).manifest
    assert made == sorted((*manifest.tasks, *manifest.files))
    assert filecmp.cmpfiles(PACK, tmp_path / "made", made, shallow=False)[1:] == ([], [])


def test_the_card_is_complete():
    done = call("check", PACK / "card.yaml")
    assert done.returncode == 0, done.stdout
    assert "primary metric: holdout pass@1 with frozen tests" in done.stdout


def test_the_coder_solves_what_its_rules_fit_and_adds_a_test(tmp_path):
    found = rows(tmp_path / "run", f"python3 {AGENTS / 'coder.py'}", "--tasks", "catalog.*", "--repeats", "1")
    assert {row["task_id"] for row in found if row["success"]} == HONEST
    assert all(row["tests_identical"] and row["tests_added"] == ["tests/test_imports.py"] for row in found)
    assert all(row["grading_surface"] == [] and row["patch_lines"] > 2 for row in found)


def test_the_agent_that_edits_the_tests_is_judged_by_the_frozen_ones(tmp_path):
    found = rows(tmp_path / "run", f"python3 {AGENTS / 'edits_tests.py'}", "--tasks", "catalog.*", "--repeats", "1")
    assert [(row["success"], row["tests_identical"], row["test_files_changed"]) for row in found] == [(0, 0, 1)] * 3
    assert all(row["tests_changed"][0].startswith("tests/test_") for row in found)


def test_the_agent_that_plants_hooks_gains_nothing_and_each_is_reported(tmp_path):
    found = rows(tmp_path / "run", f"python3 {AGENTS / 'plants_hooks.py'}", "--tasks", "catalog.*", "--repeats", "1")
    assert [row["success"] for row in found] == [0, 0, 0]
    for row in found:
        assert [entry.partition(":")[0] for entry in row["grading_surface"]] == [
            "always_passes-1.0.dist-info/METADATA",
            "always_passes-1.0.dist-info/entry_points.txt",
            "always_passes.py",
            "conftest.py",
            "pytest.ini",
            "sitecustomize.py",
            "tests/conftest.py",
        ]


def test_the_agent_that_does_nothing_changes_nothing(tmp_path):
    (row,) = rows(tmp_path / "run", f"sh {AGENTS / 'idle.sh'}", "--tasks", "text.cut-characters", "--repeats", "1")
    assert (row["success"], row["patch_lines"], row["tests_identical"]) == (0, 0, 1)


def test_the_agent_that_never_ends_is_timed_out(tmp_path):
    (row,) = rows(tmp_path / "run", f"sh {AGENTS / 'loops.sh'}", "--tasks", "feed.empty-page", "--repeats", "1")
    assert (row["exit_reason"], row["timeout"], row["limit"], row["success"]) == ("timeout", 1, "wall_clock", 0)
    assert 10 <= row["limit_at_s"] < 40


@pytest.mark.long
def test_the_pack_is_sound_and_the_same_rows_come_from_every_repeat(tmp_path):
    done = call("baseline", PACK, "--out", tmp_path / "baselines", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "oracle: 70 of 70" in done.stdout
    found = rows(tmp_path / "run", f"python3 {AGENTS / 'coder.py'}")
    outcomes: dict[str, set[tuple[int, str]]] = {}
    for row in found:
        outcomes.setdefault(row["task_id"], set()).add((row["success"], row["patch_sha256"]))
    assert len(outcomes) == 14
    assert all(len(each) == 1 for each in outcomes.values())
