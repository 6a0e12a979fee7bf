"""What an importer gathers: exchanges, tools, and everything that is not as it stood in the file. Pure.

Every entry of a file ends in exactly one of two ways: it is an exchange, or it is left out with a reason. What an
exchange lost on the way is counted. Nothing is silently dropped, and nothing that is missing becomes empty.
"""

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import CALL, HeaderPairs, Request, Response, Tool
from scoresheet.errors import Finding, Refused
from scoresheet.pack import mcp_calls
from scoresheet.record.exchange import Exchange, codings, header, readable
from scoresheet.record.importers.hosts import Hosts
from scoresheet.record.importers.shape import LeftOut, obj
from scoresheet.record.states import Told

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "upgrade", "expect", "trailer", "transfer-encoding"}
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_URL = re.compile(r"(?is)(https?)://(?:([^/?#@]*)@)?([^/?#@]+)([^?#]*)(\?[^#]*)?(?:#.*)?")
_UNSENT = re.compile(r"[^\x21-\x7e]")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_DEFAULT_PORT = {"http": ":80", "https": ":443"}
_BODYLESS = frozenset({204, 304})
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_MCP_NAMES = frozenset(map(mcp_calls.name_of, (*mcp_calls.LISTS, *mcp_calls.READS, mcp_calls.HELLO)))


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import."""

    name: str
    data: bytes
    beside: Mapping[str, bytes] = field(default_factory=dict)
    """Files that it may refer to, by their name (`__files/…` of WireMock)."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What came out of the files."""

    exchanges: tuple[Exchange, ...]
    places: tuple[str, ...]
    """Where each exchange stood: `file#/pointer`."""
    tools: tuple[Tool, ...]
    """Tools that the files describe, or that only their calls show."""
    hosts: Mapping[str, str]
    left_out: tuple[Finding, ...]
    """Entries that are not in the pack, and why."""
    changed: tuple[tuple[str, int], ...]
    """What is not as it stood in the file, and how often."""
    secrets: tuple[str, ...]
    """Credentials that the files name as such outside of requests and answers."""
    prompt: str
    """What the agent was asked, when the file says so."""
    states: Mapping[str, Told] = field(default_factory=dict)
    """Where an exchange stood → what the file says of its state."""
    first_state: str = ""
    """The state that scenarios of this format begin in."""


