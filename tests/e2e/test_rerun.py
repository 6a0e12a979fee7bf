"""A stranger with one file runs it again, at another seat, by another Python, as another user, and gets the verdict."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from scoresheet.cli import app
from scoresheet.cli.run import admitted
from scoresheet.errors import ScoresheetError
from scoresheet.pack.folder import Pack
from tests.run.packs import OBEY, shop

ROOT = Path(__file__).parents[2]
SCORESHEET = (str(Path(sys.executable).parent / "scoresheet"),)
AGENT = ROOT / "tests" / "agents" / "obey.sh"
PROMPTS = {"t0": "careful", "t1": "careful", "t2": "careful", "t3": "careful", "t4": "careful", "t5": "crash"}
NOBODY = 65534


def call(*words, program=SCORESHEET, **more):
    return subprocess.run([*program, *map(str, words)], capture_output=True, text=True, timeout=300, **more)


@pytest.fixture(scope="module")
def folder():
    """A run and its bundle with pack and agent, where everybody can read it."""
    with tempfile.TemporaryDirectory(prefix="scoresheet-first-") as scratch:
        Path(scratch).chmod(0o755)
        yield made(Path(scratch))


def made(folder):
    pack = shop(folder / "pack", PROMPTS, repeats=1)
    (folder / "agent").mkdir()
    shutil.copy(AGENT, folder / "agent" / "obey.sh")
    agent = f"sh {folder / 'agent' / 'obey.sh'}"
    done = call("run", pack.root, "--agent", agent, "--seat", "laptop-a", "--out", folder / "run", "--quiet")
    assert done.returncode == 0, done.stderr
    done = call("bundle", folder / "run", "-o", folder / "b.tar", "--pack", pack.root, "--with-agent", folder / "agent")
    assert done.returncode == 0, done.stderr
    (folder / "b.tar").chmod(0o644)
    return folder


def figures(run):
    report = json.loads((run / "report.json").read_text())
    names = ("figures_sha256", "success_mean", "success_ci95", "interval_method", "per_task", "exit_reasons", "mde")
    return {name: report[name] for name in names}


def test_the_bundled_agent_is_run_again_and_replicates_to_the_digit(folder, tmp_path):
    words = ("rerun", folder / "b.tar", "--agent", "bundled", "--seat", "second", "--out", tmp_path / "run", "--json")
    done = call(*words, "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout)
    assert (found["verdict"], found["reasons"]) == ("replicated", [])
    assert found["figures"]["tasks_identical"] == "6 of 6"
    assert figures(tmp_path / "run") == figures(folder / "run")
    assert call("verify", tmp_path / "run", "--pack", folder / "pack").returncode == 0


def hosts():
    """Other Pythons that run scoresheet, on PATH or in $SCORESHEET_PYTHONS; this one where there is none."""
    found = []
    for version in ("3.12", "3.13", "3.14"):
        named = os.environ.get("SCORESHEET_PYTHONS", "").split(os.pathsep)
        places = [shutil.which(f"python{version}"), *(python for python in named if python.endswith(version))]
        for python in filter(None, places):
            if subprocess.run([python, "-c", "import scoresheet"], capture_output=True, cwd="/").returncode == 0:
                found.append((python, "-m", "scoresheet"))
                break
    return found or [(sys.executable, "-m", "scoresheet")]


def test_another_python_replicates_to_the_digit(folder, tmp_path):
    for number, program in enumerate(hosts()):
        out = tmp_path / str(number)
        words = ("rerun", folder / "b.tar", "--agent", "bundled", "--seat", f"host-{number}", "--out", out, "--quiet")
        done = call(*words, program=program, cwd=tmp_path)
        assert done.returncode == 0, done.stderr + done.stdout
        assert done.stdout.endswith("replicated\n")
        assert figures(out) == figures(folder / "run")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_replicates_to_the_digit(folder):
    """By a Python that everybody may start, with the libraries of this one when it is of the same version."""
    system, paths = "/usr/bin/python3", os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
    home = folder / "nobody"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": paths}
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": home, "env": environment}
    if call("-c", "import scoresheet.cli.rerun, pydantic, orjson", program=(system,), **who).returncode:
        pytest.skip("no Python of this version that another user may start")
    words = ("rerun", folder / "b.tar", "--agent", "bundled", "--seat", "nobody", "--out", home / "run", "--quiet")
    done = call(*words, program=(system, "-m", "scoresheet"), **who)
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.endswith("replicated\n")
    assert figures(home / "run") == figures(folder / "run")


def test_one_altered_fixture_ends_it_at_the_digest(folder, tmp_path):
    pack = shop(tmp_path / "pack", PROMPTS | {"t0": "careful, now"}, repeats=1)
    done = call("run", pack.root, "--agent", OBEY, "--seat", "third", "--out", tmp_path / "run", "--quiet")
    assert done.returncode == 0, done.stderr
    done = call("replicate", folder / "b.tar", tmp_path / "run")
    assert done.returncode == 1
    assert done.stdout.startswith("  - another pack: A is of ")
    assert done.stdout.endswith("\nnot comparable\n")
    assert "success" not in done.stdout


def test_another_agent_is_not_taken_for_a_replication(folder, tmp_path):
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "idle.sh").write_text("exit 0\n")
    words = (
        "--agent",
        f"sh {tmp_path / 'agent' / 'idle.sh'}",
        "--seat",
        "second",
        "--out",
        tmp_path / "run",
        "--quiet",
    )
    done = call("rerun", folder / "b.tar", *words)
    assert done.returncode == 1
    assert done.stdout.endswith("not replicated\n") or done.stdout.endswith("not comparable\n")


def test_the_seat_of_the_first_run_is_refused(folder, tmp_path):
    done = call("rerun", folder / "b.tar", "--agent", "bundled", "--seat", "laptop-a", "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "the first run has the seat 'laptop-a'" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_bundle_that_does_not_hold_runs_nothing(folder, tmp_path):
    data = bytearray((folder / "b.tar").read_bytes())
    data[-30_000] ^= 1
    (tmp_path / "b.tar").write_bytes(data)
    done = call("rerun", tmp_path / "b.tar", "--agent", "bundled", "--seat", "second", "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "[bundle-byte]" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_bundle_without_pack_or_agent_asks_for_them(folder, tmp_path):
    assert call("bundle", folder / "run", "-o", tmp_path / "bare.tar").returncode == 0
    words = (
        "rerun",
        tmp_path / "bare.tar",
        "--agent",
        "bundled",
        "--seat",
        "second",
        "--out",
        tmp_path / "run",
        "--quiet",
    )
    done = call(*words)
    assert (done.returncode, "--pack PACK" in done.stderr) == (1, True)
    done = call(*words, "--pack", folder / "pack")
    assert (done.returncode, "--agent SPEC" in done.stderr) == (1, True)
    agent = ("--agent", f"sh {folder / 'agent' / 'obey.sh'}")
    done = call(*words[:2], *agent, *words[4:], "--pack", folder / "pack")
    assert done.returncode == 0, done.stderr


def test_a_replication_is_judged_as_of_the_day_that_it_is_told(folder, tmp_path):
    shutil.copytree(folder / "pack", tmp_path / "pack")
    pack = Pack.open(tmp_path / "pack")
    assert admitted(pack, "second", True, "2027-01-01T00:00:00Z").startable == set(PROMPTS)
    with pytest.raises(ScoresheetError, match="no task has leaf score"):
        admitted(pack, "second", True, "2099-01-01T00:00:00Z")


def test_the_verdict_of_two_runs_is_printed_by_the_command(folder, capsys):
    assert app.run(["replicate", str(folder / "run"), str(folder / "b.tar")]) == 1
    assert "a repetition, not a replication" in capsys.readouterr().out


def test_a_budget_in_money_needs_prices_where_the_bundle_has_none(folder, tmp_path):
    model = ("--model", "openai=http://127.0.0.1:1/v1", "--max-cost", "1")
    words = ("--agent", "bundled", "--seat", "second", "--out", tmp_path / "run")
    done = call("rerun", folder / "b.tar", *words, *model)
    assert done.returncode == 2
    assert "what tokens cost is not known — --max-cost" in done.stderr
    assert not (tmp_path / "run").exists()
