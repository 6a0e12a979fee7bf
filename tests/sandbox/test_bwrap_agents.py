"""Agents that misbehave in every way we know: the right `Ended`, no survivor, no harm to others. Real sandboxes."""

import os
import secrets
import signal
import socket
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scoresheet.errors import Usage
from scoresheet.sandbox import bwrap
from scoresheet.sandbox.bwrap import BwrapSandbox
from scoresheet.sandbox.spec import ANSWER, MIB, TASK, Bind, Door
from tests.sandbox.episodes import PYTHON, a_launch, a_spec, as_ordinary, none_survive, run, run_python


@pytest.fixture(scope="module")
def sandbox():
    with BwrapSandbox() as sandbox:
        yield sandbox


@pytest.fixture
def token():
    token = secrets.token_hex(8)
    yield token
    assert none_survive(token)


def serve_once(door: socket.socket, body: bytes) -> None:
    peer, _ = door.accept()
    with peer:
        peer.recv(1 << 16)
        peer.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + body)


def test_an_agent_gets_its_stdin_its_files_and_its_door_and_answers(sandbox):
    program = f"""
import os, sys, urllib.request
said = urllib.request.urlopen("http://127.0.0.1:8080/x").read()
open({ANSWER!r}, "wb").write(b"|".join([said, sys.stdin.buffer.read(), open({TASK!r}, "rb").read()]))
print(sorted(os.environ)); print(os.getcwd()); print(os.getuid(), file=sys.stderr)
"""
    with sandbox.open(a_spec(files=((TASK, b"task"),))) as opened:
        assert opened.addresses == {"api": ("127.0.0.1", 8080)}
        server = threading.Thread(target=serve_once, args=(opened.sockets["api"], b"recorded"))
        server.start()
        ended = opened.start(a_launch(PYTHON, "-I", "-c", program, stdin=b"input"))
        server.join()
        evidence = opened.evidence
    assert (ended.exit_code, ended.limit, ended.stopped) == (0, None, None), ended
    assert ended.answer == b"recorded|input|task"
    assert ended.stdout == b"['HOME', 'LC_CTYPE', 'PATH', 'TOKEN']\n/work\n"
    assert ended.stderr == b"1000\n"
    assert evidence.state == "proved"
    assert evidence.network_namespace != evidence.host_network_namespace
    assert evidence.canary_hits_inside == 0
    assert evidence.canary_hits_control >= 4


def test_the_proof_is_of_this_very_sandbox(sandbox):
    with sandbox.open(a_spec()) as first, sandbox.open(a_spec()) as second:
        seen = [
            one.start(a_launch("/bin/readlink", "/proc/self/ns/net")).stdout.decode().strip() for one in (first, second)
        ]
        assert seen == [first.evidence.network_namespace, second.evidence.network_namespace]
        assert len(set(seen)) == 2
        assert os.geteuid() != 0 or first.evidence.uid != second.evidence.uid


def test_an_agent_that_ignores_a_long_stdin_ends(sandbox):
    ended, _ = run(sandbox, "/bin/true", stdin=b"x" * (4 * MIB))
    assert ended.exit_code == 0
    ended, _ = run(sandbox, "/bin/sh", "-c", "exec <&-; sleep 0.1; exit 3", stdin=b"x" * (4 * MIB))
    assert ended.exit_code == 3


def test_a_long_stdin_arrives_whole(sandbox):
    ended, _ = run(sandbox, "/usr/bin/wc", "-c", stdin=b"x" * (4 * MIB))
    assert ended.stdout.strip() == str(4 * MIB).encode()


