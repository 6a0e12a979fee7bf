"""`codex`: OpenAI's coding agent (npm `@openai/codex`), over responses; the pack's tools reach it over MCP.

What would reach out, update, report or ask somebody is off; its own sandbox is off, for it runs in ours. Loaded inside
the sandbox without scoresheet: nothing of it is imported here.
"""

from __future__ import annotations

import glob
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoresheet.sandbox.inside.ready_host import Given

NAME = "codex"
KIND = "openai"
PROGRAM = "codex"
PACKAGE = None
INSTALL = "npm install -g @openai/codex@0.171.0"
OFFERS = ("request_user_input",)
"""Tools that it offers to the model in any case: the card must name them."""
OFFERS_WITH_MCP = ("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource")
OWN = ("exec_command", "write_stdin", "apply_patch")
"""Its own tools: offered when the card names them."""
TOGETHER = ("exec_command", "write_stdin")
"""Those of them that it offers all or none of."""
OPTIONS = ("model", "effort")
_LAST = "last.txt"
_OFF = (
    *("api_key_model_discovery", "apps", "browser_use", "browser_use_external", "computer_use"),
    *("enable_request_compression", "goals", "hooks", "image_generation", "in_app_browser", "in_app_updates"),
    *("memories", "plugin_sharing", "plugins", "remote_plugin", "shell_snapshot", "skill_mcp_dependency_install"),
    *("skill_search", "system_proxy_fallback", "tool_suggest", "unbounded_connection_retries", "view_image"),
    "workspace_dependencies",
)


def native(path: str) -> str:
    """The program itself, where `path` is npm's wrapper of it (a Node script)."""
    package = os.path.dirname(os.path.dirname(path))
    inside = ("node_modules/@openai/codex-linux-*", "../codex-linux-*", ".")
    found = [each for place in inside for each in glob.glob(f"{package}/{place}/vendor/*-linux-*/bin/codex")]
    return os.path.realpath(found[0]) if path.endswith(".js") and found else path


def start(given: Given) -> tuple[list[str], dict[str, str]]:
    """Its command line and environment; its configuration is written."""
    own = given.own(OWN, OWN)
    folder = f"{given.home}/.codex"
    environment = {**given.environment, "CODEX_HOME": folder}
    given.put(".codex/config.toml", "")  # it wants to find its folder
    given.put(".codex/models.json", json.dumps({"models": [_model(given, environment, "apply_patch" in own)]}))
    given.put(".codex/config.toml", _config(given, "exec_command" in own))
    words = [*given.program, "exec", "--json", "--strict-config", "--ephemeral", "--ignore-rules"]
    words += ["--skip-git-repo-check", "--color", "never", "-o", f"{given.home}/{_LAST}", given.prompt]
    return words, environment


def final(given: Given, printed: bytes) -> tuple[str | None, str | None]:
    """What the model said last, and what went wrong."""
    try:
        with open(f"{given.home}/{_LAST}", encoding="utf-8") as file:
            return file.read(), None
    except FileNotFoundError:
        return None, "it left no last message"


def _model(given: Given, environment: dict[str, str], patches: bool) -> dict[str, Any]:
    """What it is to know of the model: its own entry, else that of the plainest one, with each tool a tool of its own.

    The entries of newer models put all tools into one that runs code, where nobody could see which are called.
    """
    words = [*given.program, "debug", "models", "--bundled"]
    done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    known = json.loads(done.stdout)["models"]
    same = [each for each in known if given.model.startswith(each["slug"])]
    plain = [each for each in known if not each.get("tool_mode")]
    entry = dict((max(same, key=lambda each: len(each["slug"])) if same else (plain or known)[0]).items())
    for member in ("tool_mode", "multi_agent_version", "multi_agent_reasoning_effort", "model_messages"):
        entry.pop(member, None)
    entry |= {"slug": given.model, "display_name": given.model, "upgrade": None, "availability_nux": None}
    entry |= {"use_responses_lite": False, "supports_search_tool": False, "experimental_supported_tools": []}
    entry |= {"apply_patch_tool_type": "freeform" if patches else None}
    return entry


def _config(given: Given, shell: bool) -> str:
    tables: dict[str, dict[str, Any]] = {
        "": {
            "model": given.model,
            "model_provider": "door",
            "model_catalog_json": f"{given.home}/.codex/models.json",
            "approval_policy": "never",
            "sandbox_mode": "danger-full-access",
            "web_search": "disabled",
            "check_for_update_on_startup": False,
            "cli_auth_credentials_store": "file",
            "hide_agent_reasoning": True,
        },
        "model_providers.door": {
            "name": "door",
            "base_url": given.environment["OPENAI_BASE_URL"],
            "env_key": "OPENAI_API_KEY",
            "wire_api": "responses",
            "request_max_retries": 0,
            "stream_max_retries": 0,
            "stream_idle_timeout_ms": 600_000,
            "supports_websockets": False,
        },
        "analytics": {"enabled": False},
        "feedback": {"enabled": False},
        "history": {"persistence": "none"},
        "otel": {"exporter": "none", "metrics_exporter": "none", "trace_exporter": "none"},
        "features": {**dict.fromkeys(_OFF, False), "shell_tool": shell, "unified_exec": shell},
        "skills.bundled": {"enabled": False},
        "agents": {"enabled": False},
    }
    if "effort" in given.options:
        tables[""]["model_reasoning_effort"] = given.options["effort"]
    if given.tools:
        tables["mcp_servers.replay"] = {
            "url": given.environment["SCORESHEET_MCP_URL"],
            "required": True,
            "enabled_tools": given.tools,
            "startup_timeout_sec": 30,
            "tool_timeout_sec": 600,
        }
    lines: list[str] = []
    for name, members in tables.items():
        lines += [f"[{name}]"] if name else []
        lines += [f"{key} = {json.dumps(value)}" for key, value in members.items()]  # these values are TOML too
    return "\n".join(lines) + "\n"
