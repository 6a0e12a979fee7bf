"""Unmodified clients in the real sandbox: each calls a public host by its name and is answered from the pack."""

import base64
import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scoresheet.cli.app import run
from scoresheet.documents.dns_record import DnsRecord
from scoresheet.pack import freezer
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import Settings
from scoresheet.replay.journal import read_back
from scoresheet.run import local
from scoresheet.run.agents.spec import agent_of
from scoresheet.run.prepare import Asked, plan_of
from scoresheet.sandbox.bwrap import BwrapSandbox
from scoresheet.sandbox.unisolated import UnisolatedSandbox
from tests.replay.recordings import call
from tests.run.packs import AGENTS, write_card

HOST = "api.example.com"
CLIENTS = AGENTS / "https"
ITEM = '{"price": 12}'
LARGE = bytes(range(256)) * 4096
MADE = {"n": 1, "name": "cup"}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "price?"}]}
CHAT_ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ITEM}}],
}
UPLOAD = {"body_text": "0" * 2_000_000, "headers": (("content-type", "text/plain"),)}
JSON = (("content-type", "application/json"),)


def encoded(body):
    return base64.b64encode(body).decode()


def repository(folder):
    """Every file of a bare repository, as a server has it that knows nothing of git."""
    work = folder / "work"
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run([*git, "init", "-q", "-b", "main", work], check=True)
    (work / "answer.json").write_text(ITEM)
    subprocess.run([*git, "-C", work, "add", "."], check=True)
    subprocess.run([*git, "-C", work, "commit", "-q", "-m", "One"], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", work, folder / "shop.git"], check=True)
    subprocess.run(["git", "-C", folder / "shop.git", "update-server-info"], check=True)
    for path in sorted((folder / "shop.git").rglob("*")):
        if path.is_file():
            name = f"/shop.git/{path.relative_to(folder / 'shop.git')}"
            query = "service=git-upload-pack" if name.endswith("info/refs") else None
            yield call("GET", name, query=query, response_base64=encoded(path.read_bytes()))


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("public")
    place = f"https://{HOST}/items/1"
    calls = [
        call("GET", "/items/1", text=ITEM, response_headers=JSON),
        call("HEAD", "/items/1", text="", response_headers=(*JSON, ("content-length", "13"))),
        call("POST", "/items", MADE, status=201, text="{}", response_headers=(*JSON, ("location", place))),
        call("DELETE", "/items/1", status=204, text=""),
        call("GET", "/old", status=302, text="", response_headers=(("location", place),)),
        call("GET", "/cached", status=304, text="", response_headers=(("etag", '"1"'),)),
        call("GET", "/stream", text="data: 1data: 2", stream=(7, 14), response_headers=(("x-a", "b"),)),
        call("GET", "/large", response_base64=encoded(LARGE)),
        call("POST", "/upload", request=UPLOAD),
        call("POST", "/v1/chat/completions", CHAT, text=json.dumps(CHAT_ANSWER), response_headers=JSON),
        *repository(folder),
    ]
    root = folder / "pack"
    (root / "tasks").mkdir(parents=True)
    task = {"task_id": "t", "prompt": "How much is it?", "tools": [], "expected": {"price": 12}}
    task["calls"] = [json.loads(each.model_dump_json(exclude_defaults=True)) for each in calls]
    (root / "tasks/t.json").write_text(json.dumps(task))
    freezer.write(root, Settings(protocol="tool-replay-v2", upstreams=(("api", HOST),), repeats=1))
    made = Pack.open(root)
    write_card(made)
    return made


def perform(pack, out, agent, sandbox=BwrapSandbox, mounts=()):
    found = agent_of(agent, Path.cwd(), mounts, (pack.root.resolve(),))
    plan = plan_of(pack, found.identity, Asked(isolation=sandbox.name, seat="test"))
    local.run(pack, found, plan, out, sandbox())
    folder = out / "episodes/t/0.0"
    row = json.loads((out / "rows.jsonl").read_text())
    log = folder / "dns.jsonl"
    names = [DnsRecord.model_validate_json(line) for line in log.read_text().splitlines()] if log.exists() else None
    calls = [read_back(line) for line in (folder / "calls.jsonl").read_bytes().splitlines()]
    return row, names, calls, folder


def answered(found, upstream="api"):
    """The names that were asked and the calls, of an episode that went right and had no other way out."""
    row, names, calls, folder = found
    checks = {each["name"]: each["verdict"] for each in json.loads((folder / "evidence.json").read_text())["checks"]}
    assert checks["network"] == "holds"
    assert {checks[name] for name in checks if name.startswith(("tcp", "udp"))} <= {"denied", "not_applicable"}
    said = (folder / "stdout").read_text() + (folder / "stderr").read_text()
    assert (row["success"], row["unauthorized"], row["isolation"]) == (1, 0, "proved"), said
    assert {each.outcome for each in calls} == {"hit"}
    assert {each.upstream for each in calls} == {upstream}
    return {each.name: each.answer for each in names if each.type == "A"}, [each.path for each in calls]


def python(name):
    return f"{sys.executable} {CLIENTS / name}"


@pytest.mark.parametrize(
    ("agent", "count", "asks_names"),
    [
        (str(CLIENTS / "with_curl.sh"), 13, True),
        (str(CLIENTS / "with_wget.sh"), 2, True),
        (python("with_urllib.py"), 1, False),
        (python("with_requests.py"), 7, False),
        (python("with_httpx.py"), 10, True),
        (python("with_aiohttp.py"), 21, True),
        (f"node {CLIENTS / 'with_fetch.js'}", 2, True),
        (f"node {CLIENTS / 'with_node_https.js'}", 1, True),
    ],
    ids=lambda value: Path(value).name if isinstance(value, str) else None,
)
def test_a_client_calls_the_public_host_and_is_answered_from_the_pack(tmp_path, pack, agent, count, asks_names):
    names, paths = answered(perform(pack, tmp_path / "run", agent))
    assert names == ({HOST: "address"} if asks_names else {})
    assert len(paths) == count
    assert paths[-1] == "/items/1" or "aiohttp" in agent


WITHOUT_PROXY = "env -u HTTPS_PROXY -u https_proxy -u HTTP_PROXY -u http_proxy"


@pytest.mark.parametrize(
    ("agent", "count"),
    [
        (f"{WITHOUT_PROXY} {CLIENTS / 'with_git.sh'}", 5),
        (f"{python('without_proxy.py')} {CLIENTS / 'with_urllib.py'}", 1),
        (f"{python('without_proxy.py')} {CLIENTS / 'with_requests.py'}", 7),
        pytest.param(f"{python('without_proxy.py')} {CLIENTS / 'with_openai.py'}", 1, marks=pytest.mark.long),
    ],
    ids=lambda value: Path(value).name if isinstance(value, str) else None,
)
def test_a_client_that_believes_the_proxy_asks_for_the_name_where_there_is_none(tmp_path, pack, agent, count):
    names, paths = answered(perform(pack, tmp_path / "run", agent))
    assert (names, len(paths)) == ({HOST: "address"}, count)


def script(folder, text):
    made = folder / "agent.sh"
    made.write_text(f"#!/bin/sh\n{text}\necho '{ITEM}'\n")
    made.chmod(0o755)
    return str(made)


def test_another_name_does_not_exist_and_the_question_is_kept(tmp_path, pack):
    agent = script(
        tmp_path, "curl --noproxy '*' https://telemetry.example.net/x; curl -m 5 https://1.1.1.1/ --noproxy '*'"
    )
    row, names, calls, folder = perform(pack, tmp_path / "run", agent)
    said = (folder / "stderr").read_text()
    assert "Could not resolve host: telemetry.example.net" in said
    assert "Failed to connect to 1.1.1.1" in said or "Couldn't connect to server" in said
    assert {(each.name, each.answer) for each in names} == {("telemetry.example.net", "no_such_name")}
    assert calls == []
    assert (row["success"], row["unauthorized"]) == (1, 0)


@pytest.mark.parametrize(
    ("command", "method", "path"),
    [
        ("curl -s https://api.other.example/x", "CONNECT", "api.other.example:443"),
        ("curl -s http://api.other.example/x", "GET", "http://api.other.example/x"),
        (
            "curl -sk --noproxy '*' --resolve api.other.example:443:127.0.0.1 https://api.other.example/x",
            "GET",
            "https://api.other.example/x",
        ),
    ],
)
def test_a_call_to_a_host_that_was_not_recorded_is_an_unrecorded_call(tmp_path, pack, command, method, path):
    row, _, calls, _ = perform(pack, tmp_path / "run", script(tmp_path, f"{command}; sleep 5"))
    assert [(each.outcome, each.method, each.path, each.status) for each in calls] == [("miss", method, path, 403)]
    assert (row["exit_reason"], row["unauthorized"]) == ("mismatch", 1)


def test_no_process_inside_can_stand_in_for_the_responder_or_a_host(tmp_path, pack):
    taking = (
        "import socket\n"
        "for kind, port in ((socket.SOCK_DGRAM, 53), (socket.SOCK_STREAM, 443), (socket.SOCK_STREAM, 80)):\n"
        "    for address in ('127.0.0.1', '127.0.0.2', '0.0.0.0'):\n"
        "        try: socket.socket(socket.AF_INET, kind).bind((address, port))\n"
        "        except OSError as error: print(error.errno)\n"
    )
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "taking.py").write_text(taking)
    agent = script(tmp_path / "agent", f"python3 {tmp_path}/agent/taking.py >&2")
    _, _, _, folder = perform(pack, tmp_path / "run", agent, mounts=(tmp_path / "agent",))
    assert (folder / "stderr").read_text().split() == ["13"] * 9
    checks = {each["name"]: each for each in json.loads((folder / "evidence.json").read_text())["checks"]}
    assert checks["names"]["verdict"] == checks["capabilities"]["verdict"] == checks["network"]["verdict"] == "holds"
    assert checks["names"]["inside"].startswith("no answer")


