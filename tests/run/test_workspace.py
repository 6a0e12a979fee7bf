"""Workspaces are laid out fresh and verified, and read back as hostile input."""

import os
import resource
import socket
import subprocess
import time
from pathlib import Path

import pytest

from scoresheet.errors import Refused
from scoresheet.run import harvest, workspace
from scoresheet.run.patch import File, Link
from tests.run.works import BROKEN, FILES, put, work_of, works


@pytest.fixture
def pack(tmp_path):
    return works(tmp_path / "pack", {"t": "x"}, oracle_files={"tests/test_hidden.py": "", "solve.sh": "true\n"})


def laid(pack, place, task_id="t"):
    work = work_of(pack, task_id)
    workspace.lay(work, place)
    return work


def changes(place, work):
    return {change.path: change.after for change in harvest.harvest(place, work).changes}


def test_the_files_are_those_of_the_pack_and_none_of_the_oracle(pack, tmp_path):
    laid(pack, tmp_path / "w")
    found = {str(p.relative_to(tmp_path / "w")): p.read_text() for p in (tmp_path / "w").rglob("*") if p.is_file()}
    assert found == FILES


def test_nothing_shares_its_inode_with_the_pack(pack, tmp_path):
    laid(pack, tmp_path / "w")
    (tmp_path / "w" / "shop.py").write_text("changed")
    assert (pack.root / "workspaces/t/shop.py").read_text() == BROKEN
    assert all(path.stat().st_nlink == 1 for path in (tmp_path / "w").rglob("*") if path.is_file())


def test_modes_are_those_that_were_frozen_whatever_the_umask(tmp_path):
    put(tmp_path / "pack/workspaces/t/run.sh", "#!/bin/sh\n")
    (tmp_path / "pack/workspaces/t/run.sh").chmod(0o700)
    pack = works(tmp_path / "pack", {"t": "x"})
    before = os.umask(0o077)
    try:
        work = laid(pack, tmp_path / "w")
    finally:
        os.umask(before)
    assert (tmp_path / "w/run.sh").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "w/shop.py").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "w/tests").stat().st_mode & 0o777 == 0o755
    assert changes(tmp_path / "w", work) == {}


@pytest.mark.parametrize("content", [BROKEN + "#", BROKEN.replace("size", "sise"), ""])
def test_a_file_that_is_not_what_was_frozen_is_never_handed_out(pack, tmp_path, content):
    (pack.root / "workspaces/t/shop.py").write_text(content)
    with pytest.raises(Refused, match="frozen"):
        laid(pack, tmp_path / "w")


def test_a_link_in_the_place_of_a_frozen_file_is_not_followed(pack, tmp_path):
    path = pack.root / "workspaces/t/shop.py"
    path.rename(tmp_path / "real.py")
    path.symlink_to(tmp_path / "real.py")
    with pytest.raises(Refused):
        laid(pack, tmp_path / "w")


