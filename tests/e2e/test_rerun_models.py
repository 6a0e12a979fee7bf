"""A run whose agent had a model, run again from its bundle with a model of the second host's own."""

import subprocess

import pytest

from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from tests.command import SCORESHEET
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
    with ModelStub(Script.of({"turns": TURNS})) as stub:
        model = ("--model", f"openai={stub.address}/v1", "--model-key-env", "openai=THE_KEY")
        done = call("run", pack.root, "--agent", AGENT, "--seat", "a", "--out", folder / "run", *model, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "\nadmissible" in done.stdout, done.stdout
    words = [SCORESHEET, "bundle", str(folder / "run"), "-o", str(folder / "b.tar"), "--pack", str(pack.root)]
    subprocess.run(words, check=True, capture_output=True, timeout=300)
    return folder


def test_a_run_with_a_model_is_run_again_with_one(first, tmp_path):
    again = ("rerun", first / "b.tar", "--agent", AGENT, "--seat", "b", "--out", tmp_path / "run")
    with ModelStub(Script.of({"turns": TURNS})) as stub:
        model = ("--model", f"openai={stub.address}/v1", "--model-key-env", "openai=THE_KEY")
        done = call(*again, *model, cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "episodes_identical: 5 of 5" in done.stdout
    assert done.stdout.rstrip().endswith("replicated")
    assert "note: live_network: model_endpoint_only(127.0.0.1:" in done.stdout  # each host has its own
    report = (tmp_path / "run" / "report.txt").read_text()
    assert f"live_network: model_endpoint_only({stub.address.removeprefix('http://')})" in report


def test_without_a_model_nothing_is_run(first, tmp_path):
    done = call("rerun", first / "b.tar", "--agent", AGENT, "--seat", "b", "--out", tmp_path / "run", cwd=tmp_path)
    assert done.returncode == 1
    assert "the first run's agents had a model, openai: nothing was run" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_model_and_its_replay_are_not_both_given(first, tmp_path):
    both = ("--model", "openai=http://127.0.0.1:1/v1", "--replay-model", first / "run")
    done = call("rerun", first / "b.tar", "--agent", AGENT, "--seat", "b", *both, cwd=tmp_path)
    assert done.returncode == 2
    assert "--replay-model stands in the place of a model" in done.stderr
