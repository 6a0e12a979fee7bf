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
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import unquote, unquote_plus

from scoresheet import canonical, json_pointer
from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import HeaderPairs, Request, Response
from scoresheet.errors import Finding
from scoresheet.pack.body import is_json, media_type
from scoresheet.record.credentials import IN_HEADER, NUMBERS_TOO, Credentials, plain_name
from scoresheet.record.exchange import Exchange, codings, encoded, readable, readable_start

KEPT_HEADERS = frozenset(
    {"accept", "accept-language", "content-type", "content-encoding", "content-language", "range", "prefer"}
)
"""Request headers worth keeping, beside `If-*`."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A credential that became a placeholder."""

    where: str
    rule: str
    placeholder: str

    def __str__(self) -> str:
        return f"{self.where}: {self.placeholder} [{self.rule}]"

    def as_json(self) -> dict[str, JsonValue]:
        """The facts for `--json`."""
        return {"where": self.where, "rule": self.rule, "placeholder": self.placeholder}


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
    credentials: Credentials


def redact(
    exchanges: Iterable[Exchange], not_secret: Iterable[str] = (), known: Iterable[str] = (), numbered: int = 0
) -> Redaction:
    """The exchanges without credentials.

    `not_secret` names members that are none, whatever they are called; `known` are credentials that the command had;
    `numbered` is the highest number of a placeholder that is there already.
    """
    recorded = tuple(exchanges)
    work = _Work(Credentials(frozenset(map(plain_name, not_secret)), numbered))
    for value in sorted(known):
        work.credentials.watch(value, "environment")
    for exchange in recorded:  # first learn them all: a credential may be echoed before it is named
        work.learn(exchange)
    clean = tuple(Exchange(work.request(place, e.request), work.response(place, e)) for place, e in enumerate(recorded))
    if not work.findings:
        for place, exchange in enumerate(clean):
            work.verify(place, exchange)
    return Redaction(
        clean,
        tuple(dict.fromkeys(work.replaced)),
        tuple(dict.fromkeys(work.ignored)),
        tuple(sorted(work.dropped.items())),
        tuple(dict.fromkeys(work.findings)),
        work.credentials,
    )


