"""A file is read whole or refused: never more than is stated, no pipe waited for, no device."""

import os
import tracemalloc
from pathlib import Path

import pytest

from scoresheet import bounded_file
from scoresheet.errors import Usage


def test_a_file_of_the_stated_size_is_read_and_a_larger_one_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"12345678")
    assert bounded_file.read(tmp_path / "file", 8) == b"12345678"
    with pytest.raises(Usage, match="the file has 8 bytes") as refused:
        bounded_file.read(tmp_path / "file", 7)
    assert (refused.value.where, bool(refused.value.mend)) == (str(tmp_path / "file"), True)


def test_a_file_that_holds_more_than_its_size_says_is_refused_too():
    with pytest.raises(Usage, match="bytes, and"):
        bounded_file.read(Path("/proc/self/status"), 4)


def test_a_large_file_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "file").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Usage, match="64 MiB"):
        bounded_file.read(tmp_path / "file")


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            bounded_file.read(path)
    with pytest.raises(IsADirectoryError):
        bounded_file.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        bounded_file.read(tmp_path / "nothing")


def test_no_more_room_is_taken_than_the_file_needs(tmp_path):
    (tmp_path / "file").write_bytes(b"12345678")
    tracemalloc.start()
    try:
        bounded_file.read(tmp_path / "file", 1 << 30)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
