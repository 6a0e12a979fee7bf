"""The command as people run it: what it prints, what it never prints, how it ends."""

import contextlib
import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from scoresheet.cli import app
from tests.gate.leak_corpus import Maker
from tests.processes import alive

SECRET = "ghp_" + Maker(11).text(36)
SHA256 = hashlib.sha256(SECRET.encode()).hexdigest()
COMMAND = [sys.executable, "-m", "scoresheet", "scan"]


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    folder = tmp_path / "pack"
    (folder / "tasks").mkdir(parents=True)
    (folder / "tasks" / "a.json").write_text(json.dumps({"calls": [{"response_bytes": json.dumps({"k": SECRET})}]}))
    (folder / "README.md").write_text(f"# Hello\n\nexport GH={SECRET}\n")
    return folder


def test_findings_name_file_line_rule_and_digest(planted, capsys):
    assert app.run(["scan", str(planted)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == [
        f"leak: README.md:3 [leak-github-token] sha256 {SHA256}",
        f"leak: tasks/a.json:1 /calls/0/response_bytes [leak-github-token] sha256 {SHA256}",
    ]
    assert out[2].startswith("2 files, ")
    assert out[2].endswith(" rules: 2 leaks, 0 allowed, 0 unknown")
    assert out[3].startswith("next: revoke what is real")


@pytest.mark.parametrize("options", [[], ["--json"], ["--quiet"]])
def test_the_secret_is_printed_nowhere(planted, options):
    (planted / f"{SECRET}.txt").write_text("fine")
    (planted / "x.json").write_text(json.dumps({SECRET: SECRET}))
    (planted / "broken.gz").write_bytes(b"\x1f\x8b\x08" + SECRET.encode())
    done = subprocess.run([*COMMAND, str(planted), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert SHA256 in done.stdout
    assert SECRET not in done.stdout + done.stderr
    assert SECRET[4:20] not in done.stdout + done.stderr


def test_json_holds_the_facts(planted, capsys):
    assert app.run(["scan", str(planted), "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["leak_flag"] is True
    assert facts["files"] == 2
    assert facts["findings"][0] == {
        "path": "README.md",
        "line": 3,
        "pointer": "",
        "rule": "leak-github-token",
        "kind": "credential",
        "match_sha256": SHA256,
        "allowed": None,
    }
    assert len(facts["ruleset_sha256"]) == 64


def test_a_clean_folder_ends_as_0(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("fine")
    assert app.run(["scan", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("1 file, 4 bytes, ")


def test_nothing_searched_is_a_failure(tmp_path, capsys):
    assert app.run(["scan", str(tmp_path)]) == 1
    assert "nothing was searched" in capsys.readouterr().out


def test_unknown_is_a_failure_with_words(tmp_path, capsys):
    (tmp_path / "a.7z").write_bytes(b"7z\xbc\xaf\x27\x1c" + b"x" * 20)
    assert app.run(["scan", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "unknown: a.7z: a 7z archive: it can't be undone here" in out
    assert "next: take out what can't be searched" in out
    assert app.run(["scan", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["leak_flag"] == "unknown"


@pytest.mark.parametrize("beside", [True, False])
def test_the_card_allows(planted, tmp_path, capsys, beside):
    card = planted / "card.yaml" if beside else tmp_path / "other.yaml"
    card.write_text(
        textwrap.dedent(f"""\
        leak_allow:
          - {{match_sha256: {SHA256}, reason: revoked long ago}}
          - {{match_sha256: {"0" * 64}, reason: nothing}}
        """)
    )
    assert app.run(["scan", str(planted), *([] if beside else ["--card", str(card)])]) == 0
    out = capsys.readouterr().out
    assert f"allowed: README.md:3 [leak-github-token] sha256 {SHA256}: revoked long ago" in out
    assert f"warning: leak_allow {'0' * 64} matches nothing — {card} [leak-allow-unused]" in out
    assert "0 leaks, 2 allowed" in out


def test_a_card_that_cannot_be_read_allows_nothing(planted, capsys):
    (planted / "card.yaml").write_text("leak_allow: [\n")
    assert app.run(["scan", str(planted)]) == 1
    assert "card.yaml" in capsys.readouterr().err


def test_a_path_that_is_not_there_is_usage(tmp_path):
    assert app.run(["scan", str(tmp_path / "none")]) == 2


def test_an_absent_second_scanner_says_what_to_install(planted, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert app.run(["scan", str(planted), "--second", "betterleaks"]) == 2
    assert "pip install 'scoresheet[leaks]'" in capsys.readouterr().err


def stand_in(folder: Path, last: str) -> None:
    """A program that answers as betterleaks 2.0 does, and writes down how it was called."""
    found = {
        "finding": {
            "rule_id": "odd-token",
            "match": {"full": "REDACTED", "value": "REDACTED", "fingerprint": "ab" * 32},
            "location": {"path": "@", "start_line": 2},
        }
    }
    program = folder / "betterleaks"
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\nopen({str(folder / 'called')!r}, 'w').write(json.dumps(sys.argv[1:]))\n"
        "out = next(a.partition('=')[2] for a in sys.argv if a.startswith('--output='))\n"
        f"found = json.loads({json.dumps(json.dumps(found))})\n"
        "found['finding']['location']['path'] = sys.argv[-1] + '/odd.txt'\n"
        f"open(out, 'w').write(json.dumps(found) + '\\n' + {last!r})\n"
    )
    program.chmod(0o755)


def test_a_second_scanner_adds_its_findings(tmp_path, capsys, monkeypatch):
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "odd.txt").write_text("fine")
    stand_in(tmp_path, '{"scan": {"state": "complete"}}')
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert app.run(["scan", str(pack), "--second", "betterleaks"]) == 1
    assert f"leak: odd.txt:2 [betterleaks:odd-token] sha256 {'ab' * 32}" in capsys.readouterr().out
    called = json.loads((tmp_path / "called").read_text())
    assert {"--redact", "--no-allow-signatures"} <= set(called)
    assert not {"--validate", "-v", "--analyze", "-a"} & set(called)


@pytest.mark.parametrize("last", ['{"scan": {"state": "partial"}}', "", "no json"])
def test_a_second_scanner_that_did_not_end_is_no_clean_bill(tmp_path, capsys, monkeypatch, last):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "odd.txt").write_text("fine")
    stand_in(tmp_path, last)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert app.run(["scan", str(tmp_path / "pack"), "--second", "betterleaks"]) == 1
    said = capsys.readouterr()
    assert "betterleaks: its scan is partial" in said.out or "the second scanner" in said.err


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A folder that takes more than a second."""
    row = json.dumps({"sha256": "f0" * 32, "text": "a=1 & b=2, 100 % of it"}) + "\n"
    for number in range(12):
        (tmp_path / f"{number}.json").write_text(row * 48_000)
    return tmp_path


IMPATIENT = """
import sys
from scoresheet.cli import app, progress
progress._PATIENCE_S = 0.05
sys.exit(app.run(sys.argv[1:]))
"""


def test_progress_is_shown_on_a_terminal(slow):
    master, slave = pty.openpty()
    command = [sys.executable, "-c", IMPATIENT, "scan", str(slow)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, text=True) as done:
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # a terminal whose other end is closed
            while data := os.read(master, 65536):
                shown += data
        assert done.stdout is not None
        assert "12 files" in done.stdout.read()
    os.close(master)
    assert done.returncode == 0
    assert b"scanning" in shown


def test_an_interrupt_ends_every_process(slow):
    with subprocess.Popen([*COMMAND, str(slow)], stderr=subprocess.PIPE, text=True, start_new_session=True) as done:
        until = time.monotonic() + 60
        while len(alive(slow)) < 2:  # one that shares the work has started
            assert time.monotonic() < until
            time.sleep(0.02)
        os.killpg(done.pid, signal.SIGINT)
        assert done.stderr is not None
        said = done.stderr.read()
    assert done.returncode == 130, said
    assert said.strip() in ("", "interrupted")
    assert alive(slow) == []
