"""Tasks that a human judges, from the pack to the report, with real agents in real sandboxes."""

import json

from scoresheet.publish import run_folder
from scoresheet.run import journal
from tests.command import call
from tests.run.packs import OBEY, shop
from tests.run.works import ACT, works

HUMAN = {"oracle": {"kind": "human"}}


def test_a_replayed_task_waits_for_a_human_and_then_is_reported(tmp_path):
    prompts = {"a": "careful", "b": "wrong", "c": "silent", "d": "guesser", "e": "quits", "f": "submits"}
    pack = shop(tmp_path / "pack", prompts, repeats=1, extra=HUMAN)
    out = tmp_path / "run"
    done = call("run", pack.root, "--agent", OBEY, "--seat", "s", "--out", out, "--quiet")
    assert done.returncode == 4, done.stderr
    assert "3 episodes wait for a human" in done.stderr
    assert f"scoresheet judge {out}" in done.stderr
    assert "baselines: null 0.0000, oracle 0.0000 (6 of 6 episodes are for humans to judge)" in done.stdout
    rows = {row.task_id: row for row in journal.read_rows(out / "rows.jsonl")}
    # whoever left no answer, asked for what is not recorded, or crashed has failed: nothing is left to judge
    assert {task: row.success for task, row in rows.items()} == {
        "a": None, "b": None, "c": 0, "d": 0, "e": 0, "f": None,
    }  # fmt: skip
    assert call("report", out).returncode == 4
    half = call("judge", out, "--judge", "alice", keys="y\n")
    assert (half.returncode, half.stdout) == (4, "judged: 1, pending: 2\n")
    assert half.stderr.count("  │ careful\n") + half.stderr.count("  │ wrong\n") + half.stderr.count("submits\n") == 2
    assert "obey" not in half.stderr.replace(str(out), "")
    assert call("judge", out, "--judge", "bob", keys="y\nn\n").returncode == 0
    report = call("report", out)
    assert report.returncode == 0, report.stdout
    assert report.stdout.splitlines()[-1] == "admissible"
    assert "judged: 3 episodes by alice, bob, blind; 0 pending" in report.stdout
    assert "success_mean: 0.3333" in report.stdout
    assert report.stdout == (out / "report.txt").read_text()
    assert [row.success for row in journal.read_rows(out / "rows.jsonl")].count(None) == 3  # rows stay as they were


def test_a_resumed_run_does_not_run_again_what_waits_for_a_human(tmp_path):
    pack = shop(tmp_path / "pack", {"a": "careful"}, repeats=2, extra=HUMAN)
    words = ("run", pack.root, "--agent", OBEY, "--seat", "s", "--out", tmp_path / "run", "--quiet", "--draft")
    assert call(*words).returncode == 4
    rows = (tmp_path / "run" / "rows.jsonl").read_bytes()
    assert call(*words, "--resume").returncode == 4
    assert (tmp_path / "run" / "rows.jsonl").read_bytes() == rows


def test_a_workspace_is_judged_by_its_patch(tmp_path):
    prompts = {"fix": "echo '# tidy' >> shop.py; printf 'x = \"\\033[2J\"\\n' > new.py", "idle": "true"}
    pack = works(tmp_path / "pack", prompts, card={"stale_after_hours": 1000}, **HUMAN)
    out = tmp_path / "run"
    done = call("run", pack.root, "--agent", ACT, "--seat", "s", "--out", out, "--quiet", "--draft")
    assert done.returncode == 4, done.stderr
    seen = call("judge", out, "--judge", "alice", keys="y\n")
    assert (seen.returncode, seen.stdout) == (0, "judged: 1, pending: 0\n")
    assert "  │ +# tidy\n" in seen.stderr
    assert '  │ +x = "\\x1b[2J"\n' in seen.stderr
    report = run_folder.read(out).report()
    assert {task.task_id: task.success for task in report.per_task} == {"fix": (1,), "idle": (0,)}
    document = json.loads((out / "report.json").read_text())
    assert document["decisions"]["land_a_fix"]["why_not"] == "no task is judged by frozen tests"
    assert document["decisions"]["land_a_fix"]["patch_lines"]["patches"] == 2
