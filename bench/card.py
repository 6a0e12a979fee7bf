"""Bench: checking a protocol card with many holdout ids, and one beside a pack of many tasks.

    python bench/card.py [--ids 10000] [--tasks 100000] [--rounds 3] [--folder DIR]

The whole command is timed, its start included, and beside it the time of the start alone. The best round counts;
everything is read from the page cache. `sha256sum` over the pack's files is the floor: each has to be read and hashed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from parts.clock import best

from scoresheet.pack import fingerprint

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import cards

SCORESHEET = (sys.executable, "-m", "scoresheet")


def check(path: Path) -> dict[str, Any]:
    done = subprocess.run([*SCORESHEET, "check", "--json", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]  # a CheckResult


def card(ids: list[str], fixture_hash: str) -> str:
    """A complete card in the least text: JSON is YAML, and 10,000 ids have to fit in 256 KiB."""
    said = cards.card(ids, fixture_hash, tool_allowlist=["payments_get"])
    if len(ids) > 10_000:
        del said["suite"]["origins"]
    return json.dumps(said)


def alone(folder: Path, count: int, rounds: int) -> None:
    path = folder / "card.yaml"
    path.write_text(card([f"t{number:05}" for number in range(count)], "b" * 64))
    (target,) = check(path)["targets"]
    assert target["ok"], target["findings"][:3]
    assert target["holdout"] == count
    (start,) = best(rounds, lambda: subprocess.run([*SCORESHEET, "schema", "check"], capture_output=True, check=True))
    (whole,) = best(rounds, lambda: check(path))
    size = path.stat().st_size / 1024
    print(f"card of {count} holdout ids ({size:.0f} KiB): {whole:.2f} s; a command that only starts: {start:.2f} s")


def beside(folder: Path, count: int, rounds: int) -> None:
    pack = folder / "many"
    pack.mkdir()
    for number in range(count):
        call = {
            "request_fingerprint": fingerprint.v1("GET", f"/v1/payments/{number}", None),
            "response_status": 200,
            "response_bytes": json.dumps({"id": number, "captured": number % 2 == 0}),
            "latency_ms_recorded": 12.5,
        }
        task = {
            "task_id": f"t{number:06}",
            "prompt": f"Refund payment {number} if policy allows.",
            "tools": [{"name": "payments_get", "schema_sha256": "sha256:" + "ab" * 32}],
            "calls": [call],
            "expected": {"refunded": False},
        }
        (pack / f"t{number:06}.json").write_text(json.dumps(task))
    subprocess.run([*SCORESHEET, "freeze", "--quiet", str(pack)], check=True, capture_output=True)
    # 256 KiB can't hold 100,000 ids: the card lists the first ones, and is told which tasks it leaves out
    path = pack / "card.yaml"
    path.write_text(card([f"t{number:06}" for number in range(min(count, 10_000))], "b" * 64))
    (target,) = check(path)["targets"]
    print(f"  its findings: {', '.join(sorted({found['rule'] for found in target['findings']}))}")
    peer = ["sh", "-c", 'find . -type f -name "t*.json" -print0 | xargs -0 sha256sum']
    (floor,) = best(rounds, lambda: subprocess.run(peer, cwd=pack, capture_output=True, check=True))
    (mine,) = best(rounds, lambda: check(path))
    (whole,) = best(rounds, lambda: check(pack))
    print(
        f"card beside {count} tasks: {mine:.2f} s; find | xargs sha256sum: {floor:.2f} s; {mine / floor:.1f}x its time"
    )
    print(f"check of that pack and its card: {whole:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ids", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where the pack is made")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        alone(Path(folder), given.ids, given.rounds)
        beside(Path(folder), given.tasks, given.rounds)


if __name__ == "__main__":
    main()
