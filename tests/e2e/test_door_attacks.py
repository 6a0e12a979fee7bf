"""An agent in the real sandbox that attacks the model's door: nothing leaves, and nothing outlives the clock."""

import json
import subprocess

from scoresheet.documents.row import Row
from scoresheet.model.log import read_back
from tests.command import SCORESHEET
from tests.e2e.test_models import ENVIRONMENT
from tests.model.doors import Service
from tests.run.packs import AGENTS, shop, write_card

REFUSED = {
    "absolute form": 403,
    "absolute form of the endpoint": 403,
    "CONNECT": 403,
    "another host": 421,
    "two hosts": 400,
    "length and chunks": 400,
    "a smuggled request": 400,
    "path traversal": 404,
    "encoded traversal": 404,
    "another path": 404,
    "an oversized header": 431,
    "a gigabyte": 413,
}


def attacked(folder, prompt, answer, **settings):
    """The row, the episode's folder, and what the endpoint was sent."""
    pack = shop(folder / "pack", {"attack": prompt}, repeats=1, **settings)

    def card(card):
        card["controls"] |= {"network": "model_only", "temperature": 0, "model": "stub-model"}

    write_card(pack, card)
    with Service(answer) as service:
        words = [SCORESHEET, "run", str(pack.root), "--agent", f"python3 {AGENTS / 'attacker.py'}", "--draft"]
        words += ["--seat", "a", "--out", str(folder / "run"), "--quiet", "--model", f"openai={service.address}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=ENVIRONMENT, cwd=folder)
    assert (folder / "run" / "rows.jsonl").exists(), done.stderr
    row = Row.from_bytes((folder / "run" / "rows.jsonl").read_bytes(), "rows.jsonl")
    return row, folder / "run" / "episodes" / "attack" / "0.0", service.requests


def never(client):
    client.recv(1)  # until the door goes away


def test_no_attack_reaches_the_endpoint_and_each_is_answered(tmp_path):
    row, episode, sent = attacked(tmp_path, "attack", never)
    assert row.agent_exit == 0, row.detail
    assert json.loads((episode / "stdout").read_text()) == REFUSED
    assert sent == []
    entries = list(read_back((episode / "model.jsonl").read_bytes()))
    assert len(entries) == len(REFUSED)
    assert all(entry.refused is not None and entry.status is None for entry in entries)
    assert row.isolation == "proved"


def test_a_slow_head_an_endless_body_and_an_endpoint_that_hangs_end_with_the_clock(tmp_path):
    row, episode, sent = attacked(tmp_path, "hold on", never, timeout_s=4)
    assert (row.exit_reason, row.timeout, row.limit) == ("timeout", 1, "wall_clock")
    assert row.elapsed_s < 60
    assert all(b"POST /v1/chat/completions HTTP/1.1\r\n" in each for each in sent)
    assert len(sent) <= 1
    faults = {entry.fault for entry in read_back((episode / "model.jsonl").read_bytes()) if entry.refused is None}
    assert faults <= {"ended", "client gone", "cut"}
