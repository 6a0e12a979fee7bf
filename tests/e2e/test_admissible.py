"""From a pack with its card to an admissible report, and every single thing that keeps a report from being one."""

import hashlib
import json
import re
import secrets
import shutil
import subprocess
from pathlib import Path

import pytest

from scoresheet import canonical, digest
from scoresheet.cli import app
from scoresheet.documents.run_plan import RunPlan
from scoresheet.publish import run_folder
from tests.command import call
from tests.run.packs import OBEY, shop, write_card

EXAMPLES = Path(__file__).parents[2] / "examples"
SIX = {f"t{number}": "careful" for number in range(6)}


def run(pack, out, *more, agent=OBEY, seat=("--seat", "laptop-a"), ok=0):
    return call("run", pack, "--agent", agent, *seat, "--out", out, "--quiet", *more, ok=ok)


def rules(folder, pack=None):
    return [reason.rule for reason in run_folder.read(folder, pack).unmet]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A complete run of a pack of six tasks, with what the command said."""
    folder = tmp_path_factory.mktemp("scored")
    pack = shop(folder / "pack", SIX, repeats=1)
    done = run(pack.root, folder / "run")
    return folder, pack, done


@pytest.fixture
def copy(scored, tmp_path):
    """A copy of that run, to be spoiled."""
    shutil.copytree(scored[0] / "run", tmp_path / "run")
    return tmp_path / "run"


def test_a_complete_run_is_admissible(scored, capsys):
    folder, pack, done = scored
    assert done.stdout.splitlines()[-1] == "admissible"
    assert done.stdout.startswith("confounds: 0\nconfound_log: confounds.jsonl\nprotocol: tool-replay-v2\n")
    assert "DRAFT" not in done.stdout
    assert "draft" not in done.stderr
    assert app.run(["report", str(folder / "run")]) == 0
    assert capsys.readouterr().out == done.stdout == (folder / "run" / "report.txt").read_text()
    assert app.run(["report", str(folder / "run"), "--pack", str(pack.root)]) == 0
    assert app.run(["report", str(folder / "run"), "--format", "json"]) == 0
    assert json.loads((folder / "run" / "report.json").read_text())["draft"] is False
    receipts = (folder / "run" / "receipts.jsonl").read_bytes().splitlines()
    head = f"{hashlib.sha256(receipts[-1]).hexdigest()} (6 receipts)"
    assert f"receipts_head: {head}" in done.stdout


def test_baselines_are_found_again_by_the_next_run(scored):
    folder, pack, _ = scored
    done = run(pack.root, folder / "second")
    assert rules(folder / "second") == []
    assert not (folder / "second-baselines").exists()
    assert "baselines: null 0.0000, oracle 1.0000" in done.stdout


def change_plan(folder, **members):
    plan = RunPlan.from_bytes((folder / "run.json").read_bytes(), "run.json").model_copy(update=members)
    (folder / "run.json").write_bytes(plan.text())


def incomplete_card(folder):
    card = json.loads((folder / "card.yaml").read_text())
    card["suite"]["source"] = "TODO"
    (folder / "card.yaml").write_text(json.dumps(card))
    change_plan(folder, card_sha256=digest.of((folder / "card.yaml").read_bytes()))


def another_card(folder):
    card = json.loads((folder / "card.yaml").read_text())
    card["metrics"]["tie_margin"] = 0.5
    (folder / "card.yaml").write_text(json.dumps(card))


def change_row(folder, **members):
    *before, last = (folder / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "rows.jsonl").write_bytes(b"".join(before) + canonical.line(json.loads(last) | members))


def cut_row(folder, keep=0):
    *before, last = (folder / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "rows.jsonl").write_bytes(b"".join(before) + last[:keep])


def doubled_row(folder):
    with (folder / "rows.jsonl").open("r+b") as file:
        lines = file.readlines()
        file.write(lines[0])


def broken_baselines(folder):
    found = json.loads((folder / "baselines.json").read_text())
    found["null"] |= {"successes": 1, "failing": ["t0"]}
    (folder / "baselines.json").write_text(json.dumps(found))


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda folder: change_plan(folder, pack_verified=False), "report-pack"),
        (lambda folder: (folder / "card.yaml").unlink(), "report-card"),
        (incomplete_card, "report-card"),
        (another_card, "report-card"),
        (lambda folder: (folder / "receipts.jsonl").unlink(), "report-receipts"),
        (cut_row, "report-missing"),
        (lambda folder: change_row(folder, exit_reason="harness_error", success=0), "report-harness-error"),
        (lambda folder: change_row(folder, success=None), "report-pending"),
        (lambda folder: change_row(folder, isolation="not_proved"), "report-isolation"),
        (doubled_row, "rows-duplicate"),
        (lambda folder: (folder / "baselines.json").unlink(), "report-baselines"),
        (broken_baselines, "report-baselines"),
        (lambda folder: (folder / "confounds.jsonl").unlink(), "report-confounds"),
        (lambda folder: (folder / "pack.json").unlink(), "report-record"),
        (lambda folder: (folder / "confounds.jsonl").write_text("the fan broke\n"), "confounds-json"),
    ],
)
def test_one_unmet_condition_is_refused_for_that_reason_alone(copy, spoil, rule, capsys):
    spoil(copy)
    assert rules(copy) == [rule]
    assert app.run(["report", str(copy)]) in (1, 4)
    out = capsys.readouterr().out
    assert out.startswith("not admissible:\n")
    assert out.rstrip().endswith(f"[{rule}]")
    assert "success_mean" not in out
    assert app.run(["report", str(copy), "--draft"]) in (0, 4)
    assert capsys.readouterr().out.startswith("DRAFT")


def test_without_isolation_the_only_reason_is_that(scored, tmp_path):
    folder, pack, _ = scored
    run(pack.root, tmp_path / "run", "--isolation", "none", "--baselines", folder / "run-baselines")
    assert rules(tmp_path / "run") == ["report-isolation"]


def test_one_held_back_holdout_task_makes_the_report_inadmissible_not_the_pack_smaller(scored, tmp_path):
    pack = shop(tmp_path / "pack", SIX, repeats=1)
    task = pack.root / "tasks" / "t3.json"
    task.write_text(json.dumps(json.loads(task.read_text()) | {"card": {"mutation_scope": "network"}}))
    call("freeze", pack.root, "--repeats", 1, ok=0)
    write_card(pack.open(pack.root))
    call("baseline", pack.root, "--repeats", 1, "--out", tmp_path / "base", ok=0)
    done = run(pack.root, tmp_path / "run", "--baselines", tmp_path / "base")
    assert "draft: t3 is not started: quarantine: the mutation scope is network" in done.stderr
    assert rules(tmp_path / "run") == ["report-receipts"]
    assert "planned: 6" in done.stdout
    assert call("report", tmp_path / "run").returncode == 1
    assert len((tmp_path / "run" / "receipts.jsonl").read_bytes().splitlines()) == 6
    assert len((tmp_path / "run" / "rows.jsonl").read_bytes().splitlines()) == 5


def lines_of(folder):
    return [json.loads(line) for line in (folder / "receipts.jsonl").read_bytes().splitlines()]


def rechain(folder, receipts, head=False):
    previous, lines = "0" * 64, []
    for receipt in receipts:
        line = canonical.line(receipt | {"previous": previous})
        previous = hashlib.sha256(line[:-1]).hexdigest()
        lines.append(line)
    (folder / "receipts.jsonl").write_bytes(b"".join(lines))
    if head:
        change_plan(folder, receipts_sha256=previous, receipts_count=len(lines))


@pytest.fixture(scope="module")
def stale(tmp_path_factory):
    """A run in which one task was held back."""
    folder = tmp_path_factory.mktemp("stale")
    pack = shop(folder / "pack", SIX, repeats=1)
    task = pack.root / "tasks" / "t3.json"
    task.write_text(json.dumps(json.loads(task.read_text()) | {"card": {"mutation_scope": "secrets"}}))
    call("freeze", pack.root, "--repeats", 1, ok=0)
    write_card(pack.open(pack.root))
    run(pack.root, folder / "run", "--draft")
    return folder


@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("facts", [False, True])
def test_a_leaf_that_was_edited_and_chained_anew_is_named(stale, tmp_path, head, facts, capsys):
    folder = shutil.copytree(stale / "run", tmp_path / "run")
    receipts = lines_of(folder)
    place = next(number for number, each in enumerate(receipts) if each["task_id"] == "t3")
    assert receipts[place]["leaf"] == "quarantine"
    better = {name: receipts[0][name] for name in ("leaf", "reason", "next_action", "runner_seat", "mutation_scope")}
    receipts[place] |= better
    if facts:
        receipts[place]["card"] = receipts[0]["card"] | {"task_id": "t3"}
    rechain(folder, receipts, head)
    found = rules(folder)
    assert "receipt-leaf" in found
    assert ("receipt-head" in found) != head
    assert app.run(["report", str(folder)]) == 4  # the episodes that it claims are missing, too
    assert "t3" in capsys.readouterr().out
    assert app.run(["report", str(folder), "--pack", str(stale / "pack")]) == 4
    assert "[receipt-leaf]" in capsys.readouterr().out


def test_a_removed_newest_receipt_is_named(copy):
    lines = (copy / "receipts.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "receipts.jsonl").write_bytes(b"".join(lines[:-1]))
    assert rules(copy) == ["report-receipts", "receipt-head"]
    assert any("1 of 6 receipts are missing: the file was cut" in str(reason) for reason in run_folder.read(copy).unmet)


def test_a_removed_middle_receipt_is_named(copy):
    lines = (copy / "receipts.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "receipts.jsonl").write_bytes(b"".join(lines[:2] + lines[3:]))
    assert "receipt-chain" in rules(copy)


def test_a_doubled_receipt_is_named(copy):
    receipts = lines_of(copy)
    rechain(copy, [*receipts, receipts[-1]], head=True)
    assert rules(copy) == ["receipt-twice"]


def test_the_receipts_of_another_pack_are_named(copy, stale):
    shutil.copy(stale / "run" / "receipts.jsonl", copy / "receipts.jsonl")
    found = rules(copy)
    assert found.count("receipt-pack") == 6
    assert "receipt-head" in found


def test_another_pack_at_hand_is_named(copy, stale, capsys):
    assert app.run(["report", str(copy), "--pack", str(stale / "pack")]) == 1
    assert "the pack at hand is" in capsys.readouterr().out


def test_only_holdout_tasks_enter_the_figures_and_the_others_are_shown_apart(tmp_path):
    prompts = {**SIX, "t6": "sloppy"}
    pack = shop(tmp_path / "pack", prompts, repeats=1)

    def tuned(card):
        card["dataset_split"] = {"train_like": ["t6"], "holdout": list(SIX)}

    write_card(pack, tuned)
    task = pack.root / "tasks" / "t6.json"
    assert task.exists()
    done = run(pack.root, tmp_path / "run")
    assert done.stdout.splitlines()[-1] == "admissible"
    assert "tasks: 6\n" in done.stdout
    assert "planned: 6\n" in done.stdout
    line = re.search(r"^calibration: (.*)$", done.stdout, re.MULTILINE)
    assert line is not None
    assert line[1].endswith("of 1 episodes of 1 train_like tasks succeeded; in no figure")
    keys = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert keys.index("calibration") == len(keys) - 1 - keys[::-1].index("gap") + 1
    found = json.loads((tmp_path / "run" / "report.json").read_text())
    assert [task["task_id"] for task in found["calibration"]["per_task"]] == ["t6"]
    assert [task["task_id"] for task in found["per_task"]] == sorted(SIX)


def test_what_the_card_pins_and_the_run_did_not_keep_stands_first(scored, tmp_path):
    _, pack, _ = scored
    folder = shutil.copytree(pack.root, tmp_path / "pack")

    def other(card):
        card["controls"] |= {"parallel_jobs": 3, "runtime": "python 2.7", "human_intervention": "logged"}
        card["environment"]["os"] = "Windows 11"

    write_card(pack.open(folder), other)
    done = run(folder, tmp_path / "run", "--jobs", 1, "--baselines", scored[0] / "run-baselines")
    head = done.stdout.split("protocol:")[0]
    assert head.startswith("confounds: 3\nattended: true\nconfound_log: confounds.jsonl\nconfound: ")
    assert "controls.parallel_jobs: the card pins 3, the run had 1" in head
    assert "environment.os: the card pins Windows 11" in head
    assert "controls.runtime: the card pins python 2.7" in head
    assert done.stdout.splitlines()[-1] == "admissible"
    entry = json.loads((tmp_path / "run" / "confounds.jsonl").read_text().splitlines()[-1])
    assert (entry["by"], entry["kind"]) == ("scoresheet", "deviation")
    found = json.loads((tmp_path / "run" / "report.json").read_text())
    members = list(found)
    assert members.index("confound_entries") < members.index("protocol") < members.index("success_mean")
    assert len(found["confound_entries"]) == found["confounds"] == 3


def test_an_uncommitted_card_is_a_confound(scored, tmp_path):
    _, pack, _ = scored
    folder = shutil.copytree(pack.root, tmp_path / "suite" / "pack")
    git = ["git", "-C", str(tmp_path / "suite"), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "pack/manifest.json", "pack/tasks"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "pack"], check=True)
    done = run(folder, tmp_path / "run", "--draft")
    assert "confounds: 1\n" in done.stdout
    assert "card.yaml is not committed" in done.stdout
    assert "manifest.json is not committed" not in done.stdout


def test_a_resumed_run_says_so_and_stays_admissible(copy, scored):
    cut_row(copy)
    lines = len((copy / "rows.jsonl").read_bytes().splitlines())
    done = run(scored[1].root, copy, "--resume")
    assert rules(copy) == []
    assert f"resumed: the run was resumed with {lines} attempts made" in done.stdout
    assert "(12 receipts)" in done.stdout


def test_a_changed_card_is_no_resumption(copy, scored, tmp_path):
    cut_row(copy)
    folder = shutil.copytree(scored[1].root, tmp_path / "pack")
    write_card(scored[1].open(folder), lambda card: card["metrics"].update(tie_margin=0.2))
    assert "card_sha256" in run(folder, copy, "--resume", ok=1).stderr


def test_a_planted_token_runs_nothing_and_appears_nowhere(tmp_path):
    token = "ghp_" + "".join(
        secrets.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") for _ in range(36)
    )
    pack = shop(tmp_path / "pack", {**SIX, "t3": f"careful {token}"}, repeats=1)
    before = {path: path.read_bytes() for path in pack.root.rglob("*") if path.is_file()}
    assert [path for path, data in before.items() if token.encode() in data] == [pack.root / "tasks" / "t3.json"]
    agent = tmp_path / "agent.sh"
    agent.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    agent.chmod(0o755)
    said = ""
    for words in (
        ("triage", pack.root, "--seat", "s"),
        ("triage", pack.root, "--json"),
        ("run", pack.root, "--agent", agent, "--seat", "s", "--out", tmp_path / "run"),
        ("run", pack.root, "--agent", agent, "--seat", "s", "--draft", "--isolation", "none"),
    ):
        done = call(*words, ok=1, folder=tmp_path)
        assert "refuse" in done.stdout + done.stderr
        assert "tasks/t3.json" in done.stderr
        said += done.stdout + done.stderr
    assert "nothing was run" in said
    assert token not in said
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "run").exists()
    for path in tmp_path.rglob("*"):
        if path.is_file() and path not in before:
            assert token.encode() not in path.read_bytes(), path
        assert token not in path.name
    leaves = {each["leaf"] for each in lines_of(pack.root)}
    assert leaves == {"refuse"}


def test_bytes_once_refused_for_a_leak_never_come_back_and_an_edit_does(tmp_path):
    token = "ghp_" + "".join(
        secrets.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") for _ in range(36)
    )
    pack = shop(tmp_path / "pack", {**SIX, "t3": f"careful {token}"}, repeats=1)
    call("triage", pack.root, ok=1)
    allowed = digest.of(token.encode())
    write_card(pack, lambda card: card.update(leak_allow=[{"match_sha256": allowed, "reason": "revoked"}]))
    done = call("triage", pack.root, ok=1)
    assert done.stdout.count("refuse: ") == 6
    assert "an edit makes a new digest" in done.stderr
    task = pack.root / "tasks" / "t3.json"
    task.write_text(task.read_text().replace(token, "again"))
    call("freeze", pack.root, "--repeats", 1, ok=0)
    write_card(pack.open(pack.root))
    assert call("triage", pack.root, ok=0).stdout.count("score: ") == 6


def test_freezing_the_same_bytes_again_makes_them_no_younger(tmp_path):
    pack = shop(tmp_path / "pack", SIX, repeats=1)
    write_card(pack, lambda card: card["controls"].update(stale_after_hours=24))
    (pack.root / "frozen_at.txt").write_text("2026-01-01T00:00:00Z\n")
    assert call("triage", pack.root, ok=1).stdout.count("refresh: ") == 6
    (pack.root / "frozen_at.txt").unlink()
    call("freeze", pack.root, "--repeats", 1, ok=0)
    assert not (pack.root / "frozen_at.txt").read_text().startswith("2026-01-01")
    assert call("triage", pack.root, ok=1).stdout.count("refresh: ") == 6


def test_without_a_seat_receipts_are_written_and_nothing_runs(tmp_path):
    pack = shop(tmp_path / "pack", SIX, repeats=1)
    done = run(pack.root, tmp_path / "run", seat=(), ok=1)
    assert "no seat: nothing was run" in done.stderr
    assert [each["runner_seat"] for each in lines_of(pack.root)] == [None] * 6
    assert not (tmp_path / "run").exists()


def test_a_pack_without_a_card_is_not_run_and_says_what_is_missing(tmp_path):
    pack = shop(tmp_path / "pack", SIX, repeats=1)
    (pack.root / "card.yaml").unlink()
    done = run(pack.root, tmp_path / "run", ok=1)
    assert "refresh: t0: no stale window. Rebuild locally; do not score" in done.stderr
    assert "controls: {stale_after_hours: 720}" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", ["billing-v3", "catalog-v1"])
def test_the_example_packs_give_admissible_reports(tmp_path, name):
    folder = shutil.copytree(EXAMPLES / "packs" / name, tmp_path / name)
    (folder / "receipts.jsonl").unlink(missing_ok=True)
    shutil.copytree(EXAMPLES / "agents", tmp_path / "agents")
    found = json.loads((folder / "manifest.json").read_text())
    agent = f"python3 {tmp_path}/agents/{'careful' if name == 'billing-v3' else 'random_walk'}.py"
    done = run(folder, tmp_path / "run", agent=agent)
    assert done.stdout.splitlines()[-1] == "admissible"
    assert f"repeats_per_task: {found.get('repeats', 5)}" in done.stdout
    assert "not declared" not in done.stdout.replace("tie_margin: not declared", "")
