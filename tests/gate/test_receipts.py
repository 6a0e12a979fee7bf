"""Receipts on disk: one chain, whoever writes, and nothing on top of what was edited."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from scoresheet.errors import Refused, Usage
from scoresheet.gate import receipts
from tests.gate.test_chain import card, issued


def test_a_file_grows_and_keeps_its_chain(tmp_path):
    path = tmp_path / "receipts.jsonl"
    assert receipts.read(path) is None
    receipts.append(path, lambda known: issued(card("a")))
    before = path.read_bytes()
    head = receipts.append(path, lambda known: issued(card("b"), at="2026-11-30T12:00:01Z"))
    found = receipts.read(path)
    assert found is not None
    assert path.read_bytes().startswith(before)
    assert (found.head, head.count) == (head, 2)


def _given(batch, _known):
    return batch


def test_many_writers_make_one_chain(tmp_path):
    path = tmp_path / "receipts.jsonl"
    start = threading.Barrier(8)

    def write(number):
        start.wait()
        for repeat in range(5):
            batch = issued(card(f"t{number}.{repeat}"))
            receipts.append(path, partial(_given, batch))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    found = receipts.read(path)
    assert found is not None
    assert (found.findings, found.head.count, len(found.latest)) == ((), 40, 40)


def test_a_torn_last_line_is_named_and_cut_by_the_next_writer(tmp_path):
    path = tmp_path / "receipts.jsonl"
    receipts.append(path, lambda known: issued(card("a")))
    with path.open("ab") as file:
        file.write(b'{"leaf":"sco')
    torn = receipts.read(path)
    assert torn is not None
    assert [finding.rule for finding in torn.findings] == ["receipt-torn"]
    receipts.append(path, lambda known: issued(card("b")))
    found = receipts.read(path)
    assert found is not None
    assert (found.findings, found.head.count) == ((), 2)


def test_nothing_is_appended_to_a_file_that_was_edited(tmp_path):
    path = tmp_path / "receipts.jsonl"
    receipts.append(path, lambda known: issued(card("a"), card("b", leak_flag=True)))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[1])
    with pytest.raises(Refused) as refused:
        receipts.append(path, lambda known: issued(card("c")))
    assert [finding.rule for finding in refused.value.findings] == ["receipt-chain"]
    assert path.read_bytes() == lines[1]


def test_a_link_is_not_written_through(tmp_path):
    (tmp_path / "there").write_bytes(b"")
    (tmp_path / "receipts.jsonl").symlink_to(tmp_path / "there")
    with pytest.raises(Usage):
        receipts.append(tmp_path / "receipts.jsonl", lambda known: issued(card()))
    assert (tmp_path / "there").read_bytes() == b""
