import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from scoresheet.cli import app
from scoresheet.documents.comparison import Comparison, NotComparable
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan
from tests.publish import runs, scored
from tests.publish.compared import agent
from tests.publish.runs import A, B, plan, rows, write

HASTY = (0, 0, 0, 0, 0, 0, 1, 0)


def lay(folder: Path, name: str, passed: tuple[int, ...] = scored.PASSED) -> Path:
    """An admissible run of the scored suite, of which so many repeats succeed."""
    run = scored.laid_run(folder / name)
    old = RunPlan.from_bytes((run / "run.json").read_bytes(), "run.json")
    (run / "run.json").write_bytes(old.model_copy(update={"agent": agent(name)}).text())
    lines = []
    for line in (run / "rows.jsonl").read_bytes().splitlines():
        one = Row.from_bytes(line, "rows")
        won = int(one.repeat < passed[int(one.task_id[1:])])
        lines.append(runs.line(one.model_copy(update={"success": won, "host": name})))
    (run / "rows.jsonl").write_bytes(b"".join(lines))
    return run


@pytest.fixture
def careful(tmp_path: Path) -> Path:
    return lay(tmp_path, "careful")


@pytest.fixture
def hasty(tmp_path: Path) -> Path:
    return lay(tmp_path, "hasty", HASTY)


@pytest.fixture
def drafts(tmp_path: Path) -> tuple[str, str]:
    """Two runs that are complete, without a card."""
    made = [
        write(tmp_path / name, plan(agent=agent(name)), rows(passed), confounds=b"", baselines=runs.baselines().text())
        for name, passed in (("careful", A), ("hasty", B))
    ]
    return str(made[0]), str(made[1])


def test_two_admissible_runs_are_compared(careful, hasty, capsys):
    assert app.run(["compare", str(careful), str(hasty)]) == 0
    out = capsys.readouterr().out
    assert "DRAFT" not in out
    assert "run A: careful: 0.7500" in out
    assert "A - B: +0.6875 [" in out
    assert "A is better" in out
    assert "ranks: A 1; B 2" in out
    assert "reading: a ranking that moves less than the interval is a tie" in out
    assert "tie_margin: 0.05" in out
    assert "t07   1/2  0/2  +0.5000" in out


def test_one_agent_against_itself_is_a_tie(careful, tmp_path, capsys):
    again = lay(tmp_path, "copy")
    assert app.run(["compare", str(careful), str(again)]) == 0
    out = capsys.readouterr().out
    assert "A - B: 0.0000 [" in out
    assert "tie: unresolved" in out
    assert "ranks: A 1-2 (tie with B); B 1-2 (tie with A)" in out


