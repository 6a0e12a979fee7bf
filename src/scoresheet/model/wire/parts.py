"""What a decoder gives back, and readers that take any JSON without raising. Pure."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from scoresheet import canonical
from scoresheet.canonical import JsonValue

Headers = Sequence[tuple[str, str]]
_REQUEST_ID = ("request-id", "x-request-id", "apim-request-id", "cf-ray")
_MOST_TOKENS = 1 << 40


@dataclass(frozen=True, slots=True)
class ToolOffered:
    """A tool in a request."""

    name: str
    schema_sha256: str | None
    """Digest of the RFC 8785 text of its parameters; `None` when it has none."""
    server: bool = False
    """The provider would run it: a second network."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call in an answer."""

    name: str
    id: str
    arguments: str
    """As the model wrote them: JSON text, or the free text of a custom tool."""
    server: bool = False
    """The provider ran it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the provider counted them. `input` holds `cached` and `cache_write`; `output` holds `reasoning`."""

    input: int
    output: int
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """Both together."""
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that the provider told, as a status or inside a stream."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asked for; `None` where it says nothing and the provider's default holds."""

    dialect: str
    model: str | None
    input_sha256: str
    """Digest of the conversation and the model's name: two requests with the same one are the same question."""
    stream: bool = False
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    effort: str | None = None
    tools: tuple[ToolOffered, ...] = ()
    tool_choice: str | None = None
    parallel: bool | None = None
    """Whether several tool calls in one answer are allowed."""

    @property
    def server_tools(self) -> tuple[str, ...]:
        """Names of what the provider would run or fetch by itself, each once."""
        return tuple(dict.fromkeys(tool.name for tool in self.tools if tool.server))


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back."""

    status: int
    model: str | None = None
    finish: str | None = None
    """The provider's own word for why it stopped."""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    response_id: str | None = None
    request_id: str | None = None
    temperature: float | None = None
    """What the answer says was used; not every dialect says it."""
    top_p: float | None = None
    failure: Failure | None = None
    retry_after: str | None = None
    rate_limits: tuple[tuple[str, str], ...] = ()
    """The rate-limit headers, names in lower case."""
    complete: bool = True
    """False for a stream that ended before it said so."""


def answer(
    status: int,
    headers: Headers,
    found: dict[str, JsonValue],
    *,
    finish: str | None,
    calls: Iterable[ToolCall],
    usage: Usage | None,
    failure: Failure | None,
    complete: bool,
    request: str | None = None,
) -> Answered:
    """An answer whose object is `found`; `request` is the request's id where no header tells it."""
    return Answered(
        status=status,
        model=text(found.get("model")),
        finish=finish,
        calls=tuple(calls),
        usage=usage,
        response_id=text(found.get("id")),
        request_id=request_id(headers) or request,
        failure=failure,
        retry_after=header(headers, "retry-after"),
        rate_limits=rate_limits(headers),
        complete=complete,
    )


def obj(value: JsonValue) -> dict[str, JsonValue]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    """The objects of an array; of anything else, none."""
    return (each for each in value if isinstance(each, dict)) if isinstance(value, list) else iter(())


def text(value: JsonValue) -> str | None:
    """The string, or `None`."""
    return value if isinstance(value, str) else None


def number(value: JsonValue) -> float | None:
    """The number, or `None`; an integer too large for a double is none that anybody sets."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def whole(value: JsonValue) -> int | None:
    """The integer, or `None`; 7.0 is one. As of `number`, one too large for a double is none that anybody sets."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return None if number(value) is None else value


def count(value: JsonValue) -> int:
    """The number of tokens; 0 when it isn't told, or is more than any call could spend."""
    found = whole(value) or 0
    return found if 0 <= found < _MOST_TOKENS else 0


def flag(value: JsonValue) -> bool | None:
    """The boolean, or `None`."""
    return value if isinstance(value, bool) else None


def told(value: JsonValue) -> str | None:
    """A string as it is, anything else as JSON text."""
    return None if value is None else value if isinstance(value, str) else canonical.jcs(value).decode()


def sha256(value: JsonValue) -> str:
    """Digest of the RFC 8785 text."""
    return "sha256:" + hashlib.sha256(canonical.jcs(value)).hexdigest()


def parsed(body: bytes | str) -> JsonValue:
    """The JSON, or `None` when it is none that two parsers read alike."""
    try:
        return canonical.loads(body)
    except canonical.JsonError:
        return None


def failure(value: JsonValue, status: int = 0) -> Failure:
    """The error in any of the shapes that providers use."""
    error = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(error, str):
        return Failure(f"status {status}" if status else "error", error)
    told_kind = obj(error).get("type") or obj(error).get("code")
    kind = told(told_kind) if told_kind is not None else None
    return Failure(kind or (f"status {status}" if status else "error"), told(obj(error).get("message")) or "")


def header(headers: Headers, *names: str) -> str | None:
    """The first header with the first of the names that is there."""
    for name in names:
        for key, value in headers:
            if key.lower() == name:
                return value
    return None


def request_id(headers: Headers) -> str | None:
    """The id that the provider's support would ask for."""
    return header(headers, *_REQUEST_ID)


def rate_limits(headers: Headers) -> tuple[tuple[str, str], ...]:
    """What the headers say of limits, in their order."""
    return tuple((key.lower(), value) for key, value in headers if "ratelimit" in key.lower())


def remote(value: JsonValue, names: frozenset[str]) -> bool:
    """True when a member with one of the names holds a web address, which the provider would fetch."""
    waiting: list[JsonValue] = [value]
    while waiting:
        match waiting.pop():
            case dict() as found:
                for name, member in found.items():
                    if name in names and isinstance(member, str) and not member.lower().startswith("data:"):
                        return True
                    waiting.append(member)
            case list() as several:
                waiting += several
            case _:
                pass
    return False
