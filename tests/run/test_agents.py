"""How `--agent` is read: what is bound, what is launched, and who the agent is."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from scoresheet.errors import Usage
from scoresheet.run import journal, local
from scoresheet.run.agents import agent, interpreter
from scoresheet.run.agents.oracle import oracle, solution
from scoresheet.run.agents.spec import agent_of
from scoresheet.run.prepare import Asked, plan_of
from scoresheet.sandbox.bwrap import BwrapSandbox
from tests.run.packs import OBEY, shop

SCRIPT = "print('{\"price\": 12}')\n"


def project(folder: Path, name: str = "agent.py", text: str = SCRIPT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def sources(found) -> set[Path]:
    return {bind.source for bind in found.binds}


def run_isolated(tmp_path, found):
    pack = shop(tmp_path / "pack", {"t": "careful"})
    plan = plan_of(pack, found.identity, Asked(repeats=1, seat="test"))
    local.run(pack, found, plan, tmp_path / "run", BwrapSandbox())
    (row,) = journal.read_rows(tmp_path / "run" / "rows.jsonl")
    return row


def test_a_script_brings_its_folder_and_its_interpreter(tmp_path):
    folder = project(tmp_path / "mine")
    found = agent_of("/usr/bin/python3 agent.py --fast", folder)
    assert found.argv == ("/usr/bin/python3", str(folder / "agent.py"), "--fast")
    assert sources(found) == {folder}
    assert found.identity.spec == "python3 agent.py --fast"


def test_what_every_sandbox_shows_is_not_bound(tmp_path):
    assert agent_of("curl --version", tmp_path).binds == ()
    assert agent_of("sh -c 'echo {}'", tmp_path).argv[1:] == ("-c", "echo {}")


def test_a_virtual_environment_and_its_base_are_bound(tmp_path):
    venv.create(tmp_path / "env", with_pip=False)
    folder = project(tmp_path / "mine")
    found = agent_of(f"{tmp_path}/env/bin/python agent.py", folder)
    base = Path(sys.base_prefix)
    assert tmp_path / "env" in sources(found)
    assert agent.visible(base) or any(base == source or source in base.parents for source in sources(found))
    row = run_isolated(tmp_path, found)
    assert (row.success, row.isolation) == (1, "proved"), row.detail


def test_a_console_script_of_an_environment_runs_with_its_interpreter(tmp_path):
    venv.create(tmp_path / "env", with_pip=False)
    tool = tmp_path / "env" / "bin" / "my-agent"
    tool.write_text(f"#!{tmp_path}/env/bin/python\nimport sys\n{SCRIPT}")
    tool.chmod(0o755)
    found = agent_of(str(tool), tmp_path)
    assert found.argv[-1] == str(tool)
    row = run_isolated(tmp_path, found)
    assert (row.success, row.isolation) == (1, "proved"), row.detail


def test_an_executable_script_runs_by_its_first_line(tmp_path):
    folder = project(tmp_path / "mine", "agent", f"#!/usr/bin/env python3\n{SCRIPT}")
    (folder / "agent").chmod(0o755)
    found = agent_of("./agent", folder)
    assert Path(found.argv[0]).name.startswith("python3")
    assert run_isolated(tmp_path, found).success == 1


def test_paths_on_the_line_and_mounts_are_shown_and_made_absolute(tmp_path):
    folder = project(tmp_path / "mine")
    (tmp_path / "data").mkdir()
    (tmp_path / "conf.toml").write_text("x = 1\n")
    (tmp_path / "extra").mkdir()
    found = agent_of("/usr/bin/python3 agent.py ../data/ --config=../conf.toml", folder, [Path("../extra")])
    assert found.argv[2:] == (str(tmp_path / "data"), f"--config={tmp_path}/conf.toml")
    assert sources(found) == {folder, tmp_path / "data", tmp_path / "conf.toml", tmp_path / "extra"}


def test_the_same_files_elsewhere_are_the_same_agent(tmp_path):
    one = agent_of("/usr/bin/python3 agent.py", project(tmp_path / "one"))
    two = agent_of(f"/usr/bin/python3 {tmp_path}/deep/two/agent.py", project(tmp_path / "deep" / "two").parent)
    assert one.identity.sha256 == two.identity.sha256


@pytest.mark.parametrize("change", ["content", "more", "mode", "line", "interpreter"])
def test_any_change_of_what_is_bound_is_another_agent(tmp_path, change):
    before = agent_of("/usr/bin/python3 agent.py", project(tmp_path / "one"))
    folder = project(tmp_path / "two", text=SCRIPT + ("#\n" if change == "content" else ""))
    if change == "more":
        (folder / "helper.py").write_text("")
    if change == "mode":
        (folder / "agent.py").chmod(0o755)
    program = "/usr/bin/python3" if change != "interpreter" else sys.executable
    after = agent_of(f"{program} agent.py{' --x' if change == 'line' else ''}", folder)
    assert before.identity.sha256 != after.identity.sha256


def test_caches_beside_an_agent_do_not_change_who_it_is(tmp_path):
    folder = project(tmp_path / "mine")
    before = agent_of("/usr/bin/python3 agent.py", folder).identity.sha256
    for name in ("__pycache__", ".git"):
        (folder / name).mkdir()
        (folder / name / "x").write_text("x")
    assert agent_of("/usr/bin/python3 agent.py", folder).identity.sha256 == before


def test_no_host_path_stands_in_the_identity(tmp_path):
    found = agent_of(f"{sys.executable} {tmp_path}/mine/agent.py --out={tmp_path}/mine", project(tmp_path / "mine"))
    assert str(tmp_path) not in str(found.identity)
    assert sys.prefix not in str(found.identity)


def test_a_script_that_is_not_here_is_told_before_anything_runs(tmp_path):
    project(tmp_path)
    assert agent_of("python3 agnet.py", tmp_path).notes == (
        "no file agnet.py is here: the agent has it only where a task's workspace does",
    )
    assert agent_of("python3 agent.py nowhere.txt", tmp_path).notes == ()
    assert agent_of("python3 -m json.tool", tmp_path).notes == ()


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ("", "empty"),
        ("'unclosed", "split"),
        ("no-such-program-anywhere x", "no program"),
        ("./missing.sh", "no such program"),
        ("py:missing.py:solve", "no such file"),
        ("py:agent.py", "no function"),
        ("py:agent.py:not a name", "no function"),
        ("py:no_such_module_here:solve", "no module"),
        ("py:./agent:solve", "no such file"),
        ("py:notes.txt:solve", "no module"),
        ("py:./notes.txt:solve", "ends in .py"),
        ("py:agent.py:solve", "no function 'solve'"),
        ("py:agent.py:solve.inner", "no function 'solve'"),
        ("py:agent:solve", "no function 'solve'"),
        ("py:agent.brain:solve", "agent is a module, not a package"),
        ("py:bag:solve", "no function 'solve'"),
        ("py:bag.brain:slove", "no function 'slove'"),
        ("py:bag.nothing:solve", "no module 'nothing'"),
        ("py:torn.py:solve", "no Python"),
        ("py:jinja2:no_such_function", "no function 'no_such_function'"),
        ("py:jinja2.nothing:solve", "no module 'nothing'"),
    ],
)
def test_an_agent_that_can_not_be_read_is_refused_with_a_reason(tmp_path, spec, what):
    folder = project(tmp_path / "mine")
    (folder / "notes.txt").write_text("def solve(): ...\n")
    (folder / "torn.py").write_text("def solve(:\n")
    (folder / "bag").mkdir()
    (folder / "bag" / "__init__.py").write_text("")
    (folder / "bag" / "brain.py").write_text("def solve(task, call): ...\n")
    with pytest.raises(Usage, match=what) as refused:
        agent_of(spec, folder)
    assert refused.value.mend or not spec.startswith("py:")


@pytest.mark.parametrize("spec", ["py:late.py:solve", "py:spread.brain:solve", "py:bag.brain:solve", "py:json:nope"])
def test_a_function_that_may_come_while_the_agent_runs_is_let_run(tmp_path, spec):
    folder = project(tmp_path / "mine", "late.py", "globals()['solve'] = print\n")
    (folder / "spread").mkdir()
    (folder / "spread" / "brain.py").write_text("def solve(task, call): ...\n")
    (folder / "bag").mkdir()
    (folder / "bag" / "__init__.py").write_text("__path__.append('elsewhere')\n")
    assert agent_of(spec, folder).identity.kind == "python"


@pytest.mark.parametrize("line", ["/usr/bin/python3 agent.py ../pack", "/usr/bin/python3 agent.py ../", "../pack/a.sh"])
def test_an_agent_that_would_see_the_answers_is_refused(tmp_path, line):
    folder = project(tmp_path / "mine")
    pack = tmp_path / "pack"
    project(pack, "a.sh", "#!/bin/sh\n")
    with pytest.raises(Usage, match="where answers lie"):
        agent_of(line, folder, hidden=(pack,))


def test_a_mount_that_holds_the_pack_is_refused(tmp_path):
    with pytest.raises(Usage, match="where answers lie"):
        agent_of("/usr/bin/python3 agent.py", project(tmp_path / "mine"), [tmp_path], hidden=(tmp_path / "pack",))


def test_a_link_to_the_pack_is_refused_like_the_pack(tmp_path):
    pack = project(tmp_path / "pack")
    (tmp_path / "link").symlink_to(pack)
    for place in (tmp_path / "link", tmp_path / "link" / "agent.py"):
        with pytest.raises(Usage, match="where answers lie"):
            agent_of("/usr/bin/python3 agent.py", project(tmp_path / "mine"), [place], hidden=(pack,))


def test_a_linked_script_brings_the_folder_of_the_real_one(tmp_path):
    real = project(tmp_path / "real")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "agent.py").symlink_to(real / "agent.py")
    found = agent_of("/usr/bin/python3 agent.py", tmp_path / "bin")
    assert sources(found) == {real, tmp_path / "bin"}
    assert run_isolated(tmp_path, found).success == 1


def test_earlier_runs_beside_an_agent_are_not_shown(tmp_path):
    folder = project(tmp_path / "mine")
    (folder / "runs" / "old").mkdir(parents=True)
    (folder / "lib").mkdir()
    found = agent_of("/usr/bin/python3 agent.py", folder, hidden=(folder / "runs",))
    assert sources(found) == {folder / "agent.py", folder / "lib"}


def test_packs_and_runs_anywhere_beside_an_agent_are_not_shown_and_not_part_of_it(tmp_path):
    folder = project(tmp_path / "mine")
    (folder / "data").mkdir()
    (folder / "data" / "table.csv").write_text("1\n")
    before = agent_of("/usr/bin/python3 agent.py", folder)
    assert sources(before) == {folder}
    shop(folder / "data" / "packs" / "other", {"t": "careful"})
    (folder / "out").mkdir()
    (folder / "out" / "run.json").write_text('{"format": "scoresheet-run/1"}')
    after = agent_of("/usr/bin/python3 agent.py", folder)
    assert sources(after) == {folder / "agent.py", folder / "data" / "table.csv"}
    with pytest.raises(Usage, match="where answers lie"):
        agent_of("/usr/bin/python3 agent.py data/packs/other", folder)
    assert after.identity == before.identity
    for place in (folder / "data/packs/other", folder / "out"):
        project(place)
        with pytest.raises(Usage, match="among answers"):
            agent_of("/usr/bin/python3 agent.py", place)


def test_a_home_is_never_bound_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    found = agent_of("/usr/bin/python3 agent.py", project(tmp_path))
    assert sources(found) == {tmp_path / "agent.py"}
    assert "only agent.py is bound" in found.notes[0]


def test_places_that_the_sandbox_has_itself_are_shown_elsewhere():
    assert agent.inside(Path("/work/project/agent.py")) == "/run/scoresheet/host/work/project/agent.py"
    assert agent.inside(Path("/opt/agent.py")) == "/opt/agent.py"


PYTHON_AGENT = """
import json
from helper import PRICE

