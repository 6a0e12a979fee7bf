"""Runs that stop when their budget is spent, go on with a higher one, and wait where a provider asks them to."""

import json
import queue
import signal
import subprocess

import pytest

from scoresheet.model.entry import read_back
from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from tests.command import SCORESHEET
from tests.e2e.test_model_replay import AGENT, PRICES, rows, run, scoresheet, shop_with_model, value

TURNS = [{"tool": "get_item", "arguments": {"n": 1}}, {"text": '{"price": 12}'}]
TASKS = {f"t{number}": "be good" for number in range(3)}
ONE = ("--jobs", "1")


def plan(folder, out="run"):
    return json.loads((folder / out / "run.json").read_bytes())


def test_a_run_stops_when_its_tokens_are_spent_and_goes_on_with_more(tmp_path):
    shop_with_model(tmp_path, TASKS)
    heard = []
    with ModelStub(Script.of({"turns": TURNS}), on_request=heard.append) as stub:
        model = ("--model", f"openai={stub.address}/v1", *ONE)
        first = run(tmp_path, "run", *model, "--max-tokens-total", "3000")  # an episode takes 2100
        assert first.returncode == 4, first.stderr
        assert "max_tokens_total 3000 is spent: 3150 tokens; 2 of 3 episodes were not run" in first.stderr
        assert "not run: 2 episodes: t1 (1), t2 (1)" in first.stderr
        assert "with a higher budget and --out" in first.stderr
        assert list(rows(tmp_path, "run")) == [("t0", 0)]
        assert len(heard) == 3  # the fourth call was not sent
        told = plan(tmp_path)
        assert (told["status"], told["budget"]["spent_tokens"]) == ("incomplete", 3150)

        same = run(tmp_path, "run", *model, "--max-tokens-total", "3000", "--resume")
        assert (same.returncode, len(heard)) == (4, 3)

        more = run(tmp_path, "run", *model, "--max-tokens-total", "9000", "--resume")
        assert more.returncode == 0, more.stderr
    found = rows(tmp_path, "run")
    assert [row.success for row in found.values()] == [1, 1, 1]
    assert len((tmp_path / "run" / "rows.jsonl").read_bytes().splitlines()) == 3
    # what the interrupted episode had spent is counted, though its row tells only of the attempt that ended
    assert value(more.stdout, "budget") == "max_tokens_total 9000, spent 7350"
    assert [row.tokens_in for row in found.values()] == [2000, 2000, 2000]
    assert plan(tmp_path)["budget"]["stopped"] is None


def test_the_report_of_a_run_that_stopped_says_what_was_not_run_and_why(tmp_path):
    shop_with_model(tmp_path, TASKS)
    (tmp_path / "prices.yaml").write_text(PRICES)
    with ModelStub(Script.of({"turns": TURNS})) as stub:
        options = ("--prices", tmp_path / "prices.yaml", "--max-cost", "0.0007")  # an episode costs 0.000655
        done = run(tmp_path, "run", "--model", f"openai={stub.address}/v1", *ONE, *options)
    assert done.returncode == 4, done.stderr
    why = "max_cost 0.0007 USD is spent: 0.0009825 USD"
    assert f"{why}; 2 of 3 episodes were not run" in done.stderr
    report = scoresheet(tmp_path, "report", tmp_path / "run", "--draft")
    assert report.returncode == 4
    assert value(report.stdout, "budget") == f"max_cost 0.0007 USD, spent 0.0009825; stopped: {why}"
    assert f"not_run: t1: leaf score: the run stopped: {why}" in report.stdout.splitlines()
    assert "2 of 3 planned episodes have no row" in report.stdout
    assert value(report.stdout, "cost_total").startswith("not computed: 2 of 3 planned episodes have no bill")
    assert (tmp_path / "run" / "report.txt").exists()


def test_a_model_that_has_no_price_is_told_and_with_a_budget_never_asked(tmp_path):
    shop_with_model(tmp_path, {"t0": "be good"})
    (tmp_path / "prices.yaml").write_text(PRICES.replace("stub-model", "another"))
    heard = []
    with ModelStub(Script.of({"turns": TURNS}), on_request=heard.append) as stub:
        model = ("--model", f"openai={stub.address}/v1", "--prices", tmp_path / "prices.yaml")
        refused = run(tmp_path, "no", *model, "--max-cost", "1")
        assert (refused.returncode, len(heard)) == (2, 0)
        assert "the price table does not name stub-model, the model of the card" in refused.stderr
        done = run(tmp_path, "run", *model)
    assert done.returncode == 0, done.stderr
    assert value(done.stdout, "cost_total").startswith("not computed: the price table does not name stub-model")
    assert rows(tmp_path, "run")["t0", 0].cost is None


