"""When the tool itself is killed, nothing of it stays: no process, no mount, no folder, no group."""

import os
import secrets
import signal
import sys
import time
from pathlib import Path

import pytest

from scoresheet.sandbox import programs
from scoresheet.sandbox.bwrap import BwrapSandbox
from scoresheet.sandbox.spec import MIB
from tests.sandbox.episodes import ORDINARY_UID, a_launch, a_spec, none_survive, survivors


def run_for_ever(token: str, workspace: Path, tell: int) -> None:
    agent = "setsid sh -c \"trap '' TERM HUP; while :; do sleep 1; done\" & trap '' TERM; sleep 1000"
    with BwrapSandbox() as sandbox:
        spec = a_spec(1000, workspace=workspace, limits={"memory_bytes": 64 * MIB})
        with sandbox.open(spec) as opened:
            os.write(tell, f"{sandbox._folder}\n{sandbox._groups.folder}\n{sandbox._decoy}\n".encode())
            opened.start(a_launch("/bin/sh", "-c", agent, token=token))


@pytest.mark.parametrize("ordinary", [False, True], ids=["as we are", "as an ordinary account"])
def test_nothing_survives_a_killed_tool(tmp_path, ordinary):
    token = secrets.token_hex(8)
    workspace = tmp_path / "w"
    workspace.mkdir(mode=0o777)
    if ordinary and os.geteuid() == 0:
        for folder in (tmp_path, *tmp_path.parents):
            if folder.stat().st_mode & 0o001 == 0:
                folder.chmod(folder.stat().st_mode | 0o001)
        os.chown(workspace, ORDINARY_UID, ORDINARY_UID)
    programs._sources()  # what is read only once must be read while this account still may
    reading, writing = os.pipe()
    tool = os.fork()
    if tool == 0:
        try:
            os.close(reading)
            if ordinary and os.geteuid() == 0:
                os.setgroups([])
                os.setgid(ORDINARY_UID)
                os.setuid(ORDINARY_UID)
            run_for_ever(token, workspace, writing)
        finally:
            sys.stderr.flush()
            os._exit(1)
    os.close(writing)
    with open(reading) as told:
        folder, groups, decoy = (told.readline().strip() for _ in range(3))
        assert Path(folder).is_dir()
        deadline = time.monotonic() + 60
        while len(survivors(token)) < 3:
            assert time.monotonic() < deadline, survivors(token)
            time.sleep(0.02)
        os.kill(tool, signal.SIGKILL)
        os.waitpid(tool, 0)
    assert none_survive(token, within_s=5)
    leftovers = [Path(folder), Path(f"/proc/{decoy}"), *([] if groups == "None" else [Path(groups)])]
    deadline = time.monotonic() + 60
    while any(one.exists() for one in leftovers):
        assert time.monotonic() < deadline, [one for one in leftovers if one.exists()]
        time.sleep(0.02)
    assert folder not in Path("/proc/self/mountinfo").read_text()
