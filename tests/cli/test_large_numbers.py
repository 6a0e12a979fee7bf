"""An integer of hundreds or thousands of digits, and a file of gigabytes, are refused with their place."""

import json
import shutil

import pytest

from scoresheet.cli import app
from tests.publish import scored

DIGITS = ("9" * 400, "-" + "9" * 5000)
RUN = ("report", "verify", "judge", "compare")


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    root = tmp_path_factory.mktemp("large")
    for path, data in scored.files().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


@pytest.fixture
def run(suite, tmp_path, monkeypatch, capsys):
    """An admissible run, and another to compare it with."""
    shutil.copytree(suite / "runs" / "careful", tmp_path / "run")
    shutil.copytree(suite / "runs" / "careful", tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    assert app.run(["report", "run", "--json"]) == 0
    (tmp_path / "run" / "report.json").write_text(capsys.readouterr().out)
    return tmp_path / "run"


@pytest.fixture
def pack(suite, tmp_path, monkeypatch):
    (path,) = (each.parent for each in suite.rglob("manifest.json"))
    shutil.copytree(path, tmp_path / "pack")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "pack"


def put(path, pointer, digits, line=False):
    """The document with those digits at the pointer."""
    first, *rest = path.read_text().splitlines() if line else (path.read_text(),)
    value = json.loads(first)
    at = value
    *above, last = pointer.split("/")
    for name in above:
        at = at[name]
    at[last] = "@"
    path.write_text("\n".join((json.dumps(value).replace('"@"', digits), *rest, "")))


def calls(verb):
    return [verb, "run", *(["other"] if verb == "compare" else [])]


@pytest.mark.parametrize("digits", DIGITS, ids=len)
@pytest.mark.parametrize(
    ("name", "pointer"),
    [
        ("run.json", "jobs"),
        ("run.json", "limits/pids"),
        ("run.json", "manifest/timeout_s"),
        ("run.json", "pack"),
        ("pack.json", "timeout_s"),
        ("baselines.json", "null/episodes"),
        ("report.json", "draft"),
        ("report.json", "format"),
        ("receipts.jsonl", "card/age_hours"),
        ("receipts.jsonl", "card/task_id"),
        ("rows.jsonl", "tool_calls"),
        ("rows.jsonl", "elapsed_s"),
        ("rows.jsonl", "task_id"),
    ],
)
def test_a_run_with_such_a_number_is_refused_and_no_bug(run, capsys, name, pointer, digits):
    put(run / name, pointer, digits, line=name.endswith(".jsonl"))
    for verb in RUN:
        capsys.readouterr()
        code = app.run(calls(verb))
        out, err = capsys.readouterr()
        assert "a bug in scoresheet" not in err
        assert code in (0, 1, 2, 4)
        if verb == "verify":
            assert code == 1
            assert name in out + err or "an integer of thousands of digits" in err


@pytest.mark.parametrize("digits", DIGITS, ids=len)
def test_the_place_of_such_a_number_is_told(run, pack, capsys, digits):
    count = len(digits.lstrip("-"))
    put(run / "run.json", "jobs", digits)
    assert app.run(["report", "run"]) == 1
    err = capsys.readouterr().err
    assert f"error: an integer of {count} digits, but 300 are the most here — run.json:1:" in err
    (pack / "card.yaml").write_text(f"schema: agent-eval-protocol/v1\ncontrols:\n  seed: {digits}\n")
    assert app.run(["check", "pack/card.yaml"]) == 1
    out = capsys.readouterr().out
    assert f"an integer of {len(digits)} digits, but 300 are the most here" in out
    assert "card.yaml:3:9" in out


@pytest.mark.parametrize("digits", DIGITS, ids=len)
def test_a_pack_with_such_a_number_is_refused_and_no_bug(pack, capsys, digits):
    for name, pointer in (("manifest.json", "seed"), ("manifest.json", "protocol"), ("manifest.json", "timeout_s")):
        kept = (pack / name).read_bytes()
        put(pack / name, pointer, digits)
        for words in (["check", "pack"], ["triage", "pack"], ["explain", "pack", "GET /x"]):
            assert app.run(words) == 1
            assert "a bug in scoresheet" not in capsys.readouterr().err
        (pack / name).write_bytes(kept)
    card = (pack / "card.yaml").read_text()
    for name in ("temperature", "stale_after_hours", "seed", "wall_clock_s"):
        lines = [line if name not in line else f"{line.partition(':')[0]}: {digits}" for line in card.splitlines()]
        (pack / "card.yaml").write_text("\n".join(lines))
        for words in (["check", "pack"], ["triage", "pack"]):
            assert app.run(words) in (0, 1)
            assert "a bug in scoresheet" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["run.json", "pack.json", "baselines.json", "receipts.jsonl", "judgments.jsonl"])
def test_a_file_of_a_run_that_is_far_too_large_is_refused_unread(run, capsys, name):
    with (run / name).open("ab") as file:
        file.truncate(1 << 40)
    for verb in ("report", "compare"):
        assert app.run(calls(verb)) == 2
        error, mend = capsys.readouterr().err.splitlines()[-2:]
        assert error.startswith("error: the file has 1099511627776 bytes, and ")
        assert error.endswith(f" — run/{name}")
        assert mend.startswith("  mend: put back the file")