def test_a_client_that_does_not_trust_the_run_is_written_down(tmp_path, pack):
    trusting_nobody = (
        "import socket, ssl; context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); "
        f"context.wrap_socket(socket.create_connection(('{HOST}', 443)), server_hostname='{HOST}')"
    )
    agent = script(tmp_path, f'python3 -c "{trusting_nobody}"')
    row, names, calls, _ = perform(pack, tmp_path / "run", agent)
    assert [(each.name, each.answer) for each in names if each.type == "TLS"] == [(HOST, "refused_by_client")]
    assert calls == []
    assert row["unauthorized"] == 0


def test_without_isolation_nothing_stands_in_for_the_hosts_own_network(tmp_path, pack):
    agent = script(tmp_path, 'test -z "$HTTPS_PROXY$SSL_CERT_FILE" || exit 1')
    row, names, calls, _ = perform(pack, tmp_path / "run", agent, UnisolatedSandbox)
    assert (row["success"], row["isolation"]) == (1, "not_isolated")
    assert (names, calls) == (None, [])


@pytest.mark.long
def test_the_openai_sdk_calls_the_public_host(tmp_path, pack):
    names, paths = answered(perform(pack, tmp_path / "run", python("with_openai.py")))
    assert names == {}  # it believes the proxy variables
    assert paths == ["/v1/chat/completions"]