@pytest.mark.parametrize("stream", [1, 2])
def test_a_flood_of_one_stream_ends_the_episode_and_keeps_what_fits(sandbox, token, stream):
    spec = a_spec(limits={"output_bytes": 100_000})
    ended, _ = run(sandbox, "/bin/sh", "-c", f"echo said; yes flood >&{stream}", spec=spec, token=token)
    assert (ended.limit, ended.exit_code, ended.stopped) == ("output", None, None)
    assert len(ended.stdout if stream == 1 else ended.stderr) == 100_000
    assert ended.stdout.startswith(b"said")
    assert ended.limit_at_s is not None
    assert ended.limit_at_s <= ended.elapsed_s < 30


def test_output_of_exactly_the_bound_is_no_flood(sandbox):
    spec = a_spec(limits={"output_bytes": 100_000})
    ended, _ = run(sandbox, "/bin/sh", "-c", "head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2", spec=spec)
    assert (ended.limit, ended.exit_code) == (None, 0)
    assert len(ended.stdout) == len(ended.stderr) == 100_000


def test_an_agent_that_never_ends_is_ended_by_the_clock(sandbox, token):
    program = "import signal, time\nfor n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)\nwhile True: pass"
    ended = run_python(sandbox, program, spec=a_spec(0.5), token=token)
    assert (ended.limit, ended.exit_code) == ("wall_clock", None)
    assert ended.limit_at_s is not None
    assert 0.5 <= ended.limit_at_s < 20
    assert 0.02 < ended.cpu_s < 20


def test_daemons_die_with_their_agent_and_their_processor_time_counts(sandbox, token):
    program = """
import os, signal, time
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while time.process_time() < 0.3: pass
        os.write(writing, b"daemon\\n")
        while True: pass
    os._exit(0)
os.write(1, os.read(reading, 99))
"""
    ended = run_python(sandbox, program, token=token)
    assert (ended.exit_code, ended.limit) == (0, None)
    assert ended.stdout == b"daemon\n"
    assert ended.cpu_s > 0.3, "the daemon was killed with its account of processor time open"


def test_a_stopped_tree_dies_too(sandbox, token):
    ended, _ = run(sandbox, "/bin/sh", "-c", "sleep 100 & kill -STOP $!; kill -STOP $$", spec=a_spec(0.3), token=token)
    assert ended.limit == "wall_clock"


def test_a_fork_bomb_is_bounded_and_harms_no_other_episode(sandbox, token):
    bomb = a_spec(1.0, limits={"pids": 64})
    with ThreadPoolExecutor() as pool:
        bombed = pool.submit(run, sandbox, "/bin/sh", "-c", ":(){ :|:& :; }; :; sleep 9", spec=bomb, token=token)
        others = [
            run(sandbox, "/bin/sh", "-c", "echo fine; sleep 0.05; /bin/true && echo so", token=token)[0]
            for _ in range(4)
        ]
        ended = bombed.result()[0]
    assert all((one.exit_code, one.stdout) == (0, b"fine\nso\n") for one in others), others
    assert ended.limit == "wall_clock" or ended.exit_code != 0, ended


def test_processes_are_counted_per_sandbox(sandbox):
    program = """
import os, time
made = 0
try:
    while True:
        if os.fork() == 0: time.sleep(60)
        made += 1
except BlockingIOError:
    print(made)
"""
    with ThreadPoolExecutor() as pool:
        spec = a_spec(limits={"pids": 40})
        counts = [one.stdout for one in pool.map(lambda _: run_python(sandbox, program, spec=spec), range(2))]
    assert all(30 <= int(one) < 40 for one in counts), counts


@pytest.mark.parametrize("place", ["/work", "/tmp", "/home/agent"])
def test_a_disk_that_an_agent_filled_is_named(sandbox, place):
    spec = a_spec(limits={"work_bytes": 2 * MIB})
    ended, evidence = run(sandbox, "/bin/sh", "-c", f"cat /dev/zero > {place}/big", spec=spec)
    assert (ended.limit, ended.exit_code) == ("disk", None), ended
    assert evidence.limits["work_bytes"] == {"value": 2 * MIB, "enforced_by": "tmpfs"}