def solve(task, call):
    status, text = call("GET", "/items/1", None)
    assert (status, task["tools"][0]["name"]) == (200, "get_item"), (status, task)
    assert call("CALL", "get_item", {"n": 1})[0] == 200
    assert call("GET", "/items/1", upstream="SHOP") == (status, text)
    return json.loads(text) | {"helper": PRICE}

def fails(task, call):
    raise ValueError("out of ideas")

def says_nothing(task, call):
    return None

def answers_nonsense(task, call):
    return {"price": float("nan")}
"""


@pytest.fixture
def python_project(tmp_path):
    folder = project(tmp_path / "mine", "random.py", PYTHON_AGENT)  # a name of the standard library
    (folder / "helper.py").write_text("PRICE = 'helped'\n")
    return folder


def test_a_python_function_is_an_agent(tmp_path, python_project):
    row = run_isolated(tmp_path, agent_of("py:random.py:solve", python_project))
    assert (row.success, row.isolation, row.tool_calls, row.schema_ok) == (1, "proved", 3, 1), row.detail
    assert row.answer == {"price": 12, "helper": "helped"}


@pytest.mark.parametrize(
    ("function", "reason", "detail"),
    [
        ("fails", "agent_error", "out of ideas"),
        ("says_nothing", "completed", "no answer"),
        ("answers_nonsense", "agent_error", "JSON"),
    ],
)
def test_a_python_function_that_fails_is_an_agent_that_fails(tmp_path, python_project, function, reason, detail):
    row = run_isolated(tmp_path, agent_of(f"py:random.py:{function}", python_project))
    assert (row.success, row.exit_reason) == (0, reason)
    assert detail in (row.detail or "")


def test_a_module_here_is_an_agent(tmp_path, python_project):
    package = python_project / "pack_agent"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "brain.py").write_text("def solve(task, call):\n    return {'price': 12}\n")
    found = agent_of("py:pack_agent.brain:solve", python_project)
    assert package in sources(found)
    assert run_isolated(tmp_path, found).success == 1


def test_an_installed_module_needs_no_bind_of_its_own(tmp_path):
    found = agent_of("py:json:loads", tmp_path)
    assert "-" in found.argv
    assert all(source in Path(sys.prefix).parents or source in interpreter.program(Path(sys.executable)).needs
               or source in (Path(sys.prefix), Path(sys.base_prefix)) for source in sources(found))  # fmt: skip


def test_an_interpreter_below_a_home_that_is_closed_to_others_runs(tmp_path):
    """Root's home is closed; pyenv and uv put interpreters there."""
    home = tmp_path / "closed"
    venv.create(home / "env", with_pip=False, symlinks=True)
    home.chmod(0o700)
    folder = project(home / "mine")
    row = run_isolated(tmp_path, agent_of(f"{home}/env/bin/python agent.py", folder))
    assert (row.success, row.isolation) == (1, "proved"), row.detail


