"""Exports of a real run and of its bundle: admitted by the gate of `report`, the same bytes from both."""

import csv
import hashlib
import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from scoresheet.cli import app
from tests.command import call
from tests.run.packs import OBEY, shop

SIX = {f"t{number}": "careful" for number in range(6)}
NAMES = ("--organization", "Acme", "--model", "acme/careful", "--dataset", "acme/shop", "--task", "prices")
FORMATS = ("csv", "every-eval-ever", "huggingface", "inspect", "junit")


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A folder with a real run of a pack of six tasks, and its bundle with the pack."""
    folder = tmp_path_factory.mktemp("exported")
    pack = shop(folder / "pack", SIX, repeats=2)
    done = call("run", pack.root, "--agent", OBEY, "--seat", "laptop-a", "--out", folder / "run", "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("admissible\n")
    done = call("bundle", folder / "run", "--pack", pack.root, "-o", folder / "run.bundle.tar")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def copy(scored, tmp_path):
    """A copy of that run, to be spoiled."""
    shutil.copytree(scored / "run", tmp_path / "run")
    return tmp_path / "run"


def export(*words):
    return app.run(["export", *map(str, words)])


def tree(path):
    """Relative path → content of a file or of a folder's files."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


@pytest.mark.parametrize("form", FORMATS)
def test_a_run_and_its_bundle_give_the_same_bytes(scored, tmp_path, form, capfd):
    pack = ("--pack", scored / "pack")
    assert export(scored / "run", "--format", form, *NAMES, *pack, "-o", tmp_path / "a") == 0
    told = capfd.readouterr().out.splitlines()
    assert export(scored / "run.bundle.tar", "--format", form, *NAMES, "-o", tmp_path / "b") == 0
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    for line in told:
        sha256, _, path = line.partition(" ")
        assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == sha256
    assert len(told) == len(tree(tmp_path / "a"))


@pytest.mark.parametrize("form", FORMATS)
def test_a_run_that_is_not_admissible_is_refused_as_by_report(copy, form, capfd):
    (copy / "confounds.jsonl").unlink()
    assert app.run(["report", str(copy)]) == 1
    report = capfd.readouterr().out
    assert report.startswith("not admissible:\n")
    assert export(copy, "--format", form, *NAMES) == 1
    assert capfd.readouterr().out == report
    assert [each.name for each in copy.parent.iterdir()] == ["run"]


def test_an_incomplete_run_is_refused_as_by_report(copy, capfd):
    *before, _ = (copy / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "rows.jsonl").write_bytes(b"".join(before))
    assert export(copy, "--format", "csv", "-o", copy.parent / "out.csv") == 4
    assert "[report-missing]" in capfd.readouterr().out
    assert not (copy.parent / "out.csv").exists()


def test_an_altered_bundle_is_refused(scored, tmp_path, capfd):
    data = bytearray((scored / "run.bundle.tar").read_bytes())
    data[data.index(b'"elapsed_s":') + 14] ^= 1
    (tmp_path / "run.bundle.tar").write_bytes(data)
    assert export(tmp_path / "run.bundle.tar", "--format", "csv") == 1
    told = capfd.readouterr()
    assert "bundle-byte" in told.out + told.err
    assert [each.name for each in tmp_path.iterdir()] == ["run.bundle.tar"]


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_is_overwritten(scored, tmp_path, form, capfd):
    for name, lay in (
        ("file", lambda path: path.write_text("mine")),
        ("folder", lambda path: path.mkdir()),
        ("link", lambda path: path.symlink_to(tmp_path / "nowhere")),
    ):
        lay(tmp_path / name)
        assert export(scored / "run", "--format", form, *NAMES, "-o", tmp_path / name) == 2
        assert "is not overwritten" in capfd.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"
    assert not list((tmp_path / "folder").iterdir())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder", "link"]


def test_an_export_has_a_name_of_its_own_beside_the_run(copy, capfd):
    assert export(copy, "--format", "junit") == 0
    assert (copy.parent / "run.junit.xml").is_file()
    assert export(copy, "--format", "csv", "-o", copy / "rows.csv") == 2
    assert "inside the run" in capfd.readouterr().err


