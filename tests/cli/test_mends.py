"""What people read when a command line, or a path on it, is wrong: of the installed command, with its exit code."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from scoresheet.cli import app, mends
from tests.publish.page import pages
from tests.run.packs import shop

SCORESHEET = str(Path(sys.executable).parent / "scoresheet")


def told(*words: object, folder: Path, code: int = 2) -> tuple[str, str]:
    """The error of the installed command, and its mend."""
    done = subprocess.run(
        [SCORESHEET, *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    return lines(done.stderr)


def lines(said: str) -> tuple[str, str]:
    """The last two lines: an error, and its mend."""
    error, mend = said.splitlines()[-2:]
    assert error.startswith("error: "), said
    assert mend.startswith("  mend: "), said
    return error.removeprefix("error: "), mend.removeprefix("  mend: ")


@pytest.fixture
def pack(tmp_path):
    return shop(tmp_path / "pack", {"t": "careful"})


def test_an_expected_digest_that_is_none_is_a_wrong_call_and_another_pack_is_a_no(tmp_path, pack):
    run = ("run", pack.root, "--agent", "true", "--seat", "x", "--expect")
    assert told(*run, "deadbeef", folder=tmp_path) == (
        "'deadbeef' is not a sha256 digest — --expect",
        "give the 64 hex digits that `scoresheet freeze` printed: --expect DIGEST",
    )
    error, mend = told(*run, "ab" * 32, folder=tmp_path, code=1)
    assert error.startswith(f"the pack is {pack.manifest_sha256}, not {'ab' * 32}: nothing was run")
    assert "expect the one that is here" in mend


@pytest.mark.parametrize("answer", ["[1]", "{}", "{", "nothing", "1" * 5000])
def test_an_expected_answer_that_is_no_object_is_a_wrong_call(tmp_path, answer):
    words = ("--task", "t", "--prompt", "p", "--expected", answer, "--upstream", "A=http://127.0.0.1:9")
    error, mend = told("record", tmp_path / "new", *words, "--", "true", folder=tmp_path)
    assert "--expected" in error
    assert mend == "write a JSON object: --expected '{\"total\": 3}'"
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": []}}))
    imported = ("har", "a.har", "--out", "new", "--task", "t", "--prompt", "p", "--expected", answer)
    assert told("import", *imported, folder=tmp_path)[1] == mend


def test_a_ready_made_agent_without_a_model_is_a_wrong_call(tmp_path, pack):
    words = ("run", pack.root, "--agent", "openai-tools", "--seat", "x", "--draft")
    assert told(*words, folder=tmp_path) == (
        "openai-tools needs a model — --model",
        "give --model openai=URL (docs/model)",
    )
    assert not list(tmp_path.glob("runs/*/rows.jsonl"))


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A pack, a run (not finished), a file of text, an empty one, one of bytes."""
    root = tmp_path_factory.mktemp("mends")
    shop(root / "pack", {"t": "careful"})
    pages.write(root / "run")
    (root / "notes.md").write_text("# notes\n" * 200)
    (root / "empty").touch()
    (root / "bytes").write_bytes(bytes(range(256)) * 40)
    return root


@pytest.mark.parametrize(
    ("words", "error", "mend"),
    [
        (
            "report run --draft --html no/x.html",
            "the page can't be written: there is no such folder — no",
            "mkdir -p no",
        ),
        ("bundle run -o no/b.tar", "the bundle can't be written: there is no such folder — no", "mkdir -p no"),
        ("report pack", "this is a pack, not a run — pack", "scoresheet run pack --agent SPEC --seat LABEL makes a"),
        ("verify pack", "this is a pack, not a run — pack", "scoresheet run pack"),
        ("judge pack", "this is a pack, not a run — pack", "scoresheet run pack"),
        ("confound pack text", "this is a pack, not a run — pack", "scoresheet run pack"),
        ("report .", "no run can be read here: there is no run.json — .", "name one of the runs in it: run"),
        ("freeze run", "this is a run, not a pack — run", "scoresheet report run says whether"),
        ("triage run", "this is a run, not a pack — run", "scoresheet report run says whether"),
        ("serve run --task t", "this is a run, not a pack — run", "scoresheet report run says whether"),
        ("serve pack --task refund", "the pack has no task 'refund' — pack", "it has t"),
        ("explain pack GET", "'GET' is no request — REQUEST", "write 'METHOD TARGET [BODY]'"),
        ("explain pack @note.md", "the request can't be read: No such file", "did you mean notes.md?"),
        ("explain pack @/dev/zero", "the request can't be read: not a regular file", "that is a pipe, a device"),
        ("record new --batch /dev/zero --upstream A=http://127.0.0.1:9", "not a regular file — /dev/zero", "a device"),
        (
            "record new --batch bytes --upstream A=http://127.0.0.1:9",
            "can't be read: not UTF-8 at byte 128 — bytes",
            "save it as UTF-8",
        ),
        ("model-stub /dev/zero", "not a regular file — /dev/zero", "give the path of a"),
        ("explain pack @run", "the request can't be read: Is a directory — run", "that is a folder: name a file in it"),
        ("explain pack @notes.md/x", "Not a directory — notes.md/x", "notes.md is a file, not a folder"),
        ("schema nope", "no format is called 'nope' — NAME", "the formats are task, tool"),
        ("schema taks", "no format is called 'taks' — NAME", "did you mean task?"),
        (
            "compare run",
            "a comparison needs two runs; baselines are not ranked — run (a run)",
            "the runs of two agents",
        ),
        ("compare run run", "A and B are one and the same run — run", "the runs of two agents"),
        (
            "compare run notes.md",
            "this is no bundle: its header",
            "name the folder that `scoresheet run --out DIR` wrote",
        ),
        ("replicate run empty", "this is no bundle: the bundle ends", "or the file that `scoresheet bundle` wrote"),
        ("rerun bytes --agent x --seat s", "this is no bundle: its header, at byte 0", "`scoresheet bundle` wrote"),
        ("export bytes --format csv", "this is no bundle: its header, at byte 0", "`scoresheet bundle` wrote"),
        ("compare /dev/null run", "a bundle is a file — /dev/null", "name the file that `scoresheet bundle` wrote"),
        ("import har run --out new --task t --prompt p", "no file that ends in .har — run", "name the file itself"),
        ("import har /dev/null --out new --task t --prompt p", "not a regular file", "save the recording to a file"),
        (
            "run pack --agent true --seat s --out notes.md/x",
            "can't be written: it is no folder",
            "choose another --out",
        ),
        ("baseline pack --out empty/x", "can't be written: it is no folder — empty", "choose another --out"),
        (f"run pack --agent true --seat s --out {'a' * 300}", "File name too long — aaa", "take a shorter name"),
        ("triage pack --receipts no/r.jsonl", "the receipts can't be written", "make it first (mkdir -p no)"),
        ("scan /dev/null", "not a file and not a folder: it was not opened — /dev/null", "name a file or a folder"),
        ("init empty/x", "the suite can't be written: Not a directory", "empty is a file, not a folder"),
    ],
)
def test_a_wrong_path_is_told_with_what_belongs_there(place, monkeypatch, capsys, words, error, mend):
    monkeypatch.chdir(place)
    assert app.run(words.split()) == 2
    found = lines(capsys.readouterr().err)
    assert error in found[0]
    assert mend in found[1]


