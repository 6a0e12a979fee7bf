"""Each export opened by the tool that it is for; `./full exports`. Needs PyPI; Every Eval Ever needs Python 3.12.

1. inspect-ai reads the log, dumps it, and serves it to its viewer.
2. junitparser counts the cases of the JUnit report again.
3. huggingface-hub parses the evaluation result.
4. every-eval-ever validates record and samples: no error, and no warning.
The run holds failures and hostile answers. So does every export.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HOUSE = Path(__file__).parents[1]
sys.path.insert(0, str(HOUSE))

from scoresheet.publish.exports import writer  # noqa: E402
from scoresheet.publish.exports.formats import FORMATS  # noqa: E402
from scoresheet.publish.exports.subject import Subject  # noqa: E402
from tests.publish.exports.subjects import hostile, subject  # noqa: E402
from tests.publish.runs import B  # noqa: E402

READERS = ("inspect-ai==0.3.285", "junitparser==5.0.3", "huggingface-hub==2.4.0")
EVERY_EVAL_EVER = "every-eval-ever==0.3.0"
INSPECT = """
import sys
from inspect_ai.log import list_eval_logs, read_eval_log
for path in sys.argv[1:]:
    log = read_eval_log(path)
    again = read_eval_log(path, header_only=True)
    score = log.results.scores[0]
    assert log.status == "success" and len(log.samples) == again.results.total_samples == 60
    print(log.eval.model, {name: metric.value for name, metric in score.metrics.items()})
    print(sum(sample.scores["success"].value for sample in log.samples), "of", len(log.samples), "samples")
"""
JUNIT = """
import sys
import junitparser
for path in sys.argv[1:]:
    report = junitparser.JUnitXml.fromfile(path)
    said = report.tests, report.failures, report.errors
    report.update_statistics()
    assert said == (report.tests, report.failures, report.errors)
    print(*said)
"""
HUB = """
import sys, yaml
from huggingface_hub import parse_eval_result_entries
for path in sys.argv[1:]:
    (entry,) = parse_eval_result_entries(yaml.safe_load(open(path)))
    assert isinstance(entry.value, float) and "success_ci95: [" in entry.notes and "manifest_sha256: " in entry.notes
    print(entry.dataset_id, entry.task_id, entry.value, entry.date)
"""


def written(folder: Path, name: str, there: Subject) -> None:
    for form, each in FORMATS.items():
        out = folder / f"{name}{each.suffix}"
        {"file": writer.file, "archive": writer.archive, "folder": writer.folder}[each.kind](out, each.build(there))
        print(form, out.name)


def ran(*words: str | Path, cwd: Path | None = None) -> None:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=900, cwd=cwd, check=False)
    print(done.stdout.strip())
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))[:200]}\nended with {done.returncode}\n{done.stderr[-3000:]}")


def environment(folder: Path, python: str, *packages: str) -> Path:
    ran(python, "-m", "venv", folder)
    ran(folder / "bin" / "python", "-m", "pip", "install", "-qq", *packages)
    return folder / "bin"


def newer_python() -> str | None:
    """A Python from 3.12 on, also where pyenv keeps them."""
    kept = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob("3.1[2-9]*/bin/python3"))
    for candidate in (sys.executable, shutil.which("python3.12"), *kept):
        asked = "import ensurepip, sys; assert sys.version_info >= (3, 12)"
        if candidate and not subprocess.run([candidate, "-c", asked], capture_output=True, check=False).returncode:
            return str(candidate)
    return None


def viewed(programs: Path, folder: Path) -> None:
    """Its viewer lists the logs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(programs / "inspect"), "view", "start", "--log-dir", str(folder), "--port", str(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(120):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/logs", timeout=30) as response:
                        print(
                            "inspect view lists",
                            sorted(Path(each["name"]).name for each in json.load(response)["files"]),
                        )
                        return
                except OSError:
                    time.sleep(1)
            sys.exit("inspect view did not begin")
        finally:
            process.terminate()


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "out").mkdir()
        written(folder / "out", "plain", subject())
        written(folder / "out", "hostile", hostile())
        programs = environment(folder / "readers", sys.executable, *READERS)
        python = programs / "python"
        ran(python, "-c", INSPECT, *sorted((folder / "out").glob("*.eval")))
        ran(python, "-c", JUNIT, *sorted((folder / "out").glob("*.xml")))
        ran(python, "-c", HUB, *sorted((folder / "out").glob("*.yaml")))
        print(sum(B), "of 60 are what the plain run has")
        viewed(programs, folder / "out")
        newer = newer_python()
        if newer is None:
            print("every-eval-ever: not checked, it needs Python 3.12")
            return 0
        validator = environment(folder / "validator", newer, EVERY_EVAL_EVER) / "every_eval_ever"
        for each in sorted((folder / "out").glob("*.every-eval-ever")):
            ran(validator, "validate", "data/*/*/*/*.json*", cwd=each)
    return 0


if __name__ == "__main__":
    sys.exit(main())
