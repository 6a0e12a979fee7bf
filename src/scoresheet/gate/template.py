"""A new suite: its files, in which every blank says REPLACE_ME. Pure."""

from typing import Literal

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.manifest import DEFAULT_REPEATS, DEFAULT_RETRIES, DEFAULT_SEED, DEFAULT_TIMEOUT_S
from scoresheet.documents.tool import Request
from scoresheet.pack import fingerprint
from scoresheet.pack.blanks import BLANK

Kind = Literal["replay", "workspace"]
TASK = "tasks/example.1.json"
TEST_COMMAND = "python3 -m pytest -q tests"


def files(kind: Kind) -> dict[str, bytes]:
    """Path → content of every file of a new suite."""
    found = {
        "card.yaml": _card(kind).encode(),
        "README.md": _README.encode(),
        ".gitattributes": b"# A pack is its bytes: no line ending may change on the way.\n* -text\n",
    }
    match kind:
        case "replay":
            return found | {TASK: canonical.pretty(_replay_task())}
        case "workspace":
            return found | {
                TASK: canonical.pretty(_workspace_task()),
                "workspaces/example.1/calculator.py": b"def add(a, b):\n    return a - b\n",
                "oracles/example.1/tests/test_calculator.py": _TEST,
                "oracles/example.1/solution.patch": _SOLUTION,
            }


def _replay_task() -> dict[str, JsonValue]:
    request = Request("API", "GET", "/v1/example", (), b"")
    call = {
        "request": {"upstream": "API", "method": "GET", "path": "/v1/example"},
        "request_fingerprint": fingerprint.v2(request),
        "response_status": 200,
        "response_bytes": '{"answer": 42}',
        "response_headers": [["content-type", "application/json"]],
        "latency_ms_recorded": 12.5,
    }
    return {"task_id": "example.1", "prompt": BLANK, "tools": [], "calls": [call], "expected": {"answer": BLANK}}


def _workspace_task() -> dict[str, JsonValue]:
    oracle = {"kind": "pytest", "test_command": TEST_COMMAND, "tests": ["tests"]}
    task: dict[str, JsonValue] = {"task_id": "example.1", "kind": "workspace", "prompt": BLANK}
    return task | {"tools": [], "calls": [], "expected": {}, "oracle": oracle}


def _card(kind: Kind) -> str:
    command = TEST_COMMAND if kind == "workspace" else "none"
    return _CARD.format(
        blank=BLANK,
        test_command=command,
        timeout_s=DEFAULT_TIMEOUT_S,
        seed=DEFAULT_SEED,
        retries=DEFAULT_RETRIES,
        repeats=DEFAULT_REPEATS,
    )


_TEST = b"""\
from calculator import add


def test_add():
    assert add(2, 3) == 5
"""

_SOLUTION = b"""\
diff --git a/calculator.py b/calculator.py
--- a/calculator.py
+++ b/calculator.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""

_README = """\
# A suite

`card.yaml` says what a score of this suite is measured on. `scoresheet check .` lists every blank that is left, in the
card and in the tasks; no score is printed before there is none.

1. Replace the example in `tasks/` by your own tasks, or record them: `scoresheet record --help`. At least 5 tasks are
   needed for an interval.
2. `scoresheet freeze . --tar ../suite.tar` pins every byte; its first line is the card's `fixture_hash`.
3. Fill in the card, commit it, and run `scoresheet check .` again.
"""

_CARD = """\
# The protocol card of this suite. `scoresheet check` lists every blank; docs/gates says what each rule wants.
schema: agent-eval-protocol/v1
suite:
  name: {blank}
  # of the suite's repository, in full: git rev-parse HEAD
  git_sha: {blank}
  # the first line that `scoresheet freeze . --tar FILE` prints
  fixture_hash: {blank}
  # an SPDX name
  license: {blank}
  # where the tasks come from
  source: {blank}
  # whether a model may have seen them, and why you think so
  contamination_note: {blank}
  task_count: {blank}
  # kind of task: how many, such as {{bugfix: 3, feature: 2}}; sums to task_count
  taxonomy: {blank}
  # where each task was taken from: scraped-issue, internal-bug, synthetic, homework or "other: ...", each a list of ids
  origins: {blank}
dataset_split:
  # ids of tasks that an agent may be tuned on: they run as calibration and enter no published figure
  train_like: []
  # ids of the tasks that a score is made of
  holdout: {blank}
metrics:
  # one primary of the decision table (docs/gates), and at least two secondaries, the table's among them
  primary: {blank}
  secondary: {blank}
  headline_scalar_allowed: false
controls:
  runtime: {blank}
  lockfile: {blank}
  # names of the tools that the agent may call
  tool_allowlist: {blank}
  test_command: {test_command}
  wall_clock_s: {timeout_s}
  max_tool_calls: {blank}
  temperature: {blank}
  seed: {seed}
  # none, or logged
  human_intervention: {blank}
  parallel_jobs: 1
  # denied, or model_only
  network: {blank}
  retries: {retries}
  repeats: {repeats}
  # hours after freezing from which the recordings are too old to be scored
  stale_after_hours: {blank}
environment:
  os: {blank}
  notes: ""
publishing:
  negative_results: required
  confound_log: required
"""
