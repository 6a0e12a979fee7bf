"""Which texts of a task are blanks: what its author was to write, never what was recorded."""

import pytest

from scoresheet.pack.blanks import begins_blank, blanks, written


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ({"prompt": "REPLACE_ME"}, ["/prompt"]),
        ({"prompt": "  replace_me: what to do"}, ["/prompt"]),
        ({"prompt": "Say REPLACE_ME"}, []),
        ({"expected": {"a": {"b": "REPLACE_ME"}, "c": "REPLACE_ME"}}, ["/expected/a/b", "/expected/c"]),
        ({"oracle": {"test_command": "REPLACE_ME"}, "origin": "REPLACE_ME"}, ["/oracle/test_command", "/origin"]),
        ({"calls": [{"response_bytes": "REPLACE_ME"}], "tags": "REPLACE_ME", "task_id": "REPLACE_ME"}, []),
        ("REPLACE_ME", []),
        ([{"prompt": "REPLACE_ME"}], []),
        (None, []),
    ],
)
def test_blanks_are_found_where_an_author_writes(task, found):
    assert list(blanks(task)) == found


def test_what_an_author_writes_is_given_with_its_place():
    task = {"prompt": "p", "expected": {"a": "b", "n": 1}, "calls": ["c"]}
    assert list(written(task)) == [("/prompt", "p"), ("/expected/a", "b")]


def test_a_blank_begins_a_text():
    assert begins_blank(" replace_me!")
    assert not begins_blank("")
    assert not begins_blank("do not REPLACE_ME")
