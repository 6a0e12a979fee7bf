"""A wrong command line is told like every other error: what, where, how to mend it; exit 2, and nothing on stdout."""

import pytest

from scoresheet.cli import app


@pytest.mark.parametrize(
    ("arguments", "what", "mend"),
    [
        (["chek"], "error: no such command 'chek' — scoresheet", "did you mean check?"),
        (["zzzz"], "error: no such command 'zzzz' — scoresheet", "scoresheet --help lists the verbs"),
        (
            ["run"],
            "error: missing argument 'PACK' — scoresheet run",
            "a pack's folder, such as examples/packs/billing-v3",
        ),
        (
            ["run", "."],
            "error: missing option '--agent' — scoresheet run",
            "give --agent SPEC: A command line, py:FILE",
        ),
        (
            ["run", "."],
            "error: missing option '--agent' — scoresheet run",
            "for example: scoresheet run billing-v3 --agent",
        ),
        (
            ["run", ".", "--agent"],
            "option '--agent' requires an argument — scoresheet run",
            "give --agent SPEC: A command",
        ),
        (
            ["run", ".", "--agent", "x", "more"],
            "unexpected extra argument (more)",
            "for example: scoresheet run billing-v3",
        ),
        (
            ["run", ".", "--agent", "x", "--repeats", "0"],
            "0 is not in the range",
            "give --repeats N (a whole number from 1)",
        ),
        (
            ["run", ".", "--agent", "x", "--isolation", "vm"],
            "'vm' is not one of",
            "give --isolation one of bwrap, none",
        ),
        (
            ["freeze", "nowhere"],
            "error: invalid value for 'PACK': Directory 'nowhere' does not exist",
            "no nowhere in this f",
        ),
        (
            ["freeze", "no/where"],
            "Directory 'no/where' does not exist",
            "there is no folder no: correct the path; name a pack's",
        ),
        (["freeze", __file__], "is a file", "name a pack's folder, such as examples/packs/billing-v3"),
        (["rerun", "."], "is a directory", "name the file that `scoresheet bundle` wrote"),
        (["run", "--sead", "x"], "error: no such option '--sead' — scoresheet run", "did you mean --seat?"),
        (
            ["check", "--qqqqqq", "x"],
            "error: no such option '--qqqqqq' — scoresheet check",
            "its options: --fixture, --format",
        ),
        (
            ["run", ".", "--agent", "x", "--seat", "a\nb"],
            r"'a\nb' is no label: write one line",
            "give --seat LABEL: Who or",
        ),
        (["triage", ".", "--seat", " "], "' ' is no label", "give --seat LABEL: "),
        (["triage", ".", "--seat", "x" * 129], "at most 128 characters", "give --seat LABEL: "),
        (
            ["run", ".", "--agent", "x", "--resume"],
            "no run directory is named to go on with — --resume",
            "give --out DIR",
        ),
        (
            ["run", ".", "--agent", "x", "--record-model"],
            "--record-model needs a model — --record",
            "give --model openai=URL",
        ),
        (
            ["run", ".", "--agent", "x", "--model", "openai=x", "--max-cost", "1"],
            "what tokens cost is not known",
            "--prices FI",
        ),
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


def test_an_error_steers_no_terminal(tmp_path, capsys):
    (tmp_path / "run.json").write_text('{"\\u001b]0;owned\\u0007\\u202e\\nerror: forged": 1}')
    assert app.run(["report", str(tmp_path)]) == 1
    said = capsys.readouterr().err.removesuffix("\n").split("\n")
    assert any("owned" in line for line in said)
    assert not any(line.startswith("error: forged") for line in said)
    assert all(line.isprintable() for line in said), said