class Intake:
    """The gathering."""

    def __init__(self, hosts: Hosts | None = None) -> None:
        self.hosts = Hosts() if hosts is None else hosts
        self.prompt = ""
        self.listed = False
        """Whether the file names every tool that there was: a call of another one was refused by the server itself."""
        self.first_state = ""
        self._states: dict[str, Told] = {}
        self._kept: list[tuple[str, Exchange]] = []
        self._tools: dict[str, Tool] = {}
        self._left_out: list[Finding] = []
        self._changed: Counter[str] = Counter()
        self._secrets: list[str] = []

    def gathered(self) -> Gathered:
        """All of it."""
        if self.listed:
            self._kept = [pair for pair in self._kept if self._was_offered(*pair)]
        names = {exchange.request.upstream for _, exchange in self._kept}
        return Gathered(
            tuple(exchange for _, exchange in self._kept),
            tuple(where for where, _ in self._kept),
            tuple(self._tools.values()),
            self.hosts.used(names),
            tuple(self._left_out),
            tuple(sorted(self._changed.items())),
            tuple(dict.fromkeys(self._secrets)),
            self.prompt,
            self._states,
            self.first_state,
        )

    def _was_offered(self, where: str, exchange: Exchange) -> bool:
        name = exchange.request.target
        known = exchange.request.method != CALL or name in self._tools or name in _MCP_NAMES
        if not known:
            self.leave_out(where, "import-undescribed", f"a call of {name}, which the server did not offer")
        return known

    @contextlib.contextmanager
    def entry(self, where: str) -> Iterator[None]:
        """Around the reading of one entry: a reason to leave it out is written down."""
        try:
            yield
        except LeftOut as error:
            self.leave_out(where, error.rule, error.what, error.mend)
        except canonical.JsonError as error:
            self.leave_out(where, "import-shape", f"it holds what strict JSON can't: {error.what}")
        except RecursionError:
            self.leave_out(where, "import-shape", "it is nested too deeply")
        except UnicodeEncodeError:
            self.leave_out(where, "import-text", "its text holds half of a character (a lone surrogate)")

    def leave_out(self, where: str, rule: str, what: str, mend: str = "") -> None:
        """An entry is not imported."""
        self._left_out.append(Finding(rule, where, what, mend))

    def change(self, what: str) -> None:
        """Something of an entry is not as it stood."""
        self._changed[what] += 1

    def state(self, where: str, scenario: str, requires: str | None, sets: str | None) -> None:
        """An entry is answered in one state of a scenario, and leads to another."""
        self._states[where] = Told(scenario, requires, sets)

    def tool(self, where: str, value: JsonValue) -> None:
        """A tool that the file describes, in MCP's shape; the last description of a name counts. Raises `LeftOut`."""
        described = obj(value, "the tool")
        name = _tool_name(described.get("name"))
        members = {key: part for key, part in described.items() if key not in ("http", "ignore", "inferred")}
        try:
            self._tools[name] = Tool.from_value(members, where)
        except Refused as error:
            raise LeftOut("import-shape", f"the description of the tool {name} is not valid: {error.what}") from error

    def tool_of_http(self, tool: Tool) -> None:
        """A tool bound to HTTP that the file describes."""
        self._tools[tool.name] = tool

    def http(
        self,
        where: str,
        method: str,
        url: str,
        sent: tuple[HeaderPairs, bytes],
        status: int | None,
        answered: tuple[HeaderPairs, bytes],
        latency_ms: float = 0.0,
        plain: bool = False,
        stream: tuple[int, ...] = (),
    ) -> None:
        """Take an HTTP exchange: headers and body of the request, of the answer.

        `plain`: the file stores bodies with their Content-Encoding undone. Raises `LeftOut`.
        """
        if not _TOKEN.fullmatch(method):
            raise LeftOut("import-shape", f"{method!r} is no HTTP method")
        if status is None or not 100 <= status <= 999:
            what = "no answer was recorded" if not status else f"{status} is no HTTP status"
            raise LeftOut("import-no-answer", what, "the request failed or was cancelled: record it again")
        if status < 200:
            what = "a switch of protocols (WebSocket)" if status == 101 else f"an interim answer ({status})"
            raise LeftOut("import-no-replay", f"{what} can't be replayed")
        upstream, path, userinfo = self._target(url)
        request_headers, request_body = self._message(sent, plain, "request")
        if userinfo:
            self._secrets += [part for part in userinfo.split(":", 1)[1:] if part]
            self.change("the user in a URL was left out")
        head, body = self._message(answered, plain, "answer")
        chunked = "chunked" in header(answered[0], "transfer-encoding").lower()
        if method.upper() == "HEAD" or status in _BODYLESS:
            if body:
                self.change(f"a body beside a {status} was left out: none is sent with it")
            body = b""
        elif chunked:
            head = tuple(pair for pair in head if pair[0].lower() != "content-length")  # RFC 9112 §6.3: chunks win
            if body and not stream:
                stream = (len(body),)
                self.change("chunked answer becomes one chunk: the file does not say where the chunks were")
        else:
            head = self._measured(head, body)
        request = Request(upstream, method.upper(), path, request_headers, request_body)
        response = Response(status, head, body, latency_ms, None, stream if body else ())
        self._kept.append((where, Exchange(request, response)))

    def fault(
        self,
        where: str,
        method: str,
        url: str,
        sent: tuple[HeaderPairs, bytes],
        fault: Literal["connection_reset", "timeout"],
        latency_ms: float,
    ) -> None:
        """Take a request that got no answer, in the way that `fault` says. Raises `LeftOut`."""
        upstream, path, _ = self._target(url)
        headers, body = self._message(sent, False, "request")
        request = Request(upstream, method, path, headers, body)
        self._kept.append((where, Exchange(request, Response(0, (), b"", latency_ms, fault))))

    def call(
        self, where: str, name: JsonValue, arguments: JsonValue, result: bytes, media: str, latency_ms: float = 0.0
    ) -> None:
        """Take a call of a tool by name, and its result as it was given. Raises `LeftOut`."""
        called = name if isinstance(name, str) and name in _MCP_NAMES else _tool_name(name)
        try:
            body = canonical.jcs({} if arguments is None else arguments)
        except canonical.JsonError as error:
            raise LeftOut("import-arguments", f"the arguments are not JSON: {error.what}") from error
        request = Request("", CALL, called, (("Content-Type", "application/json"),), body)
        response = Response(200, (("Content-Type", media),), result, latency_ms)
        self._kept.append((where, Exchange(request, response)))

    def wanted(self, url: str) -> None:
        """Raises `LeftOut` for a host that was not asked for: nothing else that is wrong with its entry matters."""
        found = _URL.fullmatch(url.strip())
        if found is not None and self.hosts.chosen:
            self._target(url, quiet=True)

    def _target(self, url: str, quiet: bool = False) -> tuple[str, str, str]:
        found = _URL.fullmatch(url.strip())
        if found is None:
            scheme = url.partition(":")[0][:20]
            raise LeftOut("import-url", f"the URL is not http(s)://host/… (it begins with {scheme!r})")
        scheme, userinfo, authority, path, query = found.groups(default="")
        authority = authority.lower().removesuffix(_DEFAULT_PORT[scheme.lower()])
        clean = _UNSENT.sub(lambda odd: "".join(f"%{byte:02X}" for byte in odd[0].encode()), path + query)
        if clean != path + query and not quiet:
            self.change("the URL held characters that no request line can, and was percent-encoded")
        clean_path, mark, rest = clean.partition("?")
        placed = self.hosts.place(authority, clean_path or "/")
        if placed is None:
            raise LeftOut("import-other-host", f"{authority} is not one of the hosts given by --upstream")
        return placed[0], placed[1] + mark + rest, userinfo

    def _message(self, message: tuple[HeaderPairs, bytes], plain: bool, which: str) -> tuple[HeaderPairs, bytes]:
        """Headers and body that fit together: what the headers say of the coding is true of the bytes."""
        headers = self._headers(message[0])
        body = message[1]
        coded = codings(headers)
        if not body or not coded:
            return headers, body
        if readable(headers, body) is not None:
            return headers, body
        if not plain or (coded[-1] in ("gzip", "x-gzip") and body.startswith(b"\x1f\x8b")):
            what = f"the {which}'s Content-Encoding ({', '.join(coded)}) can't be undone: it can't be searched"
            raise LeftOut("import-unreadable", what, "record it again with Accept-Encoding: gzip")
        self.change(f"Content-Encoding of the {which} left out: the file stores the body decoded")
        return tuple(pair for pair in headers if pair[0].lower() != "content-encoding"), body

    def _headers(self, headers: HeaderPairs) -> HeaderPairs:
        kept = []
        for name, joined in headers:
            if name.startswith(":") or name.lower() in _HOP_BY_HOP:
                continue
            for value in joined.split("\n"):  # Chrome joins the repetitions of a header so
                value = value.strip()
                if not _TOKEN.fullmatch(name) or _CONTROL.search(value):
                    self.change("a header that can't be sent was left out")
                else:
                    kept.append((name, value))
        return tuple(kept)

    def _measured(self, headers: HeaderPairs, body: bytes) -> HeaderPairs:
        length = header(headers, "content-length")
        if not length or length == str(len(body)):
            return headers
        self.change("Content-Length corrected to the body that the file holds")
        others = [pair for pair in headers if pair[0].lower() != "content-length"]
        return (*others, ("Content-Length", str(len(body))))


def _tool_name(name: JsonValue) -> str:
    """A name that can stand in the name of a file."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise LeftOut("import-tool-name", f"{str(name)[:80]!r} can't name a tool", "use letters, digits, `_`, `-`, `.`")
    if name == "submit_answer":
        raise LeftOut("import-tool-name", "submit_answer is the tool by which agents answer, in every task")
    return name


def pairs(headers: Iterable[tuple[str, str | Sequence[str]]]) -> HeaderPairs:
    """Headers whose value may be a list, as pairs."""
    found: list[tuple[str, str]] = []
    for name, value in headers:
        found += [(name, value)] if isinstance(value, str) else [(name, each) for each in value]
    return tuple(found)
