"""A second opinion on leaks: another scanner's own rules, run as a program, redacted, and never against a provider."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from scoresheet.errors import ScoresheetError, Usage
from scoresheet.gate.leak_content import Placed, Unknown, shown

NAMES = ("betterleaks",)


def betterleaks(path: str | Path) -> tuple[tuple[Placed, ...], tuple[Unknown, ...]]:
    """What betterleaks finds below `path`: its digests are sha256 of the secret, as ours are.

    Allow markers inside files are off. Raises `Usage` when it is not installed, `ScoresheetError` when it fails.
    """
    beside = str(Path(sys.executable).parent)
    program = shutil.which("betterleaks", path=os.pathsep.join((beside, os.environ.get("PATH", os.defpath))))
    if program is None:
        mend = "pip install 'scoresheet[leaks]'"
        raise Usage("the second scanner is not installed", "betterleaks", mend)
    with tempfile.TemporaryDirectory(prefix="scoresheet-scan-") as folder:
        out = Path(folder, "found.jsonl")
        options = ["--silent", "--redact", "--no-allow-signatures", "--max-archive-depth=4", "--log-level=error"]
        done = subprocess.run(
            [program, *options, "--exit-code=0", f"--output={out}", os.path.abspath(path)],
            env={
                name: value for name, value in os.environ.items() if not name.startswith(("BETTERLEAKS_", "GITLEAKS_"))
            },
            cwd=folder,  # not where a configuration of the pack could lie
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        try:
            lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError) as error:
            raise ScoresheetError(f"the second scanner failed (exit {done.returncode})", "betterleaks") from error
    ended = next((line["scan"] for line in lines if "scan" in line), None)
    if ended is None or done.returncode != 0:
        raise ScoresheetError(f"the second scanner did not end (exit {done.returncode})", "betterleaks")
    unknown = (
        () if ended["state"] == "complete" else (Unknown(str(path), f"betterleaks: its scan is {ended['state']}"),)
    )
    return tuple(_placed(line["finding"], Path(path)) for line in lines if "finding" in line), unknown


def _placed(found: Mapping[str, object], root: Path) -> Placed:
    location, match = found["location"], found["match"]
    assert isinstance(location, dict)
    assert isinstance(match, dict)
    full = os.path.abspath(root)
    base = full if root.is_dir() else os.path.dirname(full)
    path = str(location["path"]).removeprefix(base).lstrip("/")
    name = f"betterleaks:{found['rule_id']}"
    return Placed(shown(path), int(location["start_line"]), "", name, "credential", str(match["fingerprint"]))
