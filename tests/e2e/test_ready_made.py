"""The ready-made agent openai-tools, and an agent of the OpenAI Agents SDK, on a recorded task in the real sandbox."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scoresheet.model.upstream import DUMMY_KEY
from scoresheet.run.agents import openai_tools
from tests.command import SCORESHEET
from tests.e2e import inside, ready
from tests.run.packs import AGENTS

TURNS: list[dict[str, Any]] = [ready.COUNT_CALL, {"text": 'There are 95 of them.\n\n```json\n{"count": 95}\n```'}]
TOOLS = ["get_catalog", "get_catalog_by_catalog_name", "get_catalog_by_catalog_name_by_name"]


def solved(tried):
    row = tried.row
    assert (row.success, row.exit_reason, row.answer) == (1, "completed", {"count": 95}), tried.said
    assert (row.tool_calls, row.repeated_calls, row.model_calls, row.model_retries) == (1, 0, 2, 0)
    assert f"live_network: model_endpoint_only({tried.address})" in tried.done.stdout
    for path in tried.out.rglob("*"):
        assert not path.is_file() or ready.KEY.encode() not in path.read_bytes(), path
    assert ready.KEY not in tried.done.stdout + tried.done.stderr


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return ready.pack("catalog-v1", ready.COUNT, tmp_path_factory.mktemp("pack") / "pack", {"tool_allowlist": TOOLS})


def test_openai_tools_solves_a_task_and_the_key_is_in_no_process_and_no_file_of_its_sandbox(tmp_path, pack):
    looked = []

    def look(runner, turn):
        if turn == 1:  # it has been answered once, and waits
            pids = inside.sandboxed(runner)
            looked.append((pids, inside.holdings(pids, [ready.KEY.encode(), DUMMY_KEY.encode()])))

    tried = ready.run("openai-tools", pack, ready.COUNT, TURNS, tmp_path / "run", on_turn=look)
    solved(tried)
    assert set(tried.row.controls.values()) == {"verified"}
    ((pids, found),) = looked
    assert len(pids) >= 2  # what starts the agent, and the agent
    assert found[ready.KEY.encode()] == []
    where = {held.where for held in found[DUMMY_KEY.encode()]}
    assert {"environ", "memory"} <= where  # so that looking means something


def test_an_agent_that_searches_its_own_memory_finds_no_key(tmp_path, pack):
    loop = openai_tools.__file__
    masked = [bytes(byte ^ 85 for byte in text.encode()).hex() for text in (ready.KEY, DUMMY_KEY)]
    agent = f"{sys.executable} {AGENTS / 'dumps.py'} {loop} {' '.join(masked)}"
    tried = ready.run(agent, pack, ready.COUNT, [TURNS[0], {"text": '{"count": 95}'}], tmp_path / "run")
    solved(tried)
    (held,) = [json.loads(line)["held"] for line in tried.said.splitlines() if line.startswith('{"held"')]
    assert held[0] == 0
    assert held[1] > 0  # the dummy: so that searching means something


def test_an_agent_of_the_openai_agents_sdk_solves_a_task_over_mcp(tmp_path, pack):
    agent = f"{sys.executable} {ready.HOUSE / 'examples' / 'agents' / 'openai_agents.py'}"
    tried = ready.run(agent, pack, ready.COUNT, [TURNS[0], {"text": '{"count": 95}'}], tmp_path / "run")
    solved(tried)
    assert set(tried.row.controls.values()) == {"verified"}
    assert {call["via"] for call in map(json.loads, _calls(tried))} == {"mcp"}


def test_a_model_that_fails_is_asked_once_and_is_a_model_error(tmp_path, pack):
    faults = {"faults": [{"status": 500, "times": "always"}]}
    tried = ready.run("openai-tools", pack, ready.COUNT, TURNS, tmp_path / "run", more=faults)
    assert (tried.row.exit_reason, tried.row.model_calls, tried.row.model_retries) == ("model_error", 1, 0)
    assert len(tried.heard) == 1


def refused(agent, pack, folder, *more):
    words = [
        SCORESHEET,
        "run",
        str(pack),
        "--agent",
        agent,
        "--seat",
        "a",
        "--out",
        str(folder / "run"),
        "--draft",
    ]
    environment = {"PATH": str(folder), "LANG": "C.UTF-8"}  # where none of them is installed
    done = subprocess.run([*words, *more], capture_output=True, text=True, timeout=300, env=environment, cwd=folder)
    assert not (folder / "run").exists()
    return done


MODEL = ("--model", "openai=http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("agent", "more", "said"),
    [
        ("codex", MODEL, "mend: npm install -g @openai/codex@"),
        ("claude-code", ("--model", "anthropic=http://127.0.0.1:9"), "mend: npm install -g @anthropic-ai/claude-code@"),
        ("mini-swe-agent", MODEL, "mend: pipx install mini-swe-agent=="),
        ("openai-tools", (), "mend: give --model openai=URL"),
        ("openai-tools modell=x", MODEL, "has no option 'modell'"),
        ("codex program=/bin/true", MODEL, "offers tools that the card does not allow: request_user_input,"),
    ],
)
def test_what_can_not_work_is_refused_before_anything_runs(tmp_path, pack, agent, more, said):
    done = refused(agent, pack, tmp_path, *more)
    assert done.returncode in (1, 2)
    assert said in done.stderr, done.stderr


def test_the_model_is_named_by_the_card_or_by_the_agents_option(tmp_path):
    pack = ready.pack("catalog-v1", ready.COUNT, tmp_path / "pack", {"model": None})
    assert "is not told which model" in refused("openai-tools", pack, tmp_path, *MODEL).stderr
    tried = ready.run("openai-tools model=mine effort=low", pack, ready.COUNT, TURNS, tmp_path / "run")
    assert tried.row.success == 1, tried.said
    assert {(each["body"]["model"], each["body"]["reasoning_effort"]) for each in tried.heard} == {("mine", "low")}
    assert tried.row.controls["controls.model"] == "unobserved"


def _calls(tried) -> list[str]:
    (path,) = tried.out.rglob("calls.jsonl")
    return Path(path).read_text().splitlines()