def test_a_file_that_is_too_large_is_named(sandbox):
    ended, _ = run(
        sandbox, "/bin/sh", "-c", "exec head -c 9999999 /dev/zero > big", spec=a_spec(limits={"file_bytes": MIB})
    )
    assert (ended.limit, ended.exit_code) == ("disk", None), ended


def test_nothing_else_can_be_written_to(sandbox):
    program = """
import os
for place in ("/", "/dev", "/etc", "/usr", "/run", "/run/scoresheet", "/proc/sys/kernel", "/var", "/bin"):
    try:
        open(place + "/x", "w"); print("wrote to", place)
    except OSError: pass
"""
    assert run_python(sandbox, program).stdout == b""


def test_memory_is_bound_and_named_where_a_group_holds_it(sandbox):
    spec = a_spec(limits={"memory_bytes": 64 * MIB})
    ended, evidence = run(sandbox, PYTHON, "-c", "x = bytearray(300 << 20); print('had it all')", spec=spec)
    assert b"had it all" not in ended.stdout
    enforced = evidence.limits["memory_bytes"]["enforced_by"]
    if enforced == "cgroup":
        assert (ended.limit, ended.exit_code) == ("memory", None), ended
        assert ended.peak_memory_bytes is not None
        assert 32 * MIB < ended.peak_memory_bytes <= 64 * MIB
    else:
        assert enforced == "rlimit-per-process"
        assert ended.exit_code == 1, ended
    fine, _ = run(sandbox, PYTHON, "-c", "x = bytearray(8 << 20)", spec=spec)
    assert (fine.exit_code, fine.limit) == (0, None)


@pytest.mark.parametrize(
    ("command", "answer", "fault"),
    [
        ("true", None, None),
        (f"printf '{{}}' > {ANSWER}", b"{}", None),
        (f": > {ANSWER}", b"", None),
        (f"mkfifo {ANSWER}", None, "not a regular file"),
        (f"ln -s /etc/passwd {ANSWER}", None, "not a regular file"),
        (f"mkdir {ANSWER}", None, "not a regular file"),
        (f"head -c 1025 /dev/zero > {ANSWER}", None, "larger than 1024 bytes"),
        (f"head -c 99999999 /dev/zero > {ANSWER}; true", None, "larger than 1024 bytes"),
        (f"head -c 1024 /dev/zero > {ANSWER}", bytes(1024), None),
        (f"printf x > {ANSWER}; chmod 0 {ANSWER}", None, "it can't be opened"),
        (f"(setsid sh -c 'sleep 0.2; echo late > {ANSWER}' &); printf soon > {ANSWER}", b"soon", None),
    ],
)
def test_an_answer_is_a_bounded_regular_file_as_it_was_when_everybody_was_dead(sandbox, command, answer, fault):
    ended, _ = run(sandbox, "/bin/sh", "-c", command, spec=a_spec(limits={"answer_bytes": 1024}))
    assert ended.exit_code == 0, ended
    assert ended.answer == answer
    assert ended.answer_fault == fault


def test_a_death_by_signal_and_a_status_are_told(sandbox):
    assert run(sandbox, "/bin/sh", "-c", "kill -SEGV $$")[0].exit_code == -signal.SIGSEGV
    assert run(sandbox, "/bin/sh", "-c", "kill -9 $$")[0].exit_code == -signal.SIGKILL
    assert run(sandbox, "/bin/sh", "-c", "exit 42")[0].exit_code == 42


@pytest.mark.parametrize(("argv0", "code"), [("nowhere-to-be-found", 127), ("/etc/passwd", 126), ("/work", 126)])
def test_a_command_that_can_not_start_says_so(sandbox, argv0, code):
    ended, _ = run(sandbox, argv0)
    assert ended.exit_code == code
    assert ended.stderr.startswith(b"scoresheet: can't start " + argv0.encode())


def test_usual_signals_are_what_programs_expect(sandbox):
    ended, _ = run(sandbox, "/bin/sh", "-c", "yes | head -n 1; grep -E 'SigIgn|SigBlk' /proc/self/status")
    assert ended.stdout == b"y\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"