@pytest.mark.long
def test_java_calls_the_public_host(tmp_path, pack):
    assert shutil.which("javac"), "apt-get install default-jdk-headless"
    classes = tmp_path / "classes"
    subprocess.run(["javac", "-d", classes, CLIENTS / "WithJava.java"], check=True)
    names, paths = answered(perform(pack, tmp_path / "run", f"java -cp {classes} WithJava", mounts=(classes,)))
    assert (names, paths) == ({HOST: "address"}, ["/items/1"])


@pytest.mark.long
def test_go_calls_the_public_host(tmp_path, pack):
    assert shutil.which("go"), "apt-get install golang-go"
    program = tmp_path / "with_go"
    subprocess.run(
        ["go", "build", "-o", program, CLIENTS / "with_go.go"], check=True, env=os.environ | {"GO111MODULE": "off"}
    )
    for way, agent in (("proxy", str(program)), ("name", f"{WITHOUT_PROXY} {program}")):
        names, paths = answered(perform(pack, tmp_path / way, agent))
        assert (names, paths) == ({HOST: "address"} if way == "name" else {}, ["/items/1"])


def test_git_clones_from_the_recorded_host(tmp_path, pack):
    _, paths = answered(perform(pack, tmp_path / "run", str(CLIENTS / "with_git.sh")))
    assert paths[0] == "/shop.git/info/refs?service=git-upload-pack"


class Git(BaseHTTPRequestHandler):
    """git's own server, behind its CGI program."""

    projects = Path()

    def log_message(self, format, *args):
        pass

    def do_GET(self):
        path, _, query = self.path.partition("?")
        size = int(self.headers.get("content-length", 0))
        asked = {"REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query, "CONTENT_LENGTH": str(size)}
        asked |= {"CONTENT_TYPE": self.headers.get("content-type", ""), "GIT_HTTP_EXPORT_ALL": "1"}
        asked |= {"GIT_PROTOCOL": self.headers.get("git-protocol", ""), "GIT_PROJECT_ROOT": str(self.projects)}
        asked |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        words = ["git", "http-backend"]
        done = subprocess.run(
            words, input=self.rfile.read(size), capture_output=True, check=True, env=os.environ | asked
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        self.send_response_only(200)
        for line in head.decode().splitlines():
            self.send_header(*line.split(": ", 1))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET


def test_git_clones_as_it_was_recorded_by_its_own_protocol(tmp_path):
    tuple(repository(tmp_path))  # makes it
    handler = type("Projects", (Git,), {"projects": tmp_path})
    root, clone = (
        tmp_path / "pack",
        script(tmp_path, 'GIT_CONFIG_GLOBAL=/dev/null git clone -q "$API/shop.git" "$(mktemp -d)/shop"'),
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        upstream = f"API=http://127.0.0.1:{server.server_address[1]}"
        words = ["record", str(root), "--task", "t", "--prompt", "p", "--expect-stdout", "--upstream", upstream]
        assert run([*words, "--", clone]) == 0
        server.shutdown()
    freezer.write(root, Settings(protocol="tool-replay-v2", upstreams=(("API", HOST),), repeats=1))
    pack = Pack.open(root)
    write_card(pack, lambda card: card["controls"].update(tool_allowlist=[]))
    _, paths = answered(perform(pack, tmp_path / "run", str(CLIENTS / "with_git.sh")), "API")
    assert paths == ["/shop.git/info/refs?service=git-upload-pack", *["/shop.git/git-upload-pack"] * 2]
