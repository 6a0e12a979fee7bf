"""Runs with everything that a page can show, and agents that write what they like."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scoresheet import canonical
from scoresheet.documents.row import Row
from tests.publish import runs

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\u2066 ../../../../etc/passwd <!-- ]]> {{ 7*7 }} {% raw %} &amp;"
)
EXITS = ("completed", "mismatch", "timeout", "tool_cap", "agent_error")


def call(seq: int, **more: Any) -> dict[str, Any]:
    """A line of calls.jsonl: a hit, unless `more` says otherwise."""
    fields: dict[str, Any] = {
        "seq": seq, "at_s": 0.1 + seq / 8, "via": "http", "upstream": "SHOP", "method": "GET",
        "path": f"/v1/items/{seq}", "fingerprint": "sha256:" + "a" * 64, "outcome": "hit", "status": 200,
        "tool": "get_item", "latency_ms_recorded": 20.0,
    }  # fmt: skip
    return fields | more


def miss(seq: int) -> dict[str, Any]:
    """A call that was not recorded, and the recording nearest to it."""
    nearest = {
        "fingerprint": "sha256:" + "b" * 64,
        "method": "POST",
        "path": "/v1/refunds",
        "difference": ["body /amount: recorded 1200, asked 1300"],
    }
    body = '{"payment_id": "pay-501", "amount": 1300}'
    return call(
        seq, method="POST", path="/v1/refunds", outcome="miss", kind="no_match", status=403, nearest=nearest, body=body
    )


PATCH = """\
diff --git a/pages.py b/pages.py
--- a/pages.py
+++ b/pages.py
@@ -1,3 +1,3 @@
 def last(total, size):
-    return total // size
+    return -(-total // size)
"""


def row(task_id: str, repeat: int, success: int, **more: Any) -> Row:
    """A row whose failures differ from task to task."""
    if success:
        return runs.row(task_id, repeat, 1, answer={"refunded": True, "amount": 1200}, **more)
    reason = EXITS[int(task_id[1:]) % len(EXITS)]
    fields: dict[str, Any] = {"exit_reason": reason, "answer": {"refunded": True, "amount": 1300}}
    if reason == "mismatch":
        fields |= {"unauthorized": 1, "schema_ok": 0, "answer": None}
        fields["mismatches"] = [{"method": "POST", "path": "/v1/refunds", "fingerprint": "sha256:" + "c" * 64}]
    if reason == "timeout":
        fields |= {"timeout": 1, "limit": "wall_clock", "limit_at_s": 30.0}
    if reason == "agent_error":
        fields |= {"agent_exit": 1, "detail": "KeyError: 'total'"}
    return runs.row(task_id, repeat, 0, **(fields | more))


def write(folder: Path, passed: Sequence[int] = runs.A, repeats: int = 5, **more: Any) -> Path:
    """A run with calls, patches and output in every episode; without a card, so a draft."""
    plan = runs.plan(len(passed), repeats, **more)
    rows = [
        row(f"t{task:02}", repeat, int(repeat < count), tool_calls=3, elapsed_s=0.5 + 0.01 * task)
        for task, count in enumerate(passed)
        for repeat in range(repeats)
    ]
    confounds = json.dumps({"at": "2026-09-22T10:00:00Z", "by": "person", "kind": "human", "text": "The fan was loud."})
    runs.write(folder, plan, rows, confounds=confounds.encode() + b"\n", baselines=runs.baselines().text())
    for each in rows:
        last = miss(2) if each.exit_reason == "mismatch" else call(2)
        episode(folder, each, {"patch.diff": PATCH.encode(), "stderr": b"thinking\n"}, [call(0), call(1), last])
    return folder


def episode(folder: Path, row: Row, files: Mapping[str, bytes] = {}, calls: Sequence[Mapping[str, Any]] = ()) -> Path:
    """The folder of one attempt."""
    place = folder / "episodes" / row.task_id / f"{row.repeat}.{row.attempt}"
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (place / name).write_bytes(content)
    (place / "calls.jsonl").write_bytes(b"".join(map(canonical.line, map(dict, calls))))
    return place
