"""The set-up script where something is missing: it says the one command that mends it, and changes nothing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

INSTALL = Path(__file__).parent.parent / "requirements" / "install"
NEEDED = (
    "sh",
    "dirname",
    "tr",
    "sed",
    "cat",
    "cksum",
    "head",
    "node",
    "curl",
    "wget",
    "chromium",
    "bwrap",
    "apt-get",
    "python3",
)


@pytest.fixture
def machine(tmp_path):
    """Runs the script as an ordinary user of a machine whose PATH holds only what it is given."""

    def run(*present: str, kind: str = "dev", **environment: str) -> subprocess.CompletedProcess[str]:
        programs = tmp_path / "bin"
        programs.mkdir()
        for name in present:
            found = shutil.which(name) or "/bin/true"
            (programs / name).symlink_to(os.path.realpath(found) if name != "python3" else found)
        (programs / "id").write_text("#!/bin/sh\necho 1000\n")
        (programs / "id").chmod(0o755)
        return subprocess.run(
            [INSTALL, kind, "./test"],
            env={"PATH": str(programs), "HOME": str(tmp_path)} | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_an_ordinary_user_is_told_the_one_command(machine):
    done = machine(*(name for name in NEEDED if name not in ("bwrap", "curl")))
    assert done.returncode == 1
    assert done.stderr == (
        "error: this machine lacks bubblewrap curl\n"
        "  mend: sudo apt-get install -y bubblewrap curl   (then ./test again)\n"
    )


def test_another_system_is_told_what_to_install(machine):
    done = machine(*(name for name in NEEDED if name not in ("bwrap", "apt-get")), kind="run")
    assert done.returncode == 1
    assert "lacks what Debian calls bubblewrap" in done.stderr
    assert "package manager" in done.stderr


def test_the_demo_needs_neither_curl_nor_node(machine):
    done = machine(*(name for name in NEEDED if name not in ("bwrap", "curl", "wget", "node", "chromium")), kind="run")
    assert "lacks bubblewrap\n" in done.stderr
