"""Packs as people might leave them, for the tests of freezing and reading."""

import hashlib
import json
from pathlib import Path

from scoresheet.documents.tool import RequestCopy
from scoresheet.pack import fingerprint


def v1_task(task_id, **more):
    call = {
        "request_fingerprint": fingerprint.v1("GET", f"/v1/payments/{task_id}", None),
        "response_status": 200,
        "response_bytes": '{"captured": true}',
        "latency_ms_recorded": 12.5,
    }
    task = {"task_id": task_id, "prompt": f"Refund {task_id}.", "tools": [], "calls": [call], "expected": {"ok": True}}
    return json.dumps(task | more, indent=1).encode()


def v2_call(path="/v1/payments/1", vary=(), ignore=(), **more):
    request = {"upstream": "API", "method": "GET", "path": path} | more.pop("request", {})
    copy = RequestCopy.from_value(request, "request").as_request()
    call = {
        "request_fingerprint": fingerprint.v2(copy, vary, ignore),
        "response_status": 200,
        "response_bytes": "{}",
        "latency_ms_recorded": 1,
        "request": request,
    }
    return call | more


def v2_task(task_id, *calls, **more):
    task = {"task_id": task_id, "prompt": "p", "tools": [], "calls": list(calls), "expected": {"ok": True}}
    return json.dumps(task | more).encode()


def tool(name, **more):
    return json.dumps({"name": name, "inputSchema": {"type": "object"}} | more).encode()


def reference(name, data):
    return {"name": name, "schema_sha256": "sha256:" + hashlib.sha256(data).hexdigest()}


def lay(root: Path, files):
    """The files below `root`; content is bytes."""
    for path, data in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return root


def flat(root: Path):
    """A v1 pack of three tasks."""
    return lay(root, {f"billing.{name}.json": v1_task(f"billing.{name}") for name in ("a", "b", "c")})


def deep(root: Path):
    """A v2 pack with a tool and a workspace."""
    search = tool("search", ignore=["/json/trace"])
    return lay(
        root,
        {
            "tasks/one.json": v2_task("one", v2_call(), tools=[reference("search", search)]),
            "tasks/two.json": v2_task("two", v2_call("/v1/payments/2"), kind="workspace"),
            "tools/search.json": search,
            "workspaces/two/README": b"read me\n",
            "workspaces/two/.hidden": b"",
            "oracles/two/test_it.py": b"def test_it(): pass\n",
        },
    )
