"""Only grows: torn lines are none, and writers wait for each other."""

import os
import signal
import subprocess
import sys

import pytest

from scoresheet import growing_file
from scoresheet.errors import Usage

HOLDING = """
import os, sys
from pathlib import Path
from scoresheet import growing_file

with growing_file.held(Path(sys.argv[1]), "the receipts") as file:
    os.write(file.fd, b"tor")
    print("torn", flush=True)
    sys.stdin.read()
"""
COUNTING = """
import sys
from pathlib import Path
from scoresheet import growing_file

for _ in range(50):
    with growing_file.held(Path(sys.argv[1]), "the receipts") as file:
        last = file.lines().splitlines()[-1:] or [b"0"]
        file.append(b"%d\\n" % (int(last[0]) + 1))
"""
FULL = """
import resource, sys
from pathlib import Path
from scoresheet import growing_file
from scoresheet.errors import Usage

with growing_file.held(Path(sys.argv[1]), "the receipts") as file:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        file.append(b"x" * 2000 + b"\\n")
    except Usage as error:
        print(error)
"""


def append(path, lines):
    with growing_file.held(path, "the receipts") as file:
        file.append(lines)


def test_lines_are_appended_to_those_that_are_there(tmp_path):
    path = tmp_path / "a.jsonl"
    append(path, b"1\n")
    append(path, b"")
    append(path, b"2\n3\n")
    with growing_file.held(path, "the receipts") as file:
        assert file.lines() == b"1\n2\n3\n"


@pytest.mark.parametrize("length", [0, 1, 65535, 65536, 65537, 200_000])
@pytest.mark.parametrize("whole", [b"", b"1\n", b"1" * 70_000 + b"\n"])
def test_a_torn_last_line_is_no_line_and_is_cut_by_the_next_who_appends(tmp_path, whole, length):
    path = tmp_path / "a.jsonl"
    path.write_bytes(whole + b"t" * length)
    with growing_file.held(path, "the receipts") as file:
        assert file.lines() == whole
        assert path.read_bytes() == whole + b"t" * length  # who only looks changes nothing
        file.append(b"2\n")
        assert file.lines() == whole + b"2\n"
    assert path.read_bytes() == whole + b"2\n"


def test_whoever_is_killed_lets_go_and_leaves_the_whole_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    append(path, b"1\n")
    words = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"torn\n"
        assert path.read_bytes() == b"1\ntor"
        process.send_signal(signal.SIGKILL)
    append(path, b"2\n")
    assert path.read_bytes() == b"1\n2\n"


def test_writers_wait_for_each_other(tmp_path):
    path = tmp_path / "a.jsonl"
    words = [sys.executable, "-c", COUNTING, str(path)]
    processes = [subprocess.Popen(words) for _ in range(3)]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert [int(line) for line in path.read_bytes().splitlines()] == list(range(1, 151))


def test_a_file_that_can_not_be_written_is_told(tmp_path):
    (tmp_path / "link").symlink_to("elsewhere")
    for path in (tmp_path / "no" / "a.jsonl", tmp_path / "link", tmp_path):
        with pytest.raises(Usage, match="the receipts can't be written: ") as caught:
            append(path, b"1\n")
        assert caught.value.where == str(path)
    assert os.listdir(tmp_path) == ["link"]


def test_a_disk_that_takes_no_more_is_told_and_what_it_took_is_no_line(tmp_path):
    path = tmp_path / "a.jsonl"
    append(path, b"1\n")
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"the receipts can't be written: File too large — {path}\n"
    append(path, b"2\n")
    assert path.read_bytes() == b"1\n2\n"