def test_the_agent_can_not_touch_process_1(sandbox):
    program = """
import os, signal
tried = []
for action in (
    lambda: open("/proc/1/mem", "r+b"), lambda: os.listdir("/proc/1/fd"), lambda: open("/proc/1/environ").read(),
    lambda: os.readlink("/proc/1/exe"),
):
    try:
        action(); tried.append("reached")
    except OSError as error: tried.append(type(error).__name__)
os.kill(1, signal.SIGKILL)
print(tried)
"""
    ended = run_python(sandbox, program)
    assert ended.exit_code == 0
    assert b"reached" not in ended.stdout, ended


def test_doors_of_the_kernel_are_shut_for_the_agent_too(sandbox):
    program = """
import ctypes, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    libc.syscall(*arguments)
    return os.strerror(ctypes.get_errno())
for family in (40, 17, 38):
    try: socket.socket(family, socket.SOCK_STREAM); print("open")
    except OSError as error: print(error.strerror)
print(call(425, 1, ctypes.create_string_buffer(120)))
for where in (("192.0.2.1", 80), ("8.8.8.8", 53)):
    try: socket.create_connection(where, 0.5); print("open")
    except OSError as error: print(error.strerror)
"""
    said = run_python(sandbox, program).stdout.decode().splitlines()
    assert said == [
        *["Address family not supported by protocol"] * 3,
        "Function not implemented",
        *["Network is unreachable"] * 2,
    ]


def test_system_calls_of_another_abi_kill(sandbox):
    if os.uname().machine != "x86_64":
        return  # there is no other way in
    program = """
import ctypes, mmap
# mov eax, 359 (socket of i386); mov ebx, 40 (AF_VSOCK); mov ecx, 1; xor edx, edx; int 0x80; ret
code = bytes.fromhex("b867010000" "bb28000000" "b901000000" "31d2" "cd80" "c3")
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
print("called", ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""
    ended = run_python(sandbox, program)
    assert ended.exit_code == -signal.SIGSYS, ended
    assert ended.stdout == b""


def test_stop_ends_an_episode_from_another_thread_and_the_first_reason_counts(sandbox, token):
    program = f"""