@pytest.mark.parametrize(
    ("words", "error", "mend"),
    [
        ("model-stub bytes", "not UTF-8 — bytes:2:118", "correct the text there, or name another file"),
        ("model-stub empty", "the document is empty — empty:1:1", "correct the text there, or name another file"),
        ("import har empty --out new --task t --prompt p", "not JSON: Expecting value — empty:1:1", "cut short"),
        ("report torn", "run.json:1:2 [run-json]", "put back the run.json that the run wrote — in torn"),
        ("confound torn x", "run.json:1:2 [run-json]", "put back the run.json that the run wrote — in torn"),
    ],
)
def test_what_is_in_a_file_of_the_wrong_kind_is_told_with_its_place(place, monkeypatch, capsys, words, error, mend):
    monkeypatch.chdir(place)
    (place / "torn").mkdir(exist_ok=True)
    (place / "torn" / "run.json").write_text("{")
    assert app.run(words.split()) == 1
    found = lines(capsys.readouterr().err)
    assert error in found[0]
    assert mend in found[1]


def test_a_run_that_is_not_admissible_is_told_with_what_to_do(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert app.run(["report", "run"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("not admissible:\n")
    assert "next: " not in out
    steps = err.splitlines()
    assert steps[0] == "next: complete the card: scoresheet check PACK/card.yaml says what it lacks, line by line"
    assert steps[-1].startswith("next: run again: scoresheet run PACK --agent SPEC --seat ")
    assert app.run(["report", "run", "--html", "page.html"]) == 1
    assert capsys.readouterr().err.splitlines()[-len(steps) :] == steps
    assert app.run(["export", "run", "--format", "csv"]) == 1
    assert capsys.readouterr().err.splitlines() == steps


def test_no_call_is_made_for_a_recording_that_could_not_be_kept(place):
    words = ("--task", "t", "--prompt", "p", "--expect-stdout", "--upstream", "A=http://127.0.0.1:9")
    found = told("record", "empty/pack", *words, "--", "touch", "called", folder=place)
    assert found[0].startswith("the pack can't be written: it is no folder — ")
    assert not (place / "called").exists()


def test_who_may_not_is_told_whose_it_is(tmp_path):
    (tmp_path / "secret").touch()
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "secret"))
    told = mends.of_file(error)
    assert str(tmp_path / "secret") in told
    assert "(chmod)" in told
    inside = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "none" / "x"))
    assert str(tmp_path / "none") not in mends.of_file(inside)
    assert str(tmp_path) in mends.of_file(inside)


@pytest.mark.parametrize(
    ("number", "mend"),
    [
        (errno.ENOENT, "correct the path"),
        (errno.EEXIST, "name another place"),
        (errno.EACCES, "take a place that you may"),
        (errno.EROFS, "nothing can be written there"),
        (errno.ENOSPC, "the disk is full"),
        (errno.ELOOP, "that is a link"),
        (errno.EINVAL, "that is a pipe, a device"),
        (errno.EIO, "see that the file is whole"),
    ],
)
def test_every_way_a_system_refuses_has_a_mend(number, mend):
    assert mends.of_file(OSError(number, "said")).startswith(mend)


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 2), (errno.EACCES, 2), (errno.EROFS, 2), (errno.EIO, 70)])
def test_a_full_disk_is_no_bug(monkeypatch, capsys, number, code):
    def full() -> None:
        raise OSError(number, "said by the system", "some/file")

    monkeypatch.setattr(app.app, "main", lambda *_, **__: full())
    assert app.run(["doctor"]) == code
    error, mend = capsys.readouterr().err.splitlines()
    assert ("a bug in scoresheet" in error) == (code == 70)
    assert mend.startswith("  mend: ")
