"""A wrong command line is told like every other error: what, where, how to mend it; exit 2, and nothing on stdout."""

import pytest

from scoresheet.cli import app


@pytest.mark.parametrize(
    ("arguments", "what", "mend"),
    [
        (["chek"], "error: no such command 'chek' — scoresheet", "did you mean check?"),
        (["zzzz"], "error: no such command 'zzzz' — scoresheet", "scoresheet --help"),
        (["run"], "error: missing argument 'PACK' — scoresheet run", "scoresheet run --help"),
        (["freeze", "nowhere"], "error: invalid value for 'PACK': Directory 'nowhere' does not exist", "--help"),
        (["run", "--sead", "x"], "Did you mean '--seat'? — scoresheet run", "scoresheet run --help"),
        (["run", ".", "--agent", "x", "--seat", "a\nb"], r"'a\nb' is no label: write one line", "run --help"),
        (["triage", ".", "--seat", " "], "' ' is no label", "scoresheet triage --help"),
        (["triage", ".", "--seat", "x" * 129], "at most 128 characters", "scoresheet triage --help"),
    ],
)
def test_a_wrong_command_line_says_what_where_and_how_to_mend_it(arguments, what, mend, capsys):
    assert app.run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith("error: ")
    assert what in first
    assert second.startswith("  mend: ")
    assert mend in second


def test_no_verb_at_all_prints_the_help(capsys):
    assert app.run([]) == 2
    assert "Verbs" in capsys.readouterr().err


def test_a_folder_that_is_no_run_is_told_with_its_mend(tmp_path, capsys):
    assert app.run(["confound", str(tmp_path), "text"]) == 2
    assert "mend: name the directory that `scoresheet run --out DIR` wrote" in capsys.readouterr().err


def test_an_error_steers_no_terminal(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(app, "say", said.append)
    (tmp_path / "run.json").write_text('{"\\u001b]0;owned\\u0007\\u202e\\nerror: forged": 1}')
    assert app.run(["report", str(tmp_path)]) == 1
    assert any("owned" in line for line in said)
    assert all(line.isprintable() for line in said), said
