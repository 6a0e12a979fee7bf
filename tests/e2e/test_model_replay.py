"""A run with a scripted model, recorded; then the same run again from the recording, when that model is gone."""

import json
import socket
import subprocess

import pytest

from scoresheet import digest
from scoresheet.documents.model_recording import ModelRecording
from scoresheet.documents.row import Row
from scoresheet.model.entry import read_back
from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from tests.command import SCORESHEET
from tests.run.packs import AGENTS, shop, write_card

AGENT = AGENTS / "model_agent.py"
CHANCE = {
    "turns": [
        {"tool": "get_item", "arguments": {"n": 1}},
        {"choose": [{"text": '{"price": 12}'}, {"text": '{"price": 11}'}]},
    ]
}
OBSERVED = ("success", "exit_reason", "controls", "violations", "models", "answer", "tool_calls", "model_calls")
COUNTED = ("model_retries", "tokens_in", "tokens_out", "recorded_latency_ms", "episode_seed", "model_usage", "cost")
PRICES = """\
currency: USD
date: 2026-11-30
models:
  stub-model: {input: 0.25, cached_input: 0.025, output: 2.00}
"""


def shop_with_model(folder, prompts, repeats=1, retries=0):
    pack = shop(folder / "pack", prompts, repeats=repeats, retries=retries, timeout_s=300)

    def card(card):
        card["controls"] |= {"network": "model_only", "temperature": 0, "model": "stub-model", "retries": retries}

    write_card(pack, card)
    return pack.root


def scoresheet(folder, *command, timeout=600):
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    return subprocess.run(
        [SCORESHEET, *map(str, command)], capture_output=True, text=True, timeout=timeout, env=environment, cwd=folder
    )


def run(folder, out, *more, agent=AGENT):
    return scoresheet(
        folder, "run", folder / "pack", "--agent", f"python3 {agent}", "--draft", "--seat", "a", "--quiet",
        "--out", folder / out, *more,
    )  # fmt: skip


def rows(folder, out):
    lines = (folder / out / "rows.jsonl").read_bytes().splitlines()
    found = [Row.from_bytes(line, "rows.jsonl") for line in lines]
    return {(row.task_id, row.repeat): row for row in found}


def value(text, key):
    return next(line.partition(": ")[2] for line in text.splitlines() if line.startswith(f"{key}: "))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """(folder, what the recorded run printed, the address at which nobody is any more)."""
    folder = tmp_path_factory.mktemp("recorded")
    prompts = {"t0": "be good", "t1": "be good", "s1": "stream it", "s2": "stream it warm", "x": "want bash"}
    shop_with_model(folder, prompts, repeats=2)
    (folder / "prices.yaml").write_text(PRICES)
    script = Script.of(CHANCE)
    with ModelStub(script, seed=3) as stub:
        place = stub.address.removeprefix("http://")
        done = run(
            folder, "live", "--model", f"openai={stub.address}/v1", "--record-model", "--prices", folder / "prices.yaml"
        )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, place


@pytest.fixture(scope="module")
def again(recorded):
    folder, _, place = recorded
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(place.rpartition(":")[2])), 5)
    done = run(folder, "again", "--replay-model", folder / "live", "--prices", folder / "prices.yaml")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_that_is_scored_again_offline_has_the_same_figures(recorded, again):
    _, live, _ = recorded
    assert value(again, "figures_sha256") == value(live, "figures_sha256")
    assert value(again, "success_mean") == value(live, "success_mean") not in ("0.0000", "1.0000")


def test_controls_tokens_and_outcomes_are_observed_alike(recorded, again):
    folder, _, _ = recorded
    live, replayed = rows(folder, "live"), rows(folder, "again")
    assert live.keys() == replayed.keys()
    for key, row in live.items():
        for name in (*OBSERVED, *COUNTED):
            assert getattr(replayed[key], name) == getattr(row, name), (key, name)
    assert live["s2", 0].controls["controls.temperature"] == "violated"
    assert (live["x", 0].exit_reason, live["t1", 0].tokens_in) == ("mismatch", 2000)


def test_what_it_cost_is_told_by_row_by_run_and_by_success(recorded, again):
    folder, live, _ = recorded
    assert rows(folder, "live")["t0", 0].cost == "0.000655"  # two calls: 900 fresh, 100 cached, 50 out
    assert rows(folder, "live")["x", 0].cost == "0"  # the one call was refused before anybody was paid
    sha256 = digest.of(PRICES.encode())
    assert value(live, "cost_total") == f"0.00524 USD, prices of 2026-11-30 (sha256:{sha256})"
    assert value(live, "cost_per_success").startswith("USD 0.00")
    assert [value(again, key) for key in ("cost_total", "cost_per_success")] == [
        value(live, key) for key in ("cost_total", "cost_per_success")
    ]


def test_verify_seals_the_recording_again_and_says_that_a_bundle_does_not_hold_it(recorded, tmp_path):
    folder, _, _ = recorded
    name = digest.of((folder / "live" / "recording.json").read_bytes())
    assert "  - recording.json: sealed again from 10 model.jsonl\n" in scoresheet(folder, "verify", "live").stdout
    scoresheet(folder, "bundle", "live", "-o", tmp_path / "b.tar")
    told = scoresheet(folder, "verify", tmp_path / "b.tar").stdout.partition("not checked:\n")[2]
    assert f"  - recording.json {name[:12]}…, which seals its model calls: it stays with the submitter\n" in told