@pytest.mark.parametrize("form", ["every-eval-ever", "huggingface"])
def test_names_that_are_missing_are_asked_for_and_nothing_is_left(scored, tmp_path, form, capfd):
    assert export(scored / "run", "--format", form, "-o", tmp_path / "out") == 2
    assert "  mend: " in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_can_be_printed_and_an_archive_or_a_folder_not(scored):
    done = call("export", scored / "run", "--format", "csv", "-o", "-")
    assert done.returncode == 0
    assert len(list(csv.DictReader(io.StringIO(done.stdout)))) == 12
    for form in ("inspect", "every-eval-ever"):
        assert call("export", scored / "run", "--format", form, *NAMES, "-o", "-").returncode == 2


def test_prompts_go_out_only_with_a_pack_that_may_travel(scored, tmp_path, capfd):
    def asked(*words):
        assert export(scored / "run", "--format", "inspect", *words, "-o", tmp_path / f"{len(words)}.eval") == 0
        with zipfile.ZipFile(tmp_path / f"{len(words)}.eval") as found:
            return json.loads(found.read("samples/t0_epoch_1.json"))["input"]

    assert asked().startswith("task t0 of the pack with manifest sha256 ")
    assert "the export holds no prompts" in capfd.readouterr().err
    assert asked("--pack", scored / "pack") == "careful"
    assert capfd.readouterr().err == ""


def test_calls_must_be_those_that_the_row_was_made_from(copy, tmp_path, capfd):
    journal = copy / "episodes" / "t3" / "1.0" / "calls.jsonl"
    calls = journal.read_bytes()
    for spoil in (
        lambda: journal.write_bytes(calls + calls),
        journal.unlink,
        lambda: journal.symlink_to(tmp_path / "elsewhere"),
    ):
        (tmp_path / "elsewhere").write_bytes(calls)
        spoil()
        assert export(copy, "--format", "inspect", "-o", tmp_path / "out.eval") == 1
        assert "episodes/t3/1.0/calls.jsonl [export-calls]" in capfd.readouterr().err
        assert not (tmp_path / "out.eval").exists()
    assert export(copy, "--format", "csv", "-o", tmp_path / "out.csv") == 0  # needs no journal


def test_a_format_has_to_be_named(scored, capfd):
    assert export(scored / "run") == 2
    assert "mend: --format csv|every-eval-ever|huggingface|inspect|junit" in capfd.readouterr().err


def test_what_was_written_is_told_as_json(scored, tmp_path):
    done = call("export", scored / "run", "--format", "csv", "-o", tmp_path / "out.csv", "--json")
    facts = json.loads(done.stdout)
    assert facts["format"] == "csv"
    assert facts["files"][0]["size"] == (tmp_path / "out.csv").stat().st_size


def test_an_archive_holds_no_time_and_no_owner(scored, tmp_path):
    assert export(scored / "run", "--format", "inspect", "-o", tmp_path / "out.eval") == 0
    with zipfile.ZipFile(tmp_path / "out.eval") as found:
        assert found.testzip() is None
        assert {(each.date_time, each.compress_type, each.external_attr >> 16) for each in found.infolist()} == {
            ((1980, 1, 1, 0, 0, 0), zipfile.ZIP_STORED, 0o644)
        }


@pytest.mark.parametrize("value", ["yesterday", "9999-12-31T23:59:59.99Z"])
def test_a_time_that_is_none_is_refused_and_leaves_nothing(copy, tmp_path, value, capfd):
    rows = [json.loads(line) for line in (copy / "rows.jsonl").read_bytes().splitlines()]
    rows[0]["started_at"], rows[0]["elapsed_s"] = value, 25.0
    (copy / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert export(copy, "--format", "inspect", "-o", tmp_path / "a.eval") == 1
    assert "[export-value]" in capfd.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


def test_inside_of_the_run_the_export_is_made_to_lie_beside_it(copy, monkeypatch):
    monkeypatch.chdir(copy)
    assert export(".", "--format", "csv") == 0
    assert (copy.parent / "run.csv").is_file()
    assert not list(copy.glob("*.csv"))
