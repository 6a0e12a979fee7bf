"""The leak rules: what a credential or a customer's datum looks like. Pure.

A rule has anchors, literal bytes that every match holds: text without them costs one search each and no regular
expression. Its pattern is tried at an anchor, or in a small window around it. What was found is not kept, only its
digest: `leak_allow` in a card names findings by it.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    lower = block.lower()
    for rule in RULES:
        if authors and rule.name == "leak-e-mail":
            continue
        for match in _matches(rule, block, lower if rule.any_case else block):
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


def _matches(rule: Rule, block: bytes, text: bytes) -> Iterator[re.Match[bytes]]:
    after = _KEY_AFTER if rule.kind == "private_key" else _AFTER
    for anchor in rule.anchors:
        at = text.find(anchor)
        while at >= 0:
            following = at + len(anchor)
            if rule.glance is not None and not rule.glance.match(block, at):
                match = None
            elif rule.behind is None:
                word = _WORD.search(block, max(0, at - _BEFORE), at)
                match = rule.pattern.match(block, word.start(), at + after) if word else None
            else:
                match = rule.pattern.match(block, max(0, at - rule.behind), at + after)
            if match is not None:
                following = max(following, match.end())
                if _accepted(rule, match, block):
                    yield match
            at = text.find(anchor, following)


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
    if match.lastindex == 3 and not _LINE_START.fullmatch(before):  # no quotes: only where a line is NAME=value
        return False
    return _NOT_SECRET_NAME.search(match[1]) is None and decoys.is_random(match[match.lastindex or 0])


def _parameter(match: re.Match[bytes], before: bytes) -> bool:
    return _QUERY.search(before) is not None and decoys.is_random(match[match.lastindex or 0])


def _url_password(match: re.Match[bytes], before: bytes) -> bool:
    return decoys.is_password(match[1], match[3], match[2])


def _jwt(match: re.Match[bytes], before: bytes) -> bool:
    return decoys.is_jwt(match[0])


def _person(match: re.Match[bytes], before: bytes) -> bool:
    return decoys.is_person(match[0], before)


def _phone(match: re.Match[bytes], before: bytes) -> bool:
    return 9 <= len(leak_numbers.digits(match[1])) <= 15 and not leak_numbers.is_fictional(match[1])


_WORD = re.compile(rb"[\w.+-]+$")
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
_TOKEN = "(?:" + _after("auth", "access", "refresh", "session", "bearer", "api", "bot") + r"|(?<![\w-]))token"
_NAME = rf"passw(?:or)?d|passphrase|secret|{_KEY}|{_TOKEN}"
_CRYPTIC = r"[A-Za-z0-9._~+/-]{16,512}={0,2}"
_LINE_START = re.compile(rb"[ \t]*(?:export[ \t]+|set[ \t]+|- |env[ \t]+)?[\w.-]*")


def _rule(name: str, anchors: str, pattern: str, accept: Accept | None = None, behind: int = 0) -> Rule:
    anchored = tuple(anchor.encode() for anchor in anchors.split())
    return Rule(f"leak-{name}", "credential", anchored, re.compile(pattern.encode()), accept, behind)


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
    _rule("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _rule("aws-key-id", "AKIA ASIA ABIA ACCA", r"(?<![A-Za-z0-9+/])A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}(?![A-Za-z0-9+/])"),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,255}"),
    _rule("github-token", "github_pat_", r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{60,255}"),
    _rule("gitlab-token", "glpat- gldt- glrt-", r"(?<![A-Za-z0-9])gl(?:pat|dt|rt)-[A-Za-z0-9_-]{20,}"),
    _rule("slack-token", "xox", r"(?<![A-Za-z0-9])xox[abeoprs]-[A-Za-z0-9-]{20,}", _random),
    _rule("slack-token", "xapp-", r"(?<![A-Za-z0-9])xapp-[A-Za-z0-9-]{20,}", _random),
    _rule("slack-webhook", "hooks.slack.com/services/", r"hooks\.slack\.com/services/(T\w{8,}/B\w{8,}/\w{20,})"),
    _rule("anthropic-key", "sk-ant-", r"(?<![A-Za-z0-9])sk-ant-[a-z0-9]+-[A-Za-z0-9_-]{40,}"),
    _rule(
        "openai-key",
        "sk-",
        r"(?<![A-Za-z0-9_-])sk-(?!ant-)(?:(?:proj|svcacct|admin|or-v1)-)?"
        r"(?:[A-Za-z0-9_-]{20,}T3BlbkFJ[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})",
        _random,
    ),
    _rule("stripe-key", "k_live_ k_test_", r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,}", behind=1),
    _rule("stripe-key", "whsec_", r"(?<![A-Za-z0-9])whsec_[A-Za-z0-9+/=]{24,}"),
    _rule("google-key", "AIza", r"(?<![A-Za-z0-9+/])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _rule("google-oauth", "GOCSPX-", r"(?<![A-Za-z0-9])GOCSPX-[A-Za-z0-9_-]{28}"),
    _rule("google-oauth", "ya29.", r"(?<![A-Za-z0-9])ya29\.[A-Za-z0-9_-]{30,}"),
    _rule("hugging-face-token", "hf_", r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{34,}(?![A-Za-z0-9_])", _random),
    _rule("npm-token", "npm_", r"(?<![A-Za-z0-9_])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _rule("pypi-token", "pypi-AgE", r"(?<![A-Za-z0-9])pypi-AgE[A-Za-z0-9_-]{50,}"),
    _rule("sendgrid-key", "SG.", r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}"),
    _rule("digitalocean-token", "dop_v1_ doo_v1_", r"(?<![A-Za-z0-9])do[op]_v1_[0-9a-f]{64}"),
    _rule("docker-token", "dckr_pat_", r"(?<![A-Za-z0-9])dckr_pat_[A-Za-z0-9_-]{20,}"),
    _rule("shopify-token", "shpat_ shpss_ shpca_", r"(?<![A-Za-z0-9])shp(?:at|ss|ca)_[0-9a-fA-F]{32}"),
    _rule("databricks-token", "dapi", r"(?<![A-Za-z0-9])dapi[0-9a-f]{32}(?![A-Za-z0-9])"),
    _rule(
        "service-token",
        _SERVICES,
        rf"(?<![A-Za-z0-9_])(?:{'|'.join(map(re.escape, _SERVICES.split()))})[A-Za-z0-9_-]{{22,}}",
        _random,
    ),
    _rule("telegram-token", ":AA", r"(?<=[0-9]{8}):AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    _rule("azure-key", "AccountKey= AccessKey=", r"Acc(?:ount|ess)Key=([A-Za-z0-9+/]{42,86}={0,2})(?![A-Za-z0-9+/])"),
    _rule("jwt", "eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}", _jwt),
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
        rf"(?im)((?:{_NAME})[\w-]{{0,16}})(?:\\*[\"']?[ \t\r\n]{{0,8}}(?::=|=>|[:=,])[ \t\r\n]{{0,8}}"
        r"\\*[\"']([^\"'\s\\]{8,200})\\*[\"']|[ \t]{0,8}[:=][ \t]{0,8}([^\s\"'#\\&]{8,200})[ \t\r]*$)",
        _assigned,
    ),
    _named(
        "parameter",
        "passw secret key token",
        rf"(?i)((?:{_NAME})[\w-]{{0,16}})=([^&;#\s\"'<>\\]{{12,400}})",
        _parameter,
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
