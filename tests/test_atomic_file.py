"""Whole or not at all: what stood there stays until all of the new content is on the disk."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scoresheet import atomic_file
from scoresheet.errors import Usage
from scoresheet.pack import tree

ORDINARY_UID = 65534
HALF = """
import sys
from pathlib import Path
from scoresheet import atomic_file

with atomic_file.written(Path(sys.argv[1]), "the page", replace=True) as file:
    file.write(b"half" * 100_000)
    file.flush()
    print("half", flush=True)
    sys.stdin.read()
"""
TOO_LARGE = """
import resource, sys
from pathlib import Path
from scoresheet import atomic_file
from scoresheet.errors import Usage

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    atomic_file.replace(Path(sys.argv[1]), b"x" * 100_000, "the page")
except Usage as error:
    print(error)
"""
ORDINARY = f"""
import os, sys
from pathlib import Path
from scoresheet import atomic_file
from scoresheet.errors import Usage

os.chdir(sys.argv[1])  # the folders above may be closed to the other user
if os.geteuid() == 0:
    os.setuid({ORDINARY_UID})
try:
    atomic_file.replace(Path("page.html"), b"new", "the page")
except Usage as error:
    print(error, "|", error.mend)
"""


def put(out, pieces, replace):
    with atomic_file.written(out, "the page", replace=replace) as file:
        file.writelines(pieces)


def lay(out, fill):
    with atomic_file.new_folder(out, "the export") as folder:
        fill(folder)


def child(script, *arguments):
    words = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


@pytest.mark.parametrize("replace", [True, False])
def test_a_file_is_put_in_its_place_with_the_usual_mode(tmp_path, replace):
    put(tmp_path / "a", [b"new"], replace)
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "a").stat().st_nlink == 1
    assert sorted(os.listdir(tmp_path)) == ["a", "plain"]


def test_a_writer_that_is_killed_half_way_leaves_the_old_file_as_it_was(tmp_path):
    out = tmp_path / "page.html"
    out.write_text("old")
    words = [sys.executable, "-c", HALF, str(out)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert out.read_text() == "old"
    (left,) = set(os.listdir(tmp_path)) - {"page.html"}
    (finding,) = tree.listing(tmp_path).findings  # what it leaves is never taken for a part of a pack
    assert (finding.rule, finding.where) == ("pack-dropping", left)
    put(out, [b"new"], True)
    assert out.read_text() == "new"


def test_a_disk_that_takes_no_more_leaves_the_old_file_and_nothing_else(tmp_path):
    out = tmp_path / "page.html"
    out.write_text("old")
    assert child(TOO_LARGE, out) == f"the page can't be written: File too large — {out}"
    assert out.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize("fault", [RuntimeError("a bug"), KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("there", [True, False])
def test_content_that_fails_half_way_leaves_nothing(tmp_path, fault, there):
    out = tmp_path / "page.html"
    if there:
        out.write_text("old")
    before = os.listdir(tmp_path)

    def pieces():
        yield b"half"
        raise fault

    with pytest.raises(Usage if isinstance(fault, OSError) else type(fault)) as caught:
        put(out, pieces(), True)
    assert os.listdir(tmp_path) == before
    assert not there or out.read_text() == "old"
    if isinstance(caught.value, Usage):
        assert caught.value.mend == "make room, or name a file on another disk"


def test_a_fault_of_another_file_is_told_of_that_file(tmp_path):
    def pieces():
        yield (tmp_path / "rows.jsonl").read_bytes()

    with pytest.raises(Usage, match="the page can't be written: No such file") as caught:
        put(tmp_path / "page.html", pieces(), True)
    assert caught.value.where == str(tmp_path / "rows.jsonl")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("there", ["file", "folder", "dangling link"])
def test_nothing_is_overwritten_unless_that_was_said(tmp_path, there):
    out = tmp_path / "out"
    match there:
        case "file":
            out.write_text("mine")
        case "folder":
            out.mkdir()
        case "dangling link":
            out.symlink_to(tmp_path / "nowhere")

    def never(*_):
        raise AssertionError("the content is not asked for")

    for make in (lambda: put(out, map(never, [1]), False), lambda: lay(out, never)):
        with pytest.raises(Usage, match="something is there already, and is not overwritten") as caught:
            make()
        assert (caught.value.where, caught.value.mend) == (str(out), "name another file")
    assert os.listdir(tmp_path) == ["out"]
    if there != "folder":
        put(out, [b"new"], True)
        assert out.read_bytes() == b"new"
        assert not out.is_symlink()
        assert os.listdir(tmp_path) == ["out"]


def test_one_who_was_faster_is_not_overwritten(tmp_path):
    out = tmp_path / "page.html"

    def pieces():
        yield b"slower"
        out.write_text("faster")

    with pytest.raises(Usage, match="not overwritten"):
        put(out, pieces(), False)
    assert out.read_text() == "faster"
    assert os.listdir(tmp_path) == ["page.html"]


def refused(out):
    with pytest.raises(Usage) as caught:
        atomic_file.replace(out, b"new", "the page")
    assert str(caught.value).startswith("the page can't be written: ")
    assert caught.value.mend
    return caught.value


def test_each_place_that_can_not_be_written_is_told_with_its_mend(tmp_path):
    absent = refused(tmp_path / "not yet" / "page.html")
    assert str(absent).endswith(f"there is no such folder — {tmp_path / 'not yet'}")
    assert absent.mend == f"make it: mkdir -p '{tmp_path / 'not yet'}'"
    (tmp_path / "file").write_text("")
    assert str(refused(tmp_path / "file" / "page.html")).endswith(f"it is no folder — {tmp_path / 'file'}")
    assert str(refused(tmp_path)).endswith(f"it is a folder — {tmp_path}")
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path / "link"):
        if place.name == "link":
            place.symlink_to("pipe")
        assert str(refused(place)).endswith(f"it is a device or a pipe — {place}")
    assert "too long" in str(refused(tmp_path / ("x" * 300)))
    refused(Path("/proc/page.html"))  # where nobody can make a file, root neither


def test_the_name_of_the_standard_output_is_kept_when_that_goes_to_a_file(tmp_path):
    # nothing is written here: where the check fails to refuse, a write as root would take the machine's own link away
    code = (
        "from pathlib import Path; from scoresheet import atomic_file; "
        "atomic_file.refuse_unwritable(Path('/dev/stdout'), 'the page', replace=True)"
    )
    with open(tmp_path / "out", "wb") as out:
        done = subprocess.run([sys.executable, "-c", code], stdout=out, stderr=subprocess.PIPE, check=False)
    assert b"it is a device or a pipe" in done.stderr


def test_a_folder_of_somebody_else_is_told_with_its_mend(tmp_path):
    tmp_path.chmod(0o555)
    try:
        told = child(ORDINARY, tmp_path)
    finally:
        tmp_path.chmod(0o755)
    assert told == (
        "the page can't be written: nothing can be written to this folder — . | choose a folder that you can write to"
    )


def test_many_may_replace_a_file_at_once_and_each_reader_sees_a_whole_one(tmp_path):
    out = tmp_path / "report.json"
    atomic_file.replace(out, b"0" * 10_000)

    def turn(number):
        atomic_file.replace(out, b"%d" % (number % 10) * 10_000)
        seen = out.read_bytes()
        return len(seen) == 10_000 and len(set(seen)) == 1

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(turn, range(100)))
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_folder_is_put_in_its_place_with_all_that_lies_in_it(tmp_path):
    with atomic_file.new_folder(tmp_path / "out", "the export") as folder:
        (folder / "deep").mkdir()
        (folder / "deep/a.txt").write_text("a")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out/deep/a.txt").read_text() == "a"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("faster", ["file", "folder"])
def test_a_folder_is_put_over_nothing_that_came_meanwhile(tmp_path, faster):
    out = tmp_path / "out"

    def fill(folder):
        (folder / "a.txt").write_text("slower")
        if faster == "folder":
            out.mkdir()
        (out / "a.txt" if faster == "folder" else out).write_text("faster")

    with pytest.raises(Usage, match="not overwritten"):
        lay(out, fill)
    assert (out / "a.txt" if faster == "folder" else out).read_text() == "faster"
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_that_fails_half_way_leaves_nothing(tmp_path):
    def fill(folder):
        (folder / "a.txt").write_text("half")
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError):
        lay(tmp_path / "out", fill)
    with pytest.raises(Usage, match="the export can't be written: there is no such folder"):
        lay(tmp_path / "absent" / "out", fill)
    assert os.listdir(tmp_path) == []


def test_a_file_system_without_links_holds_new_files_too(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    with atomic_file.written(tmp_path / "new", "the page", replace=False) as file:
        file.write(b"all")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("new", b"all")]
    with (
        pytest.raises(Usage, match="is there already"),
        atomic_file.written(tmp_path / "late", "the page", replace=False),
    ):
        (tmp_path / "late").write_bytes(b"somebody was faster")
    assert (tmp_path / "late").read_bytes() == b"somebody was faster"
