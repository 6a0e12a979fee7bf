"""`calls.jsonl`: one line per request that the door saw in an episode, written by the server itself.

Everything a row says about calls is folded from these lines; nothing is taken from the agent's word.
"""

from typing import Annotated, Literal

from pydantic import Field

from scoresheet.canonical import JsonValue
from scoresheet.documents.model import Document, Many
from scoresheet.documents.task import CallState

MissKind = Literal["no_match", "exhausted", "unknown_tool", "wrong_state"]
"""`wrong_state`: recorded, but in another state of its scenario than the one that the episode was in."""


class Nearest(Document):
    """The recorded request most like one that was not recorded, and how they differ."""

    rule = "calls"
    fingerprint: str
    method: str
    path: str
    difference: Many[str] = ()
    """Readable lines, such as `body /amount: recorded 12, asked 13`."""


class CallRecord(Document):
    """One request at the door, and what it was answered."""

    rule = "calls"
    most_digits = None
    seq: Annotated[int, Field(ge=0)]
    at_s: float
    """Seconds since the agent started."""
    via: Literal["http", "call", "mcp"]
    """The door it came through: a recorded API, the tools by name, MCP."""
    upstream: str
    method: str
    path: str
    """Path and query as sent."""
    fingerprint: str
    outcome: Literal["hit", "miss", "capped", "malformed", "answer", "accepted"]
    """`capped`: one call more than the cap, not answered. `malformed`: no HTTP request; answered 4xx, no tool call.
    `answer`: the `submit_answer` tool; no tool call either. `accepted`, with `serve --accept-new` alone and never in a
    run: answered by the live service, and recorded."""
    kind: MissKind | None = None
    status: int
    """The status that was sent; 0 when the recorded fault was replayed."""
    repeat: bool = False
    """True beyond the recorded count of this fingerprint."""
    latency_ms_recorded: float = 0.0
    tool: str | None = None
    schema_errors: Many[str] = ()
    ignored: Many[str] = ()
    """The tool's `ignore` rules that took something out of the request before it was compared."""
    nearest: Nearest | None = None
    state: CallState | None = None
    """Of a hit in a task with scenarios: the state that it was recorded in, and the one that it led to."""
    states: dict[str, str] | None = None
    """Of a miss in a task with scenarios: scenario → the state that the episode was in."""
    body: JsonValue = None
    """The body as text when it is UTF-8, else `{"base64": …}`; cut at 64 KiB. What was wrong, when it is malformed."""
