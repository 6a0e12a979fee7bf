"""64 connections at once, out of order, in the real sandbox: every repeat of an episode is told the same."""

import hashlib
import json
import resource
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from scoresheet.pack import freezer
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import Settings
from scoresheet.replay.journal import read_back
from scoresheet.run import local
from scoresheet.run.agents.spec import agent_of
from scoresheet.run.prepare import Asked, plan_of
from scoresheet.sandbox.bwrap import BwrapSandbox
from tests.replay.recordings import call
from tests.run.packs import AGENTS, write_card

TIMES = 4
WAYS = ("http", "https", "http2")


def recorded_times(item):
    """One, two or three answers: the fourth question is beyond them all."""
    return item % 3 + 1


def asking_for(item, place):
    """The answer at one place of an item's sequence; its latency tells it in the journal."""
    text, latency = f"{item} at {place}", float(10 * item + place)
    if item % 2:
        return call("POST", "/items", {"n": item}, text=text, latency_ms_recorded=latency)
    return call("GET", f"/items/{item}", text=text, latency_ms_recorded=latency)


def said(items):
    """What the agent must have been told, in whatever order."""
    lines = [f"{n} {n} at {min(nth, recorded_times(n) - 1)}" for n in range(items) for nth in range(TIMES)]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def packed(root, items, repeats):
    (root / "tasks").mkdir(parents=True)
    calls = [asking_for(item, place) for item in range(items) for place in range(recorded_times(item))]
    task = {"task_id": "t", "prompt": "Ask for everything.", "tools": [], "expected": {"said": said(items)}}
    task["calls"] = [json.loads(each.model_dump_json(exclude_defaults=True)) for each in calls]
    (root / "tasks/t.json").write_text(json.dumps(task))
    upstreams = (("api", "api.example.com"),)
    freezer.write(root, Settings(protocol="tool-replay-v2", upstreams=upstreams, repeats=repeats, timeout_s=600))
    pack = Pack.open(root)
    write_card(pack, lambda card: card["controls"].update(max_tool_calls=1_000_000))
    return pack


def agent(way, items):
    return f"{sys.executable} {AGENTS / 'many.py'} {way} {items} {TIMES}"


def check(run, items, repeats):
    """Every row, and every line of every journal."""
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == repeats
    asked = items * TIMES
    orders = set()
    for row in rows:
        folder = run / f"episodes/t/{row['repeat']}.0"
        assert (row["success"], row["isolation"]) == (1, "proved"), (folder / "stderr").read_text()
        beyond = asked - sum(map(recorded_times, range(items)))
        assert (row["tool_calls"], row["repeated_calls"], row["mismatches"]) == (asked, beyond, [])
        places = defaultdict(list)
        for number, line in enumerate((folder / "calls.jsonl").read_bytes().splitlines()):
            found = read_back(line)
            assert (found.seq, found.outcome) == (number, "hit")
            item, place = divmod(int(found.latency_ms_recorded), 10)
            places[item].append(place)
        for item, played in places.items():  # in the order of the answers
            assert played == [min(nth, recorded_times(item) - 1) for nth in range(TIMES)]
        orders.add(tuple(places))
    assert len(orders) == repeats  # no two repeats asked in the same order
    assert len({row["episode_seed"] for row in rows}) == repeats


@pytest.mark.parametrize("way", WAYS)
def test_64_connections_are_told_the_same_in_every_repeat_whatever_their_order(tmp_path, way):
    items, repeats = 150, 3
    pack = packed(tmp_path / "pack", items, repeats)
    found = agent_of(agent(way, items), Path.cwd(), (), (pack.root.resolve(),))
    plan = plan_of(pack, found.identity, Asked(isolation="bwrap", seat="test", jobs=2))
    local.run(pack, found, plan, tmp_path / "run", BwrapSandbox())
    check(tmp_path / "run", items, repeats)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_10_000_requests_an_episode_leave_no_memory_behind(tmp_path, way):
    """Measured from outside, as the most that the command held in each episode."""
    items, repeats, settled = 2_500, 6, 2
    pack = packed(tmp_path / "pack", items, repeats)
    command = shutil.which("scoresheet", path=str(Path(sys.executable).parent))
    words = [command, "run", pack.root, "--agent", agent(way, items), "--seat", "test", "--jobs", "1", "--draft"]
    rows, most = tmp_path / "run/rows.jsonl", defaultdict(int)
    with subprocess.Popen([*words, "--out", tmp_path / "run"], stdout=subprocess.DEVNULL) as running:
        memory = Path(f"/proc/{running.pid}/statm")
        while running.poll() is None:
            done = rows.read_bytes().count(b"\n") if rows.exists() else 0
            resident = memory.read_text().split()[1:2] or ["0"]  # nothing when it ends just now
            most[done] = max(most[done], int(resident[0]) * resource.getpagesize())
            time.sleep(0.02)
    assert running.returncode == 0
    check(tmp_path / "run", items, repeats)
    held = [round(most[episode] / 2**20, 1) for episode in range(repeats)]
    print(f"{way}: most MiB in each episode of {items * TIMES:,} requests: {held}")
    assert held[-1] - held[settled] < 8, held  # 30,000 requests later
