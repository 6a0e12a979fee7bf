"""The installed command `scoresheet serve`, as a process: what it prints, what it answers, how it ends."""

import contextlib
import http.client
import json
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scoresheet.documents.call_record import CallRecord
from tests.replay.recordings import call, task, tool

PAY = tool("pay", {"type": "object", "properties": {"amount": {"type": "integer"}}}, method="POST", path="/pay")
COMMAND = shutil.which("scoresheet", path=str(Path(sys.executable).parent))


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import hashlib

    assert COMMAND is not None, "the command must be installed"
    root = tmp_path_factory.mktemp("pack")
    (root / "tasks").mkdir()
    (root / "tools").mkdir()
    pay = json.dumps(PAY.as_json()).encode()
    (root / "tools" / "pay.json").write_bytes(pay)
    recorded = task(call("POST", "/pay", {"amount": 12}, text='{"paid":true}'), tools=("pay",)).as_json()
    recorded["tools"][0]["schema_sha256"] = "sha256:" + hashlib.sha256(pay).hexdigest()
    (root / "tasks" / "refund.json").write_text(json.dumps(recorded))
    subprocess.run([COMMAND, "freeze", str(root), "-q"], check=True, capture_output=True, timeout=300)
    return root


class NotServed(Exception):
    """The command ended, and what it said."""


class Served:
    def __init__(self, process: "subprocess.Popen[str]", output: Any) -> None:
        self.process, self.output, self.environment = process, output, dict[str, str]()
        while (line := output.readline()).startswith("export "):
            name, _, value = line.removeprefix("export ").strip().partition("=")
            self.environment[name] = value
        if not line.startswith("# replaying refund, 1 recorded call;"):
            raise NotServed(line + process.communicate(timeout=300)[1])

    def post(self, name: str, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
        host = self.environment[name].removeprefix("http://")
        with contextlib.closing(http.client.HTTPConnection(host, timeout=300)) as client:
            client.request("POST", path, body, headers)
            answer = client.getresponse()
            return answer.status, answer.read()

    def end(self, number: int = signal.SIGINT) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, out, err


@contextlib.contextmanager
def serving(pack: Path, *options: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [str(COMMAND), "serve", str(pack), "--task", "refund", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Served(process, process.stderr if "--json" in options else process.stdout)
        finally:
            process.kill()


MEDIA = {"Content-Type": "application/json"}


def test_serve_answers_the_real_https_address_through_its_proxy(pack: Path, tmp_path: Path) -> None:
    shutil.copytree(pack, tmp_path / "pack")
    manifest = json.loads((tmp_path / "pack/manifest.json").read_text())
    manifest["upstreams"] = {"api": "api.example.com"}
    (tmp_path / "pack/manifest.json").write_text(json.dumps(manifest))
    subprocess.run([str(COMMAND), "freeze", str(tmp_path / "pack"), "-q"], check=True, capture_output=True, timeout=300)
    with serving(tmp_path / "pack", "--https") as served:
        words = ["curl", "-sS", "-H", "content-type: application/json", "-d", '{"amount": 12}']
        done = subprocess.run(
            [*words, "https://api.example.com/pay"], env=served.environment, capture_output=True, text=True, timeout=20
        )
        assert (done.stdout, done.stderr) == ('{"paid":true}', "")
        assert served.output.readline().split("s  ")[1] == "POST /pay -> 200 recorded [pay]\n"


def test_serve_without_a_public_host_says_that_there_is_none(pack: Path) -> None:
    words = [str(COMMAND), "serve", str(pack), "--task", "refund", "--https"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "the pack was recorded from no public host" in done.stderr


def test_serve_prints_the_environment_each_call_and_a_summary(pack: Path) -> None:
    with serving(pack) as served:
        names = ("TOOLS_URL", "CALL_URL", "MCP_URL", "TASK", "SEED")
        assert {"api", *(f"SCORESHEET_{name}" for name in names)} == set(served.environment)
        assert served.environment["api"] == served.environment["SCORESHEET_TOOLS_URL"]
        view = json.loads(Path(served.environment["SCORESHEET_TASK"]).read_text())
        assert (view["task_id"], "calls" in view) == ("refund", False)
        assert served.post("api", "/pay", b'{"amount": 12}', **MEDIA) == (200, b'{"paid":true}')
        assert served.output.readline().split("s  ")[1] == "POST /pay -> 200 recorded [pay]\n"
        assert served.post("api", "/pay", b'{"amount":"x"}', **MEDIA)[0] == 403
        told = [served.output.readline().strip() for _ in range(4)]
        assert told[0].split("s  ")[1] == "POST /pay -> 403 MISS no_match [pay]"
        assert told[1:] == [
            'schema: pay: /amount: "x" is not of type "integer"',
            "nearest: POST /pay",
            'body /amount: recorded 12, asked "x"',
        ]
        assert served.post("SCORESHEET_CALL_URL", "/pay", b'{"amount":12}')[0] == 200
        assert served.output.readline().split("s  ")[1] == "CALL pay -> 200 repeated [pay]\n"
        assert served.post("SCORESHEET_CALL_URL", "/submit_answer", b'{"done":1}')[0] == 200
        code, out, err = served.end()
    assert (code, err) == (0, "")
    assert out.splitlines()[-2:] == ["calls: 3, misses: 1, answer: 1", 'answer: {"done":1}']
    assert not Path(served.environment["SCORESHEET_TASK"]).exists()


def test_json_lines_are_call_records_and_nothing_else(pack: Path) -> None:
    with serving(pack, "--json") as served:
        served.post("api", "/pay", b'{"amount":12}', **MEDIA)
        served.post("api", "/refund", b"{}", **MEDIA)
        code, out, err = served.end(signal.SIGTERM)
    assert code == 0
    records = [CallRecord.from_bytes(line, "stdout") for line in out.splitlines()]
    assert [(record.seq, record.outcome, record.path) for record in records] == [
        (0, "hit", "/pay"),
        (1, "miss", "/refund"),
    ]
    assert err.splitlines()[-1] == "calls: 2, misses: 1"


def test_a_given_port_is_the_first_door_and_a_taken_one_is_refused(pack: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        found = subprocess.run(
            [str(COMMAND), "serve", str(pack), "--task", "refund", "--port", str(port)],
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert found.returncode == 2
    assert found.stderr.startswith(f"error: can't listen on port {port}: ")
    for _ in range(100):  # somebody may take one of three ports in a row before the command does
        port = random.randrange(20_000, 32_000)  # below those that the system gives out
        try:
            with serving(pack, "--port", str(port)) as served:
                assert served.environment["api"] == f"http://127.0.0.1:{port}"
                assert served.environment["SCORESHEET_CALL_URL"] == f"http://127.0.0.1:{port + 1}"
                return
        except NotServed as why:
            if "can't listen on port" not in str(why):
                raise
    pytest.fail("no three ports in a row are free")


def test_an_unknown_task_is_a_usage_error(pack: Path) -> None:
    found = subprocess.run(
        [str(COMMAND), "serve", str(pack), "--task", "refnd"], capture_output=True, text=True, timeout=30
    )
    assert found.returncode == 2
    assert "did you mean refund?" in found.stderr
