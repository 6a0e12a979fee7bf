import os
import subprocess
import sys
import textwrap

import pytest

from scoresheet.record import commit

OLD = {"tasks/a.json": b"old a", "tools/x.json": b"old x", "manifest.json": b"{}"}
NEW = {"tasks/a.json": b"new a", "tasks/b.json": b"new b", "tools/x.json": None, "tools/y.json": b"new y"}
AFTER = {"tasks/a.json": b"new a", "tasks/b.json": b"new b", "tools/y.json": b"new y", "manifest.json": b"{}"}


@pytest.fixture
def pack(tmp_path):
    folder = tmp_path / "pack"
    with commit.locked(folder):
        commit.write(folder, OLD)
    return folder


def beside(pack):
    return sorted(path.name for path in pack.parent.iterdir())


def test_changes_are_all_made_and_nothing_is_left_beside_the_pack(pack):
    with commit.locked(pack):
        commit.write(pack, NEW)
        assert commit.read(pack) == AFTER
    assert beside(pack) == ["pack"]


def test_a_pack_that_was_not_there_is_made(tmp_path):
    folder = tmp_path / "deep" / "pack"
    with commit.locked(folder):
        commit.write(folder, {"tasks/a.json": b"{}"})
    assert commit.read(folder) == {"tasks/a.json": b"{}"}


KILLED = """
import os, signal, sys
from pathlib import Path
from scoresheet.record import commit
calls, wanted = 0, int(sys.argv[2])
def dying(real):
    def call(*arguments, **named):
        global calls
        calls += 1
        if calls == wanted:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    return call
os.replace, os.rename, os.fsync = dying(os.replace), dying(os.rename), dying(os.fsync)
Path.unlink = dying(Path.unlink)
pack = Path(sys.argv[1])
with commit.locked(pack):
    commit.write(pack, {new})
"""


def test_a_kill_at_any_moment_leaves_all_or_none(pack):
    """Every system call that matters is in turn the last one."""
    code = textwrap.dedent(KILLED).replace("{new}", repr(NEW))
    outcomes = []
    for moment in range(1, 40):
        done = subprocess.run([sys.executable, "-c", code, pack, str(moment)], check=False)
        if done.returncode == 0:
            break
        assert done.returncode == -9
        decided = (pack.parent / ".pack.recording" / "decided.json").exists()
        if not decided:
            assert commit.read(pack) in (OLD, AFTER)
        with commit.locked(pack):
            found = commit.read(pack)
        assert found == (AFTER if decided or found == AFTER else OLD)
        assert beside(pack) == ["pack"]
        outcomes.append(found == AFTER)
        with commit.locked(pack):
            commit.write(pack, {**dict.fromkeys(AFTER), **OLD})
    assert outcomes[0] is False
    assert outcomes[-1] is True
    assert outcomes == sorted(outcomes)


def test_a_disk_that_refuses_leaves_the_pack_as_it_was(pack, monkeypatch):
    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with commit.locked(pack), pytest.raises(OSError, match="No space"):
        commit.write(pack, NEW)
    monkeypatch.undo()
    assert commit.read(pack) == OLD
    assert beside(pack) == ["pack"]


def test_two_recordings_take_turns(pack):
    code = "import sys; from pathlib import Path; from scoresheet.record import commit\n"
    code += "with commit.locked(Path(sys.argv[1])): print('in', flush=True)"
    with commit.locked(pack):
        other = subprocess.Popen([sys.executable, "-c", code, pack], stdout=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.5)
    assert other.communicate(timeout=300)[0] == b"in\n"