def test_only_the_oracle_gets_the_answer(tmp_path):
    pack = shop(tmp_path / "pack", {"t": "careful"})
    task = pack.task("t")
    assert agent_of(OBEY, tmp_path).private(task) == ()
    ((place, content),) = oracle().private(task)
    assert place.endswith("solution.json")
    assert b'"price": 12' in content
    assert [request["target"] for request in solution(task)["requests"]] == ["/items/1", "/items/0"]


def test_the_oracle_solves_a_sound_pack_by_making_its_calls(tmp_path):
    row = run_isolated(tmp_path, oracle())
    assert (row.success, row.tool_calls, row.unauthorized) == (1, 2, 0), row.detail


def test_the_host_of_python_agents_reads_every_kind_of_response(tmp_path):
    """Chunked, without a length, empty, cut short: each as any HTTP client would."""
    source = Path(interpreter.__file__).parent.parent.parent / "sandbox/inside/agent_host.py"
    code = f"""
import importlib.util, socket, threading
spec = importlib.util.spec_from_file_location("host", {str(source)!r})
host = importlib.util.module_from_spec(spec); spec.loader.exec_module(host)
answers = [
    b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n3\\r\\nabc\\r\\n2;x=1\\r\\nde\\r\\n0\\r\\n\\r\\n",
    b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi",
    b"HTTP/1.1 100 Continue\\r\\n\\r\\nHTTP/1.1 204 No Content\\r\\n\\r\\n",
    b"HTTP/1.1 200 OK\\r\\n\\r\\nuntil the end",
]
server = socket.create_server(("127.0.0.1", 0))
def serve():
    connection, _ = server.accept()
    for answer in answers:
        connection.recv(65536); connection.sendall(answer)
    connection.close()
    connection, _ = server.accept()
    connection.recv(65536); connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 20\\r\\n\\r\\nshort")
    connection.close()
threading.Thread(target=serve, daemon=True).start()
door = host.Door("http://127.0.0.1:%d" % server.getsockname()[1])
print([door.call("GET", "/") for _ in answers])
try: door.call("GET", "/")
except ConnectionError as error: print("cut:", error)
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "[(200, 'abcde'), (200, 'hi'), (204, ''), (200, 'until the end')]"
    assert done.stdout.splitlines()[1].startswith("cut:")


def test_node_is_a_program_like_any_other(tmp_path):
    if shutil.which("node") is None:
        pytest.fail("node is not installed: apt-get install nodejs")
    folder = project(tmp_path / "mine", "agent.mjs", "console.log(JSON.stringify({price: 12}))\n")
    found = agent_of("node agent.mjs", folder)
    assert found.argv == ("/usr/bin/node", str(folder / "agent.mjs"))
    assert run_isolated(tmp_path, found).success == 1


@pytest.mark.parametrize("home", ["/home/stranger", None])
def test_an_account_that_the_system_does_not_know_has_agents_too(tmp_path, monkeypatch, home):
    """As in containers that run under any number."""
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)
    monkeypatch.setenv("HOME", home) if home else monkeypatch.delenv("HOME")
    assert [interpreter.too_broad(Path(folder)) for folder in ("/usr", "/home/stranger", str(tmp_path))] == [
        True,
        home is not None,
        False,
    ]
