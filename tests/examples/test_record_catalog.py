"""The catalog recorded anew, from other data: the agents know the questions' words and no answer."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.rows import invented_rows

EXAMPLES = Path(__file__).parents[2] / "examples"
SCORESHEET = (sys.executable, "-m", "scoresheet")


def datasette() -> str:
    """The program that the catalog is recorded from; it belongs to the development environment."""
    beside = Path(sys.executable).with_name("datasette")
    found = str(beside) if beside.exists() else shutil.which("datasette")
    assert found, "datasette is not installed; requirements/install dev installs it"
    return found


@pytest.fixture(scope="module")
def other_catalog(tmp_path_factory):
    """`catalog-v1` as its own script records it, of rows that nobody has seen."""
    folder = tmp_path_factory.mktemp("recorded")
    folder.chmod(0o755)
    rows = invented_rows(folder / "rows", 20)
    script = EXAMPLES / "packs" / "record_catalog.py"
    command = [sys.executable, script, "--data", rows, "--datasette", datasette(), "--out", folder / "catalog"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "catalog"


def test_recording_anew_gives_a_pack_that_checks(other_catalog):
    done = subprocess.run([*SCORESHEET, "check", other_catalog], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_careful_agent_is_right_about_data_it_has_never_seen(other_catalog, tmp_path):
    (other_catalog / "card.yaml").write_text("controls: {stale_after_hours: 24}\n")
    agent = f"{sys.executable} {EXAMPLES / 'agents' / 'careful.py'}"
    command = [*SCORESHEET, "run", other_catalog, "--agent", agent, "--seat", "test", "--repeats", "1", "--jobs", "2"]
    command.append("--draft")
    done = subprocess.run([*command, "--out", tmp_path / "run"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "run" / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 33
    assert [row["task_id"] for row in rows if row["success"] != 1] == []
    assert [row["task_id"] for row in rows if row["schema_ok"] != 1] == []
