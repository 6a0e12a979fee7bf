"""(e) Starting: `scoresheet --help` against `python -c pass` of the same interpreter. Goal: under 4 times its cost.

Peer: the bare interpreter, which imports `site` as scoresheet does. Cost is CPU time of user and system, the least of
interleaved runs; and instructions counted by callgrind where valgrind is installed, which do not depend on what else
the machine does.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from parts.clock import children_s

GOAL = 4.0
ROUNDS = 25
COMMAND = Path(sys.executable).with_name("scoresheet")
OURS = [sys.executable, str(COMMAND), "--help"]
PEER = [sys.executable, "-c", "pass"]


def cpu_s(command: Sequence[str]) -> float:
    """CPU seconds of one run of `command`."""
    return children_s(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))


def instructions(command: Sequence[str]) -> int:
    """Instructions of one run of `command`, counted by callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        counted = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", *command],
            env=os.environ | {"PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=True,
        )
    match = re.search(r"Collected : (\d+)", counted.stderr)
    assert match, counted.stderr
    return int(match[1])


def main() -> int:
    from scoresheet.cli.verbs import VERBS

    said = subprocess.run(OURS, capture_output=True, text=True, check=True).stdout
    missing = [verb for verb in VERBS if verb not in said]
    assert not missing, f"--help does not name {missing}"

    print(f"peer: {' '.join(PEER)} ({platform.python_implementation()} {platform.python_version()})")
    ours, peer = [], []
    for _ in range(ROUNDS):
        peer.append(cpu_s(PEER))
        ours.append(cpu_s(OURS))
    ratio = min(ours) / min(peer)
    print(f"cpu ms, least of {ROUNDS}: --help {min(ours) * 1e3:.1f}, peer {min(peer) * 1e3:.1f}")
    print(f"ratio {ratio:.2f} (goal: under {GOAL})")
    if shutil.which("valgrind"):
        ours_count, peer_count = instructions(OURS), instructions(PEER)
        ratio = ours_count / peer_count
        print(f"instructions: --help {ours_count / 1e6:.0f} M, peer {peer_count / 1e6:.0f} M")
        print(f"ratio by instructions {ratio:.2f} (goal: under {GOAL})")
    return 0 if ratio < GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
