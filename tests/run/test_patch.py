"""Patches: `git apply` gives back the very tree that they were made from, whatever it holds."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scoresheet.run.patch import Change, File, Link, patch

TEXT = st.lists(st.sampled_from([b"one\n", b"two\n", b"\xff\n", b"\r\n", b"tail"]), max_size=12).map(b"".join)
BYTES = st.one_of(TEXT, st.binary(max_size=200), st.binary(max_size=5).map(lambda tail: b"\0" * 70_000 + tail))
ENTRY = st.one_of(
    st.none(),
    st.builds(File, BYTES, st.booleans()),
    st.builds(Link, st.sampled_from([b"one", b"../two", b"/etc/passwd", b"\xff"])),
)
NAMES = st.sampled_from([b"a", b"b c", b"d/e", b'd/"f"', b"n\nl", b"t\tb", b"\xff\xfe", b"d/\\g", "ü".encode()])


def lay(root, entries):
    for path, entry in entries.items():
        place = os.path.join(os.fsencode(root), path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        match entry:
            case File(content, executable):
                with open(place, "wb") as file:
                    file.write(content)
                os.chmod(place, 0o755 if executable else 0o644)
            case Link(target):
                os.symlink(target, place)


def read(root):
    found: dict[bytes, File | Link] = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        if b".git" in folders:
            folders.remove(b".git")
        for name in (*files, *(each for each in folders if os.path.islink(os.path.join(folder, each)))):
            place = os.path.join(folder, name)
            path = os.path.relpath(place, os.fsencode(root))
            if os.path.islink(place):
                found[path] = Link(os.readlink(place))
            else:
                with open(place, "rb") as file:
                    found[path] = File(file.read(), bool(os.stat(place).st_mode & 0o100))
    return found


def applied(root, text):
    root.mkdir(exist_ok=True)
    git = ["git", "-c", "core.autocrlf=false", "-c", "core.fsync=none"]
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run([*git, "init", "-q"], cwd=root, check=True, env=environment)
    done = subprocess.run(
        [*git, "apply", "--whitespace=nowarn", "-"], input=text, cwd=root, capture_output=True, env=environment
    )
    assert done.returncode == 0, (done.stderr, text)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, st.tuples(ENTRY, ENTRY), max_size=5))
def test_git_applies_what_was_made(tmp_path_factory, pairs):
    root = Path(tmp_path_factory.mktemp("patch")) / "tree"
    root.mkdir()
    lay(root, {path: before for path, (before, _) in pairs.items() if before is not None})
    changes = [Change(path, before, after) for path, (before, after) in pairs.items() if before != after]
    made = patch(changes)
    if made.text:
        applied(root, made.text)
    assert read(root) == {path: after for path, (_, after) in pairs.items() if after is not None}
    assert patch(reversed(changes)) == made


def test_lines_added_and_removed_are_counted():
    assert patch([Change(b"a", File(b"1\n2\n3\n"), File(b"1\nx\ny\n3\n"))]).lines == 3
    assert patch([Change(b"a", None, File(b"1\n2"))]).lines == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (File(b"\0old"), File(b"\0new")),
        (None, File(b"")),
        (File(b"text\n"), File(b"text\n", True)),
        (File(b"text\n"), File(b"\0binary" * 1000)),
    ],
)
def test_what_has_no_lines_counts_as_one(before, after):
    assert patch([Change(b"a", before, after)]).lines == 1


def test_nothing_changed_is_an_empty_patch():
    made = patch([])
    assert (made.text, made.lines) == (b"", 0)
    assert made.sha256 == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_text_is_the_one_that_people_know():
    made = patch([Change(b"src/a b.py", File(b"x = 1\ny = 2\n"), File(b"x = 1\ny = 3"))])
    assert made.text == (
        b"diff --git a/src/a b.py b/src/a b.py\n"
        b"index 2c1854573a40224de599dd57077637eb5f882072..a6f0ec914c91f0435b2726b5493c29645fd4aa1a 100644\n"
        b"--- a/src/a b.py\t\n+++ b/src/a b.py\t\n"
        b"@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n\\ No newline at end of file\n"
    )


def test_a_large_rewritten_file_is_bounded():
    old = b"".join(b"line %d\n" % n for n in range(50_000))
    new = b"".join(b"line %d of new\n" % n for n in range(50_000))
    assert patch([Change(b"a", File(old), File(new))]).lines == 100_000
