"""What a credential is: names that say so, looks that give it away, and every value that once was one. Pure."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from scoresheet.gate import leak_rules

_EXACT_NAMES = frozenset(
    [
        "token",
        "cookie",
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
NUMBERS_TOO = ("password", "passwd", "secret", "pwd", "passcode", "otp")
IN_HEADER = re.compile(r"(?i)auth|token|api-?key|secret|cookie|sess|sid\b|signature|password|credential|csrf|xsrf|jwt")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_UNICODE = re.compile(r"\\u([0-9A-Fa-f]{4})")
_PLACEHOLDER = re.compile(r"REDACTED-\d+|\*{3,}|<[^>]*>|\{\{.*\}\}|\$\{.*\}")
_EXAMPLE = re.compile(r"(?i)example|replace[_ -]?me|your[_-]|changeme|placeholder|dummy|redacted|xxxx|\*{4}|\$\{")

SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (rule, re.compile(pattern))
    for rule, pattern in (
        (
            "private-key",
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:[\s\S]*?-----END [A-Z0-9 ]*-----)?",
        ),
        ("telegram-token", r"(?<![0-9])([0-9]{8,10}:[A-Za-z0-9_-]{35})(?![A-Za-z0-9_-])"),
        ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}"),
        ("url-password", r"\b[a-z][a-z0-9+.-]{1,15}://[^\s:/@\"'<>]{0,64}:([^\s:/@\"'<>]{3,128})@[A-Za-z0-9.\[-]"),
        ("bearer", r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/-]{16,}={0,2})"),
    )
)
"""Rule → what a credential of that kind looks like; its last group, or all of it, is the credential.

Those that their beginning gives away (`ghp_`, `AKIA`) are the leak scan's: what it finds is not recorded.
"""

_NAMED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (rule, re.compile(pattern))
    for rule, pattern in (
        ("named-member", r'"([^"\\]{1,64})"\s*:\s*"((?:[^"\\]|\\.)+)"'),
        ("named-member", r'\\+"([^"\\]{1,64})\\+"\s*:\s*\\+"([^"\\]+)\\+"'),
        ("named-parameter", r"[?&;]([A-Za-z0-9_.~%\[\]-]{1,64})=([^&;#\s\"'<>\\]+)"),
        ("named-element", r"<(?:\w+:)?([\w.-]{1,64})(?:\s[^<>]*)?>([^<>\s][^<>]*)</"),
        ("named-part", r'(?i)name="([^"]{1,64})"[^\r\n]*(?:\r\n[^\r\n]+)*\r\n\r\n([^\r\n]+)'),
        ("named-header", r"(?im)^(authorization|x-api-key|cookie)\s*:\s*(?:bearer |basic |token )?(\S.{7,})$"),
    )
)
"""Rule → a name and its value in text; the value is a credential when the name says so."""


@dataclass(slots=True)
class Credentials:
    """The credentials of one recording, in memory only."""

    allowed: frozenset[str] = frozenset()
    """Names that a person declared to be no credential, as `plain_name` gives them."""
    numbered: int = 0
    """The highest number that an earlier recording gave to a placeholder."""
    _placeholders: dict[str, str] = field(default_factory=dict)
    _watched: dict[str, str] = field(default_factory=dict)
    _everywhere: re.Pattern[str] | None = None
    _forms: dict[str, str] = field(default_factory=dict)

    def placeholder(self, value: str) -> str:
        """The placeholder of a credential: `REDACTED-n`, in the order in which they are met."""
        return self._placeholders.setdefault(value, f"REDACTED-{self.numbered + len(self._placeholders) + 1}")

    def watch(self, value: str, rule: str) -> None:
        """Take `value` for a credential wherever it stands, if it is long and odd enough to be no plain word."""
        if value in self._watched or not _telling(value):
            return
        self._watched[value] = rule
        self._everywhere = None
        for form in _forms(value):
            self._forms.setdefault(form, value)

    @property
    def watched(self) -> tuple[str, ...]:
        """Every value that is a credential wherever it stands: in memory only."""
        return tuple(self._watched)

    def left(self, text: str) -> bool:
        """Whether a credential still stands in `text`, in whatever spelling."""
        spellings = {text, unquote(text), unquote_plus(text), _unescaped(text)}
        return any(value in spelling for spelling in spellings for value in self._watched)

    def found(self, text: str) -> list[tuple[int, int, str, str]]:
        """Where credentials stand in `text`: start, end, rule, value; in order, none inside another."""
        spans = list(self.spans(text))
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
            return len(value) >= 20 and _mixed(value) and _entropy(value) >= 3.5
        return plain in _EXACT_NAMES or plain.endswith(_NAME_ENDS)

    def spans(self, text: str) -> Iterator[tuple[int, int, str, str]]:
        if self._forms:
            if self._everywhere is None:
                ordered = sorted(self._forms, key=lambda form: (-len(form), form))
                self._everywhere = re.compile("|".join(map(re.escape, ordered)))
            for match in self._everywhere.finditer(text):
                value = self._forms[match[0]]
                yield match.start(), match.end(), self._watched[value], value
        yield from leak_rules.tokens(text)
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
            placeholder = self.placeholder(value)
            parts += (text[last:start], placeholder)
            edits.append((start, end, len(placeholder)))
            reported.append((rule, placeholder))
            last = end
        parts.append(text[last:])
        return "".join(parts), edits, reported


def plain_name(name: str) -> str:
    """A name as it is compared: letters and digits, lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


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


def _forms(value: str) -> set[str]:
    """The ways in which a value may be written: as it is, in URLs, in JSON, in JSON within JSON."""
    urls = {quote(value, safe=safe) for safe in ("", "/", "/:=", "/:=+")} | {quote_plus(value)}
    urls |= {_ESCAPE.sub(lambda found: found[0].lower(), form) for form in urls}
    texts = {_in_json(value), _in_json(_in_json(value)), _in_json(value).replace("/", "\\/"), json.dumps(value)[1:-1]}
    return {value, *urls, *texts}


def _unescaped(text: str) -> str:
    return _UNICODE.sub(lambda found: chr(int(found[1], 16)), text).replace("\\/", "/")


def _out_of_json(rule: str, value: str) -> str:
    if rule != "named-member" or "\\" not in value:
        return value
    try:
        text = json.loads(f'"{value}"')
    except ValueError:
        return value
    return text if isinstance(text, str) and text.isprintable() else value