def test_every_answer_came_back_byte_for_byte(recorded, again):
    folder, _, _ = recorded
    logs = sorted(path.relative_to(folder / "live") for path in (folder / "live").rglob("model.jsonl"))
    assert len(logs) == 10
    for log in logs:
        left, right = (read_back((folder / out / log).read_bytes()) for out in ("live", "again"))
        assert [(e.request, e.status, e.response_headers, e.response, e.refused) for e in left] == [
            (e.request, e.status, e.response_headers, e.response, e.refused) for e in right
        ]


def test_the_report_says_where_the_answers_came_from_and_that_there_was_no_network(recorded, again):
    folder, live, place = recorded
    text = (folder / "live" / "recording.json").read_bytes()
    name = digest.of(text)
    assert ModelRecording.from_bytes(text, "recording.json").calls == json.loads(text)["calls"] == 16
    assert value(live, "live_network") == f"model_endpoint_only({place})"
    assert value(live, "model_answers") == f"live from {place}, recorded as {name}"
    assert value(again, "live_network") == "denied"
    assert value(again, "model_answers") == f"replayed from the recording {name}, once live from {place}"
    plan = json.loads((folder / "again" / "run.json").read_bytes())
    assert plan["model_replayed"] == {"recording_sha256": name, "run": "live", "endpoints": [place]}
    assert (plan["model_endpoints"], plan["model_kinds"]) == ([], ["openai"])


def test_the_replayed_run_holds_when_it_is_verified(recorded, again):
    folder, _, _ = recorded
    done = scoresheet(folder, "verify", folder / "again", "--pack", folder / "pack")
    assert (done.returncode, "verified" in done.stdout.splitlines()) == (0, True), done.stdout
    name = digest.of((folder / "live" / "recording.json").read_bytes())
    assert f"  - the recording {name[:12]}… that answered in the model's place: it is another run's" in done.stdout


def test_an_agent_that_asks_something_else_is_ended_and_told_where(recorded):
    folder, _, _ = recorded
    other = folder / "other.py"
    other.write_text(AGENT.read_text().replace('"content": prompt}', '"content": prompt + "!"}'))
    done = run(folder, "other", "--replay-model", folder / "live", "--tasks", "t0", agent=other)
    assert done.returncode == 0, done.stderr
    for row in rows(folder, "other").values():
        assert (row.success, row.exit_reason, row.model_calls) == (0, "mismatch", 0)
        (why,) = row.model_unrecorded
        assert why.endswith("call 1 of the recording differs at /messages/0/content")
        assert row.detail == why
    assert "note: 2 attempts asked the model what its recording does not hold" in done.stdout
    verified = scoresheet(folder, "verify", folder / "other", "--pack", folder / "pack")
    assert "row-follows" not in verified.stdout + verified.stderr


def test_a_call_more_than_was_recorded_is_refused(recorded):
    folder, _, _ = recorded
    twice = folder / "twice.py"
    twice.write_text(AGENT.read_text().replace("    message = ask(", "    ask(0)\n    message = ask("))
    done = run(folder, "twice", "--replay-model", folder / "live", "--tasks", "t0", "--repeats", "1", agent=twice)
    assert done.returncode == 0, done.stderr
    row = rows(folder, "twice")["t0", 0]
    assert (row.exit_reason, row.model_calls) == ("mismatch", 1)
    assert "was recorded once, and is asked once more" in (row.detail or "")


def test_a_recording_that_was_changed_is_not_replayed(recorded):
    folder, _, _ = recorded
    log = folder / "live" / "episodes" / "t0" / "0.0" / "model.jsonl"
    before = log.read_bytes()
    log.write_bytes(before.replace(b"stub-model", b"stub-medel"))
    try:
        done = run(folder, "changed", "--replay-model", folder / "live")
    finally:
        log.write_bytes(before)
    assert done.returncode == 1
    assert "the model's recording is not what was sealed" in done.stderr
    assert not (folder / "changed").exists()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--replay-model", "live", "--model", "openai=http://127.0.0.1:9/v1"), "stands in the place of a real one"),
        (("--replay-model", "live", "--record-model"), "stands in the place of a real one"),
        (("--record-model",), "needs a model"),
        (("--replay-model", "pack"), "a pack, not a run"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_runs(recorded, more, says):
    folder, _, _ = recorded
    done = run(folder, "no", *more)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert not (folder / "no").exists()


def test_a_run_is_resumed_only_with_the_recording_that_it_began_with(recorded, again):
    folder, _, _ = recorded
    done = run(folder, "again", "--resume", "--model", "openai=http://127.0.0.1:9/v1")
    assert done.returncode == 1
    assert "model_replayed" in done.stderr


def test_a_run_of_another_pack_is_no_recording_for_this_one(recorded, tmp_path):
    folder, _, _ = recorded
    shop_with_model(tmp_path, {"other": "be good"})
    done = run(tmp_path, "out", "--replay-model", folder / "live")
    assert done.returncode == 1
    assert "which is not this one" in done.stderr
