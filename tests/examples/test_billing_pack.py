"""The refund pack is what its script writes, and its script writes it the same way everywhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scoresheet.pack.freeze import BESIDE

PACKS = Path(__file__).parents[2] / "examples" / "packs"


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file that the script writes: path → bytes."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if name not in BESIDE}


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_the_script_writes_the_committed_bytes(tmp_path, hash_seed):
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "LC_ALL": "C"}
    subprocess.run([sys.executable, PACKS / "make_billing.py", tmp_path], check=True, env=environment)
    assert files_of(tmp_path) == files_of(PACKS / "billing-v3")
