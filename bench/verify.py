"""Bench: a bundle of 1,000 and of 50,000 episodes, written, verified and drawn, against `sha256sum` of the same file.

    python bench/verify.py [--episodes 1000 50000] [--tasks 1000] [--rounds 3] [--folder DIR]

A small real run gives one journal and one proof of isolation; every further episode is a copy under its own seed, its
own account and its own network namespace, folded into a row as the run folds them. The pack is in the bundle, so that
recordings, answers and leaks are checked too. CPU time of the whole command, user and system, its start included; the
best of the rounds. `sha256sum` reads the bytes and judges nothing: it is the floor. Memory is the most that the command
ever held. Every bundle is verified before anything counts, and once with one byte of its last journal flipped.
"""

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import SHELL, make_pack

from scoresheet import canonical, digest
from scoresheet.documents.confound import Confound
from scoresheet.documents.row import episode_seed
from scoresheet.documents.run_plan import PlannedTask, RunPlan
from scoresheet.gate import chain, pack_triage
from scoresheet.pack.folder import Pack
from scoresheet.run import prepare
from scoresheet.run.deviations import deviations

SCORESHEET = (sys.executable, "-m", "scoresheet")
GOAL = 5.0
"""verify's CPU time by that of sha256sum, at most."""
FLAT = 1.3
"""Memory for the large run by that for the small one, at most: of verify, of bundle, and of the page."""
FEW = 4


