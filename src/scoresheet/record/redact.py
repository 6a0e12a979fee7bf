"""Credentials out of a recording, before anything touches the disk. Pure.

Request headers are kept by an allow-list. A credential in a query, a form or a JSON body, and one in an answer, becomes
`REDACTED-n` (one placeholder a value); in requests its member is then ignored in matching, so that a replay answers
whatever credential the agent sends. A value that was once a credential is one wherever it stands. What can't be ignored
(a credential in a path or in other bodies) is a finding: the task is not recorded.

Reports say where and by which rule, never what.
"""

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import HeaderPairs, Request, Response
from scoresheet.errors import Finding
from scoresheet.pack.body import is_json, media_type
from scoresheet.record.exchange import Exchange, codings, encoded, readable, readable_start

KEPT_HEADERS = frozenset(
    {"accept", "accept-language", "content-type", "content-encoding", "content-language", "range", "prefer"}
)
"""Request headers worth keeping, beside `If-*`."""

_EXACT_NAMES = frozenset(
    [
        "token",
        "auth",
        "authorization",
        "credential",
        "credentials",
        "jwt",
        "bearer",
        "sessionid",
        "sessiontoken",
        "signature",
        "sig",
        "pwd",
        "passphrase",
        "idtoken",
        "csrftoken",
        "xcsrftoken",
        "xsrftoken",
        "xxsrftoken",
        "csrf",
        "apitoken",
        "passcode",
        "otp",
        "awsaccesskeyid",
        "xamzcredential",
        "xamzsecuritytoken",
        "xamzsignature",
    ]
)
_NAME_ENDS = (
    *("password", "passwd", "secret", "apikey", "accesstoken", "authtoken", "refreshtoken", "bearertoken"),
    *("secretkey", "privatekey", "accesskey", "authkey", "secrettoken"),
)
_NUMBERS_TOO = ("password", "passwd", "secret", "pwd", "passcode", "otp")
_HEADER_NAME = re.compile(
    r"(?i)auth|token|api-?key|secret|cookie|sess|sid\b|signature|password|credential|csrf|xsrf|jwt"
)
_PLACEHOLDER = re.compile(r"REDACTED-\d+|\*{3,}|<[^>]*>|\{\{.*\}\}|\$\{.*\}")
_EXAMPLE = re.compile(r"(?i)example|replace[_ -]?me|your[_-]|changeme|placeholder|dummy|redacted|xxxx|\*{4}|\$\{")

SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (rule, re.compile(pattern))
    for rule, pattern in (
        (
            "private-key",
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:[\s\S]*?-----END [A-Z0-9 ]*-----)?",
        ),
        ("aws-key-id", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
        ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})\b"),
        ("gitlab-token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
        ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{20,}"),
        ("openai-key", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}T3BlbkFJ[A-Za-z0-9_-]{20,}"),
        ("anthropic-key", r"\bsk-ant-[a-z0-9]+-[A-Za-z0-9_-]{80,}"),
        ("stripe-key", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("google-key", r"\bAIza[A-Za-z0-9_-]{35}"),
        ("hugging-face-token", r"\bhf_[A-Za-z]{34}\b"),
        ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
        ("pypi-token", r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}"),
        ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}"),
        ("url-password", r"\b[a-z][a-z0-9+.-]{1,15}://[^\s:/@\"'<>]{0,64}:([^\s:/@\"'<>]{3,128})@[A-Za-z0-9.\[-]"),
        ("bearer", r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/-]{16,}={0,2})"),
    )
)
"""Rule → what a credential of that kind looks like; its last group, or all of it, is the credential."""

_NAMED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (rule, re.compile(pattern))
    for rule, pattern in (
        ("named-member", r'"([^"\\]{1,64})"\s*:\s*"((?:[^"\\]|\\.)+)"'),
        ("named-member", r'\\+"([^"\\]{1,64})\\+"\s*:\s*\\+"([^"\\]+)\\+"'),
        ("named-parameter", r"[?&;]([A-Za-z0-9_.~%\[\]-]{1,64})=([^&;#\s\"'<>\\]+)"),
        ("named-element", r"<(?:\w+:)?([\w.-]{1,64})(?:\s[^<>]*)?>([^<>\s][^<>]*)</"),
        ("named-part", r'(?i)name="([^"]{1,64})"[^\r\n]*(?:\r\n[^\r\n]+)*\r\n\r\n([^\r\n]+)'),
        ("named-header", r"(?im)^(authorization|x-api-key|cookie|set-cookie)\s*:\s*(\S.{7,})$"),
    )
)
"""Rule → a name and its value in text; the value is a credential when the name says so."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A credential that became a placeholder."""

    where: str
    rule: str
    placeholder: str

    def __str__(self) -> str:
        return f"{self.where}: {self.placeholder} [{self.rule}]"


