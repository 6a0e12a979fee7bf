"""What Harbor's validator asks of an ATIF trajectory: the schema of its models, and what no schema can say."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs

_SCHEMA = json.loads((Path(__file__).parents[1] / "vectors" / "atif_v1_8.schema.json").read_bytes())
_VALIDATOR = jsonschema_rs.Draft202012Validator(_SCHEMA)
_AGENTS = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
_MODELS = ("metrics", "reasoning_content")


def faults(trajectory: Any) -> list[str]:
    """Everything that Harbor would refuse."""
    found = [f"{error.instance_path}: {error.message}" for error in _VALIDATOR.iter_errors(trajectory)]
    if found:
        return found
    for place, step in enumerate(trajectory["steps"]):
        if step["step_id"] != place + 1:
            found.append(f"step {place + 1} is numbered {step['step_id']}")
        if step["source"] != "agent":
            found += [f"step {place + 1}: {name} without an agent" for name in _AGENTS if step.get(name) is not None]
        elif step.get("llm_call_count") == 0:
            found += [f"step {place + 1}: {name} without a model" for name in _MODELS if step.get(name) is not None]
        ids = [call["tool_call_id"] for call in step.get("tool_calls") or ()]
        if len(set(ids)) < len(ids):
            found.append(f"step {place + 1}: two calls of one id")  # Harbor takes it; nobody could tell them apart
        for result in (step.get("observation") or {}).get("results", ()):
            if result.get("source_call_id") not in (None, *ids):
                found.append(f"step {place + 1}: a result of {result['source_call_id']}")
    return found


def read(data: bytes) -> Any:
    """The trajectory, when Harbor would take it."""
    trajectory = json.loads(data)
    assert faults(trajectory) == []
    assert trajectory["schema_version"] == "ATIF-v1.8"
    return trajectory
