import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from scoresheet.sandbox.spec import ANSWER, TASK, WORK, Door, Launch, Limits, SandboxSpec
from scoresheet.sandbox.unisolated import UnisolatedSandbox
from tests.processes import alive

ENV = (("PATH", "/usr/bin:/bin"), ("A", ANSWER), ("T", TASK), ("W", WORK))


def shell(script, stdin=b"", files=(), env=ENV, opened=None, **limits):
    spec = SandboxSpec((Door("tools", 8080),), Limits(**({"wall_clock_s": 10} | limits)), files=tuple(files))
    with UnisolatedSandbox() as sandbox, sandbox.open(spec) as episode:
        if opened is not None:
            opened(episode)
        return episode.start(Launch(("/bin/sh", "-c", script), env, stdin))


def test_an_agent_runs_with_its_input_its_files_and_nothing_of_our_environment():
    ended = shell('cat; cat "$T"; pwd >&2; env | sort >&2', b"hello\n", [(TASK, b"task\n")])
    assert (ended.exit_code, ended.limit, ended.stopped) == (0, None, None)
    assert ended.stdout == b"hello\ntask\n"
    place, *environment = ended.stderr.decode().splitlines()
    assert {line.split("=")[0] for line in environment} == {"A", "T", "W", "PATH", "PWD"}
    assert f"W={place}" in environment
    assert not Path(place).exists()


def test_the_answer_is_what_stands_in_the_answer_file_at_the_end():
    assert shell('printf one > "$A"; printf two > "$A"').answer == b"two"
    assert shell("true").answer is None


@pytest.mark.parametrize("script", ['ln -s /etc/passwd "$A"', 'mkdir "$A"', 'mkfifo "$A"'])
def test_an_answer_that_is_no_regular_file_is_a_fault(script):
    ended = shell(script)
    assert ended.answer is None
    assert ended.answer_fault


def test_an_answer_that_is_too_large_is_a_fault():
    assert "bytes" in (shell('head -c 2000 /dev/zero > "$A"', answer_bytes=1000).answer_fault or "")


def test_a_door_is_a_listening_socket_on_loopback():
    seen = {}

    def serve(episode):
        listening = episode.sockets["tools"]
        seen["address"] = episode.addresses["tools"]

        def answer():
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nhi")

        threading.Thread(target=answer, daemon=True).start()

    spec = SandboxSpec((Door("tools", 8080),), Limits(wall_clock_s=10))
    with UnisolatedSandbox() as sandbox, sandbox.open(spec) as episode:
        serve(episode)
        host, port = episode.addresses["tools"]
        ended = episode.start(Launch(("/usr/bin/curl", "-s", f"http://{host}:{port}/"), ENV, b""))
    assert ended.stdout == b"hi"


def test_the_clock_ends_an_agent_that_never_does_and_everything_it_started():
    marker = f"{time.time_ns()}.5"
    ended = shell(f"sleep {marker} & setsid sleep {marker} & sleep {marker}", wall_clock_s=0.5)
    assert (ended.limit, ended.exit_code) == ("wall_clock", None)
    assert ended.limit_at_s is not None
    assert 0.5 <= ended.limit_at_s < 20
    assert alive(marker) == []


def test_daemons_that_outlive_their_agent_are_ended_and_their_work_is_counted():
    marker = str(time.time_ns())
    burn = f'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; : > "$W/burnt"; sleep {marker}'
    ended = shell(
        f"(setsid sh -c '{burn}' >/dev/null 2>&1 &) ; while [ ! -e \"$W/burnt\" ]; do sleep 0.02; done; exit 3"
    )
    assert ended.exit_code == 3
    assert alive(marker) == []
    assert ended.cpu_s > 0.02


def test_ignoring_every_polite_signal_does_not_help():
    marker = str(time.time_ns())
    ended = shell(f"trap '' TERM INT HUP; while true; do sleep 0.{marker}; done", wall_clock_s=0.4)
    assert ended.limit == "wall_clock"
    assert alive(marker) == []


def test_a_flood_on_stderr_ends_the_episode_at_the_bound():
    ended = shell("cat /dev/zero >&2", output_bytes=100_000)
    assert ended.limit == "output"
    assert len(ended.stderr) == 100_000


def test_a_full_workspace_ends_the_episode():
    ended = shell("for i in 1 2 3; do head -c 2000000 /dev/urandom > f$i; done; sleep 20", work_bytes=4_000_000)
    assert ended.limit == "disk"


def test_the_first_reason_to_stop_counts():
    def later(episode):
        def stop():
            time.sleep(0.3)
            episode.stop("mismatch")
            episode.stop("tool_cap")

        threading.Thread(target=stop).start()

    ended = shell("sleep 20", opened=later)
    assert (ended.stopped, ended.exit_code, ended.limit) == ("mismatch", None, None)
    assert ended.elapsed_s < 15


def test_a_stop_before_the_start_holds():
    assert shell("sleep 20", opened=lambda episode: episode.stop("interrupted")).stopped == "interrupted"


def test_an_agent_that_can_not_start_is_an_exit_of_127():
    spec = SandboxSpec((), Limits(wall_clock_s=10))
    with UnisolatedSandbox() as sandbox, sandbox.open(spec) as episode:
        ended = episode.start(Launch(("/nowhere/agent",), ENV, b"x" * 200_000))
    assert ended.exit_code == 127
    assert b"/nowhere/agent" in ended.stderr


def test_a_death_by_signal_is_a_negative_exit():
    assert shell("kill -SEGV $$").exit_code == -11


def test_a_large_input_that_is_not_read_blocks_nobody():
    assert shell("exit 0", b"x" * 5_000_000).exit_code == 0


def test_the_tree_ends_and_nothing_is_left_when_the_runner_is_killed(tmp_path):
    marker = str(time.time_ns())
    source = (
        "from scoresheet.sandbox.unisolated import *\n"
        "with UnisolatedSandbox() as s, s.open(SandboxSpec((), Limits(60))) as e:\n"
        f"    e.start(Launch(('/bin/sh', '-c', 'setsid sleep {marker} & sleep {marker}'), (('PATH', '/bin'),), b''))\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", source], env=environment) as runner:
        while len(alive(marker)) < 4:
            time.sleep(0.02)
        assert list(tmp_path.iterdir())
        runner.kill()
    until = time.monotonic() + 60
    while (alive(marker) or list(tmp_path.glob("*/tmp*"))) and time.monotonic() < until:
        time.sleep(0.02)
    assert alive(marker) == []
    assert list(tmp_path.glob("*/tmp*")) == []


def test_what_a_killed_runner_left_is_removed_by_the_next_run(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("scoresheet-none-dead", "scoresheet-none-young", "another"):
        (tmp_path / name / "deep").mkdir(parents=True)
    for name in ("scoresheet-none-dead", "another"):
        os.utime(tmp_path / name, (1, 1))
    with UnisolatedSandbox() as first:
        held = next(path for path in tmp_path.glob("scoresheet-none-*") if (path / "claim").exists())
        os.utime(held, (1, 1))
        with UnisolatedSandbox():
            assert first.name == "none"
            assert {path.name for path in tmp_path.iterdir()} >= {held.name, "scoresheet-none-young", "another"}
    assert {path.name for path in tmp_path.iterdir()} == {"scoresheet-none-young", "another"}


def test_nothing_is_ever_proved():
    with UnisolatedSandbox() as sandbox, sandbox.open(SandboxSpec((), Limits(1))) as episode:
        assert episode.evidence.state == "not_isolated"