def measured(command: list[str], code: int = 0) -> tuple[float, int, str]:
    """CPU seconds of a command and of all that it started, the most KiB that it held, and what it printed."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read().decode()
    assert child.returncode == code, said[-2000:]
    return used.ru_utime + used.ru_stime, used.ru_maxrss, said


def template(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any], RunPlan]:
    """Row, journal and evidence of one real episode, and the plan of its run."""
    pack = make_pack(folder / "few", FEW)
    (folder / "agent.sh").write_text(SHELL)
    words = ["run", str(pack), "--agent", f"sh {folder}/agent.sh", "--seat", "bench", "--repeats", "1", "--draft"]
    measured([*SCORESHEET, *words, "--out", f"{folder}/first", "--quiet"])
    run = folder / "first"
    row = json.loads((run / "rows.jsonl").read_bytes().splitlines()[0])
    episode = run / "episodes" / row["task_id"] / "0.0"
    calls = [json.loads(line) for line in (episode / "calls.jsonl").read_bytes().splitlines()]
    evidence = json.loads((episode / "evidence.json").read_bytes())
    return row, calls, evidence, RunPlan.from_bytes((run / "run.json").read_bytes(), "run.json")


def make_run(folder: Path, tasks: int, repeats: int) -> tuple[Path, Path]:
    """A run of so many episodes and its pack."""
    row, calls, evidence, plan = template(folder)
    pack = Pack.open(make_pack(folder / "pack", tasks))
    card = json.loads((pack.root / "card.yaml").read_bytes())
    card["controls"]["tool_allowlist"] = ["orders"]
    (pack.root / "card.yaml").write_text(json.dumps(card))
    triage = pack_triage.look(pack)
    issued_at = prepare.now()
    receipts, head = chain.chained(triage.receipts("bench", issued_at))
    names = sorted((task.task_id for task in pack.tasks()), key=str.encode)
    run, record = folder / "run", triage.record.text()
    declared = pack.manifest.repeats or card["controls"].get("repeats")
    run.mkdir()
    whole = plan.model_copy(
        update={
            "manifest_sha256": pack.manifest_sha256,
            "tasks": tuple(PlannedTask(task_id=name, split="holdout") for name in names),
            "pack_tasks": tasks,
            "repeats": repeats,
            "repeats_from": "option" if repeats != declared else "manifest" if pack.manifest.repeats else "card",
            "card_sha256": digest.of_file(pack.root / "card.yaml").sha256,
            "pack_record_sha256": digest.of(record),
            "receipts_sha256": head.sha256,
            "receipts_count": head.count,
            "ended_at": issued_at,
        }
    )
    log = b"".join(
        canonical.line(
            Confound(
                at=issued_at, by="scoresheet", kind="deviation", text=str(each),
                control=each.control, pinned=each.pinned, seen=each.seen,
            ).model_dump(mode="json", exclude_none=True)
        )
        for each in deviations(card, whole, triage.record)
    )  # fmt: skip
    for name, data in (
        ("run.json", whole.text()),
        ("pack.json", record),
        ("receipts.jsonl", receipts),
        ("confounds.jsonl", log),
        ("card.yaml", (pack.root / "card.yaml").read_bytes()),
    ):
        (run / name).write_bytes(data)
    with (run / "rows.jsonl").open("wb") as rows:
        number = 0
        for task in pack.tasks():
            call = calls[0] | {
                "path": f"/orders/{task.task_id}",
                "fingerprint": task.calls[0].request_fingerprint,
                "latency_ms_recorded": task.calls[0].latency_ms_recorded,
            }
            for repeat in range(repeats):
                number += 1
                journal = canonical.line(call | {"at_s": round(0.02 + number % 977 / 1e5, 6)})
                said = evidence | {"uid": 1_900_000_000 + number, "network_namespace": f"net:[{4026540000 + number}]"}
                episode = run / "episodes" / task.task_id / f"{repeat}.0"
                episode.mkdir(parents=True)
                (episode / "calls.jsonl").write_bytes(journal)
                (episode / "dns.jsonl").touch()
                (episode / "evidence.json").write_bytes(canonical.pretty(said))
                facts = row | {
                    "manifest_sha256": pack.manifest_sha256,
                    "task_id": task.task_id,
                    "repeat": repeat,
                    "episode_seed": episode_seed(whole.seed, task.task_id, repeat),
                    "recorded_latency_ms": call["latency_ms_recorded"],
                    "calls_sha256": hashlib.sha256(journal).hexdigest(),
                }
                rows.write(canonical.line(facts))
    return run, pack.root


def bench(folder: Path, episodes: int, tasks: int, rounds: int) -> tuple[float, dict[str, int]]:
    """Verify's time by sha256sum's, and the memory of each command in KiB."""
    folder.chmod(0o755)
    repeats = max(5, episodes // tasks)
    run, pack = make_run(folder, episodes // repeats, repeats)
    bundle = folder / "b.tar"
    make = [*SCORESHEET, "bundle", str(run), "--pack", str(pack), "-o", str(bundle)]
    check = [*SCORESHEET, "verify", str(bundle)]
    written, written_kib, _ = measured(make)
    said = measured(check)[2]
    assert said.endswith("verified\n"), said
    assert f"folded again from calls.jsonl and evidence.json: {episodes} of {episodes} rows" in said, said
    size = bundle.stat().st_size
    verified, floor, start, kib = 1e9, 1e9, 1e9, 0
    for _ in range(rounds):
        cpu_s, held, _ = measured(check)
        verified, kib = min(verified, cpu_s), max(kib, held)
        floor = min(floor, measured(["sha256sum", str(bundle)])[0])
        start = min(start, measured([*SCORESHEET, "verify", "--help"])[0])
    ratio = verified / floor
    files = said.split("bytes: ")[1].split(" ")[0]
    print(f"{episodes} episodes, {files} files, {size / 1e6:.0f} MB, {size / episodes:.0f} bytes an episode")
    print(f"  bundle: {written:.2f} s CPU, {written / floor:.1f}x sha256sum; at most {written_kib >> 10} MiB")
    print(
        f"  verify: {verified:.2f} s CPU ({start:.2f} s of it to start), {verified / episodes * 1e6:.0f} us an episode;"
    )
    print(f"    sha256sum: {floor:.2f} s; {ratio:.1f}x (goal {GOAL:g}x); at most {kib >> 10} MiB")
    page = folder / "report.html"
    drawn, drawn_kib, _ = measured([*SCORESHEET, "report", str(run), "--html", str(page), "--draft"])
    page_size = page.stat().st_size
    print(
        f"  report --html: {drawn:.2f} s CPU, {drawn / floor:.1f}x sha256sum; at most {drawn_kib >> 10} MiB;", end=" "
    )
    print(f"{page_size / 1e6:.1f} MB, {page_size / size:.2f}x the bundle, {page_size / episodes:.0f} bytes an episode")
    with bundle.open("r+b") as file:
        data = file.read()
        at = data.rindex(b'"outcome"')
        del data
        file.seek(at + 1)
        file.write(b"O")
    said = measured(check, code=1)[2]
    assert "calls.jsonl: not the bytes that the bundle was made of" in said, said
    return ratio, {"verify": kib, "bundle": written_kib, "report --html": drawn_kib}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, nargs="+", default=[1000, 50_000])
    parser.add_argument("--tasks", type=int, default=1000, help="at most; at least 5 repeats of each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where runs and bundles are made: 2 GB for 50,000 episodes")
    given = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    found = {}
    for episodes in given.episodes:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            found[episodes] = bench(Path(folder), episodes, given.tasks, given.rounds)
    (ratio, most), (_, least) = found[max(found)], found[min(found)]
    print(f"verify of {max(found)} episodes: {ratio:.1f}x sha256sum", end=", ")
    print(f"{'met' if ratio <= GOAL else f'MISSED by {ratio / GOAL - 1:.0%}'}", end="; ")
    growth = {name: kib / least[name] for name, kib in most.items()}
    print(
        f"memory by that of {min(found)}:",
        ", ".join(f"{name} {times:.2f}x" for name, times in growth.items()),
        end=", ",
    )
    print(f"{'met' if max(growth.values()) <= FLAT else f'MISSED by {max(growth.values()) / FLAT - 1:.0%}'}")
    return 0 if ratio <= GOAL and max(growth.values()) <= FLAT else 1


if __name__ == "__main__":
    sys.exit(main())
