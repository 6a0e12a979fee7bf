"""`scoresheet run` and `baseline` as people call them: the installed command, real agents, signals."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from scoresheet.run import journal
from tests.command import SCORESHEET, call
from tests.processes import alive
from tests.run.packs import OBEY, shop

MARKER = f"{os.getpid()}{time.time_ns() % 10**9}"


def run(pack, out, *more, agent=OBEY, ok=0):
    words = ("run", pack.root, "--agent", agent, "--seat", "test", "--out", out, "--quiet", *more)
    return call(*words, *(() if "--tasks" in more or "--isolation" in more else ("--draft",)), ok=ok)


def value(text, key):
    found = re.search(rf"^{key}: (.*)$", text, re.MULTILINE)
    assert found, text
    return found[1]


@pytest.fixture
def pack(tmp_path):
    return shop(tmp_path / "pack", {f"t{number}": "careful" for number in range(6)}, repeats=2)


def test_a_run_prints_its_block_as_a_draft_and_says_why(tmp_path, pack):
    done = run(pack, tmp_path / "run", "--tasks", "t[0-4]")
    assert value(done.stdout, "manifest_sha256") == pack.manifest_sha256
    assert value(done.stdout, "success_mean") == "1.0000"
    assert value(done.stdout, "live_network") == "denied"
    assert value(done.stdout, "repeats_per_task") == "2"
    assert "draft: true" in done.stdout
    assert "draft: only 5 of 6 tasks were chosen" in done.stderr
    assert str(tmp_path / "run") in done.stderr
    assert journal.read_plan(tmp_path / "run").status == "finished"


def test_without_isolation_the_block_never_says_denied(tmp_path, pack):
    done = run(pack, tmp_path / "run", "--isolation", "none")
    assert value(done.stdout, "live_network") == "not_isolated"
    assert "draft: the episodes are not isolated" in done.stderr


def test_two_runs_with_one_seed_have_the_same_figures(tmp_path, pack):
    blocks = [run(pack, tmp_path / name, "--jobs", jobs).stdout for name, jobs in (("a", 1), ("b", 3))]
    assert value(blocks[0], "figures_sha256") == value(blocks[1], "figures_sha256")
    assert value(blocks[0], "rows_sha256") != value(blocks[1], "rows_sha256")


def test_without_a_seat_nothing_runs(tmp_path, pack):
    done = call("run", pack.root, "--agent", OBEY, "--out", tmp_path / "run", ok=1)
    assert "error: no seat: nothing was run" in done.stderr
    assert len((pack.root / "receipts.jsonl").read_bytes().splitlines()) == 6
    assert not (tmp_path / "run").exists()


def test_another_digest_than_expected_aborts_before_any_episode(tmp_path, pack):
    done = run(pack, tmp_path / "run", "--expect", "ab" * 32, ok=1)
    assert pack.manifest_sha256 in done.stderr
    assert not (tmp_path / "run").exists()
    run(pack, tmp_path / "run", "--expect", f"sha256:{pack.manifest_sha256}")


def test_a_changed_byte_aborts_before_any_episode(tmp_path, pack):
    task = pack.root / "tasks" / "t3.json"
    task.write_bytes(task.read_bytes().replace(b"12}", b"13}"))
    done = run(pack, tmp_path / "run", ok=1)
    assert "tasks/t3.json" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_directory_is_not_overwritten(tmp_path, pack):
    run(pack, tmp_path / "run")
    before = (tmp_path / "run" / "rows.jsonl").read_bytes()
    assert "--resume" in run(pack, tmp_path / "run", ok=2).stderr
    assert (tmp_path / "run" / "rows.jsonl").read_bytes() == before


def test_the_default_run_directory_is_a_new_one_below_runs(tmp_path, pack):
    (tmp_path / "here").mkdir()
    for _ in range(2):
        call("run", pack.root, "--agent", OBEY, "--seat", "s", "--isolation", "none", folder=tmp_path / "here", ok=0)
    assert len(list((tmp_path / "here" / "runs").iterdir())) == 2


def test_lines_without_a_terminal_say_how_far_it_is(tmp_path, pack):
    done = call(
        "run", pack.root, "--agent", OBEY, "--seat", "s", "--isolation", "none", "--out", tmp_path / "run", ok=0
    )
    assert "run: 0 of 12 episodes done, 0 failing" in done.stderr
    assert "run: 12 of 12 episodes done, 0 failing" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout


def test_a_terminal_gets_a_live_line(tmp_path, pack):
    import pty

    leader, follower = pty.openpty()
    line = [SCORESHEET, "run", pack.root, "--agent", OBEY, "--seat", "s", "--isolation", "none", "--out"]
    with subprocess.Popen([*map(str, line), str(tmp_path / "run")], stdout=subprocess.PIPE, stderr=follower) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
        assert process.stdout is not None
        assert b"success_mean" in process.stdout.read()
    os.close(leader)
    assert process.returncode == 0
    assert b"12/12" in shown
    assert b"failing 0" in shown


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (("--repeats", "3"), "repeats: recorded 2, asked 3"),
        (("--tasks", "t1"), "tasks:"),
        (("--isolation", "none"), "isolation: recorded bwrap, asked none"),
        (("--agent", "/bin/true"), "agent.sha256:"),
    ],
)
def test_a_changed_run_is_not_resumed_and_the_change_is_named(tmp_path, pack, change, field):
    run(pack, tmp_path / "run")
    done = run(pack, tmp_path / "run", "--resume", *change, ok=1)
    assert field in done.stderr


def test_a_run_of_another_pack_is_not_resumed(tmp_path, pack):
    run(pack, tmp_path / "run")
    other = shop(tmp_path / "other", {"t0": "careful"}, repeats=2, seed=5, timeout_s=7)
    done = run(other, tmp_path / "run", "--resume", ok=1)
    for field in ("manifest_sha256", "seed: recorded 20260922, asked 5", "timeout_s: recorded 30, asked 7", "tasks"):
        assert field in done.stderr


def test_a_missing_sandbox_is_exit_3_and_never_a_silent_fallback(tmp_path, pack):
    environment = {**os.environ, "PATH": str(tmp_path / "empty")}
    line = [SCORESHEET, "run", pack.root, "--agent", OBEY, "--seat", "s", "--out", tmp_path / "run"]
    done = subprocess.run(list(map(str, line)), capture_output=True, text=True, env=environment)
    assert done.returncode == 3, done.stderr
    assert "bwrap-missing" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("isolation", ["none", "bwrap"])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_process_and_can_be_resumed(tmp_path, isolation, sent):
    marker = f"{MARKER}.{sent}{isolation == 'none':d}"
    pack = shop(tmp_path / "pack", {"a": "careful", "b": f"never {marker}", "c": "careful"}, timeout_s=40)
    line = ["run", pack.root, "--agent", OBEY, "--seat", "s", "--out", tmp_path / "run", "--isolation", isolation]
    line += ["--jobs", "2", "--repeats", "1"]
    words = [SCORESHEET, *map(str, line)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        wait_for(lambda: alive(f"sleep\0{marker}") and len(rows(tmp_path / "run")) == 2)
        if sent == signal.SIGINT:
            os.killpg(process.pid, sent)  # as a terminal does: everything in the foreground gets it
        else:
            process.send_signal(sent)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 130, said
    assert "--resume" in said
    assert alive(marker) == []
    assert journal.read_plan(tmp_path / "run").status == "interrupted"
    assert sorted(row.task_id for row in rows(tmp_path / "run")) == ["a", "c"]
    report = call("report", tmp_path / "run")
    assert report.returncode == 4


@pytest.mark.parametrize("isolation", ["none", "bwrap"])
def test_killed_at_random_moments_a_run_loses_no_row_and_doubles_none(tmp_path, isolation):
    marker = f"0.05{MARKER}{isolation == 'none':d}"
    pack = shop(tmp_path / "pack", {f"t{number}": f"waits {marker}" for number in range(10)}, repeats=3)
    line = ["run", pack.root, "--agent", OBEY, "--seat", "s", "--out", tmp_path / "run", "--isolation", isolation]
    dice = random.Random(11)
    kept: list[bytes] = []
    kills = 0
    for attempt in range(5):
        more = ["--resume"] if (tmp_path / "run" / "run.json").exists() else []
        shutil.rmtree(tmp_path / "run", ignore_errors=True) if not more else None
        process = subprocess.Popen(
            [SCORESHEET, *map(str, line), *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wanted = min(len(kept) + 1, 30)
        wait_for(lambda wanted=wanted: len(rows(tmp_path / "run")) >= wanted)
        time.sleep(dice.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        wait_for(lambda: alive(marker) == [])
        lines = (tmp_path / "run" / "rows.jsonl").read_bytes().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        assert whole[: len(kept)] == kept, f"a row was lost or changed by kill {attempt}"
        kept = whole
    assert kills >= 3
    done = call(*line, "--resume", ok=0)
    assert value(done.stdout, "success_mean") == "1.0000"
    found = [(row.task_id, row.repeat, row.attempt) for row in rows(tmp_path / "run")]
    assert sorted(found) == sorted((f"t{number}", repeat, 0) for number in range(10) for repeat in range(3))
    assert alive(marker) == []


def test_a_baseline_says_that_a_sound_pack_is_sound_and_the_report_quotes_it(tmp_path, pack):
    done = call("baseline", pack.root, "--out", tmp_path / "base", ok=0)
    assert "null: 0 of 12 episodes succeeded" in done.stdout
    assert "oracle: 12 of 12 episodes succeeded" in done.stdout
    block = run(pack, tmp_path / "run", "--baselines", tmp_path / "base").stdout
    assert value(block, "baselines") == "null 0.0000, oracle 1.0000"
    facts = json.loads((tmp_path / "base" / "baselines.json").read_text())
    assert (facts["manifest_sha256"], facts["isolation"]) == (pack.manifest_sha256, "proved")


def test_a_baseline_names_the_tasks_that_can_not_be_solved(tmp_path):
    pack = shop(tmp_path / "pack", {"fine": "careful", "capped": "careful"}, repeats=1)
    task = pack.root / "tasks" / "capped.json"
    task.write_text(json.dumps(json.loads(task.read_text()) | {"limits": {"max_tool_calls": 1}}))
    call("freeze", pack.root, "--repeats", 1, ok=0)
    done = call("baseline", pack.root, "--out", tmp_path / "base", "--isolation", "none", ok=1)
    assert "capped [baseline-oracle]" in done.stderr
    assert "fine" not in done.stderr


def test_a_pack_that_its_oracle_can_not_solve_is_refused_by_check_until_it_can(tmp_path):
    pack = shop(tmp_path / "pack", {"fine": "careful", "capped": "careful"}, repeats=1)
    task = pack.root / "tasks" / "capped.json"
    sound = task.read_text()
    (pack.root / "card.yaml").unlink()
    task.write_text(json.dumps(json.loads(sound) | {"limits": {"max_tool_calls": 1}}))
    call("freeze", pack.root, "--repeats", 1, ok=0)
    call("check", pack.root, ok=0)  # nobody knows yet
    call("baseline", pack.root, "--out", tmp_path / "base", "--isolation", "none", ok=1)
    done = call("check", pack.root, ok=1)
    assert "the oracle agent must always succeed: capped" in done.stdout
    assert "[baseline-oracle]" in done.stdout
    assert "fine" not in done.stdout
    call("freeze", pack.root, "--repeats", 1, ok=0)  # the verdict is in no manifest
    call("check", pack.root, ok=1)
    kept = (pack.root / "baselines.jsonl").read_bytes()
    (pack.root / "baselines.jsonl").write_bytes(kept[:-20])
    assert "can't be read" in call("check", pack.root, ok=1).stdout
    (pack.root / "baselines.jsonl").write_bytes(kept)
    task.write_text(sound)
    call("freeze", pack.root, "--repeats", 1, ok=0)
    call("check", pack.root, ok=0)  # that verdict was of another manifest
    call("baseline", pack.root, "--out", tmp_path / "sound", "--isolation", "none", ok=0)
    assert not (pack.root / "baselines.jsonl").exists()


def test_baselines_of_another_pack_are_refused_before_anything_runs(tmp_path, pack):
    other = shop(tmp_path / "other", {"t": "careful"}, repeats=1)
    call("baseline", other.root, "--out", tmp_path / "base", "--isolation", "none", ok=0)
    done = run(pack, tmp_path / "run", "--baselines", tmp_path / "base", ok=1)
    assert other.manifest_sha256 in done.stderr
    assert not (tmp_path / "run").exists()


def wait_for(condition, within_s=120.0):
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.02)


def rows(out):
    return list(journal.read_rows(out / "rows.jsonl")) if (out / "rows.jsonl").exists() else []
