import tracemalloc

from scoresheet.documents.row import Row
from scoresheet.publish.page.attempts import Attempt, Attempts
from tests.publish.runs import refused, row


def test_attempts_stand_in_order_and_know_how_many_their_repeat_has():
    found = Attempts()
    lines: list[Row] = [
        row("t02", 1),
        refused("t01", 10),
        row("t01", 2, 0, attempt=1, exit_reason="timeout", tool_calls=7),
        row("t01", 2, 0, exit_reason="harness_error"),
    ]
    for number, each in enumerate(lines):
        found.add(each, "success" if each.success else "wrong", number * (1 << 40), 5 + number)
    assert len(found) == 4
    first, second = found.tasks()
    assert first == (
        Attempt("t01", 2, 0, "wrong", "harness_error", 2, 0, 3 << 40, 8, of=2),
        Attempt("t01", 2, 1, "wrong", "timeout", 7, 0, 2 << 40, 7, of=2),
        Attempt("t01", 10, 0, "wrong", "mismatch", lines[1].tool_calls, len(lines[1].mismatches), 1 << 40, 6),
    )
    assert second == (Attempt("t02", 1, 0, "success", "completed", 2, 0, 0, 5),)
    assert [*found] == [*first, *second]


def test_many_attempts_take_few_bytes_each():
    one, found = row(), Attempts()
    tracemalloc.start()
    try:
        for number in range(4000):
            found.add(one, "success", number, 5)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / len(found) < 80
