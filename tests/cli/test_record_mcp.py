"""`scoresheet record --mcp`: a real server, a real client between which it sits, and the pack that comes of it."""

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scoresheet.documents.tool import MCP_RESULT
from scoresheet.pack.folder import Pack

COMMAND = str(shutil.which("scoresheet", path=str(Path(sys.executable).parent)))
HERE = Path(__file__).parent
SERVER = f"{sys.executable} {HERE / 'mcp_server.py'}"
AGENT = (sys.executable, str(HERE / "mcp_agent.py"))
ANSWER = {"tools": ["price", "count"], "texts": ["tea: 1.50", "1", "2"], "terms": "No refunds."}


def record(pack: Path, server: str, *agent: str, task: str = "tea", **more: Any) -> "subprocess.CompletedProcess[str]":
    words = [COMMAND, "record", str(pack), "--task", task, "--prompt", "What does tea cost?", "--expect-stdout"]
    words += ["--mcp", server, "--json", "--", *AGENT, *agent]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, **more)


@contextlib.contextmanager
def over_http(folder: Path) -> Iterator[str]:
    port = folder / "port"
    with subprocess.Popen([*SERVER.split(), "http", str(port)]) as process:
        try:
            until = time.monotonic() + 60
            while not (port.exists() and port.read_text()):
                assert time.monotonic() < until
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port.read_text()}/some/mcp"
        finally:
            process.kill()


def check(pack: Path, done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["expected"], facts["tools"], facts["calls"]) == (ANSWER, ["count", "price"], 6)
    subprocess.run([COMMAND, "freeze", str(pack), "-q"], check=True, timeout=300)
    opened = Pack.open(pack)
    task = opened.task("tea")
    assert [reference.name for reference in task.tools] == ["price", "count"]
    found = [(call.request.path, call.response_bytes) for call in task.calls if call.request is not None]
    assert found[1:] == [
        ("price", '{"content": [{"type": "text", "text": "tea: 1.50"}], "isError": false}'),
        ("count", '{"content": [{"type": "text", "text": "1"}]}'),
        ("count", '{"content": [{"type": "text", "text": "2"}]}'),
        ("mcp/resources/list", '{"resources": [{"uri": "shop://terms", "name": "terms"}]}'),
        ("mcp/resources/read", '{"contents": [{"uri": "shop://terms", "text": "No refunds."}]}'),
    ]
    assert all(call.response_headers == (("Content-Type", MCP_RESULT),) for call in task.calls)
    assert opened.tools["price"].annotations == {"readOnlyHint": True}


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_server_that_is_a_command_is_recorded(tmp_path: Path, way: str) -> None:
    check(tmp_path / "pack", record(tmp_path / "pack", SERVER, way, "legacy"))


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_server_that_is_an_address_is_recorded(tmp_path: Path, way: str) -> None:
    with over_http(tmp_path) as address:
        check(tmp_path / "pack", record(tmp_path / "pack", address, way, "legacy"))


def test_what_was_recorded_in_one_age_and_way_is_replayed_in_the_others(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    check(pack, record(pack, SERVER, "stdio", "legacy"))
    (pack / "card.yaml").write_text("controls: {stale_after_hours: 720}\n")
    for way, mode in (("http", "auto"), ("stdio", "legacy")):
        out = tmp_path / f"{way}-{mode}"
        agent = " ".join((*AGENT, way, mode))
        words = [COMMAND, "run", str(pack), "--agent", agent, "--out", str(out), "--repeats", "1", "--seat", "test"]
        subprocess.run(words, capture_output=True, timeout=300, check=False)
        (row,) = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
        assert (row["success"], row["exit_reason"], row["tool_calls"]) == (1, "completed", 4), row
        assert row["answer"] == ANSWER


def test_a_credential_in_a_result_is_taken_out(tmp_path: Path) -> None:
    done = record(tmp_path / "pack", SERVER, "stdio", "legacy", "secret")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["redactions"]
    text = (tmp_path / "pack" / "tasks" / "tea.json").read_text()
    assert "sk-proj-" not in text


def test_a_server_that_does_not_start_leaves_no_pack(tmp_path: Path) -> None:
    done = record(tmp_path / "pack", f"{sys.executable} -c 0", "stdio", "legacy")
    assert done.returncode != 0
    assert not (tmp_path / "pack").exists()


@pytest.mark.parametrize("server", ["http://127.0.0.1:1/mcp?key=x", "'", " "])
def test_what_names_no_server_is_refused_before_anything_runs(tmp_path: Path, server: str) -> None:
    done = record(tmp_path / "pack", server, "stdio", "legacy")
    assert (done.returncode, (tmp_path / "pack").exists()) == (2, False)
    assert "--mcp" in done.stderr


def test_a_recording_of_nothing_is_refused(tmp_path: Path) -> None:
    words = [COMMAND, "record", str(tmp_path / "pack"), "--task", "t", "--prompt", "p", "--expect-stdout", "--", "true"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "--upstream NAME=URL, or --mcp SERVER" in done.stderr
