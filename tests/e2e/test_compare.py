"""Two real agents on a real pack, run, bundled and compared by the installed command."""

from pathlib import Path

import pytest

from tests.command import call
from tests.run.packs import OBEY, shop

IDLE = f"sh {Path(__file__).parents[2] / 'examples' / 'agents' / 'idle.sh'}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    pack = shop(folder / "pack", {f"t{number}": "careful" for number in range(6)}, repeats=1)
    for name, agent in (("obedient", OBEY), ("idle", IDLE)):
        done = call("run", pack.root, "--agent", agent, "--seat", "laptop-a", "--out", folder / name, "--quiet")
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("admissible\n")
    done = call("bundle", folder / "idle", "-o", folder / "idle.tar")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("second", ["idle", "idle.tar"])
def test_an_agent_that_does_nothing_is_worse_by_its_run_and_by_its_bundle(folder, second):
    done = call("compare", folder / "obedient", folder / second)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "DRAFT" not in done.stdout
    assert "A - B: +1.0000 [0.1588, 1.0000] A is better" in done.stdout
    assert "6 of 6 differ, sign-flip p 0.0312 (exact)" in done.stdout
    assert "ranks: A 1; B 2" in done.stdout
    assert done.stdout.endswith("t5    1/1  0/1  +1.0000\n")


def test_a_bundle_that_was_edited_is_no_run_to_compare(folder):
    data = bytearray((folder / "idle.tar").read_bytes())
    at = data.index(b'"success":0')
    data[at + len(b'"success":')] = ord("1")
    (folder / "edited.tar").write_bytes(data)
    done = call("compare", folder / "obedient", folder / "edited.tar")
    assert done.returncode == 1
    assert "A is" not in done.stdout
