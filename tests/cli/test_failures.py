from pathlib import Path
from typing import Any

import pytest

from scoresheet.cli.failures import say_failures
from scoresheet.documents.row import Mismatch
from tests.publish import runs


def told(out: Path, rows, capsys: pytest.CaptureFixture[str]) -> list[str]:
    (out / "rows.jsonl").write_bytes(b"".join(runs.line(row) for row in rows))
    say_failures(out)
    seen = capsys.readouterr()
    assert seen.out == ""
    return seen.err.splitlines()


def test_a_run_without_failures_says_nothing(tmp_path, capsys):
    assert told(tmp_path, [runs.row(), runs.row("t01", success=None)], capsys) == []


def test_reasons_are_counted_and_each_names_its_first_episode(tmp_path, capsys):
    crashed: dict[str, Any] = {"success": 0, "exit_reason": "agent_error", "detail": "it ended with exit 1: KeyError"}
    rows = [
        runs.row("t00", 0, success=0),
        runs.row("t01", 0, **crashed),
        runs.row("t01", 1, **crashed),
        runs.row("t02", 0, success=1),
        runs.refused("t03", 0, mismatches=(Mismatch(method="GET", path="/v1/x", fingerprint="sha256:00"),)),
    ]
    assert told(tmp_path, rows, capsys) == [
        f"failed: 2 attempts: it ended with exit 1: KeyError — {tmp_path}/episodes/t01/0.0",
        f"failed: 1 attempt: its answer is not what is expected — {tmp_path}/episodes/t00/0.0",
        f"failed: 1 attempt: a call that is not recorded (no_match): GET /v1/x — {tmp_path}/episodes/t03/0.0",
    ]


def test_a_limit_is_named_and_the_rest_is_counted(tmp_path, capsys):
    capped: dict[str, Any] = {"success": 0, "exit_reason": "tool_cap", "limit": "tool_calls"}
    rows = [runs.row("t00", repeat, detail=f"reason {repeat}", success=0) for repeat in range(4)]
    rows = [runs.row("t01", 0, **capped), runs.row("t01", 1, **capped), *rows]
    found = told(tmp_path, rows, capsys)
    assert found[0] == f"failed: 2 attempts: tool_cap: tool_calls — {tmp_path}/episodes/t01/0.0"
    assert len(found) == 4
    assert found[-1] == "failed: 2 more attempts, for 2 other reasons"


def test_what_an_agent_wrote_steers_no_terminal(tmp_path, capsys):
    (line,) = told(tmp_path, [runs.row(success=0, detail="ended: \x1b[2J\nadmissible")], capsys)
    assert line.startswith("failed: 1 attempt: ended: \\x1b[2J\\nadmissible — ")
