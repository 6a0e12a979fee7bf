"""`claude-code`: Anthropic's coding agent (npm `@anthropic-ai/claude-code`), over messages; the pack's tools over MCP.

What would reach out, update, report or ask somebody is off, and so are its retries. Loaded inside the sandbox without
scoresheet: nothing of it is imported here.
"""

from __future__ import annotations

import glob
import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoresheet.sandbox.inside.ready_host import Given

NAME = "claude-code"
KIND = "anthropic"
PROGRAM = "claude"
PACKAGE = None
INSTALL = "npm install -g @anthropic-ai/claude-code@2.1.332"
OFFERS = ()
OFFERS_WITH_MCP = ()
OWN = ("Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write")
"""Its own tools: offered when the card names them."""
USUAL = ("Bash", "Edit", "Read", "Write")
TOGETHER = ()
OPTIONS = ("model", "effort")
_OFF = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1",
    "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
    "ENABLE_TOOL_SEARCH": "false",
    "API_TIMEOUT_MS": "600000",
    "IS_SANDBOX": "1",
}


def native(path: str) -> str:
    """The program itself, where `path` is npm's placeholder for it (installed without its scripts)."""
    package = os.path.dirname(os.path.dirname(path))
    inside = ("node_modules/@anthropic-ai/claude-code-linux-*", "../claude-code-linux-*")
    found = [each for place in inside for each in glob.glob(f"{package}/{place}/claude")]
    with open(path, "rb") as file:
        is_program = file.read(4) == b"\x7fELF"
    return path if is_program or not found else os.path.realpath(found[0])


def start(given: Given) -> tuple[list[str], dict[str, str]]:
    """Its command line and environment."""
    environment = {**given.environment, **_OFF}
    if given.temperature is not None:
        body = {"temperature": given.temperature}
        # thinking allows no temperature but 1
        environment |= {"MAX_THINKING_TOKENS": "0", "CLAUDE_CODE_EXTRA_BODY": json.dumps(body)}
    servers: dict[str, Any] = {}
    if given.tools:
        servers["replay"] = {"type": "http", "url": given.environment["SCORESHEET_MCP_URL"], "alwaysLoad": True}
    words = [*given.program, "-p", given.prompt, "--model", given.model, "--output-format", "stream-json", "--verbose"]
    words += ["--dangerously-skip-permissions", "--tools", ",".join(given.own(OWN, USUAL))]
    words += ["--no-session-persistence", "--setting-sources", "", "--disable-slash-commands"]
    words += ["--strict-mcp-config", "--mcp-config", json.dumps({"mcpServers": servers})]
    if "effort" in given.options:
        words += ["--effort", given.options["effort"]]
    return words, environment


def final(given: Given, printed: bytes) -> tuple[str | None, str | None]:
    """What the model said last, and what went wrong: its exit status does not tell."""
    events = [found for found in map(_event, printed.splitlines()) if found]
    begun = [each for each in events if each.get("type") == "system" and each.get("subtype") == "init"]
    ended = [each for each in events if each.get("type") == "result"]
    if not begun or not ended:
        return None, "it told no result"
    servers = {each.get("name"): each.get("status") for each in begun[0].get("mcp_servers", [])}
    if given.tools and servers.get("replay") != "connected":
        return None, f"the tools were not connected: {servers.get('replay', 'unknown')}"
    if ended[-1].get("is_error"):
        return None, f"{ended[-1].get('terminal_reason')}: {ended[-1].get('result')}"
    return str(ended[-1].get("result", "")), None


def _event(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
