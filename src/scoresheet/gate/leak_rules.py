"""The leak rules: what a credential or a customer's datum looks like. Pure.

A rule has anchors, literal bytes that every match holds: text without them costs one search each and no regular
expression. Its pattern is tried at an anchor, or in a small window around it. What was found is not kept, only its
digest: `leak_allow` in a card names findings by it.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from scoresheet.gate import decoys, leak_numbers

Kind = Literal["credential", "private_key", "customer_data"]
Accept = Callable[[re.Match[bytes], bytes], bool]
"""A last look at a match; the bytes before it, of its line and a little more, are the second argument."""

_BLOCK = 1 << 20
_BEFORE, _AFTER, _KEY_AFTER = 65, 640, 16384


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of leak."""

    name: str
    kind: Kind
    anchors: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    """Its last group, or the whole match, is the secret."""
    accept: Accept | None = None
    behind: int | None = 0
    """How many bytes before its anchor a match begins; `None`: with the word that ends there."""
    any_case: bool = False
    """Anchors are lower case, and are searched in the lower-cased text."""
    glance: re.Pattern[bytes] | None = None
    """Must match at an anchor before the pattern is tried."""
    word: bool = False
    """A match holds 20 letters, digits, `_` or `-` in a row, which begin with its anchor or right after it."""
    generic: bool = False
    """Knows a secret by its name alone: silent where another rule knows it by its look."""


@dataclass(frozen=True, slots=True)
class Leak:
    """One finding: never the secret itself."""

    start: int
    end: int
    """Where the secret stands in what was searched, in bytes."""
    rule: str
    kind: Kind
    match_sha256: str
    """sha256 of the secret: what `leak_allow` names. Of a number only the digits count, of a private key its base64."""


def leaks(data: bytes, authors: bool = False, most: int | None = None) -> tuple[Leak, ...]:
    """Every leak in `data`, in order, none inside another of its kind; with `most`, a search that found more ends.

    `authors` says that this is a list of authors, where addresses are meant to be read.
    """
    found: dict[tuple[int, int], Leak] = {}
    generic: list[Leak] = []
    for start in range(0, max(1, len(data)), _BLOCK):
        low, high = max(0, start - _AFTER), min(len(data), start + _BLOCK + _KEY_AFTER)
        block = data if low == 0 and high == len(data) else data[low:high]
        for rule, leak in _block(block, low, authors):
            if start <= leak.start < start + _BLOCK:
                if rule is not None and rule.generic:
                    generic.append(leak)
                else:
                    found.setdefault((leak.start, leak.end), leak)
        if most is not None and len(found) + len(generic) > most:
            break
    if generic:
        _add_generic(found, generic)
    return tuple(sorted(found.values(), key=lambda leak: (leak.start, leak.end, leak.rule)))


