import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from scoresheet.cli import app
from scoresheet.documents.report import NotAdmissible, Report
from tests.publish.runs import A, B, baselines, plan, row, rows, write

COMMAND = [sys.executable, "-m", "scoresheet", "report"]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A run that is complete; no card stands behind it."""
    return write(tmp_path / "run", plan(), rows(B), confounds=b"", baselines=baselines().text())


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A run whose last three episodes are not there."""
    return write(tmp_path / "cut", plan(), rows(B)[:-3], confounds=b"")


def test_without_a_card_no_figure_is_printed_and_every_reason_is(whole, capsys):
    assert app.run(["report", str(whole)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("not admissible:\n  - no protocol card")
    assert "0.5333" not in out
    assert len(out.splitlines()) == 3


def test_a_draft_is_printed_under_its_banner(whole, capsys):
    assert app.run(["report", str(whole), "--draft"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["DRAFT: not admissible, not a score", "draft: true", "confounds: 0"]
    assert "success_mean: 0.5333" in lines
    assert "success_ci95: [0.3000, 0.7500]" in lines
    assert "live_network: denied" in lines
    assert "not admissible:" in lines


def test_an_incomplete_run_ends_as_4_with_and_without_figures(cut, capsys):
    assert app.run(["report", str(cut)]) == 4
    assert "3 of 60 planned episodes have no row: t11/2, t11/3, t11/4" in capsys.readouterr().out
    assert app.run(["report", str(cut), "--draft"]) == 4
    assert "note: incomplete: 3 of 60 planned episodes are not scored" in capsys.readouterr().out


def test_a_lost_episode_ends_as_4(tmp_path, capsys):
    run = write(tmp_path / "lost", plan(), [*rows(B)[:-1], row("t11", 4, 0, exit_reason="harness_error")])
    assert app.run(["report", str(run)]) == 4
    assert "lost by an error of scoresheet's own: t11/4" in capsys.readouterr().out


def test_json_obeys_the_published_schema(whole, capsys):
    assert app.run(["schema", "report"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert app.run(["report", str(whole), "--draft", "--format", "json"]) == 0
    out = capsys.readouterr().out
    jsonschema_rs.validator_for(schema).validate(json.loads(out))
    assert Report.from_bytes(out, "stdout").draft is True


def test_json_without_a_card_holds_reasons_and_no_figure(whole, cut, capsys):
    assert app.run(["report", str(whole), "--format", "json"]) == 1
    found = NotAdmissible.from_bytes(capsys.readouterr().out, "stdout")
    assert (found.admissible, found.complete, len(found.reasons)) == (False, True, 2)
    assert app.run(["report", str(cut), "--format", "json"]) == 4
    assert not NotAdmissible.from_bytes(capsys.readouterr().out, "stdout").complete


def test_markdown_has_the_tasks_as_a_table(whole, capsys):
    assert app.run(["report", str(whole), "--draft", "--format", "md"]) == 0
    assert "| t03 | 2/5 | 5/5 | 0/5 | 0/5 | completed 5 |" in capsys.readouterr().out


def test_the_published_row_bootstrap_is_an_option(tmp_path, capsys):
    run = write(tmp_path / "run", plan(), rows(A))
    assert app.run(["report", str(run), "--draft", "--interval", "rows-v1"]) == 0
    out = capsys.readouterr().out
    assert "success_ci95: [0.6166, 0.8334]" in out
    assert "interval_method: rows-v1 (published row bootstrap: understates the noise of repeated tasks)" in out
    assert app.run(["report", str(run), "--draft", "--interval", "default"]) == 0
    assert "success_ci95: [0.4552, 0.8948]" in capsys.readouterr().out


def test_what_is_no_run_is_a_usage_error_with_a_mend(tmp_path, capsys):
    assert app.run(["report", str(tmp_path)]) == 2
    assert "mend: name the directory" in capsys.readouterr().err
    assert app.run(["report", str(tmp_path / "nowhere")]) == 2


def test_piped_output_is_plain_and_the_same_twice(whole):
    found = [subprocess.run([*COMMAND, whole, "--draft"], capture_output=True, timeout=300) for _ in range(2)]
    assert found[0].returncode == 0, found[0].stderr
    assert found[0].stdout == found[1].stdout
    assert b"\x1b" not in found[0].stdout
    assert found[0].stderr == b""


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_a_terminal_gets_colour_unless_it_asks_for_none(whole, no_color, coloured):
    host, terminal = pty.openpty()
    environment = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm"}
    with subprocess.Popen([*COMMAND, whole, "--draft"], stdout=terminal, env=environment) as process:
        os.close(terminal)
        seen = b""
        while True:
            try:
                part = os.read(host, 65536)
            except OSError:  # Linux: the last writer has closed the terminal
                break
            if not part:
                break
            seen += part
        process.wait(timeout=300)
    os.close(host)
    assert process.returncode == 0
    assert (b"\x1b[" in seen) == coloured
    assert b"0.5333" in seen
