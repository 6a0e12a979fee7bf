"""action.yml, step by step as a runner runs it: real bash, real git, and (in ./full) a real install of the pins."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import repositories
from tests.publish import scored
from tests.repositories import Repo

HOUSE = Path(__file__).parent.parent.parent
ACTION = yaml.safe_load((HOUSE / "action.yml").read_text())
PINNED = ("annotated_types", "click", "orjson", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection")
GUARD = """
import sys
allowed = set(sys.stdlib_module_names) | set(sys.argv[1].split(",")) | {"scoresheet", "yaml", "_yaml"}
class Guard:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed and not name.startswith("_"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Guard())
from scoresheet.cli.app import run
sys.exit(run(sys.argv[2:]))
"""


@pytest.fixture
def pull(tmp_path: Path) -> Repo:
    """A clone whose HEAD is a pull request with a whole score."""
    origin = repositories.new(tmp_path / "origin", scored.without_run())
    origin.branch("pr")
    origin.commit(scored.run_only() | {"README.md": scored.readme().encode()})
    origin.git("checkout", "-q", "main")
    clone = origin.clone(tmp_path / "clone")
    clone.git("checkout", "-q", "pr")
    return clone


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif", "junit"])
def test_the_gate_needs_nothing_but_its_pins(pull, form):
    command = [sys.executable, "-c", GUARD, ",".join(PINNED), "gate", "--repo", str(pull.root), "--base", "origin/main"]
    done = subprocess.run([*command, "--format", form], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_pins_are_those_of_the_run_and_name_no_compiler():
    gate = (HOUSE / "requirements" / "gate.txt").read_text()
    whole = (HOUSE / "requirements" / "run.txt").read_text()
    assert all(line in whole for line in gate.splitlines())
    names = {line.partition("==")[0].replace("-", "_") for line in gate.splitlines() if "==" in line}
    assert names == {*PINNED, "pyyaml"}
    assert gate.count("--hash=sha256:") > len(names)


def test_the_action_takes_no_secret_and_lets_no_expression_into_its_scripts():
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]  # a branch's name would be a command
        assert "secrets." not in str(step)
        assert step["shell"] == "bash"


def test_the_base_is_the_pull_requests_own(pull, tmp_path):
    assert find_base(pull, tmp_path, PULL="main") == "refs/remotes/origin/main"
    assert find_base(pull, tmp_path, GIVEN="v1", PULL="main") == "v1"
    before = pull.git("rev-parse", "HEAD~1").decode().strip()
    assert find_base(pull, tmp_path, BEFORE=before, DEFAULT="main") == before
    assert find_base(pull, tmp_path, BEFORE="0" * 40, DEFAULT="main") == "refs/remotes/origin/main"


@pytest.mark.long
@pytest.mark.parametrize("validator", ["", "vendor/scoresheet"])
def test_the_whole_action_judges_by_a_validator_that_the_change_did_not_bring(pull, tmp_path, validator):
    if validator:
        for path in (*(HOUSE / "src").rglob("*.py"), HOUSE / "requirements" / "gate.txt"):
            pull.write(f"{validator}/{path.relative_to(HOUSE)}", path.read_bytes())
        pull.git("checkout", "-q", "-b", "vendored", "origin/main")
        pull.commit()
        pull.git("update-ref", "refs/remotes/origin/main", "HEAD")
        pull.git("checkout", "-q", "pr")
        pull.git("merge", "-q", "--no-edit", "vendored")
        pull.commit({f"{validator}/src/scoresheet/cli/gate.py": "raise SystemExit(0)\n"})
    for name in ("pip", "venv", "click", "sys", "scoresheet"):
        pull.write(f"{name}.py", "raise SystemExit('hijacked')\n")
    pull.commit()
    place = {"BASE": "refs/remotes/origin/main", "VALIDATOR": validator, "PYTHON": sys.executable}
    done = step(1, pull, tmp_path, ACTION=str(HOUSE), **place)
    assert done.returncode == 0, done.stderr
    done = step(2, pull, tmp_path, ACCEPT="", **place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "scores judged: 2 (2 ok" in done.stdout
    pull.commit({"README.md": scored.readme().replace("0.7500", "0.9500")})
    done = step(2, pull, tmp_path, ACCEPT=".scoresheet-accept", **place)
    assert done.returncode == 1
    assert "::error file=README.md,line=6,title=claim-figures::" in done.stdout
    assert "scores refused" in (tmp_path / "summary").read_text()


def find_base(repo: Repo, tmp_path: Path, **environment: str) -> str:
    (tmp_path / "output").write_text("")
    done = step(0, repo, tmp_path, **{"GIVEN": "", "PULL": "", "BEFORE": "", "DEFAULT": ""} | environment)
    assert done.returncode == 0, done.stderr
    return (tmp_path / "output").read_text().removeprefix("base=").strip()


def step(number: int, repo: Repo, tmp_path: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """One step of the action, with what a runner gives it."""
    runner = {
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_WORKSPACE": str(repo.root),
        "RUNNER_TEMP": str(tmp_path / "runner"),
    }
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", ACTION["runs"]["steps"][number]["run"]]
    return subprocess.run(
        script, cwd=repo.root, env=os.environ | runner | environment, capture_output=True, text=True, timeout=300
    )
