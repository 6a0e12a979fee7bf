"""Calls the installed command, as its users do."""

import subprocess
import sys
from pathlib import Path

SCORESHEET = str(Path(sys.executable).parent / "scoresheet")


def call(
    *words: object, ok: int | None = None, folder: Path | None = None, keys: str = ""
) -> subprocess.CompletedProcess[str]:
    """What it printed, and its exit code: `ok`, where that is given. It runs in `folder`, and reads `keys`."""
    command = [SCORESHEET, *map(str, words)]
    done = subprocess.run(command, input=keys, capture_output=True, text=True, timeout=600, cwd=folder)
    assert ok is None or done.returncode == ok, done.stderr + done.stdout
    return done
