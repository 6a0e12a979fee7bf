"""A task with a scenario, run in the sandbox: what an agent wrote is what it reads, in every repeat anew."""

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scoresheet.documents.tool import Request
from scoresheet.pack import fingerprint
from scoresheet.pack.folder import Pack
from tests import command
from tests.run.packs import write_card

scoresheet = partial(command.call, ok=0)
AGENT = """
import json, os, sys, urllib.error, urllib.request

def ask(method, path):
    request = urllib.request.Request(os.environ["SHOP"] + path, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["state"]
    except urllib.error.HTTPError as error:
        return error.code

seen = [ask(*words.split()) for words in sys.argv[1:]]
print(json.dumps({"state": seen[-1], "seen": seen}))
"""
READ, CANCEL, BILL = "GET /orders/17", "POST /orders/17/cancel", "GET /orders/17/bill"


def recorded(what: str, state: str, **moves: str) -> dict[str, object]:
    method, path = what.split()
    return {
        "request_fingerprint": fingerprint.v2(Request("SHOP", method, path)),
        "request": {"upstream": "SHOP", "method": method, "path": path},
        "response_status": 200,
        "response_bytes": json.dumps({"state": state}),
        "latency_ms_recorded": 4.0,
        "state": {"scenario": "order-17", **moves},
    }


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    root = tmp_path / "pack"
    (root / "tasks").mkdir(parents=True)
    calls = [
        recorded(READ, "open", requires="open"),
        recorded(BILL, "due", requires="open"),
        recorded(CANCEL, "done", requires="open", sets="cancelled"),
        recorded(READ, "cancelled", requires="cancelled"),
    ]
    scenarios = {"order-17": ["open", "cancelled"]}
    task = {
        "task_id": "cancel",
        "prompt": "Cancel order 17.",
        "tools": [],
        "calls": calls,
        "expected": {"state": "cancelled"},
        "scenarios": scenarios,
    }
    (root / "tasks" / "cancel.json").write_text(json.dumps(task))
    scoresheet("freeze", root, "--repeats", 3, "--timeout-s", 280, "-q", "--upstream", "SHOP=shop.example")
    write_card(Pack.open(root))
    (tmp_path / "agent.py").write_text(AGENT)
    return root


def run(pack: Path, *asked: str) -> tuple[list[Any], list[list[Any]]]:
    """Rows, and the calls of each episode."""
    out = pack.parent / "run"
    agent = shlex.join([sys.executable, str(pack.parent / "agent.py"), *asked])
    scoresheet("run", pack, "--agent", agent, "--seat", "test", "--out", out, "--quiet", "--draft", "--jobs", 3)
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    calls = [
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(out.rglob("episodes/**/calls.jsonl"))
    ]
    return rows, calls


def test_each_repeat_begins_in_the_first_state_and_reads_what_it_wrote(pack: Path) -> None:
    rows, calls = run(pack, READ, READ, CANCEL, READ, READ)
    assert [(row["success"], row["exit_reason"]) for row in rows] == [(1, "completed")] * 3
    assert [row["answer"]["seen"] for row in rows] == [["open", "open", "done", "cancelled", "cancelled"]] * 3
    assert [[call["outcome"] for call in episode] for episode in calls] == [["hit"] * 5] * 3


def test_a_call_in_another_state_than_its_recording_ends_the_episode_and_the_row_says_which(pack: Path) -> None:
    rows, _ = run(pack, CANCEL, BILL)
    assert [(row["success"], row["exit_reason"], row["unauthorized"]) for row in rows] == [(0, "mismatch", 1)] * 3
    for row in rows:
        (mismatch,) = row["mismatches"]
        assert mismatch["nearest"]["difference"] == ["state order-17: recorded in open, asked in cancelled"]


def test_the_baselines_find_a_pack_with_states_sound(pack: Path) -> None:
    done = scoresheet("baseline", pack, "--out", pack.parent / "baseline")
    assert "null: 0 of 3 episodes succeeded\noracle: 3 of 3 episodes succeeded\n" in done.stdout


def test_check_and_explain_know_the_states_of_a_frozen_pack(pack: Path) -> None:
    assert "error" not in scoresheet("check", pack).stdout
    told = scoresheet("explain", pack, READ).stdout
    assert "call 0, status 200, when order-17 is open\n" in told
    assert "call 3, status 200, when order-17 is cancelled\n" in told
    assert "sets order-17 to cancelled" in scoresheet("explain", pack, CANCEL).stdout
    task = pack / "tasks" / "cancel.json"
    task.write_text(task.read_text().replace('"requires": "cancelled"', '"requires": "canceled"'))
    found = scoresheet("check", pack, ok=1)
    assert "task-state-undeclared" in found.stdout + found.stderr