def tokens(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Every token in a text that its beginning gives away: start, end, rule without `leak-`, token."""
    data = text.encode("utf-8", "surrogatepass")
    for rule, match in _tokens(data):
        group = match.lastindex or 0
        token = match[group].decode()  # tokens are ASCII
        start = match.start(group)
        if len(data) != len(text):
            start = len(data[:start].decode("utf-8", "surrogatepass"))
        yield start, start + len(token), rule.name.removeprefix("leak-"), token


def _add_generic(found: dict[tuple[int, int], Leak], generic: list[Leak]) -> None:
    """Those that overlap nothing: of two, the one that begins first stays."""
    end = -1
    taken = iter(sorted((leak.start, leak.end) for leak in found.values() if leak.kind != "customer_data"))
    known = next(taken, None)
    for leak in sorted(generic, key=lambda leak: (leak.start, -leak.end)):
        while known is not None and known[1] <= leak.start:
            known = next(taken, None)
        if leak.start >= end and (known is None or known[0] >= leak.end):
            found.setdefault((leak.start, leak.end), leak)
            end = leak.end


def _block(block: bytes, base: int, authors: bool) -> Iterator[tuple[Rule | None, Leak]]:
    for rule, match in _matches(block):
        if authors and rule.name == "leak-e-mail":
            continue
        group = match.lastindex or 0
        secret = match[group]
        if rule.kind == "private_key":
            secret = _NOT_BASE64.sub(b"", secret)
        elif rule.kind == "customer_data" and rule.name != "leak-e-mail":
            secret = leak_numbers.digits(secret)
        sha256 = hashlib.sha256(secret).hexdigest()
        yield rule, Leak(base + match.start(group), base + match.end(group), rule.name, rule.kind, sha256)
    for start, end, number, name in leak_numbers.numbers(block):
        yield None, Leak(base + start, base + end, name, "customer_data", hashlib.sha256(number).hexdigest())


def _matches(block: bytes) -> Iterator[tuple[Rule, re.Match[bytes]]]:
    lower = block.lower()
    for anchor, rules in _ANCHORED.items():
        text = lower if rules[0].any_case else block
        at = text.find(anchor)
        while at >= 0:
            following = at + len(anchor)
            for rule in rules:
                match = _match(rule, block, at)
                if match is not None:
                    following = max(following, match.end())
                    if _accepted(rule, match, block):
                        yield rule, match
            at = text.find(anchor, following)
    yield from _tokens(block)


def _tokens(block: bytes) -> Iterator[tuple[Rule, re.Match[bytes]]]:
    """Matches of the rules whose secret holds a long word: words are searched, then their beginnings."""
    shape = block.translate(_WORDS_SHAPE)
    at = shape.find(_LONG)
    while at >= 0:
        word = _WORD_SHAPE.match(shape, at)
        assert word is not None
        end = word.end()
        if not _HASH.fullmatch(block, at, end):
            for begin in _PREFIX.finditer(block, max(0, at - _DOTTED), end):
                for rule in _PREFIXED[begin[0]]:
                    match = _match(rule, block, begin.start())
                    if match is not None and _accepted(rule, match, block):
                        yield rule, match
        at = shape.find(_LONG, end)


def _match(rule: Rule, block: bytes, at: int) -> re.Match[bytes] | None:
    after = _KEY_AFTER if rule.kind == "private_key" else _AFTER
    if rule.glance is not None and not rule.glance.match(block, at):
        return None
    if rule.behind is not None:
        return rule.pattern.match(block, max(0, at - rule.behind), at + after)
    word = _WORD.search(block, max(0, at - _BEFORE), at)
    return rule.pattern.match(block, word.start(), at + after) if word else None


def _accepted(rule: Rule, match: re.Match[bytes], block: bytes) -> bool:
    if rule.kind == "credential" and decoys.is_documentation(match[match.lastindex or 0]):
        return False
    if rule.accept is None:
        return True
    begin = match.start()
    line = block.rfind(b"\n", max(0, begin - 200), begin) + 1
    return rule.accept(match, block[line or max(0, begin - 200) : begin])


def _random(match: re.Match[bytes], before: bytes) -> bool:
    return decoys.is_random(match[match.lastindex or 0])


def _no_hash(match: re.Match[bytes], before: bytes) -> bool:
    return decoys.is_no_hash(match[match.lastindex or 0])


def _assigned(match: re.Match[bytes], before: bytes) -> bool:
    if match.lastindex == 3:  # no quotes: only in a query, or where a line is NAME=value
        alone = _LINE_START.fullmatch(before) and _LINE_END.match(match.string, match.end())
        if not alone and not _QUERY.search(before):
            return False
    return _NOT_SECRET_NAME.search(match[1]) is None and decoys.is_random(match[match.lastindex or 0])


def _url_password(match: re.Match[bytes], before: bytes) -> bool:
    return decoys.is_password(match[1], match[3], match[2])


def _jwt(match: re.Match[bytes], before: bytes) -> bool:
    return decoys.is_jwt(match[0])


def _person(match: re.Match[bytes], before: bytes) -> bool:
    return decoys.is_person(match[0], before)


def _phone(match: re.Match[bytes], before: bytes) -> bool:
    return 9 <= len(leak_numbers.digits(match[1])) <= 15 and not leak_numbers.is_fictional(match[1])


_WORD = re.compile(rb"[\w.+-]+$")
_LINE_END = re.compile(rb"[ \t\r]*(?:\n|$)")
_QUERY = re.compile(rb"[?&;][\w.-]{0,24}$")
_NOT_BASE64 = re.compile(rb"\\[nrt]|[^A-Za-z0-9+/=]")
_NOT_SECRET_NAME = re.compile(
    rb"(?i)(?:id|ids|name|hash|sha\d*|digest|fingerprint|path|file|url|uri|arn|version|ttl|len|length|count|type|env|ref"
    rb"|policy|hint|field|label|header|expiry|expires|format|algorithm|at)$"
)


def _after(*words: str) -> str:
    """A look behind for any of `words`, joined to what follows by `_`, `-` or nothing."""
    return "(?:" + "|".join(f"(?<={word}{joint})" for word in words for joint in ("", "_", "-")) + ")"


_KEY = _after("api", "access", "account", "private", "signing", "encryption", "auth", "license", "master") + "key"
_TOKEN = r"(?:(?<![\w-])|" + _after("auth", "access", "refresh", "session", "bearer", "api", "bot") + ")token"
_NAME = rf"passw(?:or)?d|passphrase|secret|{_KEY}|{_TOKEN}"
_CRYPTIC = r"[A-Za-z0-9._~+/-]{16,512}={0,2}"
_LINE_START = re.compile(rb"[ \t]*(?:export[ \t]+|set[ \t]+|- |env[ \t]+)?[\w.-]*")


def _rule(name: str, anchors: str, pattern: str, accept: Accept | None = None, behind: int = 0) -> Rule:
    anchored = tuple(anchor.encode() for anchor in anchors.split())
    return Rule(f"leak-{name}", "credential", anchored, re.compile(pattern.encode()), accept, behind)


def _token(name: str, anchors: str, pattern: str, accept: Accept | None = None, behind: int = 0) -> Rule:
    return replace(_rule(name, anchors, pattern, accept, behind), word=True)


def _named(name: str, anchors: str, pattern: str, accept: Accept | None) -> Rule:
    anchored = tuple(anchor.encode() for anchor in anchors.split())
    return Rule(
        f"leak-{name}", "credential", anchored, re.compile(pattern.encode()), accept, any_case=True, generic=True
    )


_PEM_BLANK = r"(?:\\+[nr]|[\s\"'+,\\])"
_SERVICES = r"gsk_ r8_ lin_api_ ntn_ figd_ glsa_ sntrys_ pplx- xai- hvs. PMAK- NRAK- sq0atp- tvly- nvapi-"

RULES: tuple[Rule, ...] = (
    Rule(
        "leak-private-key",
        "private_key",
        (b"-----BEGIN ",),
        re.compile(
            rf"-----BEGIN (?:[A-Z0-9]+ ){{0,3}}PRIVATE KEY(?: BLOCK)?-----{_PEM_BLANK}*"
            rf"(?:[A-Z][A-Za-z-]{{2,20}}: ?[^\n\\]{{1,80}}{_PEM_BLANK}+)*"
            r"([A-Za-z0-9+/]{40}(?:[A-Za-z0-9+/=\s\"',]|\\+[nr])*)".encode()
        ),
    ),
    Rule(
        "leak-putty-key",
        "private_key",
        (b"Private-Lines:",),
        re.compile(rb"Private-Lines: \d+\s+((?:[A-Za-z0-9+/=]{4,64}\s+)+)"),
    ),
    _token("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _token("aws-key-id", "AKIA ASIA ABIA ACCA", r"(?<![A-Za-z0-9+/])A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}(?![A-Za-z0-9+/])"),
    _token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,255}"),
    _token("github-token", "github_pat_", r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{60,255}"),
    _token("gitlab-token", "glpat- gldt- glrt-", r"(?<![A-Za-z0-9])gl(?:pat|dt|rt)-[A-Za-z0-9_-]{20,}"),
    _token("slack-token", "xox", r"(?<![A-Za-z0-9])xox[abeoprs]-[A-Za-z0-9-]{20,}", _random),
    _token("slack-token", "xapp-", r"(?<![A-Za-z0-9])xapp-[A-Za-z0-9-]{20,}", _random),
    _rule("slack-webhook", "hooks.slack.com/services/", r"hooks\.slack\.com/services/(T\w{8,}/B\w{8,}/\w{20,})"),
    _token("anthropic-key", "sk-ant-", r"(?<![A-Za-z0-9])sk-ant-[a-z0-9]+-[A-Za-z0-9_-]{40,}"),
    _token(
        "openai-key",
        "sk-",
        r"(?<![A-Za-z0-9_-])sk-(?!ant-)(?:(?:proj|svcacct|admin|or-v1)-)?"
        r"(?:[A-Za-z0-9_-]{20,}T3BlbkFJ[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})",
        _random,
    ),
    _token("stripe-key", "k_live_ k_test_", r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,}", behind=1),
    _rule("stripe-key", "whsec_", r"(?<![A-Za-z0-9])whsec_[A-Za-z0-9+/=]{24,}"),
    _token("google-key", "AIza", r"(?<![A-Za-z0-9+/])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _token("google-oauth", "GOCSPX-", r"(?<![A-Za-z0-9])GOCSPX-[A-Za-z0-9_-]{28}"),
    _token("google-oauth", "ya29.", r"(?<![A-Za-z0-9])ya29\.[A-Za-z0-9_-]{30,}"),
    _token("hugging-face-token", "hf_", r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{34,}(?![A-Za-z0-9_])", _random),
    _token("npm-token", "npm_", r"(?<![A-Za-z0-9_])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _token("pypi-token", "pypi-AgE", r"(?<![A-Za-z0-9])pypi-AgE[A-Za-z0-9_-]{50,}"),
    _token("sendgrid-key", "SG.", r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}"),
    _token("digitalocean-token", "dop_v1_ doo_v1_", r"(?<![A-Za-z0-9])do[op]_v1_[0-9a-f]{64}"),
    _token("docker-token", "dckr_pat_", r"(?<![A-Za-z0-9])dckr_pat_[A-Za-z0-9_-]{20,}"),
    _token("shopify-token", "shpat_ shpss_ shpca_", r"(?<![A-Za-z0-9])shp(?:at|ss|ca)_[0-9a-fA-F]{32}"),
    _token("databricks-token", "dapi", r"(?<![A-Za-z0-9])dapi[0-9a-f]{32}(?![A-Za-z0-9])"),
    _token(
        "service-token",
        _SERVICES,
        rf"(?<![A-Za-z0-9_])(?:{'|'.join(map(re.escape, _SERVICES.split()))})[A-Za-z0-9_-]{{22,}}",
        _random,
    ),
    _token("telegram-token", ":AA", r"(?<=[0-9]{8}):AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    _rule("azure-key", "AccountKey= AccessKey=", r"Acc(?:ount|ess)Key=([A-Za-z0-9+/]{42,86}={0,2})(?![A-Za-z0-9+/])"),
    _token("jwt", "eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}", _jwt),
    _rule(
        "url-password",
        "://",
        r"(?<=[A-Za-z0-9])://([^\s:/@\"'<>\\?#]{0,64}):(?=[^\s/@\"'<>\\]{3,128}@([A-Za-z0-9.-]{1,120}|\[))"
        r"([^\s/@\"'<>\\]{3,128})@",
        _url_password,
    ),
    _named("twilio-key", "twilio", r"(?i)twilio.{0,40}?[\"'\s:=]((?:SK)?[0-9a-f]{32})(?![0-9a-f])", _random),
    _named(
        "aws-secret",
        "aws",
        r"(?i)aws.{0,24}(?:secret|key).{0,24}?[\"'\s:=]([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        _no_hash,
    ),
    _named(
        "header",
        "authorization api-key private-token auth-token",
        r"(?i)(?:api-key|private-token|auth-token|authorization)\\*[\"']?[\s:=,]+\\*[\"']?"
        rf"(?:bearer\s+|basic\s+|token\s+)?({_CRYPTIC})",
        _random,
    ),
    _named("bearer", "bearer", rf"(?i)(?<![a-z])bearer\s+({_CRYPTIC})", _random),
    _named(
        "cookie",
        "cookie",
        r"(?i)cookie\\*[\"']?\s*[:,]\s*\\*[\"']?(?:[^\"\n]{0,200}?;\s*)?[\w.-]{0,24}(?:sess|sid|auth|token|jwt)[\w.-]{0,24}="
        r"([A-Za-z0-9._~%+/=-]{16,400})",
        _random,
    ),
    _named(
        "assignment",
        "passw passphrase secret key token",
        rf"(?im)((?:{_NAME})[\w-]{{0,16}}+)(?:\\*+[\"']?[ \t\r\n]{{0,8}}+(?::=|=>|[:=,])[ \t\r\n]{{0,8}}+"
        r"\\*+[\"']([^\"'\s\\]{8,200}+)\\*+[\"']|[ \t]{0,8}+[:=][ \t]{0,8}+([^\s\"'#\\&<>]{8,200}+))",
        _assigned,
    ),
    Rule(
        "leak-e-mail",
        "customer_data",
        (b"@",),
        re.compile(
            rb"(?<![\w.+%/-])[A-Za-z0-9][\w.+-]{0,63}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,6}[A-Za-z]{2,24}"
            rb"(?![\w@-])"
        ),
        _person,
        behind=None,
        glance=re.compile(rb"(?<=[\w+-])@[A-Za-z0-9-]{1,63}\.[A-Za-z0-9]"),
    ),
    Rule(
        "leak-phone",
        "customer_data",
        (b"phone", b"mobile", b"tel", b"cell", b"fax", b"msisdn", b"whatsapp"),
        leak_numbers.NAMED_PHONE,
        _phone,
        any_case=True,
    ),
)


def _by_anchor(rules: Iterable[Rule]) -> dict[bytes, tuple[Rule, ...]]:
    found: dict[bytes, tuple[Rule, ...]] = {}
    for rule in rules:
        for anchor in rule.anchors:
            found[anchor] = (*found.get(anchor, ()), rule)
    return found


_ANCHORED = _by_anchor(rule for rule in RULES if not rule.word)
_PREFIXED = _by_anchor(rule for rule in RULES if rule.word)
_PREFIX = re.compile(b"|".join(re.escape(anchor) for anchor in sorted(_PREFIXED, key=lambda each: (-len(each), each))))
_DOTTED = 5
"""Bytes by which an anchor may begin before the word: `ya29.`"""
_WORDS_SHAPE = bytes(
    65 if chr(char).isascii() and (chr(char).isalnum() or chr(char) in "-_") else 46 for char in range(256)
)
_WORD_SHAPE = re.compile(rb"A+")
_LONG = b"A" * 20
_HASH = re.compile(rb"[0-9A-Fa-f-]+")

NAMES: tuple[str, ...] = tuple(
    dict.fromkeys(
        (*(rule.name for rule in RULES), "leak-payment-card", "leak-phone", "leak-social-security", "leak-iban")
    )
)
"""Every rule, by name."""

_TEXTS: tuple[bytes, ...] = (
    *(part for rule in RULES for part in (rule.name.encode(), *rule.anchors, rule.pattern.pattern)),
    *(pattern.pattern for pattern in (*leak_numbers.PATTERNS, *decoys.PATTERNS)),
)
RULESET_SHA256: str = hashlib.sha256(b"\0".join(_TEXTS)).hexdigest()
"""Digest of what the rules look for and of what they let pass: two scans with the same one looked for the same."""
