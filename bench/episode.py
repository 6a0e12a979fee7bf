"""(c) One episode's overhead against the same bwrap recipe starting `python3 -I -S -c 0`. Goal: at most 2 times.

Ours: from `open()` to `ended` with `/bin/true` as the agent: the sandbox, the door, the probe, the verdict, the agent,
the burial. Peer: bubblewrap with exactly the same arguments and account, whose program is Python doing nothing, waited
for. Interleaved; medians and minima. Before that the peer is shown to be the same sandbox, and ours to be proved.
"""

import functools
import hashlib
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.run_plan import AgentIdentity
from scoresheet.documents.tool import Request
from scoresheet.pack.folder import Pack
from scoresheet.replay.session import Tape
from scoresheet.run import trajectory
from scoresheet.run.plan import Episode
from scoresheet.sandbox.bwrap import BwrapSandbox
from scoresheet.sandbox.spec import Door, Launch, Limits, SandboxSpec

GOAL = 2.0
TRAJECTORY = 0.03
ROUNDS = 60
SPEC = SandboxSpec(doors=(Door("api", 8080),), limits=Limits(wall_clock_s=30))
AGENT = Launch(("/bin/true",), (), b"")


class Bare(BwrapSandbox):
    """The recipe without what it is for."""

    def start(self, program: tuple[str, ...], stdout: int) -> int:
        """Exit status of a program in the same sandbox, without door, probe and verdict."""
        files: list[int] = []

        def descriptor(content: bytes) -> str:
            files.append(os.memfd_create("bench"))
            os.write(files[-1], content)
            os.lseek(files[-1], 0, os.SEEK_SET)
            return str(files[-1])

        arguments = self._arguments(SPEC, descriptor, lambda path, _: path, "0")
        words = (str(self._bwrap), *arguments[: arguments.index("--") + 1], *program)
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            started = self._launcher.spawn(
                words, stdin=nothing, stdout=stdout, stderr=stdout, pass_fds=files, uid=self._account()
            )
            return started.wait()
        finally:
            for one in (nothing, *files):
                os.close(one)


def milliseconds(job: Callable[[], object]) -> float:
    began = time.perf_counter()
    job()
    return (time.perf_counter() - began) * 1e3


def trajectory_ms() -> tuple[float, int]:
    """Milliseconds to fold and write the trajectory of an episode that made every call of its task; the calls."""
    pack = Pack.open(Path(__file__).parents[1] / "examples" / "packs" / "billing-v3")
    task = max(pack.tasks(), key=lambda task: len(task.calls))
    tape = Tape.of(task, pack.tools, pack.manifest.protocol, pack.manifest.on_exhausted)
    calls = []
    for seq, call in enumerate(task.calls):
        asked = call.request.as_request() if call.request is not None else Request("", "GET", "/")
        members = {"upstream": "", "method": asked.method, "path": asked.target, "body": asked.body.decode() or None}
        members |= {"seq": seq, "at_s": 0.1, "via": "http", "tool": "get_order", "outcome": "hit", "status": 200}
        members |= {"fingerprint": call.request_fingerprint, "latency_ms_recorded": call.latency_ms_recorded}
        calls.append(CallRecord.from_value(members, "calls.jsonl"))
    agent = AgentIdentity(kind="command", spec="python3 agent.py", sha256="0" * 64)
    about = trajectory.About(pack.manifest_sha256, Episode(task.task_id, 0, 0, 7), task, agent, False)
    times = []
    with tempfile.TemporaryDirectory() as folder:

        def write(number: int) -> None:
            with Path(folder, str(number)).open("wb") as file:
                file.writelines(trajectory.written(about, tape, calls))

        for number in range(ROUNDS):
            times.append(milliseconds(functools.partial(write, number)))
    return statistics.median(times), len(calls)


def main() -> int:
    with Bare() as sandbox:
        reading, writing = os.pipe()
        shown = ("/bin/sh", "-c", "cat /etc/passwd; ls /proc/self/ns >/dev/null && echo $$")
        assert sandbox.start(shown, writing) == 0
        os.close(writing)
        said = os.read(reading, 4096).decode()
        assert said == "agent:x:1000:1000:agent:/home/agent:/bin/sh\n1\n", said
        nothing = os.open(os.devnull, os.O_RDWR)
        bare = (sandbox._interpreter, "-I", "-S", "-c", "0")

        def ours() -> None:
            with sandbox.open(SPEC) as opened:
                ended = opened.start(AGENT)
            assert ended.exit_code == 0, ended
            assert opened.evidence.state == "proved", opened.evidence

        def peer() -> None:
            assert sandbox.start(bare, nothing) == 0

        measured: dict[str, list[float]] = {"ours": [], "peer": []}
        for _ in range(ROUNDS):
            measured["peer"].append(milliseconds(peer))
            measured["ours"].append(milliseconds(ours))
        recipe = hashlib.sha256(sandbox._bwrap.read_bytes()).hexdigest()[:12]
        print(
            f"peer: {sandbox._bwrap_version} (sha256 {recipe}…), the same arguments, {' '.join(bare)},"
            f" uid {'of its own' if os.geteuid() == 0 else os.geteuid()}, Linux {platform.release()}"
        )
    ratios = {}
    for name, take in (("median", statistics.median), ("least", min)):
        mine, theirs = take(measured["ours"]), take(measured["peer"])
        ratios[name] = mine / theirs
        print(f"{name} of {ROUNDS}: episode {mine:.1f} ms, peer {theirs:.1f} ms, ratio {ratios[name]:.2f}")
    print(f"goal: at most {GOAL}")
    more, calls = trajectory_ms()
    share = more / statistics.median(measured["ours"])
    print(f"trajectory of {calls} calls: {more:.2f} ms, {share:.2%} of an episode (goal: under {TRAJECTORY:.0%})")
    return 0 if ratios["median"] <= GOAL and share < TRAJECTORY else 1


if __name__ == "__main__":
    sys.exit(main())
