"""What people read when a command line, or a path on it, is wrong: of the installed command, with its exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run.packs import shop

SCORESHEET = str(Path(sys.executable).parent / "scoresheet")


def told(*words: object, folder: Path, code: int = 2) -> tuple[str, str]:
    """The error and its mend, the last two lines that were said; nothing else of an error is on the screen."""
    done = subprocess.run(
        [SCORESHEET, *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    error, mend = done.stderr.splitlines()[-2:]
    assert error.startswith("error: "), done.stderr
    assert mend.startswith("  mend: "), done.stderr
    return error.removeprefix("error: "), mend.removeprefix("  mend: ")


@pytest.fixture
def pack(tmp_path):
    return shop(tmp_path / "pack", {"t": "careful"})


def test_an_expected_digest_that_is_none_is_a_wrong_call_and_another_pack_is_a_no(tmp_path, pack):
    run = ("run", pack.root, "--agent", "true", "--seat", "x", "--expect")
    assert told(*run, "deadbeef", folder=tmp_path) == (
        "'deadbeef' is not a sha256 digest — --expect",
        "give the 64 hex digits that `scoresheet freeze` printed: --expect DIGEST",
    )
    error, mend = told(*run, "ab" * 32, folder=tmp_path, code=1)
    assert error.startswith(f"the pack is {pack.manifest_sha256}, not {'ab' * 32}: nothing was run")
    assert "expect the one that is here" in mend


@pytest.mark.parametrize("answer", ["[1]", "{}", "{", "nothing", "1" * 5000])
def test_an_expected_answer_that_is_no_object_is_a_wrong_call(tmp_path, answer):
    words = ("--task", "t", "--prompt", "p", "--expected", answer, "--upstream", "A=http://127.0.0.1:9")
    error, mend = told("record", tmp_path / "new", *words, "--", "true", folder=tmp_path)
    assert "--expected" in error
    assert mend == "write a JSON object: --expected '{\"total\": 3}'"
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": []}}))
    imported = ("har", "a.har", "--out", "new", "--task", "t", "--prompt", "p", "--expected", answer)
    assert told("import", *imported, folder=tmp_path)[1] == mend


def test_a_ready_made_agent_without_a_model_is_a_wrong_call(tmp_path, pack):
    words = ("run", pack.root, "--agent", "openai-tools", "--seat", "x", "--draft")
    assert told(*words, folder=tmp_path) == (
        "openai-tools needs a model — --model",
        "give --model openai=URL (docs/model)",
    )
    assert not list(tmp_path.glob("runs/*/rows.jsonl"))
