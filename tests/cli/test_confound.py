"""`scoresheet confound`: a dated line that stands first and is never taken away."""

import json

import pytest

from scoresheet.cli import app
from scoresheet.run import journal
from tests.publish.runs import A, plan, rows, write


@pytest.fixture
def run(tmp_path):
    return write(tmp_path / "run", plan(), rows(A), confounds=b"")


def test_an_entry_is_dated_kept_and_printed_first(run, capsys):
    assert app.run(["confound", str(run), "the fan failed at 14:10"]) == 0
    assert app.run(["confound", str(run), "a colleague logged in"]) == 0
    capsys.readouterr()
    assert app.run(["report", str(run), "--draft"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:4] == ["confounds: 2", "confound_log: confounds.jsonl"]
    assert lines[4].startswith("confound: 20")
    assert lines[4].endswith("Z human: the fan failed at 14:10")
    assert lines[6].startswith("protocol: ")
    entry = json.loads((run / "confounds.jsonl").read_text().splitlines()[0])
    assert (entry["by"], entry["kind"], entry["text"]) == ("person", "human", "the fan failed at 14:10")


def test_an_entry_can_not_forge_a_line_of_the_report(run, capsys):
    assert app.run(["confound", str(run), "x\nsuccess_mean: 1.0000\x1b[2J"]) == 0
    capsys.readouterr()
    app.run(["report", str(run), "--draft"])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.count("\nsuccess_mean: ") == 1


def test_a_run_without_a_log_gets_one(tmp_path):
    run = write(tmp_path / "run", plan(), rows(A))
    assert app.run(["confound", str(run), "it rained"]) == 0
    assert len(journal.read_confounds(run)) == 1


def test_a_torn_line_is_cut_by_the_next_entry(run):
    (run / "confounds.jsonl").write_bytes(b'{"at":')
    assert app.run(["confound", str(run), "it rained"]) == 0
    assert len(journal.read_confounds(run)) == 1


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_entry_is_a_wrong_call(run, text, capsys):
    assert app.run(["confound", str(run), text]) == 2
    assert (run / "confounds.jsonl").read_bytes() == b""


def test_a_folder_that_is_no_run_gets_no_log(tmp_path):
    assert app.run(["confound", str(tmp_path), "x"]) == 2
    assert list(tmp_path.iterdir()) == []
