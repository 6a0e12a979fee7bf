"""Whole runs at the level of the library: real agents, real sockets, both isolations, lowered limits."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunLimits
from scoresheet.documents.task import TaskLimits
from scoresheet.errors import NotIsolated, Refused, ScoresheetError, Usage
from scoresheet.run import episode, journal, local, public
from scoresheet.run.agents.spec import agent_of
from scoresheet.run.episode import limits_of
from scoresheet.run.prepare import Asked, plan_of
from scoresheet.sandbox.bwrap import BwrapSandbox
from scoresheet.sandbox.spec import Sandbox
from scoresheet.sandbox.unisolated import UnisolatedSandbox
from tests.processes import alive
from tests.run import atif
from tests.run.packs import OBEY, by_task, shop

MARKER = f"{os.getpid()}{time.time_ns() % 10**9}"
LOWERED = {"wall_clock_s": 5, "max_tool_calls": 4, "output_bytes": 100_000, "work_bytes": 8 << 20}
BEHAVIOURS = (
    *("careful", "by_name", "named_upstream", "file", "broken_file", "submits", "submits_nonsense", "talks", "silent"),
    *("wrong", "twice", "guesser 9", "sloppy", "greedy 9", "floods", f"never {MARKER}.5", f"stubborn {MARKER}.5"),
    *(f"daemons {MARKER}.5", "fills", "dies", "quits", "environment"),
)


def sandbox_of(isolation: str) -> Sandbox:
    return UnisolatedSandbox() if isolation == "none" else BwrapSandbox()


def perform(pack, out, isolation="none", agent=OBEY, limits=LOWERED, resume=False, **asked):
    found = agent_of(agent, Path.cwd(), (), (pack.root.resolve(),))
    plan = plan_of(pack, found.identity, Asked(isolation=isolation, seat="test", **asked))
    plan = plan.model_copy(update={"limits": plan.limits.model_copy(update=limits)})
    ended = local.run(pack, found, plan, out, sandbox_of(isolation), resume)
    return ended, list(journal.read_rows(out / "rows.jsonl"))


@pytest.fixture(scope="module", params=["none", "bwrap"])
def whole(request, tmp_path_factory):
    """One run in which every behaviour is a task, three at once: (isolation, out, task → row)."""
    folder = tmp_path_factory.mktemp("whole")
    canary = socket.create_server(("127.0.0.1", 0))
    port = canary.getsockname()[1]
    reached = []

    def listen():
        while True:
            try:
                connection, _ = canary.accept()
            except OSError:
                return
            with connection:
                reached.append(connection.recv(1000))
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")

    listener = threading.Thread(target=listen)
    listener.start()
    prompts = {behaviour.split()[0]: behaviour for behaviour in BEHAVIOURS}
    prompts["network"] = f"network http://127.0.0.1:{port}/"
    pack = shop(folder / "pack", prompts)
    ended, rows = perform(pack, folder / "run", request.param, repeats=1, jobs=3)
    canary.shutdown(socket.SHUT_RDWR)
    canary.close()
    listener.join()
    assert ended.status == "finished"
    assert alive(MARKER) == []
    found = {row.task_id: row for row in rows}
    assert len(found) == len(rows) == len(prompts)
    return request.param, folder / "run", found, reached


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        ("careful", {"success": 1, "exit_reason": "completed", "tool_calls": 1, "recorded_latency_ms": 40.0}),
        ("by_name", {"success": 1, "tool_calls": 1, "schema_ok": 1}),
        ("named_upstream", {"success": 1, "tool_calls": 1, "schema_ok": 1}),
        ("file", {"success": 1, "answer": {"price": 12}}),
        ("broken_file", {"success": 0, "exit_reason": "completed", "answer": None}),
        ("submits", {"success": 1, "answer": {"price": 12}, "tool_calls": 0}),
        ("submits_nonsense", {"success": 0, "exit_reason": "completed", "answer": None}),
        ("talks", {"success": 1, "answer": {"price": 12}}),
        ("silent", {"success": 0, "exit_reason": "completed", "answer": None, "agent_exit": 0}),
        ("wrong", {"success": 0, "exit_reason": "completed", "answer": {"price": 12.5}}),
        ("twice", {"success": 1, "tool_calls": 2, "repeated_calls": 1, "recorded_latency_ms": 80.0}),
        ("guesser", {"success": 0, "exit_reason": "mismatch", "unauthorized": 1, "timeout": 0, "answer": None}),
        ("sloppy", {"success": 1, "schema_ok": 0, "unauthorized": 0, "exit_reason": "completed"}),
        ("greedy", {"success": 0, "exit_reason": "tool_cap", "limit": "tool_calls", "tool_calls": 4, "timeout": 0}),
        ("floods", {"success": 0, "exit_reason": "agent_error", "limit": "output", "timeout": 0}),
        ("never", {"success": 0, "exit_reason": "timeout", "limit": "wall_clock", "timeout": 1}),
        ("stubborn", {"success": 0, "exit_reason": "timeout", "timeout": 1, "agent_exit": None}),
        ("daemons", {"success": 1, "exit_reason": "completed", "agent_exit": 0}),
        ("fills", {"success": 0, "exit_reason": "agent_error", "limit": "disk"}),
        ("dies", {"success": 0, "exit_reason": "agent_error", "agent_exit": -11, "answer": None}),
        ("quits", {"success": 0, "exit_reason": "agent_error", "agent_exit": 3, "answer": None}),
        ("network", {"success": 1, "exit_reason": "completed", "unauthorized": 0}),
    ],
)
def test_every_behaviour_ends_as_it_should(whole, behaviour, expected):
    _, _, rows, _ = whole
    row = rows[behaviour].model_dump()
    assert {name: row[name] for name in expected} == expected


def test_isolation_is_proved_in_every_episode_or_in_none(whole):
    isolation, _, rows, reached = whole
    assert {row.isolation for row in rows.values()} == {"proved" if isolation == "bwrap" else "not_isolated"}
    assert rows["network"].answer == ({"price": 12} if isolation == "bwrap" else {"price": 12, "reached": True})
    assert len(reached) == (0 if isolation == "bwrap" else 1)


def test_what_ends_an_episode_ends_it_at_once(whole):
    rows = whole[2]
    for behaviour in ("guesser", "greedy", "floods", "fills"):
        assert rows[behaviour].elapsed_s < LOWERED["wall_clock_s"], behaviour


def test_a_row_says_what_was_asked_and_what_stood_nearest(whole):
    row = whole[2]["guesser"]
    assert [(m.method, m.path, m.kind) for m in row.mismatches] == [("GET", "/items/7", "no_match")]
    assert row.mismatches[0].nearest is not None
    assert row.mismatches[0].nearest.path in ("/items/0", "/items/1")


def test_a_failure_has_a_sentence_for_people(whole):
    rows = whole[2]
    assert "signal 11" in (rows["dies"].detail or "")
    assert "exit 3" in (rows["quits"].detail or "")
    assert "strict JSON" in (rows["broken_file"].detail or "")
    assert "no answer" in (rows["silent"].detail or "")


def test_the_journal_of_every_episode_lies_beside_its_output_and_its_evidence(whole):
    isolation, out, rows, _ = whole
    for task_id, row in rows.items():
        folder = out / "episodes" / task_id / "0.0"
        names = {"dns.jsonl"} if isolation == "bwrap" else set()
        names |= {"calls.jsonl", "stdout", "stderr", "evidence.json", "trajectory.json"}
        assert {path.name for path in folder.iterdir()} == names
        assert json.loads((folder / "evidence.json").read_bytes())["state"] == row.isolation
    assert (out / "episodes/careful/0.0/stdout").read_bytes() == b'{"price": 12}'
    (line,) = (out / "episodes/guesser/0.0/calls.jsonl").read_bytes().splitlines()
    assert json.loads(line)["outcome"] == "miss"
    if isolation == "none":
        assert len((out / "episodes/floods/0.0/stderr").read_bytes()) == 100_000


def test_every_episode_has_a_trajectory_of_its_calls_however_it_ended(whole):
    _, out, rows, _ = whole
    for task_id, row in rows.items():
        found = atif.read((out / "episodes" / task_id / "0.0" / "trajectory.json").read_bytes())
        assert found["steps"][0]["message"].startswith(task_id)  # its prompt
        assert found["final_metrics"]["extra"]["tool_calls"] == row.tool_calls
        assert found["extra"]["observed"] == ["tool calls"]
        outcomes = [each["observation"]["results"][0]["extra"]["outcome"] for each in found["steps"][1:]]
        assert outcomes.count("miss") == len(row.mismatches)


def test_the_agent_gets_the_environment_of_the_contract_and_nothing_else(whole):
    isolation, out, rows, _ = whole
    lines = (out / "episodes/environment/0.0/stderr").read_text().splitlines()
    environment = dict(line.split("=", 1) for line in lines)
    shell = {"PWD", "SHLVL", "_", "OLDPWD"}
    trusts = {name for name, value in environment.items() if value == public.CERTIFICATE}
    proxies = {word for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY") for word in (name, name.lower())}
    real_names = {*trusts, *proxies, "JAVA_TOOL_OPTIONS"} if isolation == "bwrap" else set()
    assert len(trusts) == (11 if isolation == "bwrap" else 0)
    assert set(environment) - shell - real_names == {
        *("HOME", "PATH", "LANG", "SHOP", "SCORESHEET_TASK", "SCORESHEET_TOOLS_URL", "SCORESHEET_CALL_URL"),
        *("SCORESHEET_ANSWER", "SCORESHEET_SEED", "SCORESHEET_MCP_URL"),
    }
    assert environment["SHOP"] == environment["SCORESHEET_TOOLS_URL"] != environment["SCORESHEET_CALL_URL"]
    assert environment["SCORESHEET_SEED"] == str(rows["environment"].episode_seed)


def test_processor_time_of_ended_processes_is_counted(whole):
    assert whole[2]["floods"].cpu_s > 0.0
    assert all(row.cpu_s >= 0 and row.elapsed_s > 0 for row in whole[2].values())


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_an_unrecorded_call_of_a_valid_tool_is_schema_ok_only_under_v2(tmp_path, protocol):
    pack = shop(tmp_path / "pack", {"t": "guesser"}, v1=protocol == "v1")
    _, (row,) = perform(pack, tmp_path / "run", repeats=1)
    assert (row.success, row.unauthorized, row.timeout, row.exit_reason) == (0, 1, 0, "mismatch")
    assert row.schema_ok == (0 if protocol == "v1" else 1)


def test_on_mismatch_continue_lets_the_agent_end_but_never_succeed(tmp_path):
    pack = shop(tmp_path / "pack", {"t": "guesser"}, on_mismatch="continue")
    _, (row,) = perform(pack, tmp_path / "run", repeats=1)
    assert (row.exit_reason, row.success, row.unauthorized, row.answer) == ("completed", 0, 1, {"price": 12})


def test_retries_give_more_attempts_only_to_what_did_not_succeed(tmp_path):
    pack = shop(tmp_path / "pack", {"good": "careful", "bad": "wrong"}, retries=2)
    ended, rows = perform(pack, tmp_path / "run", repeats=2)
    assert ended.status == "finished"
    found = {task: sorted((row.repeat, row.attempt) for row in rows) for task, rows in by_task(rows).items()}
    assert found["good"] == [(0, 0), (1, 0)]
    assert found["bad"] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_a_task_can_only_lower_the_clock(tmp_path):
    low = shop(tmp_path / "low", {"t": "waits 5"}, extra={"limits": {"wall_clock_s": 0.4}}, timeout_s=20)
    _, (row,) = perform(low, tmp_path / "run", limits={}, repeats=1)
    assert (row.exit_reason, row.limit_at_s is not None and row.limit_at_s < 3) == ("timeout", True)
    asked = RunLimits(wall_clock_s=2, max_tool_calls=3)
    task = low.task("t").model_copy(update={"limits": TaskLimits(wall_clock_s=30, max_tool_calls=9)})
    assert limits_of(asked, task) == asked


def test_an_answer_that_breaks_its_schema_is_none(tmp_path):
    schema = {"type": "object", "required": ["price", "currency"]}
    pack = shop(tmp_path / "pack", {"t": "careful"}, extra={"answer_schema": schema})
    _, (row,) = perform(pack, tmp_path / "run", repeats=1)
    assert (row.success, row.answer, row.exit_reason) == (0, None, "completed")
    assert "currency" in (row.detail or "")


def test_a_task_without_an_oracle_is_refused_by_name_before_anything_runs(tmp_path):
    pack = shop(tmp_path / "pack", {"fine": "careful"})
    task = json.loads((tmp_path / "pack/tasks/fine.json").read_text())
    bad = shop(tmp_path / "bad", {"judged": "careful", "empty": "careful"}, extra={"expected": {}})
    assert task["expected"]
    with pytest.raises(Refused) as refused:
        plan_of(bad, agent_of(OBEY, Path.cwd()).identity, Asked())
    assert {finding.where for finding in refused.value.findings} == {"judged", "empty"}
    assert pack.manifest_sha256 != bad.manifest_sha256


def test_a_glob_that_matches_no_task_is_refused(tmp_path):
    pack = shop(tmp_path / "pack", {"a1": "careful", "b1": "careful"})
    agent = agent_of(OBEY, Path.cwd()).identity
    assert [task.task_id for task in plan_of(pack, agent, Asked(tasks="a*")).tasks] == ["a1"]
    with pytest.raises(Usage):
        plan_of(pack, agent, Asked(tasks="z*"))


def test_a_run_directory_that_holds_something_is_never_written_to(tmp_path):
    pack = shop(tmp_path / "pack", {"t": "careful"})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(Usage, match="not empty"):
        perform(pack, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_two_runners_never_share_a_run_directory(tmp_path):
    pack = shop(tmp_path / "pack", {"t": "careful"})
    perform(pack, tmp_path / "run", repeats=1)
    with journal.held(tmp_path / "run"), pytest.raises(ScoresheetError, match="another runner"):
        perform(pack, tmp_path / "run", repeats=1, resume=True)


def test_resuming_a_finished_run_adds_nothing(tmp_path):
    pack = shop(tmp_path / "pack", {"t": "careful"})
    _, before = perform(pack, tmp_path / "run", repeats=2)
    ended, after = perform(pack, tmp_path / "run", repeats=2, resume=True)
    assert after == before
    assert (ended.status, len(ended.resumed_at)) == ("finished", 1)


def test_a_torn_last_row_is_cut_off_and_its_episode_run_again(tmp_path):
    pack = shop(tmp_path / "pack", {"t": "careful"})
    perform(pack, tmp_path / "run", repeats=3, jobs=1)
    rows = tmp_path / "run" / "rows.jsonl"
    whole = rows.read_bytes()
    rows.write_bytes(whole[:-40])
    ended, after = perform(pack, tmp_path / "run", repeats=3, jobs=1, resume=True)
    assert ended.status == "finished"
    assert [(row.repeat, row.attempt) for row in after] == [(0, 0), (1, 0), (2, 0)]
    assert rows.read_bytes().startswith(whole[: whole[:-40].rfind(b"\n") + 1])


def test_an_episode_lost_by_our_failure_is_rerun_by_resume_as_a_further_attempt(tmp_path):
    pack = shop(tmp_path / "pack", {"t": "careful"})
    _, (first, _) = perform(pack, tmp_path / "run", repeats=2, jobs=1)
    rows = tmp_path / "run" / "rows.jsonl"
    lost = first.model_copy(update={"exit_reason": "harness_error", "success": 0})
    lines = rows.read_bytes().splitlines(keepends=True)
    rows.write_bytes(json.dumps(lost.model_dump(mode="json")).encode() + b"\n" + lines[1])
    _, after = perform(pack, tmp_path / "run", repeats=2, resume=True)
    assert sorted((row.repeat, row.attempt, row.success) for row in after) == [(0, 0, 0), (0, 1, 1), (1, 0, 1)]


def test_a_failure_on_our_side_is_a_harness_error_and_the_run_incomplete(tmp_path, monkeypatch):
    pack = shop(tmp_path / "pack", {"a": "careful", "b": "careful"})

    def broken(spec, *_):
        if spec.episode.task_id == "a":
            raise OSError(28, "No space left on device")
        return real(spec, *_)

    real = episode.run_episode
    monkeypatch.setattr("scoresheet.run.local.run_episode", broken)
    ended, rows = perform(pack, tmp_path / "run", repeats=1)
    assert ended.status == "incomplete"
    found = {row.task_id: row for row in rows}
    assert (found["a"].exit_reason, found["a"].isolation) == ("harness_error", "not_proved")
    assert "No space left" in (found["a"].detail or "")
    assert found["b"].success == 1


def test_isolation_that_is_not_proved_aborts_the_run_and_runs_no_agent(tmp_path):
    class Refusing(UnisolatedSandbox):
        def open(self, spec):
            raise NotIsolated("isolation-not-proved", "the probe reached the host")

    pack = shop(tmp_path / "pack", {"t": "careful"})
    agent = agent_of(OBEY, Path.cwd())
    plan = plan_of(pack, agent.identity, Asked(isolation="none", seat="test"))
    with pytest.raises(NotIsolated):
        local.run(pack, agent, plan, tmp_path / "run", Refusing())
    assert list(journal.read_rows(tmp_path / "run" / "rows.jsonl")) == []
    assert journal.read_plan(tmp_path / "run").status == "aborted"


def test_rows_come_back_as_they_were_written(tmp_path):
    pack = shop(tmp_path / "pack", {"t": "guesser"})
    _, (row,) = perform(pack, tmp_path / "run", repeats=1)
    (line,) = (tmp_path / "run" / "rows.jsonl").read_bytes().splitlines()
    assert Row.from_bytes(line, "rows.jsonl:1") == row
    assert (
        row.calls_sha256
        == __import__("hashlib").sha256((tmp_path / "run/episodes/t/0.0/calls.jsonl").read_bytes()).hexdigest()
    )


def test_two_rows_of_one_attempt_are_refused(tmp_path):
    pack = shop(tmp_path / "pack", {"t": "careful"})
    perform(pack, tmp_path / "run", repeats=1)
    rows = tmp_path / "run" / "rows.jsonl"
    rows.write_bytes(rows.read_bytes() * 2)
    with pytest.raises(ScoresheetError, match="two rows"):
        perform(pack, tmp_path / "run", repeats=1, resume=True)


def test_the_agent_can_not_see_the_pack(tmp_path):
    """The pack lies in the folder of the agent's script: everything of that folder is shown but the pack."""
    project = tmp_path / "project"
    pack = shop(project / "pack", {"t": "careful"})
    (project / "helper.py").write_text("ANSWER = {'price': 12}\n")
    (project / "agent.py").write_text(
        "import os, json, helper\n"
        "here = os.path.dirname(os.path.abspath(__file__))\n"
        "print(json.dumps(helper.ANSWER | {'seen': sorted(os.listdir(here))}))\n"
    )
    _, (row,) = perform(pack, tmp_path / "run", "bwrap", f"{sys.executable} -B {project}/agent.py", {}, repeats=1)
    assert row.success == 1
    assert row.answer == {"price": 12, "seen": ["agent.py", "helper.py"]}


