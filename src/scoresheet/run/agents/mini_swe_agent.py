"""`mini-swe-agent` (PyPI `mini-swe-agent`), over chat completions: a shell and nothing else.

It speaks no MCP: the pack's tools are a command in its shell, `scoresheet-call`. Loaded inside the sandbox without
scoresheet: nothing of it is imported here.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoresheet.sandbox.inside.ready_host import Given

NAME = "mini-swe-agent"
KIND = "openai"
PROGRAM = "mini"
PACKAGE = "minisweagent"
INSTALL = "pipx install mini-swe-agent==2.4.6"
OFFERS = ("bash",)
"""Tools that it offers to the model in any case: the card must name them."""
OFFERS_WITH_MCP = ()
OWN = ()
TOGETHER = ()
OPTIONS = ("model", "effort")
_END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_ENVIRONMENT = {
    "MSWEA_CONFIGURED": "true",
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}


def start(given: Given) -> tuple[list[str], dict[str, str]]:
    """Its command line and environment; its configuration is written."""
    environment = {**given.environment, **_ENVIRONMENT, "MSWEA_GLOBAL_CONFIG_DIR": f"{given.home}/.mini"}
    arguments: dict[str, Any] = {
        "api_base": given.environment["OPENAI_BASE_URL"],
        "api_key": given.environment["OPENAI_API_KEY"],
        "seed": given.seed,
        "num_retries": 0,
        "max_retries": 0,
        "timeout": 600,
    }
    if given.temperature is not None:
        arguments["temperature"] = given.temperature
    if "effort" in given.options:
        arguments["reasoning_effort"] = given.options["effort"]
    config = {
        "agent": {"mode": "yolo", "confirm_exit": False, "step_limit": 0, "cost_limit": 0},
        "environment": {"cwd": os.getcwd(), "timeout": 600},
        "model": {
            "model_name": f"openai/{given.model}",
            "cost_tracking": "ignore_errors",
            "model_kwargs": arguments,
        },
    }
    path = given.put("scoresheet.yaml", json.dumps(config))  # JSON is YAML
    words = [*given.program, "-m", f"openai/{given.model}", "-c", "mini.yaml", "-c", path, "-y", "--exit-immediately"]
    return [*words, "-t", _prompt(given), "-o", f"{given.home}/trajectory.json"], environment


def final(given: Given, printed: bytes) -> tuple[str | None, str | None]:
    """What it submitted, and what went wrong: its exit status does not tell."""
    with open(f"{given.home}/trajectory.json", encoding="utf-8") as file:
        told = json.load(file)["info"]
    if told.get("exit_status") != "Submitted":
        return None, f"it ended with {told.get('exit_status')}"
    return str(told.get("submission") or ""), None


def _prompt(given: Given) -> str:
    if not given.tools:
        return given.prompt
    tools = "\n".join(json.dumps(tool) for tool in given.task["tools"])
    return (
        f"{given.task['prompt'].rstrip()}\n\nCall these tools, and nothing else, by the command: scoresheet-call TOOL"
        f" 'ARGUMENTS AS JSON'\n{tools}\n\nSubmit the answer with the last command: {_END} && echo 'ANSWER AS JSON'"
    )
