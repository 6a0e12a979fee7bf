"""A run whose agent had a model, run again from its bundle with a model of the second host's own."""

import subprocess

import pytest

from scoresheet import digest
from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from tests.command import SCORESHEET
from tests.e2e.test_model_replay import PRICES
from tests.e2e.test_models import ENVIRONMENT, TURNS
from tests.run.packs import AGENTS, shop, write_card

AGENT = f"python3 {AGENTS / 'model_agent.py'}"


def call(*words, cwd):
    command = [SCORESHEET, *map(str, words), "--quiet"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=ENVIRONMENT, cwd=cwd)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    pack = shop(folder / "pack", {f"t{number}": "be good" for number in range(5)}, repeats=1)

    def card(card):
        card["controls"] |= {"network": "model_only", "temperature": 0, "model": "stub-model"}

    write_card(pack, card)
    (folder / "table.yaml").write_text(PRICES)
    with ModelStub(Script.of({"turns": TURNS})) as stub:
        model = ("--model", f"openai={stub.address}/v1", "--model-key-env", "openai=THE_KEY")
        words = ("run", pack.root, "--agent", AGENT, "--seat", "a", "--out", folder / "run")
        done = call(*words, *model, "--prices", folder / "table.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "\nadmissible" in done.stdout, done.stdout
    bundle = [SCORESHEET, "bundle", str(folder / "run"), "-o", str(folder / "b.tar"), "--pack", str(pack.root)]
    subprocess.run(bundle, check=True, capture_output=True, timeout=300)
    return folder


def lines(folder):
    return (folder / "report.txt").read_text().splitlines()


def told(folder, key):
    return next(line.partition(": ")[2] for line in lines(folder) if line.startswith(f"{key}: "))


def test_a_run_with_a_model_is_run_again_with_one_and_priced_by_the_bundles_own_table(first, tmp_path):
    again = ("rerun", first / "b.tar", "--agent", AGENT, "--seat", "b", "--out", tmp_path / "run")
    with ModelStub(Script.of({"turns": TURNS})) as stub:
        model = ("--model", f"openai={stub.address}/v1", "--model-key-env", "openai=THE_KEY")
        done = call(*again, *model, "--model-concurrency", "openai=1", "--record-model", cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "episodes_identical: 5 of 5" in done.stdout
    assert done.stdout.rstrip().endswith("replicated")
    assert "note: live_network: model_endpoint_only(127.0.0.1:" in done.stdout  # each host has its own
    assert f"live_network: model_endpoint_only({stub.address.removeprefix('http://')})" in lines(tmp_path / "run")
    table = f"USD, prices of 2026-11-30 (sha256:{digest.of(PRICES.encode())})"
    assert f"note: tokens are priced by the bundle's own table: {table}" in done.stderr.splitlines()
    assert told(tmp_path / "run", "cost_total") == told(first / "run", "cost_total") == f"0.003275 {table}"
    assert (tmp_path / "run" / "prices.yaml").read_bytes() == PRICES.encode()
    assert "the model's answers are recorded: " in done.stderr
    assert (tmp_path / "run" / "recording.json").exists()


def test_a_run_is_run_again_from_what_its_model_answered_and_by_another_table(first, tmp_path):
    (tmp_path / "dear.yaml").write_text(PRICES.replace("2.00", "4.00"))
    again = ("rerun", first / "b.tar", "--agent", AGENT, "--seat", "b", "--out", tmp_path / "run")
    done = call(*again, "--replay-model", first / "run", "--prices", tmp_path / "dear.yaml", cwd=tmp_path)
    assert "note: tokens are priced not by the bundle's table: USD, prices of 2026-11-30 (sha256:" in done.stderr
    assert told(tmp_path / "run", "cost_total").startswith("0.004275 USD")
    assert told(tmp_path / "run", "success_mean") == told(first / "run", "success_mean")
    before = (
        "note: the model is asked in the first run and replayed in this one: figures to look at, but no replication"
    )
    assert before in done.stderr.splitlines()
    assert done.returncode == 1
    assert done.stdout.endswith("  - live_network differs: A model_endpoint_only, B denied\nnot comparable\n")


def test_a_rerun_that_its_budget_stopped_goes_on_with_a_higher_one(first, tmp_path):
    again = ("rerun", first / "b.tar", "--agent", AGENT, "--seat", "b", "--out", tmp_path / "run", "--jobs", "1")
    with ModelStub(Script.of({"turns": TURNS})) as stub:
        model = ("--model", f"openai={stub.address}/v1", "--model-key-env", "openai=THE_KEY")
        stopped = call(*again, *model, "--max-cost", "0.0015", cwd=tmp_path)  # an episode costs 0.000655
        assert stopped.returncode == 4, stopped.stderr + stopped.stdout
        assert "max_cost 0.0015 USD is spent" in stopped.stderr
        assert "with a higher budget and --out" in stopped.stderr
        done = call(*again, *model, "--max-cost", "1", "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "episodes_identical: 5 of 5" in done.stdout
    assert len((tmp_path / "run" / "rows.jsonl").read_bytes().splitlines()) == 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--max-cost", "1"), "--max-cost needs a model"),
        (("--record-model",), "--record-model needs a model"),
        (("--resume",), "no run directory is named to go on with"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_is_unpacked(first, tmp_path, words, said):
    done = call("rerun", first / "b.tar", "--agent", AGENT, "--seat", "b", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


def test_without_a_model_nothing_is_run(first, tmp_path):
    done = call("rerun", first / "b.tar", "--agent", AGENT, "--seat", "b", "--out", tmp_path / "run", cwd=tmp_path)
    assert done.returncode == 1
    assert "the first run's agents had a model, openai: nothing was run" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_model_and_its_replay_are_not_both_given(first, tmp_path):
    both = ("--model", "openai=http://127.0.0.1:1/v1", "--replay-model", first / "run")
    done = call("rerun", first / "b.tar", "--agent", AGENT, "--seat", "b", *both, cwd=tmp_path)
    assert done.returncode == 2
    assert "stands in the place of a real one — --replay-model" in done.stderr
