"""Tools called by name while recording: `POST /<tool>` becomes the request that a run would look up."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from scoresheet import canonical
from scoresheet.documents.tool import Tool
from scoresheet.errors import Malformed
from scoresheet.pack.toolbox import Toolbox
from scoresheet.record.relay import Message
from scoresheet.record.upstream import Upstream

SUBMIT_ANSWER = "submit_answer"


@dataclass(frozen=True, slots=True)
class Forward:
    """The request goes to a service."""

    upstream: Upstream
    message: Message
    recorded: bool = True
    """False when the request only passes: it goes to no service that is recorded."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The request is answered here, and is no recorded call."""

    status: int
    body: bytes
    problem: str = ""
    """Why the task can't be recorded so; empty when it can."""
    answer: bytes | None = None
    """The answer that the command submitted."""


Route = Forward | Reply


class ToolCalls:
    """The way from a tool's name to its service."""

    def __init__(self, tools: Sequence[Tool], upstreams: Sequence[Upstream]) -> None:
        self._toolbox = Toolbox(tools)
        self._upstreams: Mapping[str, Upstream] = {upstream.name: upstream for upstream in upstreams}

    def route(self, message: Message) -> Route:
        """Where a request at the door of tools goes."""
        name = unquote_to_bytes(message.url.partition(b"?")[0].removeprefix(b"/")).decode("utf-8", "replace")
        if message.method != "POST":
            return Reply(405, _json({"error": "tools are called by POST /<tool>"}))
        tool = self._toolbox.by_name.get(name)
        if tool is None and name == SUBMIT_ANSWER:
            return Reply(200, _json({"accepted": True}), answer=bytes(message.body))
        upstream = self._upstreams.get(tool.http.upstream) if tool is not None and tool.http is not None else None
        if tool is None or upstream is None:
            body = _json({"error": "unrecorded_call", "kind": "unknown_tool"})
            return Reply(403, body, f"the command called the tool {name!r}, which no description names")
        try:
            arguments = canonical.loads(bytes(message.body)) if message.body else {}
            request = self._toolbox.request_for(tool, canonical.as_object(arguments))
        except Malformed as error:  # a run would not find it either
            return Reply(403, _json({"error": "unrecorded_call", "kind": "no_match", "what": error.what}))
        made = Message.of(request)
        made.version, made.keep_alive = message.version, message.keep_alive
        return Forward(upstream, made)


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
