"""(c) Episodes per CPU second against Inspect AI with its mock model and one tool call a sample. Goal: 2 times.

    python bench/harness.py [--tasks 40] [--repeats 5] [--rounds 2]

The same question on both sides: the total of an order, which one call gives. Peer: `inspect_ai.eval` with
`mockllm/model`, whose `custom_outputs` calls one tool and then answers, scored by `match()`, its log written as by
default. Its agent and its tool are functions of one process: nothing is started and nothing is kept apart. It is run a
second time with `sandbox="local"`, where the tool starts a program, which is the nearest it has to what we always do.
Ours: `scoresheet run`, whose agent is a program of its own for every episode, in POSIX shell with curl or a Python
function, in a proved sandbox (bwrap) or without one (none). Before anything is counted every answer is shown right.

CPU time of the process and all that it started, user and system; the cost of one more episode, so that neither side
pays for its start. The peer lives in a throw-away virtual environment that the script makes.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parts.clock import children_s

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import cards

INSPECT = "inspect-ai==0.3.285"
GOAL = 2.0
FEW = 4
"""Tasks of the short run that is taken off the long one."""
TOTAL = 1842
SHELL = """\
prompt=$(cat)
prompt=${prompt#*ord-}
exec curl -s "$SCORESHEET_TOOLS_URL/orders/ord-${prompt%%[!0-9]*}"
"""
PYTHON = """\
import json

def solve(task, call):
    status, text = call("GET", "/orders/" + task["prompt"].split()[-1], None)
    return json.loads(text)
"""


def make_pack(folder: Path, tasks: int) -> Path:
    """A frozen pack of so many orders, with a complete card."""
    from scoresheet.gate import suite
    from scoresheet.pack import fingerprint, freezer
    from scoresheet.pack.folder import Pack

    folder.mkdir()
    names = [f"ord-{number}" for number in range(tasks)]
    for name in names:
        call = {
            "request_fingerprint": fingerprint.v1("GET", f"/orders/{name}", None),
            "response_status": 200,
            "response_bytes": json.dumps({"total": TOTAL}),
            "latency_ms_recorded": 1.0,
        }
        task = {"task_id": name, "prompt": f"Total of order {name}", "tools": [], "calls": [call]}
        (folder / f"{name}.json").write_text(json.dumps(task | {"expected": {"total": TOTAL}}))
    freezer.write(folder)
    pack = Pack.open(folder)
    fixed = pack.manifest
    kept = {"wall_clock_s": fixed.timeout_s, "seed": fixed.seed, "retries": fixed.retries, "repeats": 5}
    fixture_sha256 = suite.look(pack).fixture_sha256
    card = cards.card(names, fixture_sha256, tool_allowlist=[], stale_after_hours=87600, **kept)
    card["publishing"] |= {"excluded": [], "upstreams": {}}
    (folder / "card.yaml").write_text(json.dumps(card))
    return folder


def cpu_of(command: Sequence[str | Path]) -> tuple[float, str]:
    """CPU seconds of a command and of all that it started, and what it printed."""
    said = []

    def work() -> None:
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
        said.append(done.stdout)

    return children_s(work), said[0]


def ours(pack: Path, tasks: int, repeats: int, agent: str, isolation: str) -> float:
    """CPU seconds of a run whose every episode succeeded with one call."""
    with tempfile.TemporaryDirectory() as out:
        words: list[str | Path] = [
            "run",
            pack,
            "--agent",
            agent,
            "--seat",
            "bench",
            "--repeats",
            str(repeats),
            "--jobs",
            "2",
        ]
        words += ["--isolation", isolation, "--draft", "--json", "--quiet", "--out", f"{out}/run"]
        cpu_s, said = cpu_of([sys.executable, "-m", "scoresheet", *words])
        report = json.loads(said)
        rows = [json.loads(line) for line in Path(out, "run", "rows.jsonl").read_bytes().splitlines()]
    assert len(rows) == tasks * repeats, len(rows)
    assert all(row["success"] for row in rows), rows[0]
    assert float(report["success_mean"]) == 1, report
    return cpu_s


def theirs(python: Path, tasks: int, repeats: int, sandbox: str) -> float:
    """CPU seconds of an evaluation whose every sample was right after one tool call."""
    with tempfile.TemporaryDirectory() as logs:
        cpu_s, said = cpu_of([python, __file__, "--peer", str(tasks), str(repeats), sandbox, logs])
    found = json.loads(said.splitlines()[-1])
    count = tasks * repeats
    assert found == {"status": "success", "samples": count, "tool_calls": count, "right": count}, found
    return cpu_s


def peer(tasks: int, repeats: int, kind: str, logs: str) -> None:
    """Run by the peer's Python."""
    from inspect_ai import Task, eval  # type: ignore[import-not-found]
    from inspect_ai.dataset import Sample  # type: ignore[import-not-found]
    from inspect_ai.model import ModelOutput, ModelUsage, get_model  # type: ignore[import-not-found]
    from inspect_ai.scorer import match  # type: ignore[import-not-found]
    from inspect_ai.solver import generate, use_tools  # type: ignore[import-not-found]
    from inspect_ai.tool import tool  # type: ignore[import-not-found]
    from inspect_ai.util import sandbox  # type: ignore[import-not-found]

    @tool  # type: ignore[untyped-decorator]  # inspect_ai is in another environment
    def order() -> Any:
        async def execute(order_id: str) -> str:
            """Look an order up.

            Args:
                order_id: The order's number.
            """
            text = json.dumps({"order_id": order_id, "total": TOTAL})
            if kind == "local":
                return str((await sandbox().exec(["echo", text])).stdout)
            return text

        return execute

    def model(messages: list[Any], *_: object) -> Any:
        last = messages[-1]
        if last.role == "tool":
            output = ModelOutput.from_content("mockllm/model", str(json.loads(last.text)["total"]))
        else:
            arguments = {"order_id": last.text.split()[-1]}
            output = ModelOutput.for_tool_call("mockllm/model", "order", arguments)
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else it downloads a tokenizer
        return output

    samples = [Sample(input=f"Total of order ord-{n}", target=str(TOTAL), id=f"ord-{n}") for n in range(tasks)]
    task = Task(
        dataset=samples,
        solver=[use_tools(order()), generate()],
        scorer=match(),
        sandbox="local" if kind == "local" else None,
    )
    mock = get_model("mockllm/model", custom_outputs=model)
    (log,) = eval(task, model=mock, epochs=repeats, display="none", log_dir=logs)
    calls = sum(len(m.tool_calls or ()) for s in log.samples for m in s.messages if m.role == "assistant")
    right = sum(score.value == "C" for s in log.samples for score in s.scores.values())
    print(json.dumps({"status": log.status, "samples": len(log.samples), "tool_calls": calls, "right": right}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("tasks", 40), ("repeats", 5), ("rounds", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        venv.create(folder / "peer", with_pip=True)
        python = folder / "peer" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", INSPECT], check=True, capture_output=True)
        (folder / "agent.sh").write_text(SHELL)
        (folder / "agent.py").write_text(PYTHON)
        agents = {"shell and curl": f"sh {folder}/agent.sh", "Python": f"py:{folder}/agent.py:solve"}
        packs = {tasks: make_pack(folder / f"pack{tasks}", tasks) for tasks in (FEW, given.tasks)}
        best: dict[tuple[str, int], float] = {}
        for _ in range(given.rounds):
            for tasks in (FEW, given.tasks):
                for kind in ("in the process", "local"):
                    found = theirs(python, tasks, given.repeats, kind)
                    best[f"inspect {kind}", tasks] = min(best.get((f"inspect {kind}", tasks), found), found)
                for language, agent in agents.items():
                    for isolation in ("bwrap", "none"):
                        name = f"{language}, {isolation}"
                        found = ours(packs[tasks], tasks, given.repeats, agent, isolation)
                        best[name, tasks] = min(best.get((name, tasks), found), found)
    more = (given.tasks - FEW) * given.repeats
    cost = {name: (best[name, given.tasks] - best[name, FEW]) / more for name, tasks in best if tasks == FEW}
    print(
        f"peer: {INSPECT}, mockllm/model, one tool call, match(), its default log; Python {platform.python_version()},"
        f" {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; least of {given.rounds}, every answer right"
    )
    for kind in ("in the process", "local"):
        theirs_s = cost[f"inspect {kind}"]
        print(f"Inspect AI, tool {kind}: {theirs_s * 1e3:.1f} ms CPU a sample, {1 / theirs_s:.0f} per CPU second")
        for name in cost:
            if not name.startswith("inspect"):
                ratio = theirs_s / cost[name]
                verdict = "met" if ratio >= GOAL else f"MISSED by {1 - ratio / GOAL:.0%}"
                print(f"  {name}: {cost[name] * 1e3:.1f} ms, {1 / cost[name]:.0f} per CPU second", end="; ")
                print(f"{ratio:.2f}x (goal {GOAL:g}x: {verdict})")
    return 0 if cost["inspect in the process"] >= GOAL * cost["shell and curl, bwrap"] else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--peer", tasks, repeats, kind, logs]:
            peer(int(tasks), int(repeats), kind, logs)
        case _:
            sys.exit(main())
