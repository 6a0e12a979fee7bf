from dataclasses import replace
from typing import Any

import pytest

from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.evidence import Evidence
from scoresheet.documents.task import Task
from scoresheet.model.observed import Observation
from scoresheet.run.fold import Seen, fold, harness_error
from scoresheet.run.plan import Episode
from scoresheet.sandbox.spec import Ended

ENDED = Ended(
    exit_code=0, limit=None, limit_at_s=None, stopped=None, elapsed_s=1.0, cpu_s=0.5, peak_memory_bytes=None,
    stdout=b'{"a": 1}', stderr=b"", answer=None,
)  # fmt: skip


def call(outcome="hit", at_s=0.1, **more: Any) -> CallRecord:
    values = {
        "seq": 0, "at_s": at_s, "via": "http", "upstream": "", "method": "GET", "path": "/", "fingerprint": "f",
        "outcome": outcome, "status": 200,
    }  # fmt: skip
    return CallRecord.from_value(values | ({"kind": "no_match"} if outcome == "miss" else {}) | more, "calls.jsonl")


def seen(
    *calls: CallRecord,
    protocol: Any = "tool-replay-v2",
    on_mismatch="stop",
    suspended_s=0.0,
    models: Observation | None = None,
    model_sha256=None,
    **ended: Any,
):
    return fold(
        Seen(
            manifest_sha256="ab" * 32,
            protocol=protocol,
            on_mismatch=on_mismatch,
            episode=Episode("t", 1, 2, 3),
            task=Task.from_value({"task_id": "t", "prompt": "p", "expected": {"a": 1}}, "t"),
            schema_unchecked=("x",),
            calls=calls,
            calls_sha256="cd" * 32,
            submitted=None,
            ended=replace(ENDED, **ended),
            evidence=Evidence(backend="bwrap", state="proved", suspended_s=suspended_s),
            started_at="2026-01-01T00:00:00Z",
            host="h",
            models=models,
            model_sha256=model_sha256,
        )
    )


def outcome(row) -> tuple[Any, ...]:
    return row.success, row.schema_ok, row.unauthorized, row.timeout, row.exit_reason


def test_a_right_answer_without_calls_is_a_success():
    row = seen()
    assert outcome(row) == (1, 1, 0, 0, "completed")
    assert (row.task_id, row.repeat, row.attempt, row.episode_seed) == ("t", 1, 2, 3)
    assert (row.isolation, row.schema_unchecked) == ("proved", ("x",))


def test_calls_are_counted_summed_and_quoted():
    row = seen(call(latency_ms_recorded=10.5), call(latency_ms_recorded=1.5, repeat=True))
    assert (row.tool_calls, row.repeated_calls, row.recorded_latency_ms) == (2, 1, 12.0)


def test_every_use_of_an_ignore_rule_is_counted():
    row = seen(call(tool="pay", ignored=["/json/at"]), call(tool="pay", ignored=["/json/at", "/query/t"]))
    assert row.ignored == {"pay /json/at": 2, "pay /query/t": 1}


def test_a_malformed_request_and_an_answer_are_no_tool_calls():
    assert seen(call("malformed"), call("answer")).tool_calls == 0


@pytest.mark.parametrize("protocol", ["tool-replay-v1", "tool-replay-v2"])
def test_an_unrecorded_call_ends_it_under_either_protocol(protocol):
    row = seen(call(), call("miss"), protocol=protocol, stopped="mismatch", exit_code=None)
    assert outcome(row) == (0, int(protocol == "tool-replay-v2"), 1, 0, "mismatch")
    assert (row.answer, row.agent_exit) == (None, None)


def test_an_agent_that_ends_before_it_is_ended_is_a_mismatch_all_the_same():
    """The journal decides, not the race between the agent's exit and our kill."""
    assert outcome(seen(call("miss")))[-1] == "mismatch"
    assert outcome(seen(call("miss"), exit_code=1))[-1] == "mismatch"


def test_with_continue_it_goes_on_but_is_no_success():
    assert outcome(seen(call("miss"), on_mismatch="continue")) == (0, 1, 1, 0, "completed")
    assert outcome(seen(call("miss"), on_mismatch="continue", exit_code=2))[-1] == "agent_error"


def test_one_call_too_many_ends_it_whatever_on_mismatch_says():
    row = seen(call(), call("capped"), on_mismatch="continue", stopped="tool_cap", exit_code=None)
    assert outcome(row) == (0, 1, 0, 0, "tool_cap")
    assert (row.limit, row.tool_calls) == ("tool_calls", 1)


def test_what_came_first_decides():
    late: Any = {"limit": "wall_clock", "limit_at_s": 1.0, "exit_code": None}
    assert outcome(seen(call("miss", 0.9), **late))[-1] == "mismatch"
    assert outcome(seen(call("miss", 1.1), **late)) == (0, 1, 1, 1, "timeout")
    assert outcome(seen(call("capped", 0.5), call("miss", 0.6)))[-1] == "tool_cap"


@pytest.mark.parametrize("limit", ["output", "disk", "memory", "pids"])
def test_every_other_limit_is_the_agents_own_error(limit):
    row = seen(limit=limit, limit_at_s=0.5, exit_code=None)
    assert outcome(row) == (0, 1, 0, 0, "agent_error")
    assert (row.limit, row.limit_at_s) == (limit, 0.5)
    assert limit in (row.detail or "")


def test_a_bad_exit_is_an_agent_error_whatever_was_printed():
    row = seen(exit_code=1, stderr=b"Traceback\nValueError: no\n\n")
    assert outcome(row) == (0, 1, 0, 0, "agent_error")
    assert row.detail == "the agent ended with exit 1: ValueError: no"
    assert seen(exit_code=-9).detail == "the agent died of signal 9"


def test_a_schema_error_costs_schema_ok_and_not_success():
    row = seen(call(schema_errors=["get: /n: 0 is less than the minimum of 1"]))
    assert outcome(row) == (1, 0, 0, 0, "completed")
    assert row.schema_errors == ("get: /n: 0 is less than the minimum of 1",)


def test_a_machine_that_slept_makes_the_episode_our_failure():
    row = seen(suspended_s=30.0)
    assert (row.exit_reason, row.success) == ("harness_error", 0)
    assert "slept" in (row.detail or "")


def test_our_own_failure_says_so_and_proves_nothing():
    row = harness_error("ab" * 32, Episode("t", 0, 0, 1), "x" * 1000, "2026-01-01T00:00:00Z", "h", 0.25)
    assert (row.exit_reason, row.isolation, row.success, row.elapsed_s) == ("harness_error", "not_proved", 0, 0.25)
    assert len(row.detail or "") == 300
