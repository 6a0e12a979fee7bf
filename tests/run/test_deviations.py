"""What a card pins and a run did not keep: told when it can be seen, and only then."""

import pytest

from scoresheet.documents.pack_record import PackRecord
from scoresheet.documents.run_plan import AgentIdentity, Host
from scoresheet.run.deviations import deviations
from tests.publish.runs import PACK, plan

HOST = Host(label="h", system="Linux 6.1.0-18 x86_64", python="3.11.7", cores=2, os="Debian GNU/Linux 12 (bookworm)")
NODE = AgentIdentity(kind="command", spec="agent.mjs", sha256=PACK, interpreter="node 18.19.0 sha256:" + PACK)
RUN = plan(host=HOST, lockfile_sha256=PACK, agent=NODE)
RECORD = PackRecord.from_value(
    {
        "manifest_sha256": PACK,
        "intact": True,
        "fixture_sha256": PACK,
        "frozen_at": None,
        "timeout_s": 30,
        "seed": 1,
        "retries": 0,
        "tools": ["read", "write"],
        "scan": None,
        "tasks": {"t": {"test_command": "pytest -q"}, "u": {}},
    },
    "pack.json",
)


def told(card, run=RUN):
    return [each.control for each in deviations(card, run, RECORD)]


@pytest.mark.parametrize(
    ("controls", "deviates"),
    [
        ({"wall_clock_s": 30}, False),
        ({"wall_clock_s": 31}, True),
        ({"repeats": 5}, False),
        ({"repeats": 6}, True),
        ({"retries": 0}, False),
        ({"retries": 1}, True),
        ({"parallel_jobs": 2}, False),
        ({"parallel_jobs": 4}, True),
        ({"seed": 20260922}, False),
        ({"seed": 1}, True),
        ({"max_tool_calls": 40}, True),
        ({"max_tool_calls": True}, False),
        ({"test_command": "pytest -q"}, False),
        ({"test_command": "pytest"}, True),
        ({"tool_allowlist": ["read", "write", "list"]}, False),
        ({"tool_allowlist": ["read"]}, True),
        ({"lockfile": "uv.lock"}, False),
        ({"lockfile": f"uv.lock sha256:{PACK}"}, False),
        ({"lockfile": "uv.lock sha256:" + "ab" * 32}, True),
        ({"runtime": "linux, whatever the agent brings"}, False),
        ({"runtime": "CPython 3.11"}, False),
        ({"runtime": "python 3.11.7"}, False),
        ({"runtime": "python 3.1"}, True),
        ({"runtime": "Python 3.12.1"}, True),
        ({"runtime": "node 18"}, False),
        ({"runtime": "node@20.1"}, True),
        ({"runtime": "rust 1.80"}, False),
        ({"runtime": None}, False),
    ],
)
def test_a_control_is_told_when_the_run_had_another(controls, deviates):
    found = told({"controls": controls})
    assert found == ([f"controls.{next(iter(controls))}"] if deviates else [])


@pytest.mark.parametrize(
    ("system", "deviates"),
    [
        ("linux", False),
        ("Debian 12", False),
        ("Debian GNU/Linux 12", False),
        ("debian", False),
        ("Linux 6.1", False),
        ("Debian 11", True),
        ("Ubuntu 24.04", True),
        ("Windows 11", True),
        ("a laptop", False),
        (7, False),
    ],
)
def test_a_system_is_told_when_it_is_another(system, deviates):
    assert told({"environment": {"os": system}}) == (["environment.os"] if deviates else [])


def test_a_model_that_a_denied_network_could_reach_is_told():
    run = RUN.model_copy(update={"model_endpoints": ("api.example:443",)})
    assert told({"controls": {"network": "denied"}}, run) == ["controls.network"]
    assert told({"controls": {"network": "model_only"}}, run) == []


@pytest.mark.parametrize("card", [None, [], "card", {}, {"controls": 3, "environment": []}])
def test_a_card_that_says_nothing_is_kept(card):
    assert told(card) == []