class _Work:
    """One pass over a recording."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials
        self.replaced: list[Replacement] = []
        self.ignored: list[tuple[int, str]] = []
        self.dropped: Counter[str] = Counter()
        self.findings: list[Finding] = []

    def learn(self, exchange: Exchange) -> None:
        """Take in every credential that its place or its look gives away."""
        request, response = exchange.request, exchange.response
        for name, value in request.headers:
            if IN_HEADER.search(name) and name.lower() not in KEPT_HEADERS:
                for secret in _header_secrets(name, value):
                    self.credentials.watch(secret, "request-header")
        for name, value in response.headers:
            if name.lower() == "set-cookie":
                cookie, secret, _ = _cookie_value(value)
                if IN_HEADER.search(cookie) or len(secret) >= 16:  # others tell a language or a shop
                    self.credentials.watch(secret, "set-cookie")
        path, _, query = request.target.partition("?")
        for text in (unquote(path), f"?{query}", *(value for _, value in response.headers)):
            self._learn(text)
        data = readable(request.headers, request.body) or b""
        if _is_form(request.headers):
            data = b"&" + data
        self._learn(data.decode("utf-8", "replace"))
        self._learn((_readable(response) or b"").decode("utf-8", "replace"))

    def _learn(self, text: str) -> None:
        for _, _, rule, value in list(self.credentials.spans(text)):
            self.credentials.watch(value, rule)

    def request(self, place: int, request: Request) -> Request:
        """The request as it may be kept."""
        path, mark, query = request.target.partition("?")
        if self.credentials.found(path) or self.credentials.found(unquote(path)):
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
            if (low in KEPT_HEADERS or low.startswith("if-")) and not self.credentials.found(value):
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
        for _, _, rule, _ in self.credentials.found(text):
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
            if self.credentials.found(shown):
                what = "a credential stands in the name of a parameter"
                self._refuse(place, f"request {kind}", "record-secret-in-name", what)
            rule = (
                "named-parameter" if self.credentials.named(shown, plain) else _first(self.credentials.found(plain))
            ) or _first(self.credentials.found(value))
            if equals and rule:
                parts[number] = name + equals + self.credentials.placeholder(plain)
                self._replace(place, f"request {kind} {shown}", rule, self.credentials.placeholder(plain))
                self.ignored.append((place, f"/{kind}/{json_pointer.step(shown)}"))
        return "&".join(parts)

    def _json(self, place: int, value: JsonValue, pointer: tuple[str, ...], member: int | None) -> JsonValue:
        """`value`, or a copy with placeholders; `member` is the length of the pointer of the nearest member."""
        match value:
            case dict():
                changed: dict[str, JsonValue] = {}
                for key, item in value.items():
                    where = (*pointer, key)
                    if self.credentials.found(key):
                        what = "a credential stands in the name of a member"
                        self._refuse(place, "request body", "record-secret-in-name", what)
                    if isinstance(item, str) and self.credentials.named(key, item):
                        changed[key] = self._named(place, where, item)
                    elif (
                        _is_number(item) and plain_name(key).endswith(NUMBERS_TOO) and self.credentials.named(key, "0")
                    ):
                        changed[key] = self._named(place, where, str(item))
                    else:
                        changed[key] = self._json(place, item, where, len(where))
                return changed if any(changed[key] is not value[key] for key in value) else value
            case list():
                items = [self._json(place, item, (*pointer, str(n)), member) for n, item in enumerate(value)]
                return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
            case str():
                clean, _, reported = self.credentials.replaced(value)
                if not reported:
                    return value
                self._member(place, pointer, member, *reported[0])
                return clean
            case _:
                return value

    def _named(self, place: int, pointer: tuple[str, ...], value: str) -> str:
        placeholder = self.credentials.placeholder(value)
        self._member(place, pointer, len(pointer), "named-member", placeholder)
        return placeholder

    def _member(self, place: int, pointer: tuple[str, ...], member: int | None, rule: str, placeholder: str) -> None:
        where = json_pointer.of(pointer)
        if member is None:
            what = "a credential stands in a JSON body that has no members"
            self._refuse(place, "request body", "record-secret-in-body", what)
        else:
            self.ignored.append((place, f"/json{json_pointer.of(pointer[:member])}"))
        self._replace(place, f"request body {where}", rule, placeholder)

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
            for _, _, rule, _ in self.credentials.found(data.decode("latin-1")):
                what = f"a credential ({rule}) stands in a binary answer"
                self._refuse(place, "answer", "record-secret-in-body", what)
            return replace(response, headers=headers)
        clean, edits, reported = self.credentials.replaced(text)
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
                placeholder = self.credentials.placeholder(secret) if secret else ""
                clean = f"{cookie}={placeholder}{attributes}" if secret else value
                reported = [("set-cookie", placeholder)] if secret else []
            elif self.credentials.named(name, value) and name.lower() not in ("www-authenticate", "proxy-authenticate"):
                clean = self.credentials.placeholder(value)
                reported = [("named-header", clean)]
            else:
                clean, _, reported = self.credentials.replaced(value)
            for rule, placeholder in reported:
                self._replace(place, f"answer header {name}", rule, placeholder)
            kept.append((name, clean))
        return tuple(kept)

    def verify(self, place: int, exchange: Exchange) -> None:
        """Look once more, for what was written in a way that nobody thought of."""
        request, response = exchange.request, exchange.response
        bodies = (readable(request.headers, request.body), _readable(response))
        headers = (value for _, value in (*request.headers, *response.headers))
        texts = (request.target, *headers, *((body or b"").decode("utf-8", "replace") for body in bodies))
        if any(self.credentials.left(text) for text in texts):
            what = "a credential is left, in a spelling that can't be replaced"
            self._refuse(place, "request or answer", "record-secret-left", what)

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
            if IN_HEADER.search(key) or len(secret.strip()) >= 16:
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


def _json_text(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


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