@pytest.mark.parametrize("retries", [0, 2])
def test_where_the_card_allows_retries_the_door_waits_and_asks_again(tmp_path, retries):
    pack = shop_with_model(tmp_path, {"t0": "be good"}, retries=retries)
    with ModelStub(
        Script.of({"turns": TURNS, "faults": [{"status": 429, "headers": {"retry-after": "0"}, "times": 2}]})
    ) as stub:
        done = run(tmp_path, "run", "--model", f"openai={stub.address}/v1", "--record-model")
    assert done.returncode == 0, done.stderr
    row = rows(tmp_path, "run")["t0", 0]
    log = list(read_back((tmp_path / "run" / "episodes" / "t0" / "0.0" / "model.jsonl").read_bytes()))
    if not retries:
        assert (row.exit_reason, row.model_calls, row.model_retries) == ("model_error", 1, 0)
        assert [(each.status, each.fault) for each in log] == [(429, None)]
        return
    assert (row.success, row.model_calls, row.model_retries, row.model_door_retries) == (1, 4, 2, 2)
    assert row.controls["controls.retries"] == "verified"
    assert [each.fault for each in log] == ["rate limited", "rate limited", None, None]
    assert value(done.stdout, "model_calls") == "4, 2 of them retries (2 by the door)"
    again = run(tmp_path, "again", "--replay-model", tmp_path / "run")
    assert value(again.stdout, "figures_sha256") == value(done.stdout, "figures_sha256")
    assert value(again.stdout, "model_calls") == value(done.stdout, "model_calls")
    assert pack.is_dir()


def test_as_many_calls_as_were_asked_for_are_under_way_at_once(tmp_path):
    shop_with_model(tmp_path, TASKS)
    with ModelStub(Script.of({"turns": TURNS})) as stub:
        model = ("--model", f"openai={stub.address}/v1")
        done = run(tmp_path, "run", *model, "--model-concurrency", "openai=1", "--jobs", "3")
        assert done.returncode == 0, done.stderr
    assert [row.success for row in rows(tmp_path, "run").values()] == [1, 1, 1]


def test_a_run_that_is_killed_again_and_again_knows_all_that_it_spent(tmp_path):
    shop_with_model(tmp_path, {"t0": "be good"})
    faults = [{"turn": 1, "kind": "hang", "seconds": 600, "times": 2}]
    heard = queue.Queue()
    with ModelStub(Script.of({"turns": TURNS, "faults": faults}), on_request=heard.put) as stub:
        more = ("--model", f"openai={stub.address}/v1", "--max-tokens-total", "9000")
        for resume in ((), ("--resume",)):
            command = ["run", tmp_path / "pack", "--agent", f"python3 {AGENT}", "--draft", "--seat", "a", "--quiet"]
            command += ["--out", tmp_path / "run", *more, *resume]
            environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
            with subprocess.Popen([SCORESHEET, *map(str, command)], cwd=tmp_path, env=environment) as process:
                while heard.get(timeout=300)["turn"] != 1:
                    pass
                process.kill()
            assert process.returncode == -signal.SIGKILL
            assert plan(tmp_path)["status"] == "running"
        done = run(tmp_path, "run", *more, "--resume")
    assert done.returncode == 0, done.stderr
    # two attempts of which the first answer came, and one that was whole
    assert value(done.stdout, "budget") == "max_tokens_total 9000, spent 4200"
    verified = scoresheet(tmp_path, "verify", tmp_path / "run")
    assert "row-follows" not in verified.stdout + verified.stderr


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--max-cost", "1"), "what tokens cost is not known — --max-cost"),
        (("--max-cost", "much", "--prices", "prices.yaml"), "an amount is a decimal number"),
        (("--model-concurrency", "openai=0"), "is not KIND=N"),
        (("--model-concurrency", "anthropic=2"), "there is no such model"),
        (("--prices", "faulty.yaml"), "faulty.yaml:4:23"),
    ],
)
def test_a_budget_that_can_not_be_kept_is_refused_before_anything_runs(tmp_path, more, says):
    shop_with_model(tmp_path, {"t0": "be good"})
    (tmp_path / "prices.yaml").write_text(PRICES)
    (tmp_path / "faulty.yaml").write_text(PRICES.replace("0.25", "free"))
    done = run(tmp_path, "no", "--model", "openai=http://127.0.0.1:9/v1", *more)
    assert done.returncode in (1, 2)
    assert says in done.stderr
    assert not (tmp_path / "no").exists()


def test_a_budget_without_a_model_is_refused(tmp_path):
    shop_with_model(tmp_path, {"t0": "be good"})
    done = run(tmp_path, "no", "--max-tokens-total", "10")
    assert (done.returncode, "--max-tokens-total needs a model" in done.stderr) == (2, True)
