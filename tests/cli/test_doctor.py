"""`scoresheet doctor` tries what it says, on this very machine."""

import json
import os
import subprocess

from tests.command import SCORESHEET


def doctor(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({} if path is None else {"PATH": path})
    return subprocess.run(
        [SCORESHEET, "doctor", *arguments], capture_output=True, text=True, env=environment, check=False
    )


def test_a_machine_that_isolates_shows_each_check_inside_and_outside():
    done = doctor()
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("isolate: yes, bubblewrap ")
    reached = next(line.split() for line in lines if line.startswith("tcp4_host_loopback"))
    assert reached[1:] == ["ECONNREFUSED", "reached", "denied"]
    assert lines[-1].startswith("canaries heard: 0 from inside, ")


def test_facts_are_one_json_object():
    facts = json.loads(doctor("--json").stdout)
    assert facts["isolate"]["can"] is True
    assert facts["evidence"]["state"] == "proved"
    assert facts["evidence"]["limits"]["memory_bytes"]["enforced_by"] in ("cgroup", "rlimit-per-process")
    assert {"python", "sign", "record", "numpy", "uvloop", "memory"} <= set(facts)


def test_a_machine_without_bubblewrap_can_not_isolate_and_hears_the_one_command(tmp_path):
    done = doctor(path=str(tmp_path))
    assert done.returncode == 3
    assert done.stdout.startswith("isolate: no, bwrap-missing: ")
    assert "  mend: apt install bubblewrap" in done.stdout
    assert "\nsign: no, no ssh-keygen, optional\n" in done.stdout
    assert done.stderr == ""


def test_an_old_or_foreign_bubblewrap_is_not_taken(tmp_path):
    for said, code in (("bubblewrap 0.6.1", "bwrap-too-old"), ("gVisor bwrap", "bwrap-too-old")):
        fake = tmp_path / "bwrap"
        fake.write_text(f"#!/bin/sh\necho {said}\n")
        fake.chmod(0o755)
        done = doctor(path=str(tmp_path))
        assert done.returncode == 3
        assert done.stdout.startswith(f"isolate: no, {code}: ")