import signal, socket, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open({ANSWER!r}, "w").write("{{}}")
kept = socket.create_connection(("127.0.0.1", 8080))
time.sleep(100)
"""
    with sandbox.open(a_spec(60)) as opened:

        def stop_when_called() -> None:
            opened.sockets["api"].accept()[0].close()
            opened.stop("mismatch")
            opened.stop("later")

        stopper = threading.Thread(target=stop_when_called)
        stopper.start()
        ended = opened.start(a_launch(PYTHON, "-I", "-c", program, token=token))
        stopper.join()
        opened.stop("after the end")
    assert (ended.stopped, ended.exit_code, ended.limit) == ("mismatch", None, None)
    assert ended.answer == b"{}"
    assert ended.elapsed_s < 30


def test_a_stop_before_the_start_still_ends_it(sandbox):
    with sandbox.open(a_spec()) as opened:
        opened.stop("tool_cap")
        assert opened.start(a_launch("/bin/sleep", "100")).stopped == "tool_cap"


def test_a_sandbox_that_never_starts_its_agent_leaves_nothing(sandbox):
    before = open_descriptors()
    for _ in range(3):
        with sandbox.open(a_spec(limits={"memory_bytes": 64 * MIB})):
            pass
        run(sandbox, "/bin/true")
    assert open_descriptors() == before


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_workspace_is_bound_last_and_measured(sandbox, tmp_path, token):
    tmp_path.chmod(0o700)  # as root the episode's account can't traverse it: it is staged
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "given").write_text("given")
    ended, evidence = run(
        sandbox,
        "/bin/sh",
        "-c",
        "cat given; echo new > made; mkdir d; ln -s /etc d/l",
        spec=a_spec(workspace=workspace),
    )
    assert (ended.exit_code, ended.stdout) == (0, b"given"), ended
    assert (workspace / "made").read_text() == "new\n"
    assert evidence.limits["work_bytes"]["enforced_by"] == "watchdog"
    many = "i=0; while :; do i=$((i+1)); head -c 300000 /dev/zero > f$i; done"
    spec = a_spec(workspace=workspace, limits={"work_bytes": 4 * MIB})
    ended, _ = run(sandbox, "/bin/sh", "-c", many, spec=spec, token=token)
    assert ended.limit == "disk"


def test_a_workspace_can_be_read_only(sandbox, tmp_path):
    workspace = tmp_path / "w"
    workspace.mkdir(mode=0o755)
    (workspace / "given").write_text("given")
    spec = a_spec(workspace=workspace, workspace_writable=False)
    ended, _ = run(sandbox, "/bin/sh", "-c", "cat given; echo x > made", spec=spec)
    assert ended.exit_code != 0
    assert ended.stdout == b"given"
    assert not (workspace / "made").exists()


def test_a_relative_workspace_is_that_of_the_caller(sandbox, tmp_path, monkeypatch):
    (tmp_path / "runs" / "w").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    ended, _ = run(sandbox, "/bin/sh", "-c", "echo new > made", spec=a_spec(workspace=Path("runs/w")))
    assert (ended.exit_code, (tmp_path / "runs/w/made").read_text()) == (0, "new\n"), ended


def test_a_bind_is_read_only_and_may_lie_where_its_account_can_not_go(sandbox, tmp_path):
    tmp_path.chmod(0o700)
    folder = tmp_path / "agent"
    folder.mkdir(mode=0o755)
    (folder / "agent.sh").write_text("echo I am $0; echo x > $(dirname $0)/y || echo no")
    bind = Bind(folder, str(folder))
    ended, _ = run(sandbox, "/bin/sh", str(folder / "agent.sh"), spec=a_spec(binds=(bind,)))
    assert ended.stdout.decode() == f"I am {folder}/agent.sh\nno\n"
    file = Bind(folder / "agent.sh", "/opt/one/agent.sh")
    ended, _ = run(sandbox, "/bin/sh", "-c", "cat /opt/one/agent.sh | wc -l", spec=a_spec(binds=(file,)))
    assert ended.stdout == b"0\n"


def test_an_interpreter_in_a_private_home_runs(sandbox):
    import sys

    base, own = Path(sys.base_prefix), Path(sys.executable).resolve()
    spec = a_spec(binds=() if own.is_relative_to("/usr") else (Bind(base, str(base)),))
    ended, _ = run(sandbox, str(own), "-c", "import ssl, json, sys; print(sys.version_info[:2])", spec=spec)
    assert (ended.exit_code, ended.stdout) == (0, f"{sys.version_info[:2]}\n".encode()), ended


def test_a_bind_that_is_not_there_is_told(sandbox, tmp_path):
    with pytest.raises(Usage, match="nothing to bind"), sandbox.open(a_spec(binds=(Bind(tmp_path / "x", "/opt/x"),))):
        pass


def test_files_that_only_their_owner_may_read_are_shown_to_the_episodes_of_root(sandbox, tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir(mode=0o700)
    (folder / "agent.sh").write_text("cat $(dirname $0)/more; echo x > $(dirname $0)/y || echo no")
    (folder / "more").write_text("more\n")
    for name in ("agent.sh", "more"):
        (folder / name).chmod(0o600)
    for owner in (os.geteuid(), 4321):
        if os.geteuid() == 0:
            for path in (folder, *folder.iterdir()):
                os.chown(path, owner, owner)
        bind = Bind(folder, str(folder))
        ended, _ = run(sandbox, "/bin/sh", str(folder / "agent.sh"), spec=a_spec(binds=(bind,)))
        assert ended.stdout.decode() == "more\nno\n", ended
    assert not (folder / "y").exists()


def test_without_a_python_of_the_system_our_own_is_bound(monkeypatch):
    monkeypatch.setattr(bwrap, "_SYSTEM_PYTHON", "/nonexistent")
    with BwrapSandbox() as sandbox:
        ended, evidence = run(sandbox, "/bin/sh", "-c", "exit 7")
        assert ended.exit_code == 7
        assert evidence.state == "proved"


def test_many_episodes_at_once_are_each_their_own(sandbox):
    def one(number: int) -> bytes:
        return run(sandbox, "/bin/sh", "-c", f"echo {number}; cat", stdin=str(number).encode())[0].stdout

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(40))) == [f"{number}\n{number}".encode() for number in range(40)]


def test_a_socket_in_a_bound_folder_is_refused(sandbox, tmp_path):
    from scoresheet.errors import NotIsolated

    tmp_path.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "docker.sock"))
        with pytest.raises(NotIsolated, match="unix_sockets"), sandbox.open(a_spec(binds=(Bind(tmp_path, "/opt/x"),))):
            pass


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("/", "/opt"),
        ("/run", "/opt"),
        ("/home", "/home"),
        ("/usr/bin", "/proc/x"),
        ("/usr/bin", "opt"),
        ("/usr", "/a/../b"),
    ],
)
def test_a_bind_that_opens_the_host_is_refused(sandbox, source, target):
    with pytest.raises(Usage), sandbox.open(a_spec(binds=(Bind(Path(source), target),))):
        pass


def test_nothing_is_bound_beneath_a_workspace(sandbox, tmp_path):
    spec = a_spec(workspace=tmp_path, binds=(Bind(Path("/usr/share"), "/work/share"),))
    with pytest.raises(Usage, match="workspace"), sandbox.open(spec):
        pass


def test_many_doors_open_each_at_its_port(sandbox):
    doors = tuple(Door(f"d{port}", port) for port in range(9000, 9010))
    with sandbox.open(a_spec(doors=doors)) as opened:
        assert [one.getsockname()[1] for one in opened.sockets.values()] == list(range(9000, 9010))


def test_a_folder_of_the_run_is_gone_afterwards(tmp_path):
    with BwrapSandbox() as sandbox:
        folder = sandbox._folder
        assert folder.is_dir()
        run(sandbox, "/bin/true", spec=a_spec(limits={"memory_bytes": 64 * MIB}))
        groups = sandbox._groups.folder
    assert not folder.exists()
    assert groups is None or not groups.exists()


def everything_as_ordinary() -> None:
    with BwrapSandbox() as sandbox:
        test_an_agent_gets_its_stdin_its_files_and_its_door_and_answers(sandbox)
        test_the_proof_is_of_this_very_sandbox(sandbox)
        test_an_agent_that_never_ends_is_ended_by_the_clock(sandbox, "ordinary")
        test_daemons_die_with_their_agent_and_their_processor_time_counts(sandbox, "ordinary")
        test_processes_are_counted_per_sandbox(sandbox)
        test_memory_is_bound_and_named_where_a_group_holds_it(sandbox)
        test_a_disk_that_an_agent_filled_is_named(sandbox, "/work")
        test_the_agent_can_not_touch_process_1(sandbox)
        test_stop_ends_an_episode_from_another_thread_and_the_first_reason_counts(sandbox, "ordinary")
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            test_a_relative_workspace_is_that_of_the_caller(sandbox, Path(folder), patch)
    assert none_survive("ordinary")


def test_an_ordinary_account_isolates_as_well():
    as_ordinary(everything_as_ordinary)


def test_the_clock_starts_with_the_agent(sandbox):
    with sandbox.open(a_spec(3)) as opened:
        time.sleep(3.1)
        ended = opened.start(a_launch("/bin/true"))
    assert ended.limit is None
    assert ended.elapsed_s < 3
