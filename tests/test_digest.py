"""Digests of bytes and files."""

import hashlib
import os
import threading
from typing import Any

import pytest

from scoresheet import digest
from scoresheet.errors import Malformed, Refused


def opened(path, way):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return way(fd, str(path))
    finally:
        os.close(fd)


WAYS = {"of_open": digest.of_open, "read_open": lambda fd, where: digest.read_open(fd, where)[0]}


@pytest.mark.parametrize("size", [0, 1, 2**18 - 1, 2**18, 2**18 + 1, 3 * 2**20 + 7])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_file_has_the_digest_of_its_bytes(tmp_path, size, way):
    data = os.urandom(size)
    (tmp_path / "f").write_bytes(data)
    (tmp_path / "f").chmod(0o744)
    found = opened(tmp_path / "f", way)
    assert found == digest.FileDigest(digest.of(data), size, True, 1) == digest.of_file(tmp_path / "f")
    assert found.sha256 == hashlib.sha256(data).hexdigest()


def test_the_bytes_that_were_hashed_are_given(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 400_000)
    facts, data = opened(tmp_path / "f", digest.read_open)
    assert digest.of(data) == facts.sha256


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_is_no_regular_file_is_refused(tmp_path, way):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(Refused) as caught:
            opened(path, way)
        assert caught.value.findings[0].rule == "pack-type"


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, way, monkeypatch):
    place = tmp_path / "f"
    place.write_bytes(b"x" * 600_000)
    readers: dict[str, Any] = {"read": os.read, "readv": os.readv}

    def meddling(name):
        def read(*arguments):
            found = readers[name](*arguments)
            with place.open("ab") as file:
                file.write(b"y")
            return found

        return read

    for name in readers:
        monkeypatch.setattr(os, name, meddling(name))
    with pytest.raises(Refused) as caught:
        opened(place, way)
    assert caught.value.findings[0].rule == "pack-changed"


def test_a_file_that_is_rewritten_all_the_time_is_refused_or_whole(tmp_path):
    place = tmp_path / "f"
    versions = [bytes([n]) * 300_000 for n in range(4)]
    place.write_bytes(versions[0])
    digests = {digest.of(version) for version in versions}
    done = threading.Event()

    def rewrite():
        while not done.is_set():
            for version in versions:
                place.write_bytes(version)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        outcomes = set()
        for _ in range(30):
            try:
                outcomes.add(opened(place, digest.of_open).sha256)
            except Refused:
                outcomes.add("refused")
    finally:
        done.set()
        writer.join()
    assert outcomes <= digests | {"refused", digest.of(b"")}


@pytest.mark.parametrize("prefix", ["", "sha256:"])
def test_one_spelling_of_a_digest_is_read(prefix):
    assert digest.parse(prefix + "ab" * 32) == "ab" * 32


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ab" * 31,
        "AB" * 32,
        "ab" * 32 + "\n",
        " " + "ab" * 32,
        "sha1:" + "ab" * 32,
        "sha256:" * 2 + "ab" * 32,
        "0" * 64,
        hashlib.sha256(b"").hexdigest(),
    ],
)
def test_any_other_spelling_and_digests_of_nothing_are_refused(text):
    with pytest.raises(Malformed) as caught:
        digest.parse(text, "card.yaml")
    assert caught.value.where == "card.yaml"
    assert caught.value.mend
