"""Which decision stands, and what it takes to notice that somebody changed one."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoresheet import digest
from scoresheet.documents.judgment import Decided, Judgment
from scoresheet.documents.receipt import GENESIS
from scoresheet.run.judgments import Judgments, Material, Pending, line, order, read
from tests.publish.runs import row


def decided(*made: tuple[str, Decided, str]) -> bytes:
    """Lines of (task, verdict, judge), chained."""
    lines, head = b"", GENESIS
    for number, (task_id, verdict, judge) in enumerate(made):
        judgment = Judgment(
            task_id=task_id,
            repeat=0,
            attempt=0,
            row_sha256=digest.of(task_id.encode()),
            shown_sha256="5" * 64,
            verdict=verdict,
            judge=judge,
            at=f"2026-09-22T10:00:{number:02}Z",
            previous=head,
        )
        lines += line(judgment)
        head = digest.of(line(judgment)[:-1])
    return lines


def verdicts(found: Judgments) -> list[tuple[str, str, str]]:
    return [(each.task_id, each.verdict, each.judge) for each in found.standing.values()]


def rules(data: bytes) -> list[str]:
    return [finding.rule for finding in read(data).findings]


def test_no_file_is_no_decision():
    assert read(b"") == Judgments()


def test_every_decision_stands_for_its_row():
    found = read(decided(("a", "pass", "alice"), ("b", "fail", "bob")))
    assert verdicts(found) == [("a", "pass", "alice"), ("b", "fail", "bob")]
    assert (found.judges, found.lines, found.findings) == (("alice", "bob"), 2, ())
    assert found.places[digest.of(b"b")] == "judgments.jsonl:2"


def test_a_withdrawn_decision_is_gone_and_the_row_can_be_judged_again():
    undone = decided(("a", "pass", "alice"), ("a", "withdrawn", "alice"))
    assert verdicts(read(undone)) == []
    again = decided(("a", "pass", "alice"), ("a", "withdrawn", "alice"), ("a", "fail", "bob"))
    assert verdicts(read(again)) == [("a", "fail", "bob")]
    assert rules(again) == []


def test_of_two_judges_the_first_counts_and_the_second_is_named():
    data = decided(("a", "fail", "alice"), ("a", "pass", "bob"))
    assert verdicts(read(data)) == [("a", "fail", "alice")]
    assert rules(data) == ["judgments-second"]
    assert "judged by alice already, whose decision counts; bob" in read(data).findings[0].what


def test_nobody_withdraws_what_another_decided():
    data = decided(("a", "fail", "alice"), ("a", "withdrawn", "bob"), ("a", "pass", "bob"))
    assert verdicts(read(data)) == [("a", "fail", "alice")]
    assert rules(data) == ["judgments-withdrawn", "judgments-second"]


def test_the_latest_decision_of_a_judge_is_the_one_to_undo():
    found = read(decided(("a", "pass", "alice"), ("b", "pass", "bob"), ("c", "fail", "alice"), ("d", "pass", "bob")))
    last = found.last_of("alice")
    assert last is not None
    assert last.task_id == "c"
    assert found.last_of("carol") is None


def test_an_unfinished_line_is_named_and_decides_nothing():
    data = decided(("a", "pass", "alice"), ("b", "pass", "alice"))
    assert rules(data[:-20]) == ["judgments-torn"]
    assert verdicts(read(data[:-20])) == [("a", "pass", "alice")]


THREE = decided(("a", "fail", "alice"), ("b", "pass", "alice"), ("c", "pass", "alice"))


@pytest.mark.parametrize(
    "changed",
    [
        THREE.replace(b'"verdict":"fail"', b'"verdict":"pass"', 1),
        THREE.replace(b'"judge":"alice"', b'"judge":"alicf"', 1),
        b"".join(THREE.splitlines(keepends=True)[1:]),
        b"".join(THREE.splitlines(keepends=True)[::2]),
        b"".join(THREE.splitlines(keepends=True)[::-1]),
    ],
    ids=["better", "renamed", "first gone", "middle gone", "reversed"],
)
def test_an_edit_breaks_the_chain(changed):
    assert "judgments-chain" in rules(changed)


def test_a_cut_tail_leaves_its_episode_without_a_decision():
    found = read(b"".join(THREE.splitlines(keepends=True)[:-1]))
    assert [task for task, _, _ in verdicts(found)] == ["a", "b"]
    assert found.head != read(THREE).head


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read(data):
    found = read(data)
    assert found.findings or not data


def test_the_order_is_the_seeds_and_follows_neither_task_nor_repeat():
    waiting = [Pending(row(f"t{t}", r, None), f"{t}{r}") for t in range(4) for r in range(4)]
    shuffled = order(waiting, 7)
    assert order(reversed(waiting), 7) == shuffled
    assert sorted(each.sha256 for each in shuffled) == sorted(each.sha256 for each in waiting)
    assert shuffled != tuple(waiting)
    assert order(waiting, 8) != shuffled
    runs = sum(a.row.task_id == b.row.task_id for a, b in pairwise(shuffled))
    assert runs < 8


def test_the_digest_of_what_was_shown_covers_all_of_it():
    shown = Material("say hello", {"text": "hello"}, b"+a\n", ("x: too large",))
    others = [
        Material("say bye", {"text": "hello"}, b"+a\n", ("x: too large",)),
        Material("say hello", {"text": "bye"}, b"+a\n", ("x: too large",)),
        Material("say hello", {"text": "hello"}, b"+b\n", ("x: too large",)),
        Material("say hello", {"text": "hello"}, b"+a\n"),
    ]
    assert len({shown.sha256, *(each.sha256 for each in others)}) == 5
