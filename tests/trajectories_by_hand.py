"""Harbor's own validator on our trajectories; `./full trajectories`. Needs PyPI and Python 3.12.

1. The schema in tests/vectors is the one of Harbor's models.
2. The validator takes every trajectory that the tests read, of real runs in the sandbox too, and every one of a run of
   examples/packs/billing-v3; and it refuses one that is broken.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
sys.path.insert(0, str(HOUSE))

from tests.exports_by_hand import environment, newer_python, ran  # noqa: E402
from tests.run import atif  # noqa: E402

HARBOR = "harbor==0.26.0"
READ = ("tests/run/test_trajectory.py", "tests/e2e/test_model_evidence.py")
SCHEMA = """
import json, sys
from harbor.models.trajectories import Trajectory
def plain(value, named=False):
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if named or name not in ("description", "title")}
        return {name: plain(each, name in ("properties", "$defs")) for name, each in kept.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value
ours = json.load(open(sys.argv[1]))
del ours["$schema"], ours["$comment"]
assert ours == plain(Trajectory.model_json_schema())
print("tests/vectors/atif_v1_8.schema.json is the schema of Harbor's models")
"""
VALIDATE = """
import pathlib, sys
from harbor.utils.trajectory_validator import TrajectoryValidator
paths = sorted(pathlib.Path(sys.argv[1]).rglob("*trajectory*.json"))
for path in paths:
    validator = TrajectoryValidator()
    assert validator.validate(path), (str(path), validator.get_errors())
assert paths
print("Harbor's validator takes", len(paths), "of", len(paths), "trajectories")
"""


def main() -> int:
    newer = newer_python()
    if newer is None:
        sys.exit("Harbor needs Python 3.12")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        kept, read = folder / "kept", atif.read
        kept.mkdir()

        def keep(data: bytes) -> object:
            (kept / f"trajectory-{len(list(kept.iterdir()))}.json").write_bytes(data)
            return read(data)

        atif.read = keep
        if pytest.main(["-q", "-p", "no:cacheprovider", *(str(HOUSE / path) for path in READ)]):
            return 1
        command: list[str | Path] = [
            Path(sys.executable).parent / "scoresheet",
            "run",
            HOUSE / "examples/packs/billing-v3",
            "--quiet",
        ]
        command += ["--agent", f"python3 {HOUSE / 'examples/agents/careful.py'}", "--seat", "a", "--out", kept / "run"]
        subprocess.run(command, check=True, capture_output=True)
        broken = json.loads((kept / "trajectory-0.json").read_bytes())
        broken["steps"][0]["step_id"] = 7
        (folder / "broken.json").write_text(json.dumps(broken))
        python = environment(folder / "harbor", newer, HARBOR) / "python"
        ran(python, "-c", SCHEMA, HOUSE / "tests/vectors/atif_v1_8.schema.json")
        ran(python, "-c", VALIDATE, kept)
        ran(python, "-m", "harbor.utils.trajectory_validator", next(kept.glob("run/episodes/*/0.0/trajectory.json")))
        words: list[str | Path] = [python, "-m", "harbor.utils.trajectory_validator", folder / "broken.json"]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 1, done.stdout
        print(done.stderr.strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
