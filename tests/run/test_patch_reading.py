"""What was written as a patch is read back as the very changes that it was made of, and nothing else is read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoresheet.errors import Malformed
from scoresheet.run.patch import Change, File, Link, patch
from scoresheet.run.patch_reading import sections
from tests.run.test_patch import ENTRY, NAMES


def cut(text):
    """The lines as a file gives them."""
    return [part + b"\n" for part in text.split(b"\n")[:-1]]


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, st.tuples(ENTRY, ENTRY), max_size=5))
def test_what_was_written_is_read_back(pairs):
    changes = [Change(path, *pair) for path, pair in sorted(pairs.items()) if pair[0] != pair[1]]
    made = patch(changes)
    found = list(sections(cut(made.text)))
    assert b"".join(section.raw for section in found) == made.text
    assert sum(section.lines for section in found) == made.lines
    before = {change.path: change.before for change in changes}
    read = [section.change(before.pop(section.path, None)) for section in found]
    assert {each.path: each.after for each in read} == {change.path: change.after for change in changes}


WRITTEN = patch([Change(b"a b", File(b"one\ntwo\n"), File(b"one\nthree\n")), Change(b"c", None, File(b"\0x"))]).text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"diff --git a/a b", b"diff --git a/a  b"),
        (b"diff --git", b"diff --gut"),
        (b"@@ -1,2 +1,2 @@", b"@@ -1,3 +1,2 @@"),
        (b"@@ -1,2 +1,2 @@", b"@@ -1,0 +1,0 @@"),
        (b"@@ -1,2 +1,2 @@", b"@@ here @@"),
        (b"@@ -1,2 +1,2 @@", b"no hunk"),
        (b"+++ b/a b", b"b/a b"),
        (b"-two", b"*two"),
        (b"literal 2", b"literal x"),
        (b"literal 2", b"literal 999999999"),
        (b"literal 2\n", b"literal 2\nA\x7f\x7f\n"),
        (b"\n\n", b"\n"),
    ],
)
def test_what_is_no_patch_of_ours_is_refused_with_its_line(old, new):
    assert old in WRITTEN
    with pytest.raises(Malformed, match="no line of a patch"):
        list(sections(cut(WRITTEN.replace(old, new, 1))))


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"-two", b"-tow"), (b" one", b" eno"), (b"+three", b"+four"), (b"100644\n---", b"100755\n---")],
)
def test_a_patch_of_another_file_is_refused(old, new):
    assert old in WRITTEN
    first = next(iter(sections(cut(WRITTEN.replace(old, new, 1)))))
    with pytest.raises(Malformed, match="not a patch of the file that was there"):
        first.change(File(b"one\ntwo\n"))
    with pytest.raises(Malformed, match="not a patch of the file that was there"):
        first.change(None)


def test_a_change_that_changes_nothing_is_none():
    (section,) = sections([b"diff --git a/a b/a\n"])
    with pytest.raises(Malformed):
        section.change(File(b"x"))


def test_a_file_that_became_a_link_goes_and_comes():
    first, second = sections(cut(patch([Change(b"a", File(b"x\n"), Link(b"/y"))]).text))
    assert first.change(File(b"x\n")) == Change(b"a", File(b"x\n"), None)
    assert second.change(None) == Change(b"a", None, Link(b"/y"))


def test_a_patch_that_ends_too_early_is_refused():
    start = File(b"one\ntwo\n")
    for size in {*range(1, len(WRITTEN))} - {WRITTEN.index(b"diff --git a/c")}:
        text = WRITTEN[:size]
        torn = [*cut(text), *([text.rpartition(b"\n")[2]] if not text.endswith(b"\n") else [])]
        with pytest.raises(Malformed):
            [section.change(start if section.path == b"a b" else None) for section in sections(torn)]


def test_a_name_with_escapes_that_nobody_writes_is_refused():
    with pytest.raises(Malformed):
        list(sections([b'diff --git "a/\\q" "b/\\q"\n']))
