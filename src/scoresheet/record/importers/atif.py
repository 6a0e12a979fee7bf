"""Tool calls in ATIF trajectories (Harbor's interchange format, v1.0 to v1.8). Pure."""

from typing import Any

from scoresheet.errors import Malformed
from scoresheet.record.importers.calls import Calls, arguments_of, describe, words
from scoresheet.record.importers.intake import Intake, Source
from scoresheet.record.importers.shape import json_of, rows


def read(source: Source, intake: Intake) -> None:
    """Take the calls that have an observation. Raises `Malformed`."""
    document = json_of(source.data, source.name)
    version = str(document.get("schema_version", "")) if isinstance(document, dict) else ""
    if not version.startswith("ATIF-v1.") or not isinstance(document.get("steps"), list):
        raise Malformed("not an ATIF trajectory: its schema_version is not ATIF-v1.…, or it has no steps", source.name)
    agent = document.get("agent")
    if isinstance(agent, dict):
        describe(f"{source.name}#/agent/tool_definitions", agent.get("tool_definitions"), intake)
    calls = Calls(intake)
    for place, step in enumerate(document["steps"]):
        where = f"{source.name}#/steps/{place}"
        if not isinstance(step, dict):
            intake.leave_out(where, "import-shape", "the step is not an object")
            continue
        if step.get("source") == "user" and not intake.prompt:
            intake.prompt = words(step.get("message"))
        _step(where, step, calls, intake)
    calls.finish()


def _step(where: str, step: dict[str, Any], calls: Calls, intake: Intake) -> None:
    made = list(rows(step.get("tool_calls")))
    observation = step.get("observation")
    results = list(rows(observation.get("results"))) if isinstance(observation, dict) else []
    if step.get("is_copied_context"):
        if made or results:
            intake.leave_out(where, "import-copied", "a step copied from another trajectory: import that one")
        return
    keys: list[str] = []
    for number, call in enumerate(made):
        place = f"{where}/tool_calls/{number}"
        with intake.entry(place):
            arguments = arguments_of(call.get("arguments"))
            keys.append(calls.made(place, call.get("tool_call_id"), call.get("function_name"), arguments))
    for number, result in enumerate(results):
        key = result.get("source_call_id")
        if key is None and len(made) == len(results) == 1 and keys:
            intake.change("a result that names no call was taken for the only one of its step")
            key = keys[0]
        if result.get("subagent_trajectory_ref"):
            intake.change("a subagent's own trajectory is not followed")
        if not calls.answered(key, result.get("content")):
            what = "an observation that no tool call asked for: such agents act by their words"
            intake.leave_out(f"{where}/observation/results/{number}", "import-no-request", what)
