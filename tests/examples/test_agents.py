"""Every example agent on the example packs, isolated: what its report must say."""

import json
import shlex
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
AGENTS = EXAMPLES / "agents"
BILLING = EXAMPLES / "packs" / "billing-v3"
CATALOG = EXAMPLES / "packs" / "catalog-v1"
PYTHON = shlex.quote(sys.executable)
CAREFUL = {
    "python": f"{PYTHON} {AGENTS / 'careful.py'}",
    "function": f"py:{AGENTS / 'careful.py'}:solve",
    "shell": f"sh {AGENTS / 'careful.sh'}",
    "node": f"node {AGENTS / 'careful.mjs'}",
}
RUN = (sys.executable, "-m", "scoresheet", "run", "--seat", "test", "--isolation", "bwrap", "--jobs", "2")
ONE_OF_EACH = "catalog.*.1"


@dataclass(frozen=True)
class Ran:
    """A finished run."""

    folder: Path
    rows: tuple[dict[str, Any], ...]
    report: dict[str, Any]


@pytest.fixture
def run(tmp_path):
    """A function that runs an agent on a pack, in isolation that was proved, and gives what was written."""

    def go(pack: Path, agent: str, *options: str, repeats: int = 1) -> Ran:
        folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        command: list[str | Path] = [*RUN, pack, "--agent", agent, "--repeats", str(repeats), "--out", folder]
        command += ["--json", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        rows = tuple(json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines())
        report = json.loads(done.stdout)
        assert report["live_network"] == "denied"
        return Ran(folder, rows, report)

    return go


def share(ran: Ran, field: str) -> float:
    """The mean of a field over all rows."""
    return sum(row[field] for row in ran.rows) / len(ran.rows)


@pytest.mark.parametrize("language", CAREFUL)
def test_the_careful_agent_solves_every_refund(run, language):
    ran = run(BILLING, CAREFUL[language])
    assert len(ran.rows) == 12
    assert (share(ran, "success"), share(ran, "schema_ok"), share(ran, "unauthorized")) == (1, 1, 0)


def test_the_careful_agent_answers_every_question_about_the_catalog(run):
    ran = run(CATALOG, CAREFUL["python"])
    assert len(ran.rows) == 33
    assert (share(ran, "success"), share(ran, "schema_ok"), share(ran, "unauthorized")) == (1, 1, 0)


@pytest.mark.parametrize("language", ["shell", "node"])
def test_the_careful_agent_answers_one_question_of_each_kind_in_any_language(run, language):
    ran = run(CATALOG, CAREFUL[language], "--tasks", ONE_OF_EACH)
    assert len(ran.rows) == 8
    assert (share(ran, "success"), share(ran, "schema_ok"), share(ran, "unauthorized")) == (1, 1, 0)


@pytest.mark.parametrize(("pack", "tasks"), [(BILLING, "*"), (CATALOG, ONE_OF_EACH)])
def test_the_guesser_is_caught_by_its_one_unrecorded_call(run, pack, tasks):
    ran = run(pack, f"{PYTHON} {AGENTS / 'guesser.py'}", "--tasks", tasks)
    assert (share(ran, "success"), share(ran, "unauthorized")) == (0, 1)
    assert {row["exit_reason"] for row in ran.rows} == {"mismatch"}
    assert all(row["mismatches"][0]["path"] in ("/v1/orders", "/-/versions.json") for row in ran.rows)


def test_one_seed_gives_one_random_walk(run):
    walks = [run(BILLING, f"{PYTHON} {AGENTS / 'random_walk.py'}") for _ in range(2)]
    assert walks[0].report["figures_sha256"] == walks[1].report["figures_sha256"]
    assert 0 < share(walks[0], "success") < 1


@pytest.mark.parametrize(("pack", "tasks"), [(BILLING, "*.v1"), (CATALOG, "catalog.count.1")])
def test_the_network_agent_reaches_nothing_and_its_attempts_are_on_record(run, pack, tasks):
    with socket.create_server(("127.0.0.1", 0)) as service:
        address = f"127.0.0.1:{service.getsockname()[1]}"
        ran = run(pack, f"{PYTHON} {AGENTS / 'network.py'} {address}", "--tasks", tasks)
        service.settimeout(0)
        with pytest.raises(BlockingIOError):
            service.accept()
    (row,) = ran.rows
    assert row["success"] == 1
    assert row["answer"]["reached"] == []
    (record,) = ran.folder.glob("episodes/*/*/stderr")
    attempts = record.read_text()
    assert f"tcp {address}: failed" in attempts
    assert "tcp 192.0.2.1:443: failed" in attempts
    assert "name example.com: failed" in attempts
    assert "dns 192.0.2.53: failed" in attempts


def test_the_network_agent_does_reach_a_service_when_nothing_isolates_it():
    """Without this, the test above could pass because the agent tries nothing."""
    with socket.create_server(("127.0.0.1", 0)) as service:
        address = f"127.0.0.1:{service.getsockname()[1]}"
        task = json.dumps({"prompt": "Anything at all."})
        command: list[str | Path] = [sys.executable, AGENTS / "network.py", address]
        done = subprocess.run(command, input=task, capture_output=True, text=True, check=True)
    assert f"tcp {address}" in json.loads(done.stdout)["reached"]


def test_a_recorded_call_with_invalid_arguments_is_a_success_that_is_not_schema_valid(run):
    ran = run(BILLING, f"{PYTHON} {AGENTS / 'sloppy.py'}")
    refunds = [row for row in ran.rows if row["tool_calls"] > 2]
    assert refunds
    assert {row["success"] for row in ran.rows} == {1}
    assert {row["schema_ok"] for row in ran.rows} == {0, 1}
    plain = next(row for row in ran.rows if row["task_id"] == "billing.refund.v1")
    assert (plain["success"], plain["schema_ok"], plain["unauthorized"]) == (1, 0, 0)
    assert plain["schema_errors"]


def test_no_agent_leaves_compiled_files_beside_it():
    """Agents import each other; none may leave compiled files in the folder that is part of its identity."""
    shutil.rmtree(AGENTS / "__pycache__", ignore_errors=True)
    task = json.dumps({"prompt": "Anything at all."})
    subprocess.run([sys.executable, AGENTS / "network.py"], input=task, capture_output=True, text=True, check=True)
    assert not (AGENTS / "__pycache__").exists()


@pytest.mark.long
@pytest.mark.parametrize("pack", [BILLING, CATALOG], ids=["billing", "catalog"])
@pytest.mark.parametrize(
    "agent", ["careful.py", "careful.sh", "careful.mjs", "guesser.py", "random_walk.py", "network.py"]
)
def test_every_agent_runs_five_times_on_every_pack(run, pack, agent):
    program = {"py": PYTHON, "sh": "sh", "mjs": "node"}[agent.partition(".")[2]]
    ran = run(pack, f"{program} {AGENTS / agent}", repeats=5)
    assert len(ran.rows) == 5 * {BILLING: 12, CATALOG: 33}[pack]
    expected = {"guesser.py": (0, 1), "random_walk.py": None}.get(agent, (1, 0))
    if expected is not None:
        assert (share(ran, "success"), share(ran, "unauthorized")) == expected
