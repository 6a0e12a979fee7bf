"""Tools, and the requests and responses that cross the one door."""

import base64
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from scoresheet.canonical import JsonValue
from scoresheet.documents.model import Document, Headers, Many

HeaderPairs = tuple[tuple[str, str], ...]

CALL = "CALL"
"""The method of a tool that has no HTTP binding; the target is then the tool's name."""

MCP_RESULT = "application/vnd.mcp.result+json"
"""Content type of a recorded answer whose body is the `result` member of an MCP answer, its literal text."""
MCP_ERROR = "application/vnd.mcp.error+json"
"""The same of an `error` member."""


@dataclass(frozen=True, slots=True)
class Request:
    """A tool request as it stood at the door: bytes, never re-encoded."""

    upstream: str
    """The name given when recording (`--upstream NAME=URL`); `""` for tools without HTTP and for v1."""
    method: str
    target: str
    """Path and query as sent (RFC 9112 origin form); the tool's name when the method is `CALL`."""
    headers: HeaderPairs = ()
    body: bytes = b""

    def header(self, name: str) -> str:
        """The value of a header, its repetitions joined by `, ` (RFC 9110 §5.3); `""` when it is absent."""
        wanted = name.lower()
        return ", ".join(value for key, value in self.headers if key.lower() == wanted)


@dataclass(frozen=True, slots=True)
class Response:
    """A recorded answer, as literal bytes."""

    status: int
    headers: HeaderPairs = ()
    body: bytes = b""
    latency_ms: float = 0.0
    """How long the real service took; replay does not wait for it unless `fault` is `timeout`."""
    fault: Literal["connection_reset", "timeout", "truncated"] | None = None
    stream: tuple[int, ...] = field(default=())
    """Chunk boundaries as byte offsets into the body; empty when the body came with its length."""


class HttpBinding(Document):
    """How a tool is reached over HTTP (docs/formats, Tools and HTTP)."""

    rule = "tool"
    upstream: str
    method: str
    path: str
    """Template: `/orders/{order_id}`; arguments named here go into the path, the rest to the query or the body."""
    vary: Many[str] = ()
    """Request headers that are part of the fingerprint, lower case."""


class Tool(Document):
    """`tools/<name>.json`, in MCP's shape."""

    rule = "tool"
    most_digits = None
    name: Annotated[str, Field(min_length=1, max_length=128)]
    description: str = ""
    input_schema: Annotated[JsonValue, Field(alias="inputSchema")] = None
    """JSON Schema 2020-12 of the arguments; absent means that arguments are not checked."""
    output_schema: Annotated[JsonValue, Field(alias="outputSchema")] = None
    """JSON Schema of the result's `structuredContent`, as the MCP server declared it."""
    annotations: JsonValue = None
    http: HttpBinding | None = None
    ignore: Many[str] = ()
    """Members removed before fingerprinting: `/json/<pointer>`, `/query/<name>`, `/form/<name>`."""
    inferred: bool = False
    """True while `record` owns this file: it widens the schema to new traffic. Remove the line to own it yourself."""


class RequestCopy(Document):
    """The readable copy of a recorded request in a v2 task; `freeze` recomputes the fingerprint from it."""

    rule = "task"
    upstream: str = ""
    method: str
    path: str
    """As sent, without the query; the tool's name for `CALL`."""
    query: str | None = None
    """As sent, without the question mark; `null` when there was none."""
    headers: Headers = ()
    body: JsonValue = None
    """The JSON value, when the body was strict JSON; see `body_text` and `body_base64` for all else."""
    body_text: str | None = None
    """The literal text of a body that was UTF-8 but not JSON, or whose JSON must be kept literally."""
    body_base64: str | None = None
    """The bytes of a body that was not UTF-8."""

    def as_request(self) -> Request:
        """The request that this copy stands for. The JSON body is written compactly: its fingerprint is the same."""
        from scoresheet import canonical

        if self.body_base64 is not None:
            body = base64.b64decode(self.body_base64, validate=True)
        elif self.body_text is not None:
            body = self.body_text.encode()
        elif "body" in self.model_fields_set:
            body = canonical.jcs(self.body)
        else:
            body = b""
        target = self.path if self.query is None else f"{self.path}?{self.query}"
        return Request(self.upstream, self.method, target, tuple(self.headers), body)