def test_runs_that_are_not_admissible_need_draft_and_say_so(drafts, capsys):
    assert app.run(["compare", *drafts]) == 1
    out = capsys.readouterr().out
    assert out.startswith("not admissible:\n  - A: no protocol card")
    assert "0.2000" not in out
    assert app.run(["compare", *drafts, "--draft"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[:2] == ["DRAFT: a run is not admissible, so nothing here is a result", "draft: true"]
    assert "A - B: +0.2000 [0.1000, 0.3000] A is better" in out


def test_an_incomplete_run_ends_as_4(drafts, tmp_path, capsys):
    cut = write(tmp_path / "cut", plan(agent=agent("cut")), rows(B)[:-3], confounds=b"")
    assert app.run(["compare", drafts[0], str(cut)]) == 4
    assert app.run(["compare", drafts[0], str(cut), "--draft"]) == 4
    assert "note: B: 3 of 60 planned episodes are not scored and count as failed" in capsys.readouterr().out


def test_runs_that_are_not_comparable_are_refused_field_by_field(drafts, tmp_path, capsys):
    other = plan(manifest={"timeout_s": 31}, isolation="none", agent=agent("other"))
    bare = [one.model_copy(update={"isolation": "not_isolated"}) for one in rows(B)]
    wrong = write(tmp_path / "wrong", other, bare, confounds=b"")
    assert app.run(["compare", drafts[0], str(wrong), "--draft"]) == 1
    shown = capsys.readouterr()
    assert not shown.out
    assert "error: timeout_s is 30 in A, and 31 in B — A and B [compare-field]" in shown.err
    assert "error: isolation is denied in A, and not_isolated in B — A and B [compare-field]" in shown.err
    assert "the runs are not comparable — A = careful, B = wrong: 2 findings" in shown.err
    assert app.run(["compare", drafts[0], str(wrong), "--json"]) == 1
    found = NotComparable.from_bytes(capsys.readouterr().out, "stdout")
    assert [each.field for each in found.differences] == ["timeout_s", "isolation"]


def test_json_is_a_document_with_a_schema(drafts, capsys):
    import jsonschema_rs

    assert app.run(["compare", *drafts, "--draft", "--json", "--metric", "unauthorized"]) == 0
    out = capsys.readouterr().out
    found = Comparison.from_bytes(out, "stdout")
    assert found.text() == out
    assert [each.metric for each in found.metrics] == ["success_mean", "unauthorized_rate"]
    assert app.run(["schema", "comparison"]) == 0
    jsonschema_rs.validator_for(json.loads(capsys.readouterr().out)).validate(json.loads(out))
    assert app.run(["compare", *drafts, "--json"]) == 1
    assert NotComparable.from_bytes(capsys.readouterr().out, "stdout").reasons[0].startswith("A: no protocol card")


def test_markdown_holds_the_verdicts(drafts, capsys):
    assert app.run(["compare", *drafts, "--draft", "--format", "md"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("## Comparison: DRAFT, not admissible\n")
    assert "| A - B | +0.2000 | [0.1000, 0.3000] | A is better |" in out


def test_one_run_is_nothing_to_compare(drafts, tmp_path, capsys):
    assert app.run(["compare", drafts[0]]) == 2
    assert app.run(["compare", drafts[0], drafts[0]]) == 2
    assert "A and B are one and the same run" in capsys.readouterr().err
    null = write(tmp_path / "null", plan(agent=agent("null", "null")), rows((0,) * 12))
    assert app.run(["compare", drafts[0], str(null), "--draft"]) == 2
    assert "baselines are not ranked" in capsys.readouterr().err
    assert app.run(["compare", *drafts, str(null), "--draft"]) == 0
    assert "ranks: A 1; B 2\n" in capsys.readouterr().out


def test_a_folder_that_is_no_run_is_2(drafts, tmp_path):
    (tmp_path / "empty").mkdir()
    assert app.run(["compare", drafts[0], str(tmp_path / "empty")]) == 2


def test_a_terminal_gets_a_table_with_lines_and_a_pipe_gets_none(drafts):
    command = [sys.executable, "-m", "scoresheet", "compare", *drafts, "--draft"]
    piped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "\x1b" not in piped
    assert "─" not in piped
    parent, child = pty.openpty()
    env = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdout=child, stderr=subprocess.DEVNULL, env=env) as process:
        os.close(child)
        shown = b""
        try:
            while chunk := os.read(parent, 65536):
                shown += chunk
        except OSError:
            pass
        os.close(parent)
    assert process.returncode == 0
    assert "─" in shown.decode()
    assert b"\x1b[31m\x1b[1mDRAFT" in shown


def test_a_doubled_row_makes_a_draft(careful, hasty, capsys):
    first = (hasty / "rows.jsonl").read_bytes().splitlines(keepends=True)[0]
    (hasty / "rows.jsonl").write_bytes((hasty / "rows.jsonl").read_bytes() + first)
    assert app.run(["compare", str(careful), str(hasty)]) == 1
    assert "B: rows.jsonl:17: t00 repeat 0 attempt 0 is there twice" in capsys.readouterr().out