def test_memory_does_not_grow_with_the_number_of_episodes(tmp_path):
    """Tapes of past tasks are let go; what stays of an episode is its place in the count."""
    source = (
        "import sys, tracemalloc\n"
        "from pathlib import Path\n"
        "from scoresheet.pack.folder import Pack\n"
        "from scoresheet.run import local\n"
        "from scoresheet.run.agents.null import null\n"
        "from scoresheet.run.prepare import Asked, plan_of\n"
        "from scoresheet.sandbox.unisolated import UnisolatedSandbox\n"
        "pack = Pack.open(sys.argv[1])\n"
        "plan = plan_of(pack, null().identity, Asked(isolation='none', seat='s', repeats=3, jobs=2))\n"
        "held = []\n"
        "local.run(pack, null(), plan, Path(sys.argv[2]), UnisolatedSandbox(),\n"
        "          progress=lambda s: held.append(tracemalloc.get_traced_memory()[0]) or\n"
        "          (tracemalloc.start() if s.row is None else None))\n"
        "print(held[20], held[-1])\n"
    )
    prompts = {f"t{number}": "careful" for number in range(20)}
    big = {"licence": "x" * 200_000}
    shop(tmp_path / "pack", prompts, extra=big)
    done = subprocess.run(
        [sys.executable, "-c", source, tmp_path / "pack", tmp_path / "run"], capture_output=True, text=True, check=True
    )
    early, late = map(int, done.stdout.split())
    assert late - early < 1_500_000