@dataclass(frozen=True, slots=True)
class Redaction:
    """A recording without its credentials."""

    exchanges: tuple[Exchange, ...]
    replaced: tuple[Replacement, ...]
    ignored: tuple[tuple[int, str], ...]
    """Place of the call, and the member of its request that no longer counts: an `ignore` rule of its tool."""
    dropped_headers: tuple[tuple[str, int], ...]
    """Request header → in how many calls it was dropped."""
    findings: tuple[Finding, ...]
    """Credentials that can't be taken out: with one of these the recording must not be written."""
    secrets: "Secrets"


@dataclass(slots=True)
class Secrets:
    """The credentials of one recording, in memory only."""

    allowed: frozenset[str] = frozenset()
    """Names that a person declared to be no credential, as `plain_name` gives them."""
    _placeholders: dict[str, str] = field(default_factory=dict)
    _watched: set[str] = field(default_factory=set)
    _everywhere: re.Pattern[str] | None = None
    _forms: dict[str, str] = field(default_factory=dict)

    def add(self, value: str, everywhere: bool = True) -> str:
        """The placeholder of a credential; from now on the value is one wherever it stands, if it is no plain word."""
        if everywhere:
            self.watch(value)
        return self._placeholders.setdefault(value, f"REDACTED-{len(self._placeholders) + 1}")

    def watch(self, value: str) -> None:
        """Take `value` for a credential wherever it stands, if it is long and odd enough to be no plain word."""
        if value in self._watched or not _telling(value):
            return
        self._watched.add(value)
        self._everywhere = None
        for form in (value, quote(value, safe=""), quote_plus(value), quote(value), _in_json(value)):
            self._forms.setdefault(form, value)
            if "%" in form:  # escapes may be written in lower case
                self._forms.setdefault(re.sub("%..", lambda found: found[0].lower(), form), value)

    def found(self, text: str) -> list[tuple[int, int, str, str]]:
        """Where credentials stand in `text`: start, end, rule, value; in order, none inside another."""
        spans = list(self._spans(text))
        spans.sort(key=lambda span: (span[0], -span[1]))
        kept: list[tuple[int, int, str, str]] = []
        for span in spans:
            if not kept or span[0] >= kept[-1][1]:
                kept.append(span)
            elif span[1] > kept[-1][1]:  # two that overlap: take out both as one
                start, end = kept[-1][0], span[1]
                kept[-1] = (start, end, kept[-1][2], text[start:end])
        return kept

    def named(self, name: str, value: str) -> bool:
        """Whether `name` says that `value` is a credential."""
        plain = plain_name(name)
        if plain in self.allowed or not value or _PLACEHOLDER.fullmatch(value):
            return False
        if plain == "key":
            return len(value) >= 20 and _entropy(value) >= 3.5
        return plain in _EXACT_NAMES or plain.endswith(_NAME_ENDS)

    def _spans(self, text: str) -> Iterator[tuple[int, int, str, str]]:
        if self._forms:
            if self._everywhere is None:
                ordered = sorted(self._forms, key=lambda form: (-len(form), form))
                self._everywhere = re.compile("|".join(map(re.escape, ordered)))
            for match in self._everywhere.finditer(text):
                yield match.start(), match.end(), "seen-before", self._forms[match[0]]
        for rule, pattern in SHAPES:
            for match in pattern.finditer(text):
                group = match.lastindex or 0
                if rule == "private-key" or not _EXAMPLE.search(match[group]):
                    yield match.start(group), match.end(group), rule, match[group]
        for rule, pattern in _NAMED:
            for match in pattern.finditer(text):
                value = unquote_plus(match[2]) if rule == "named-parameter" else _out_of_json(rule, match[2])
                if self.named(unquote(match[1]), value):
                    yield match.start(2), match.end(2), rule, value

    def replaced(self, text: str) -> tuple[str, list[tuple[int, int, int]], list[tuple[str, str]]]:
        """`text` with placeholders; the edits (start, end, new length); rule and placeholder of each."""
        parts: list[str] = []
        edits: list[tuple[int, int, int]] = []
        reported: list[tuple[str, str]] = []
        last = 0
        for start, end, rule, value in self.found(text):
            placeholder = self.add(value)
            parts += (text[last:start], placeholder)
            edits.append((start, end, len(placeholder)))
            reported.append((rule, placeholder))
            last = end
        parts.append(text[last:])
        return "".join(parts), edits, reported


