"""An agent with a scripted model behind the model's door, in the real sandbox."""

import json
import subprocess

import pytest

from scoresheet.documents.row import Row
from scoresheet.model.log import read_back
from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from tests.command import SCORESHEET
from tests.run.packs import AGENTS, shop, write_card

KEY = "sk-real-e2e-0123456789"
TURNS = [{"tool": "get_item", "arguments": {"n": 1}}, {"text": '{"price": 12}'}]
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "THE_KEY": KEY, "LANG": "C.UTF-8"}


def run(folder, prompts, *more, script=None, stub_heard=None, change=None, kind="openai"):
    pack = shop(folder / "pack", prompts, repeats=1)

    def card(card):
        card["controls"] |= {"network": "model_only", "temperature": 0, "model": "stub-model", "retries": 0}
        card["controls"] |= change or {}

    write_card(pack, card)
    with ModelStub(Script.of(script or {"turns": TURNS}), on_request=stub_heard) as stub:
        command = [SCORESHEET, "run", str(pack.root), "--agent", f"python3 {AGENTS / 'model_agent.py'}", "--draft"]
        command += ["--seat", "a", "--out", str(folder / "run"), "--quiet", "--model", f"{kind}={stub.address}/v1"]
        command += ["--model-key-env", f"{kind}=THE_KEY", *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=ENVIRONMENT, cwd=folder)
    rows = {}
    if (folder / "run" / "rows.jsonl").exists():
        for line in (folder / "run" / "rows.jsonl").read_bytes().splitlines():
            row = Row.from_bytes(line, "rows.jsonl")
            rows[row.task_id] = row
    return done, rows, stub


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    prompts = {"good": "be good", "leak": "leak all", "warm": "be warm", "shell": "want bash"}
    return folder, *run(folder, prompts)


def test_an_agent_solves_a_task_with_a_model_behind_the_door(several):
    _, done, rows, stub = several
    good = rows["good"]
    assert (good.success, good.exit_reason, good.tool_calls) == (1, "completed", 1), done.stderr
    assert (good.model_calls, good.model_retries, good.tokens_in, good.tokens_out) == (2, 0, 2000, 100)
    assert good.models == ("stub-model",)
    assert set(good.controls.values()) == {"verified"}
    assert f"live_network: model_endpoint_only({stub.address.removeprefix('http://')})" in done.stdout


def test_the_real_key_is_nowhere_in_the_run(several):
    folder, done, rows, _ = several
    assert rows["leak"].success == 1
    (episode,) = {path.parent for path in (folder / "run").rglob("stdout") if "leak" in str(path)}
    shown = (episode / "stdout").read_text()
    assert "scoresheet-adds-the-key-outside" in shown
    assert KEY not in shown + done.stdout + done.stderr
    for path in (folder / "run").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def test_another_temperature_is_violated_with_its_count_and_a_confound(several):
    folder, _, rows, _ = several
    warm = rows["warm"]
    assert (warm.success, warm.controls["controls.temperature"]) == (1, "violated")
    assert warm.violations == ("controls.temperature: violated, the card pins 0, seen 0.7 in 2",)
    entries = [json.loads(line) for line in (folder / "run" / "confounds.jsonl").read_text().splitlines()]
    assert [each["text"] for each in entries if each.get("control") == "controls.temperature"] == [
        f"controls.temperature was violated in 1 episodes, as the model's door saw; the first: {warm.violations[0]}"
    ]


def test_a_tool_outside_the_allowlist_ends_the_episode_before_the_model_hears_of_it(several):
    folder, _, rows, _ = several
    shell = rows["shell"]
    assert (shell.success, shell.exit_reason, shell.model_calls) == (0, "mismatch", 0)
    assert "bash" in shell.detail
    (log,) = [path for path in (folder / "run").rglob("model.jsonl") if "shell" in str(path)]
    (entry,) = read_back(log.read_bytes())
    assert "outside the card's allowlist: bash" in (entry.refused or "")


def test_the_run_is_verified_from_its_own_files(several):
    folder = several[0]
    done = subprocess.run([SCORESHEET, "verify", str(folder / "run")], capture_output=True, text=True, timeout=300)
    assert "row-follows" not in done.stdout + done.stderr
    assert "model calls, tokens and controls: folded again from 4 model.jsonl" in done.stdout


def test_a_hidden_retry_is_seen_and_a_model_that_fails_is_a_model_error(tmp_path):
    heard = []
    script = {"turns": TURNS, "faults": [{"status": 500, "times": "always"}]}
    _, rows, _ = run(tmp_path, {"s": "be stubborn"}, script=script, stub_heard=heard.append)
    row = rows["s"]
    assert (row.exit_reason, row.model_calls, row.model_retries, len(heard)) == ("model_error", 2, 1, 2)
    assert row.controls["controls.retries"] == "violated"


def test_a_tool_call_too_many_ends_the_episode(tmp_path):
    script = {"turns": [{"tool": "get_item", "arguments": {"n": 1}}]}
    _, rows, _ = run(tmp_path, {"t": "go on"}, script=script, change={"max_tool_calls": 5})
    row = rows["t"]
    assert (row.exit_reason, row.success) == ("tool_cap", 0)
    assert row.model_calls <= 6


def test_a_card_that_allows_no_model_gets_none(tmp_path):
    done, rows, _ = run(tmp_path, {"g": "good"}, change={"network": "denied"})
    assert (done.returncode, rows) == (2, {})
    assert "allows no model" in done.stderr


def test_the_recorded_service_can_not_be_the_model(tmp_path):
    done, rows, _ = run(tmp_path, {"g": "good"}, "--model", "anthropic=https://shop.example")
    assert (done.returncode, rows) == (1, {})
    assert "the recorded service SHOP" in done.stderr
