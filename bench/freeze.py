"""Bench (a): freezing against `openssl dgst -sha256` and `find | xargs sha256sum`, fingerprints against rfc8785.

    python bench/freeze.py [--big-mib 1024] [--tasks 100000] [--rounds 3] [--folder DIR]

Each peer is run side by side on the same bytes, in turns, after its answers were compared with ours. The best of the
rounds counts on both sides, by the clock, for the goals are about two processors; the CPU time is printed beside it and
tells how much the machine could give. Everything is read from the page cache.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from parts.clock import best, children_s

from scoresheet.documents.manifest import Manifest
from scoresheet.documents.tool import Request
from scoresheet.pack import fingerprint

FREEZE = (sys.executable, "-m", "scoresheet", "freeze", "--quiet")
FILES = 64


def output(command: list[str], **options: object) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout  # type: ignore[call-overload,no-any-return]  # options are subprocess.run's


def beside(*contestants: Callable[[], object]) -> str:
    times = " and ".join(f"{min(children_s(contestant) for _ in range(3)):.2f} s" for contestant in contestants)
    return f"CPU {times}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


def freeze(pack: Path) -> Manifest:
    output([*FREEZE, str(pack)])
    return Manifest.from_bytes((pack / "manifest.json").read_bytes(), "manifest.json")


def verdict(ratio: float, goal: float, more_is_better: bool) -> str:
    met = ratio >= goal if more_is_better else ratio <= goal
    return "met" if met else f"MISSED by {abs(ratio / goal - 1):.0%}"


def big(folder: Path, mib: int, rounds: int) -> None:
    pack = folder / "big"
    (pack / "tasks").mkdir(parents=True)
    (pack / "workspaces" / "t").mkdir(parents=True)
    (pack / "tasks" / "t.json").write_text('{"task_id": "t", "prompt": "p", "kind": "workspace"}')
    size = mib * (1 << 20) // FILES
    for number in range(FILES):
        (pack / "workspaces" / "t" / f"{number:03}.bin").write_bytes(random.Random(number).randbytes(size))
    frozen = freeze(pack)
    paths = sorted(str(pack / path) for path in (*frozen.tasks, *frozen.files))
    peer = ["openssl", "dgst", "-sha256", "-r", *paths]
    theirs = {line.split(" *")[1]: line.split(" *")[0] for line in output(peer).splitlines()}
    ours = {str(pack / path): facts.sha256 for path, facts in frozen.files.items()}
    ours |= {str(pack / path): sha256 for path, sha256 in frozen.tasks.items()}
    assert ours == theirs, "openssl and freeze give different digests"
    mine, their = best(rounds, lambda: freeze(pack), lambda: output(peer))
    spent = beside(lambda: freeze(pack), lambda: output(peer))
    shutil.rmtree(pack)
    ratio = their / mine
    print(f"freeze, {mib} MiB in {FILES} files: {mine:.2f} s; openssl dgst -sha256: {their:.2f} s", end="; ")
    print(f"{ratio:.2f}x its speed (goal 1.6x: {verdict(ratio, 1.6, True)})")
    print(f"  peer: {output(['openssl', 'version']).strip()}, one process over all files; {spent}")


def many(folder: Path, count: int, rounds: int) -> None:
    pack = folder / "many"
    pack.mkdir()
    for number in range(count):
        task = {
            "task_id": f"task-{number:06}",
            "prompt": f"Refund payment {number} if policy allows.",
            "tools": [{"name": "payments_get", "schema_sha256": "sha256:" + "ab" * 32}],
            "calls": [
                {
                    "request_fingerprint": fingerprint.v1("GET", f"/v1/payments/{number}", None),
                    "response_status": 200,
                    "response_bytes": json.dumps({"id": number, "captured": number % 2 == 0}),
                    "latency_ms_recorded": 12.5,
                }
            ],
            "expected": {"refunded": False},
        }
        (pack / f"task-{number:06}.json").write_text(json.dumps(task))
    frozen = freeze(pack)
    peer = ["sh", "-c", 'find . -type f -name "task-*.json" -print0 | xargs -0 sha256sum']
    theirs = {line[66:].removeprefix("./"): line[:64] for line in output(peer, cwd=pack).splitlines()}
    assert frozen.tasks == theirs, "sha256sum and freeze give different digests"
    mine, their = best(rounds, lambda: freeze(pack), lambda: output(peer, cwd=pack))
    spent = beside(lambda: freeze(pack), lambda: output(peer, cwd=pack))
    shutil.rmtree(pack)
    ratio = mine / their
    print(f"freeze, {count} small tasks: {mine:.2f} s; find | xargs sha256sum: {their:.2f} s", end="; ")
    print(f"{ratio:.2f}x its time (goal at most 3x: {verdict(ratio, 3, False)})")
    print(
        f"  peer: {output(['sha256sum', '--version']).splitlines()[0]}; it reads the bytes, freeze judges them as well;"
        f" {spent}"
    )


def fingerprints(rounds: int) -> None:
    import rfc8785

    lines = [
        {"sku": f"sku-{n:05}", "quantity": n + 1, "unit_price": 12.5 + n, "note": "left at the door"} for n in range(25)
    ]
    raw = json.dumps({"order": {"id": 1842, "lines": lines, "gift": False, "coupon": None}}).encode()
    request = Request("SHOP", "POST", "/v1/orders", (("Content-Type", "application/json"),), raw)

    def ours() -> str:
        return fingerprint.v2(request)

    def theirs() -> str:
        value = {"v": 2, "upstream": "SHOP", "method": "POST", "path": "/v1/orders", "query": [], "vary": []}
        value["body"] = ["json", json.loads(raw)]
        return "sha256:" + hashlib.sha256(rfc8785.dumps(value)).hexdigest()

    assert ours() == theirs(), "rfc8785 and fingerprint.v2 give different digests"
    calls = 1000
    mine, their = best(rounds * 3, lambda: [ours() for _ in range(calls)], lambda: [theirs() for _ in range(calls)])
    ratio = their / mine
    print(f"fingerprint of a {len(raw)} byte body: {mine / calls * 1e6:.1f} us", end="; ")
    print(f"json.loads + rfc8785 + sha256: {their / calls * 1e6:.1f} us", end="; ")
    print(f"{ratio:.1f}x faster (goal 3x: {verdict(ratio, 3, True)})")
    print(f"  peer: rfc8785 {importlib.metadata.version('rfc8785')}, Python {sys.version.split()[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--big-mib", type=int, default=1024)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where the packs are made; needs the size of the big pack")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        big(Path(folder), given.big_mib, given.rounds)
        many(Path(folder), given.tasks, given.rounds)
    fingerprints(given.rounds)


if __name__ == "__main__":
    main()
