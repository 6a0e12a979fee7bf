"""What a ready-made agent is started with, as the sandbox would say it."""

import json
import os
from pathlib import Path

from scoresheet.sandbox.inside.ready_host import Given

DOOR = {
    "OPENAI_BASE_URL": "http://127.0.0.1:8060/v1",
    "OPENAI_API_KEY": "dummy",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:8061",
    "ANTHROPIC_API_KEY": "dummy",
    "SCORESHEET_MCP_URL": "http://127.0.0.1:8071/mcp",
    "SCORESHEET_SEED": "7",
    "SCORESHEET_MODEL": "the-model",
    "SCORESHEET_TEMPERATURE": "0",
}
TOOL = {"name": "get_item", "description": "One item.", "inputSchema": {"type": "object"}}


def given(monkeypatch, folder: Path, allowed=None, tools=(TOOL,), program=("/opt/agent",), schema=None, **options):
    """Of a task with these tools, under a card with this allowlist."""
    for name in list(os.environ):
        if name.startswith(("SCORESHEET_", "OPENAI_", "ANTHROPIC_")):
            monkeypatch.delenv(name)
    task = folder / "task.json"
    task.write_text(json.dumps({"prompt": "What is it?\n", "tools": list(tools), "answer_schema": schema}))
    for name, value in {**DOOR, "SCORESHEET_TASK": str(task), "HOME": str(folder / "home")}.items():
        monkeypatch.setenv(name, value)
    if allowed is not None:
        monkeypatch.setenv("SCORESHEET_TOOL_ALLOWLIST", json.dumps(allowed))
    return Given(list(program), options)
