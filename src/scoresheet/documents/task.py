"""One task: what the agent is asked, which calls have a recorded answer, and what a right answer holds.

`tool-replay-v1` knows `V1_FIELDS` and, per call, `V1_CALL_FIELDS`; everything else is `tool-replay-v2`.
"""

import base64
import binascii
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from scoresheet.canonical import JsonValue
from scoresheet.documents.model import Document, Fingerprint, Headers, Many, Seconds, StateName, TaskId
from scoresheet.documents.tool import RequestCopy, Response

V1_FIELDS = frozenset({"task_id", "prompt", "tools", "calls", "expected"})
V1_CALL_FIELDS = frozenset({"request_fingerprint", "response_status", "response_bytes", "latency_ms_recorded"})


class ToolReference(Document):
    """A tool that the task offers."""

    rule = "task"
    name: str
    schema_sha256: Fingerprint
    """`sha256:` and the digest of the bytes of `tools/<name>.json`, when that file exists."""


class CallState(Document):
    """In which state of a scenario a call is answered, and which one it leads to."""

    rule = "task"
    scenario: StateName
    requires: StateName | None = None
    """The call is answered in this state only; in any that no other call of its fingerprint requires, when absent."""
    sets: StateName | None = None
    """The scenario's state once the call was answered; the same as before when absent."""

    @model_validator(mode="after")
    def _says_something(self) -> "CallState":
        if self.requires is None and self.sets is None:
            raise ValueError("a call's state says what it requires, what it sets, or both")
        return self


class Call(Document):
    """One recorded call: the request's fingerprint and the literal answer."""

    rule = "task"
    request_fingerprint: Fingerprint
    response_status: Annotated[int, Field(ge=0, le=999)]
    response_bytes: str | None = None
    """The literal text of the body; `response_base64` instead when it was not UTF-8."""
    latency_ms_recorded: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    request: RequestCopy | None = None
    response_headers: Headers = ()
    response_base64: str | None = None
    fault: Literal["connection_reset", "timeout", "truncated"] | None = None
    stream: Many[Annotated[int, Field(ge=0)]] = ()
    state: CallState | None = None
    """Only in tasks with `scenarios`."""

    @model_validator(mode="after")
    def _one_body(self) -> "Call":
        if (self.response_bytes is None) == (self.response_base64 is None):
            raise ValueError("a call has either response_bytes or response_base64")
        if self.response_base64 is not None:
            try:
                base64.b64decode(self.response_base64, validate=True)
            except binascii.Error as error:
                raise ValueError(f"response_base64 is not base64: {error}") from error
        return self

    def response(self) -> Response:
        """The recorded answer."""
        if self.response_base64 is not None:
            body = base64.b64decode(self.response_base64)
        else:
            body = (self.response_bytes or "").encode()
        return Response(
            self.response_status,
            tuple(self.response_headers),
            body,
            self.latency_ms_recorded,
            self.fault,
            tuple(self.stream),
        )


class TaskLimits(Document):
    """Limits of one task; they may only lower the pack's."""

    rule = "task"
    wall_clock_s: Seconds | None = None
    max_tool_calls: Annotated[int, Field(ge=0)] | None = None


class Oracle(Document):
    """How success is decided (docs/formats, Oracles)."""

    rule = "task"
    kind: Literal["match", "schema", "pytest", "human"]
    test_command: str | None = None
    """`pytest`: the words of the command, run in the workspace without a shell. One that does not run pytest itself
    counts by its exit status alone."""
    tests: Many[str] = ()
    """`pytest`: files or folders of the workspace that hold the frozen tests; they are laid back before grading."""
    expected_ids: Many[str] = ()
    """`pytest`: node ids (`tests/test_a.py::test_b`) that must all have passed."""
    timeout_s: Seconds = 300.0
    """`pytest`: of the whole command."""
    case_timeout_s: Seconds = 60.0
    """`pytest`: of one test, which fails when it takes longer."""
    output_file: str | None = None
    """`schema`: a file of the workspace that is judged in place of the answer."""
    output_schema: JsonValue = None
    """`schema`: the schema of `output_file`; `answer_schema` when absent."""


class WorkspaceWishes(Document):
    """What a task wants of its workspace beside its files."""

    rule = "task"
    git: bool = False
    """A fresh repository with one commit, without history."""


class Task(Document):
    """A task file, of either protocol."""

    rule = "task"
    most_digits = None
    task_id: TaskId
    prompt: str
    tools: Many[ToolReference] = ()
    calls: Many[Call] = ()
    expected: dict[str, JsonValue] = {}
    scenarios: dict[StateName, Annotated[Many[StateName], Field(min_length=1)]] = {}
    """Scenario → its states, the one that each episode begins in first."""
    kind: Literal["replay", "workspace", "drill"] = "replay"
    card: JsonValue = None
    oracle: Oracle | None = None
    workspace: WorkspaceWishes | None = None
    answer_schema: JsonValue = None
    limits: TaskLimits = TaskLimits()
    split: str | None = None
    origin: str | None = None
    licence: str | None = None
    tags: Many[str] = ()
    cluster_id: str | None = None

    @field_validator("origin")
    @classmethod
    def _known_origin(cls, origin: str | None) -> str | None:
        known = ("scraped-issue", "internal-bug", "synthetic", "homework")
        if origin is not None and origin not in known and not origin.startswith("other: "):
            raise ValueError(f"origin is one of {', '.join(known)} or `other: …`")
        return origin

    @field_validator("scenarios")
    @classmethod
    def _each_state_once(cls, scenarios: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for scenario, states in scenarios.items():
            if len(set(states)) < len(states):
                raise ValueError(f"the scenario {scenario} names a state twice")
        return scenarios

    def v2_fields(self) -> tuple[str, ...]:
        """What this task uses that `tool-replay-v1` can't hold: JSON pointers, empty for a v1 task."""
        found = [f"/{name}" for name in sorted(self.model_fields_set & _V2_FIELDS)]
        for place, call in enumerate(self.calls):
            if not _V2_CALL_FIELDS.isdisjoint(call.model_fields_set):
                found += [f"/calls/{place}/{name}" for name in sorted(call.model_fields_set & _V2_CALL_FIELDS)]
        return tuple(found)


_V2_FIELDS = frozenset(Task.model_fields) - V1_FIELDS
_V2_CALL_FIELDS = frozenset(Call.model_fields) - V1_CALL_FIELDS