def test_a_repository_has_one_commit_that_is_the_same_everywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text("[commit]\n\tgpgsign = true\n[core]\n\tautocrlf = true\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    pack = works(tmp_path / "pack", {"t": "x"}, files=FILES | {".gitignore": "*.py\n"}, workspace={"git": True})
    heads = []
    for name in ("a", "b"):
        work = laid(pack, tmp_path / name)
        git = ["git", "-c", f"safe.directory={tmp_path / name}", "-C", str(tmp_path / name)]
        log = subprocess.run([*git, "log", "--format=%H %an"], capture_output=True, text=True, check=True).stdout
        status = subprocess.run([*git, "ls-files"], capture_output=True, text=True, check=True).stdout
        assert len(status.splitlines()) == len(FILES) + 1  # what is ignored is in it, too
        assert changes(tmp_path / name, work) == {}  # the repository is no part of the work
        heads.append(log)
    assert heads[0] == heads[1]
    assert heads[0].endswith(" scoresheet\n")
    assert heads[0].count("\n") == 1


def test_only_what_the_card_names_is_shown(tmp_path):
    pack = works(tmp_path / "pack", {"t": "x"}, card={"inputs": ["./shop.py"], "reads": ["/work/tests/"]})
    work = laid(pack, tmp_path / "w")
    assert set(work.files) == {b"shop.py", b"tests/test_shop.py", b"tests/conftest.py"}
    assert set(work.hidden) == {b"pyproject.toml", b"README.md"}
    assert not (tmp_path / "w/README.md").exists()


def test_a_task_without_a_workspace_has_none(tmp_path):
    from tests.run.packs import shop

    pack = shop(tmp_path / "pack", {"t": "careful"})
    assert workspace.of(pack, pack.task("t")) is None


def test_what_changed_is_found_and_nothing_else(pack, tmp_path):
    work = laid(pack, tmp_path / "w")
    (tmp_path / "w/shop.py").write_text("new\n")
    (tmp_path / "w/README.md").unlink()
    (tmp_path / "w/pyproject.toml").chmod(0o755)
    os.utime(tmp_path / "w/tests/test_shop.py", (1, 1))
    (tmp_path / "w/a/b").mkdir(parents=True)
    put(tmp_path / "w/a/c", b"\0")
    assert changes(tmp_path / "w", work) == {
        b"shop.py": File(b"new\n"),
        b"README.md": None,
        b"pyproject.toml": File(FILES["pyproject.toml"].encode(), True),
        b"a/c": File(b"\0"),
    }


def test_a_change_that_keeps_size_and_times_is_found(pack, tmp_path):
    work = laid(pack, tmp_path / "w")
    path = tmp_path / "w/shop.py"
    before = path.stat()
    path.write_text(BROKEN.replace("1", "2"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert set(changes(tmp_path / "w", work)) == {b"shop.py"}


def test_links_are_read_and_never_followed(pack, tmp_path):
    work = laid(pack, tmp_path / "w")
    put(tmp_path / "secret/file", "secret")
    (tmp_path / "w/folder").symlink_to(tmp_path / "secret")
    (tmp_path / "w/file").symlink_to("/etc/passwd")
    (tmp_path / "w/loop").symlink_to("loop")
    (tmp_path / "w/shop.py").unlink()
    (tmp_path / "w/shop.py").symlink_to("/etc/passwd")
    found = changes(tmp_path / "w", work)
    assert found == {
        b"folder": Link(os.fsencode(tmp_path / "secret")),
        b"file": Link(b"/etc/passwd"),
        b"loop": Link(b"loop"),
        b"shop.py": Link(b"/etc/passwd"),
    }


def test_what_is_no_file_is_never_opened(pack, tmp_path):
    work = laid(pack, tmp_path / "w")
    os.mkfifo(tmp_path / "w/pipe")
    (tmp_path / "w/shop.py").unlink()
    os.mkfifo(tmp_path / "w/shop.py")
    devices = ("null: a device, which was not opened",) if os.geteuid() == 0 else ()
    if devices:  # only root may make one
        os.mknod(tmp_path / "w/null", 0o20666, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "w/s"))
    found = harvest.harvest(tmp_path / "w", work)
    assert [(change.path, change.after) for change in found.changes] == [(b"shop.py", None)]
    assert found.left_out == (
        *devices,
        "pipe: a FIFO, which was not opened",
        "s: a socket, which was not opened",
        "shop.py: a FIFO, which was not opened",
    )


def test_a_sparse_file_of_10_gb_is_not_read(pack, tmp_path):
    work = laid(pack, tmp_path / "w")
    for name in ("huge", "shop.py"):
        with (tmp_path / "w" / name).open("r+b" if name == "shop.py" else "wb") as file:
            file.truncate(10 << 30)

    def read():
        return int(Path("/proc/self/io").read_text().split()[1])

    before = read()
    found = harvest.harvest(tmp_path / "w", work)
    assert read() - before < 1 << 20
    assert found.changes == ()
    assert found.unread == (b"shop.py",)
    assert found.left_out == ("huge: too large: 10737418240 bytes", "shop.py: too large: 10737418240 bytes")


def test_many_files_together_are_bounded(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(harvest, "LARGEST_PATCH", 2500)
    work = laid(pack, tmp_path / "w")
    for number in range(5):
        put(tmp_path / f"w/f{number}", b"x" * 1000)
    found = harvest.harvest(tmp_path / "w", work)
    assert len(found.changes) == 2
    assert len(found.left_out) == 3


def test_too_many_files_cross_a_limit(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(harvest, "MOST_ENTRIES", 100)
    work = laid(pack, tmp_path / "w")
    for number in range(120):
        put(tmp_path / f"w/{number}", b"")
    found = harvest.harvest(tmp_path / "w", work)
    assert (found.crossed, found.changes) == ("files", ())


def test_what_was_hidden_from_who_watched_crosses_the_limit_all_the_same(pack, tmp_path):
    work = laid(pack, tmp_path / "w")
    put(tmp_path / "w/hidden/data", b"x" * 200_000)
    (tmp_path / "w/hidden").chmod(0)
    assert harvest.harvest(tmp_path / "w", work, 1_000_000).crossed is None
    assert harvest.harvest(tmp_path / "w", work, 150_000).crossed == "disk"


def test_folders_without_end_cross_a_limit_and_are_removed(pack, tmp_path):
    work = laid(pack, tmp_path / "w")
    script = "import os\nfor _ in range(3000):\n os.mkdir('d'); os.chdir('d')"
    subprocess.run(["python3", "-c", script], cwd=tmp_path / "w", check=True)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        assert harvest.harvest(tmp_path / "w", work).crossed == "files"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    workspace.remove(tmp_path / "w")
    assert not (tmp_path / "w").exists()


def test_an_ordinary_user_reads_and_removes_what_has_no_permissions(tmp_path):
    """As in a sandbox of one's own account: what lies there belongs to who reads it."""
    script = """
import os, sys, tempfile
from pathlib import Path
os.setgid(65534); os.setuid(65534)
from scoresheet.run import harvest, workspace
root = Path(tempfile.mkdtemp(dir="/tmp")) / "w"
(root / "a/b").mkdir(parents=True)
(root / "a/b/f").write_text("x")
for path in (root / "a/b/f", root / "a/b", root / "a"): path.chmod(0)
class Nothing: files = {}; git = False
found = harvest.harvest(root, Nothing)
assert [change.path for change in found.changes] == [b"a/b/f"], found
for path in (root / "a", root / "a/b"): path.chmod(0o700)
for path in (root / "a/b", root / "a"): path.chmod(0)
workspace.remove(root)
assert not root.exists()
root.parent.rmdir()
"""
    if os.geteuid() != 0:
        script = script.replace("os.setgid(65534); os.setuid(65534)\n", "")
    else:  # the modules are imported before the account changes: it may not be able to read them
        script = script.replace("os.setgid", "import scoresheet.run.harvest\nos.setgid")
    import sys

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [b"new\nline", b"\xff\xfe", b'"', b"a\\b", b" ", b"-rf"])
def test_names_of_any_bytes_are_found(pack, tmp_path, name):
    work = laid(pack, tmp_path / "w")
    with open(os.path.join(os.fsencode(tmp_path / "w"), name), "wb") as file:
        file.write(b"x")
    assert changes(tmp_path / "w", work) == {name: File(b"x")}
    workspace.remove(tmp_path / "w")


def test_an_output_is_the_file_as_it_was_left(pack, tmp_path):
    work = laid(pack, tmp_path / "w")
    (tmp_path / "w/out.json").write_text("{}")
    (tmp_path / "w/README.md").unlink()
    (tmp_path / "w/link.json").symlink_to("out.json")
    found = harvest.harvest(tmp_path / "w", work).changes
    expected = {b"out.json": b"{}", b"README.md": None, b"link.json": None, b"none": None}
    assert {path: harvest.output(found, work, path) for path in expected} == expected
    assert harvest.output(found, work, b"shop.py") == BROKEN.encode()


@pytest.mark.long
def test_100_000_files_are_harvested(pack, tmp_path):
    work = laid(pack, tmp_path / "w")
    for number in range(100_000):
        (tmp_path / f"w/{number}").touch()
    began = time.monotonic()
    assert len(harvest.harvest(tmp_path / "w", work).changes) == 100_000
    assert time.monotonic() - began < 60


@pytest.mark.long
def test_1_gb_is_copied_nearly_as_fast_as_cp_does(tmp_path):
    folder = tmp_path / "pack/workspaces/t"
    folder.mkdir(parents=True)
    for number in range(16):
        (folder / f"data{number}").write_bytes(os.urandom(1 << 20) * 64)
    pack = works(tmp_path / "pack", {"t": "x"})

    def timed(action):
        os.sync()
        began = time.monotonic()
        action()
        return time.monotonic() - began

    plain = timed(lambda: subprocess.run(["cp", "-a", folder, tmp_path / "cp"], check=True))
    ours = timed(lambda: laid(pack, tmp_path / "w"))
    read = timed(lambda: harvest.harvest(tmp_path / "w", work_of(pack, "t")))
    print(f"1 GiB: cp -a {plain:.2f} s, laid out and verified {ours:.2f} s, harvested {read:.2f} s")
    assert ours < 4 * plain + 5
