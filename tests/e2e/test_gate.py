"""A real score on its way into a repository: frozen, checked, run in the sandbox, committed, gated, tampered with."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import repositories
from tests.publish import scored
from tests.repositories import Repo

COMMAND = [sys.executable, "-m", "scoresheet"]
AGENT = 'import json, sys\nprint(json.dumps({"price": 12 if json.load(sys.stdin)["task_id"] != "t04" else 13}))\n'


def scoresheet(*arguments: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*COMMAND, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def repo(tmp_path_factory) -> Repo:
    """A repository whose branch `pr` adds a run that was really made, with its baselines, and quotes its report."""
    root = tmp_path_factory.mktemp("gate") / "suite"
    made = repositories.new(root, scored.without_run() | {"agent.py": AGENT.encode()})
    card = (root / "packs/shop/card.yaml").read_text()
    here = made.git("rev-parse", "HEAD").decode().strip()
    made.commit({"packs/shop/card.yaml": card.replace("59d430a9506458e4b8a45fa6426d376dcf3eec17", here)})
    made.branch("pr")
    agent = f"{sys.executable} {root / 'agent.py'}"
    done = scoresheet("run", "packs/shop", "--agent", agent, "--seat", "ci", "--out", "runs/one", "--quiet", cwd=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\nadmissible\n"), done.stdout + done.stderr
    made.commit({"README.md": f"# A suite\n\n```text\n{done.stdout}```\n"})
    return made


@pytest.fixture
def pull(repo: Repo, tmp_path: Path) -> Repo:
    """A clone of it, to be tampered with."""
    clone = repo.clone(tmp_path / "clone")
    assert os.listdir(clone.root)
    return clone


def gate(repo: Repo, base: str = "origin/main") -> tuple[int, str]:
    done = scoresheet("gate", "--base", base, cwd=repo.root)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def test_a_real_run_with_all_its_files_passes(pull):
    code, out = gate(pull)
    assert code == 0, out
    assert "runs/one/rows.jsonl: rows: holds" in out
    assert "README.md:4: report block: holds" in out
    assert "runs/one/report.json:1: report: holds" in out
    assert out.count("rows: a baseline, no score") == 4  # where they were run, and beside the run that carries them


def test_a_mean_changed_by_hand_is_refused(pull):
    text = (pull.root / "README.md").read_text()
    pull.commit({"README.md": text.replace("success_mean: 0.8750", "success_mean: 0.9750")})
    code, out = gate(pull)
    assert code == 1
    assert "success_mean says 0.9750, the rows give 0.8750" in out


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("runs/one/receipts.jsonl", "claim-receipts"),
        ("runs/one/run.json", "claim-run"),
        ("runs/one/baselines.json", "report-baselines"),
        ("runs/one/confounds.jsonl", "report-confounds"),
        ("packs/shop/manifest.json", "claim-manifest"),
        ("packs/shop/tasks/t02.json", "claim-pack"),
    ],
)
def test_a_change_that_takes_a_companion_away_is_refused(pull, path, rule):
    pull.git("push", "-q", "origin", "HEAD:refs/heads/base")
    pull.git("rm", "-q", path)
    pull.commit()
    code, out = gate(pull, "origin/base")
    assert code == 1
    assert f"[{rule}]" in out, out
    pull.git("push", "-q", "origin", ":refs/heads/base")


def test_a_good_row_copied_over_another_is_refused(pull):
    rows = (pull.root / "runs/one/rows.jsonl").read_text().splitlines(keepends=True)
    copied = [line.replace('"repeat":0', '"repeat":1') if '"task_id":"t00"' in line else line for line in rows]
    pull.commit({"runs/one/rows.jsonl": "".join(copied)})
    code, out = gate(pull)
    assert code == 1
    assert "runs/one/rows.jsonl: rows: refused" in out


def test_receipts_of_another_leaf_chained_anew_are_refused(pull):
    from scoresheet import canonical, digest
    from scoresheet.documents.receipt import GENESIS

    lines, previous = [], GENESIS
    for data in (pull.root / "runs/one/receipts.jsonl").read_bytes().splitlines():
        value = canonical.loads(data) | {"previous": previous, "runner_seat": "another"}
        line = canonical.line(value)
        previous = digest.of(line[:-1])
        lines.append(line)
    pull.commit({"runs/one/receipts.jsonl": b"".join(lines)})
    code, out = gate(pull)
    assert code == 1
    assert "receipt-head" in out
