"""How MCP's requests stand in a pack: which are calls, under what name, with what body (docs/mcp). Pure.

`tools/call` is a call of the tool. Any other request that reads something of the server's is a call of the reserved
name `mcp/<method>`, its body the request's params without what belongs to one request alone.
"""

from collections.abc import Mapping
from typing import Any

from scoresheet import canonical
from scoresheet.canonical import JsonValue

PREFIX = "mcp/"
"""No tool's name: MCP's own naming rule has no slash."""
LISTS: Mapping[str, str] = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Method of a list → the member that holds it. `tools/list` is not among them: that is the pack's tools."""
READS = frozenset({"resources/read", "prompts/get", "completion/complete"})
HELLO = "initialize"
"""Under this name lies what the server told of itself: `serverInfo`, `instructions`, `capabilities`."""
_OWN = frozenset({"_meta", "inputResponses", "requestState", "task"})


def name_of(method: str) -> str:
    """The reserved name that a method's calls have in a pack."""
    return PREFIX + method


def body_of(params: Any) -> bytes:
    """The body of such a call. An empty `arguments` or `cursor` is the same as none."""
    if not isinstance(params, dict):
        return b"{}"
    kept: dict[str, JsonValue] = {name: value for name, value in params.items() if name not in _OWN}
    for name in ("arguments", "cursor", "context"):
        if name in kept and not kept[name]:
            del kept[name]
    return canonical.jcs(kept)
