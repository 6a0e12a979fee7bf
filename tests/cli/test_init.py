"""A new suite: its blanks are what `check` lists, no more and no less."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scoresheet import yaml12
from tests.command import SCORESHEET


def run(*arguments, code=0):
    done = subprocess.run([SCORESHEET, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def pointers(value, at=""):
    """JSON pointers of every blank in a value."""
    if isinstance(value, dict):
        return {one for name, item in value.items() for one in pointers(item, f"{at}/{name}")}
    if isinstance(value, list):
        return {one for place, item in enumerate(value) for one in pointers(item, f"{at}/{place}")}
    return {at} if isinstance(value, str) and "REPLACE_ME" in value else set()


def blanks(suite: Path):
    """Where each blank of a suite stands, as a finding names it."""
    card = yaml12.load((suite / "card.yaml").read_bytes())
    found = {f"{suite}/card.yaml:{card.place(pointer)}" for pointer in pointers(card.value)}
    for task in suite.glob("tasks/*.json"):
        found |= {f"{task}#{pointer}" for pointer in pointers(json.loads(task.read_bytes()))}
    return found


@pytest.mark.parametrize("kind", ["replay", "workspace"])
def test_check_lists_exactly_the_blanks_of_a_new_suite(tmp_path, kind):
    suite = tmp_path / "suite"
    run("init", suite, "--kind", kind)
    checked = json.loads(run("check", suite, "--json", code=1).stdout)
    found = [finding["where"] for target in checked["targets"] for finding in target["findings"]]
    assert len(found) == len(set(found))
    assert set(found) == blanks(suite)
    assert len(found) > 15


def test_blanks_that_were_frozen_are_still_blanks(tmp_path):
    run("init", tmp_path / "suite")
    run("freeze", tmp_path / "suite")
    checked = json.loads(run("check", tmp_path / "suite" / "card.yaml", "--json", code=1).stdout)
    assert "prompt is empty" in {finding["what"] for finding in checked["targets"][0]["findings"]}


@pytest.mark.parametrize(("kind", "blanks"), [("replay", ("/expected/answer", "/prompt")), ("workspace", ("/prompt",))])
def test_freezing_blanks_says_so_and_no_run_scores_them(tmp_path, kind, blanks):
    suite = tmp_path / "suite"
    run("init", suite, "--kind", kind)
    card = suite / "card.yaml"
    card.write_text(card.read_text().replace("stale_after_hours: REPLACE_ME", "stale_after_hours: 720"))
    said = run("freeze", suite).stderr
    for pointer in blanks:
        assert f"is a blank: nothing scores a pack that holds one — tasks/example.1.json#{pointer} [task-blank]" in said
    assert said.count("[task-blank]") == len(blanks)
    assert (
        f"note: card.yaml still holds blanks, and nothing is scored with such a card: scoresheet check {suite}" in said
    )
    assert run("freeze", suite, "--quiet").stderr == ""
    for more in ((), ("--draft",)):
        told = run("run", suite, "--agent", "true", "--seat", "x", "--out", tmp_path / "run", *more, code=1).stderr
        assert "no task has leaf score: nothing was run" in told
        assert f"mend: correct what is named above, then scoresheet freeze {suite}" in told
        assert not (tmp_path / "run").exists()


def test_a_recording_or_a_sentence_that_names_the_blank_is_none(tmp_path):
    run("init", tmp_path / "suite")
    (task,) = (tmp_path / "suite" / "tasks").iterdir()
    value = json.loads(task.read_bytes()) | {
        "prompt": "What does REPLACE_ME mean?",
        "expected": {"answer": "a REPLACE_ME"},
    }
    task.write_text(json.dumps(value))
    assert "task-blank" not in run("freeze", tmp_path / "suite").stderr


def test_the_example_of_a_workspace_suite_fails_its_test_until_its_solution_is_applied(tmp_path):
    run("init", tmp_path / "suite", "--kind", "workspace")
    work = shutil.copytree(tmp_path / "suite" / "workspaces" / "example.1", tmp_path / "work")
    oracle = tmp_path / "suite" / "oracles" / "example.1"
    shutil.copytree(oracle / "tests", work / "tests")
    (task,) = (tmp_path / "suite" / "tasks").iterdir()
    python, *words = json.loads(task.read_bytes())["oracle"]["test_command"].split()
    assert python == "python3"
    command = [sys.executable, "-B", *words, "-p", "no:cacheprovider"]  # bytecode of the same second would be stale
    assert subprocess.run(command, cwd=work, capture_output=True, check=False).returncode == 1
    subprocess.run(["git", "apply", oracle / "solution.patch"], cwd=work, check=True)
    subprocess.run(command, cwd=work, capture_output=True, check=True)


FILLED = {
    "name": "refunds",
    "license": "Apache-2.0",
    "source": "written for this test",
    "contamination_note": "never published",
    "task_count": "1",
    "taxonomy": "{refund: 1}",
    "origins": "{synthetic: [example.1]}",
    "holdout": "[example.1]",
    "primary": "share of runs that exit before wall_clock_s",
    "secondary": "[timeout vs tool-cap vs model error, success_mean]",
    "runtime": "python-3.12",
    "lockfile": "none",
    "tool_allowlist": "[none]",
    "max_tool_calls": "10",
    "temperature": "0.0",
    "human_intervention": "none",
    "network": "denied",
    "stale_after_hours": "720",
    "os": "debian-12",
}


def test_the_template_filled_in_frozen_and_committed_is_a_complete_card(tmp_path):
    suite = tmp_path / "suite"
    run("init", suite)
    task = suite / "tasks" / "example.1.json"
    task.write_text(task.read_text().replace("REPLACE_ME", "forty-two"))
    fixture = json.loads(run("freeze", suite, "--tar", tmp_path / "suite.tar", "--json").stdout)["fixture_hash"]
    commit = ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "suite"]
    for arguments in (["init", "-q"], ["add", "."], commit):
        subprocess.run(["git", *arguments], cwd=suite, check=True)
    shutil.move(suite / ".git", tmp_path / ".git")  # a pack holds no .git: its repository lies around it
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=suite, capture_output=True, text=True, check=True).stdout
    text = (suite / "card.yaml").read_text()
    for name, value in (FILLED | {"git_sha": head.strip(), "fixture_hash": fixture}).items():
        assert f"\n  {name}: REPLACE_ME\n" in text
        text = text.replace(f"\n  {name}: REPLACE_ME\n", f"\n  {name}: {value}\n")
    (suite / "card.yaml").write_text(text)
    done = run("check", suite)
    assert "protocol card ok\n" in done.stdout
    assert "not judged" not in done.stderr


def test_it_says_how_many_tasks_an_interval_needs(tmp_path):
    assert "5 tasks are needed for an interval" in run("init", tmp_path / "suite").stderr


def test_no_line_ending_of_a_suite_may_change(tmp_path):
    run("init", tmp_path / "suite")
    assert b"\n* -text\n" in (tmp_path / "suite" / ".gitattributes").read_bytes()


@pytest.mark.parametrize("there", ["card.yaml", "tasks/example.1.json", "manifest.json"])
def test_nothing_is_overwritten_and_nothing_is_written_beside_it(tmp_path, there):
    mine = tmp_path / "suite" / there
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    done = run("init", tmp_path / "suite", code=1)
    assert f"{there} [pack-init]" in done.stderr
    assert mine.read_text() == "mine"
    assert [path for path in (tmp_path / "suite").rglob("*") if path.is_file()] == [mine]


def test_a_dangling_link_is_not_written_through(tmp_path):
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "card.yaml").symlink_to(tmp_path / "elsewhere")
    run("init", tmp_path / "suite", code=1)
    assert not (tmp_path / "elsewhere").exists()