def redact(exchanges: Iterable[Exchange], not_secret: Iterable[str] = (), known: Iterable[str] = ()) -> Redaction:
    """The exchanges without credentials.

    `not_secret` names members that are none, whatever they are called; `known` are credentials that the command had.
    """
    recorded = tuple(exchanges)
    work = _Work(Secrets(frozenset(map(plain_name, not_secret))))
    for value in sorted(known):
        work.secrets.watch(value)
    for exchange in recorded:  # first learn them all: a credential may be echoed before it is named
        work.learn(exchange)
    clean = tuple(Exchange(work.request(place, e.request), work.response(place, e)) for place, e in enumerate(recorded))
    return Redaction(
        clean,
        tuple(dict.fromkeys(work.replaced)),
        tuple(dict.fromkeys(work.ignored)),
        tuple(sorted(work.dropped.items())),
        tuple(dict.fromkeys(work.findings)),
        work.secrets,
    )


def plain_name(name: str) -> str:
    """A name as it is compared: letters and digits, lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


class _Work:
    """One pass over a recording."""

    def __init__(self, secrets: Secrets) -> None:
        self.secrets = secrets
        self.replaced: list[Replacement] = []
        self.ignored: list[tuple[int, str]] = []
        self.dropped: Counter[str] = Counter()
        self.findings: list[Finding] = []

    def learn(self, exchange: Exchange) -> None:
        """Take in every credential that its place or its look gives away."""
        request, response = exchange.request, exchange.response
        for name, value in request.headers:
            if _HEADER_NAME.search(name) and name.lower() not in KEPT_HEADERS:
                for secret in _header_secrets(name, value):
                    self.secrets.watch(secret)
        for name, value in response.headers:
            if name.lower() == "set-cookie":
                cookie, secret, _ = _cookie_value(value)
                if _HEADER_NAME.search(cookie) or len(secret) >= 16:  # others tell a language or a shop
                    self.secrets.watch(secret)
        path, _, query = request.target.partition("?")
        for text in (unquote(path), f"?{query}", *(value for _, value in response.headers)):
            self._learn(text)
        data = readable(request.headers, request.body) or b""
        if _is_form(request.headers):
            data = b"&" + data
        self._learn(data.decode("utf-8", "replace"))
        self._learn((_readable(response) or b"").decode("utf-8", "replace"))

    def _learn(self, text: str) -> None:
        for _, _, rule, value in self.secrets.found(text):
            if rule != "seen-before":
                self.secrets.watch(value)

    def request(self, place: int, request: Request) -> Request:
        """The request as it may be kept."""
        path, mark, query = request.target.partition("?")
        if self.secrets.found(path) or self.secrets.found(unquote(path)):
            self._refuse(place, "request path", "record-secret-in-path", "a credential stands in the path")
        if mark:
            query = self._pairs(place, query, "query")
        headers = self._kept_headers(place, request.headers)
        body = self._request_body(place, request)
        return replace(request, target=path + mark + query, headers=headers, body=body)

    def _kept_headers(self, place: int, headers: HeaderPairs) -> HeaderPairs:
        kept = []
        for name, value in headers:
            low = name.lower()
            if (low in KEPT_HEADERS or low.startswith("if-")) and not self.secrets.found(value):
                kept.append((name, value))
            else:
                self.dropped[low] += 1
        return tuple(kept)

    def _request_body(self, place: int, request: Request) -> bytes:
        body = request.body
        data = readable(request.headers, body)
        if data is None:
            self._refuse(place, "request body", "record-unreadable", _UNREADABLE)
            return b""
        if not data:
            return body
        media = media_type(request.header("content-type"))
        if is_json(media):
            try:
                value = canonical.loads(data)
            except canonical.JsonError:
                pass
            else:
                clean = self._json(place, value, (), None)
                changed = None if clean is value else _json_text(clean)
                return self._again(place, request, changed)
        if media == "application/x-www-form-urlencoded" and data.isascii():
            text = data.decode()
            form = self._pairs(place, text, "form")
            return self._again(place, request, None if form == text else form.encode())
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode("latin-1")
        for _, _, rule, _ in self.secrets.found(text):
            what = f"a credential ({rule}) stands in a body that is neither JSON nor a form"
            self._refuse(place, "request body", "record-secret-in-body", what)
        return body

    def _again(self, place: int, request: Request, changed: bytes | None) -> bytes:
        if changed is None:
            return request.body
        body = encoded(request.headers, changed)
        if body is None:
            self._refuse(place, "request body", "record-unreadable", _UNREADABLE)
            return b""
        return body

    def _pairs(self, place: int, encoded_pairs: str, kind: str) -> str:
        parts = encoded_pairs.split("&")
        for number, part in enumerate(parts):
            name, equals, value = part.partition("=")
            plain = unquote_plus(value)
            shown = unquote_plus(name)
            if self.secrets.found(shown):
                what = "a credential stands in the name of a parameter"
                self._refuse(place, f"request {kind}", "record-secret-in-name", what)
            rule = (
                "named-parameter" if self.secrets.named(shown, plain) else _first(self.secrets.found(plain))
            ) or _first(self.secrets.found(value))
            if equals and rule:
                parts[number] = name + equals + self.secrets.add(plain)
                self._replace(place, f"request {kind} {shown}", rule, self.secrets.add(plain))
                self.ignored.append((place, f"/{kind}/{_token(shown)}"))
        return "&".join(parts)

    def _json(self, place: int, value: JsonValue, pointer: tuple[str, ...], member: int | None) -> JsonValue:
        """`value`, or a copy with placeholders; `member` is the length of the pointer of the nearest member."""
        match value:
            case dict():
                changed = {}
                for key, item in value.items():
                    where = (*pointer, key)
                    if self.secrets.found(key):
                        what = "a credential stands in the name of a member"
                        self._refuse(place, "request body", "record-secret-in-name", what)
                    if isinstance(item, str) and self.secrets.named(key, item):
                        changed[key] = self._member(place, where, len(where), "named-member", item)
                    elif _is_number(item) and plain_name(key).endswith(_NUMBERS_TOO) and self.secrets.named(key, "0"):
                        changed[key] = self._member(place, where, len(where), "named-member", str(item))
                    else:
                        changed[key] = self._json(place, item, where, len(where))
                return changed if any(changed[key] is not value[key] for key in value) else value
            case list():
                items = [self._json(place, item, (*pointer, str(n)), member) for n, item in enumerate(value)]
                return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
            case str():
                found = self.secrets.found(value)
                return self._member(place, pointer, member, found[0][2], value) if found else value
            case _:
                return value

    def _member(self, place: int, pointer: tuple[str, ...], member: int | None, rule: str, value: str) -> str:
        clean = self.secrets.add(value) if rule == "named-member" else self.secrets.replaced(value)[0]
        where = "".join("/" + _token(part) for part in pointer)
        if member is None:
            what = "a credential stands in a JSON body that has no members"
            self._refuse(place, "request body", "record-secret-in-body", what)
        else:
            self.ignored.append((place, "/json" + "".join("/" + _token(part) for part in pointer[:member])))
        self._replace(place, f"request body {where}", rule, clean)
        return clean

    def response(self, place: int, exchange: Exchange) -> Response:
        """The answer as it may be kept."""
        response = exchange.response
        data = _readable(response)
        headers = self._response_headers(place, response.headers)
        if data is None:
            self._refuse(place, "answer", "record-unreadable", _UNREADABLE)
            return replace(response, headers=headers)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            for _, _, rule, _ in self.secrets.found(data.decode("latin-1")):
                what = f"a credential ({rule}) stands in a binary answer"
                self._refuse(place, "answer", "record-secret-in-body", what)
            return replace(response, headers=headers)
        clean, edits, reported = self.secrets.replaced(text)
        if not edits:
            return replace(response, headers=headers)
        for rule, placeholder in reported:
            self._replace(place, "answer body", rule, placeholder)
        body = encoded(response.headers, clean.encode()) if response.fault != "truncated" else clean.encode()
        if body is None or (response.fault == "truncated" and codings(response.headers)):
            self._refuse(place, "answer", "record-unreadable", "a credential stands in a body that can't be rewritten")
            body = b""
        grown = len(body) - len(response.body)
        headers = tuple(
            (name, str(int(value) + grown) if name.lower() == "content-length" and value.isdecimal() else value)
            for name, value in headers
            if name.lower() not in _BODY_DIGESTS
        )
        stream = _moved(response.stream, text, edits)
        if stream and codings(response.headers):  # the boundaries were places in other bytes
            stream = (len(body),)
        return replace(response, headers=headers, body=body, stream=stream)

    def _response_headers(self, place: int, headers: HeaderPairs) -> HeaderPairs:
        kept = []
        for name, value in headers:
            if name.lower() == "set-cookie":
                cookie, secret, attributes = _cookie_value(value)
                placeholder = self.secrets.add(secret, everywhere=False) if secret else ""
                clean = f"{cookie}={placeholder}{attributes}" if secret else value
                reported = [("set-cookie", placeholder)] if secret else []
            elif self.secrets.named(name, value) and name.lower() not in ("www-authenticate", "proxy-authenticate"):
                clean = self.secrets.add(value)
                reported = [("named-header", clean)]
            else:
                clean, _, reported = self.secrets.replaced(value)
            for rule, placeholder in reported:
                self._replace(place, f"answer header {name}", rule, placeholder)
            kept.append((name, clean))
        return tuple(kept)

    def _replace(self, place: int, where: str, rule: str, placeholder: str) -> None:
        self.replaced.append(Replacement(f"call {place + 1}, {where}", rule, placeholder))

    def _refuse(self, place: int, where: str, rule: str, what: str) -> None:
        mend = "record with a credential that the service takes in a header, a query, a form or a JSON body"
        self.findings.append(Finding(rule, f"call {place + 1}, {where}", what, mend))


_UNREADABLE = "the body's Content-Encoding can't be undone here, so it can't be searched for credentials"
_BODY_DIGESTS = frozenset({"content-md5", "digest", "content-digest", "repr-digest"})


def _readable(response: Response) -> bytes | None:
    if response.fault == "truncated":
        return readable_start(response.headers, response.body)
    return readable(response.headers, response.body)


def _header_secrets(name: str, value: str) -> Iterator[str]:
    if name.lower() == "cookie":
        for cookie in value.split(";"):
            key, _, secret = cookie.partition("=")
            if _HEADER_NAME.search(key) or len(secret.strip()) >= 16:
                yield secret.strip()
        return
    scheme, blank, rest = value.partition(" ")
    secret = rest.strip() if blank and scheme.isalnum() else value.strip()
    if not secret:
        return
    yield secret
    if scheme.lower() == "basic":
        try:
            user = base64.b64decode(secret, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        password = user.partition(":")[2]
        if password:
            yield user
            yield password


def _cookie_value(header: str) -> tuple[str, str, str]:
    pair, semicolon, attributes = header.partition(";")
    name, _, value = pair.partition("=")
    return name, value.strip(), semicolon + attributes


def _is_form(headers: HeaderPairs) -> bool:
    return any(name.lower() == "content-type" and "x-www-form-urlencoded" in value.lower() for name, value in headers)


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _first(found: list[tuple[int, int, str, str]]) -> str:
    return found[0][2] if found else ""


def _telling(value: str) -> bool:
    """Whether a value is a credential wherever it stands: long enough, and no plain word."""
    return len(value) >= 20 or (len(value) >= 8 and _entropy(value) >= 3.0) or (len(value) >= 6 and _mixed(value))


def _mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value) and _entropy(value) >= 2.5


def _entropy(text: str) -> float:
    """Shannon entropy in bits a character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _in_json(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def _out_of_json(rule: str, value: str) -> str:
    if rule != "named-member" or "\\" not in value:
        return value
    try:
        text = json.loads(f'"{value}"')
    except ValueError:
        return value
    return text if isinstance(text, str) and text.isprintable() else value


def _json_text(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _token(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")  # RFC 6901 §3


def _moved(stream: tuple[int, ...], text: str, edits: list[tuple[int, int, int]]) -> tuple[int, ...]:
    """Chunk boundaries after the edits: one inside a credential moves to its end."""
    moved = []
    for boundary in stream:
        shift = 0
        place = boundary
        for start, end, length in edits:
            first, last = len(text[:start].encode()), len(text[:end].encode())
            if last <= boundary:
                shift += length - (last - first)
            elif first < boundary:
                place, shift = last, shift + length - (last - first)
        moved.append(place + shift)
    return tuple(dict.fromkeys(moved))
