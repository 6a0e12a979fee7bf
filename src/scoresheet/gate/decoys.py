"""What only looks like a leak: documentation, references, hashes, placeholders, authors. Pure.

A leak rule asks here before it reports. Nothing here is a marker that a scanned file could use to excuse itself.
"""

import base64
import binascii
import math
import re
from collections import Counter

_DOCUMENTATION = re.compile(
    rb"(?i)example|replace[_ -]?me|your[_-]|change[_-]?me|placeholder|dummy|redacted|sample|lorem|x{4}|\*{3}|\.{3}"
    rb"|\$\{|\{\{|<[^>]*>|%[({]|os\.environ|getenv|process\.env|secrets\.|deadbeef|abcdefgh|12345678|01234567|987654321"
    rb"|([A-Za-z0-9])\1{6}"
)
_ATTRIBUTION = re.compile(
    rb"(?i)\bauthor|maintain|committer|contributor|copyright|licen[cs]e|signed-off-by|co-authored|reported-by|reviewed-by"
    rb"|acked-by|tested-by|git@|\bgit clone\b|\bssh "
)
_ROLE = re.compile(
    rb"(?i)(?:security|support|info|admin|help|hello|sales|no-?reply|do-?not-?reply|postmaster|webmaster|hostmaster|abuse"
    rb"|legal|privacy|press|team|dev|git|bot|jobs|user|username|name|email|someone|nobody|foo|bar|test|root|alice|bob"
    rb"|[\w.-]*-?(?:list|announce|users|bugs|bot|bot\])|jane\.?doe|john\.?doe)(?:\+\S*)?"
)
_SAFE_DOMAIN = re.compile(
    rb"(?i)(?:^|\.)(?:example\.(?:com|org|net|edu)|example|test|invalid|localhost|localdomain|local|internal|lan"
    rb"|domain\.tld|domain\.com|yourdomain\.com|email\.com|acme\.(?:com|org))$"
    rb"|^(?:users\.noreply\.)?github\.com$|^gitlab\.com$|^bitbucket\.org$|(?:^|\.)iam\.gserviceaccount\.com$"
)
_TOP_LEVEL = re.compile(
    rb"(?i)[a-z]{2}|com|org|net|edu|gov|mil|int|info|biz|name|pro|mobi|jobs|aero|coop|museum|travel|asia|tel|post|cat"
    rb"|app|dev|page|cloud|online|site|store|shop|tech|xyz|club|live|life|work|works|world|today|email|mail|team|group"
    rb"|agency|digital|media|news|blog|design|studio|network|systems|solutions|services|software|company|global|health"
    rb"|care|bank|finance|money|capital|money|law|legal|academy|school|university|science|energy|house|berlin|london"
    rb"|paris|wien|zuerich|swiss|hamburg|koeln|bayern|amsterdam|tokyo|nyc|icu|top|vip|fun|space|website|host|press"
)
_FILE_ENDING = re.compile(
    rb"(?i)\.(?:png|jpe?g|gif|svg|webp|ico|css|js|mjs|ts|tsx|py|rb|rs|go|sh|md|so|cc|hs|ml|pl|ps|html?|json|ya?ml|toml|lock)$"
)
_WORDS = re.compile(
    rb"_*(?:[a-z]+(?:[_. /-]+[a-z0-9]{1,20})*|[A-Z]+(?:[_. -]+[A-Z0-9]{1,20})*|[A-Za-z_]+(?:\.[A-Za-z_]+)+"
    rb"|[a-z]*(?:[A-Z]{1,6}[a-z]{2,})+)[,;]?"
)
_REFERENCE = re.compile(
    rb"(?i)(?:\$|%|@|&|/|\./|\.\./|~/|https?:|file:|env:|vault:|arn:|ssm:|ref\+|sha\d*[:-]|projects/|op://|[a-z]:\\|\{|\(|\[)"
    rb"|[\w.]+\(.*|[\w.]+\[.*|.*(?:\.(?:pem|key|crt|json|ya?ml|txt|env|toml|ini|py|js|ts)|\(\)|;)$|true$|false$|null$|none$"
    rb"|undefined$"
)
_UUID = re.compile(rb"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_DIGEST = re.compile(rb"(?i)(?:[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})")
_COMMON = frozenset(
    b"password pass passwd secret pwd token user username pw root admin postgres mysql guest test hunter2 rabbitmq"
    b" mongo redis minio minioadmin letmein foobar foo bar x-oauth-basic x-access-token".split()
)
_DOCUMENTED_JWT = b"SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
"""Signature of the token that every page about JWTs shows."""

PATTERNS = (
    *(_DOCUMENTATION, _ATTRIBUTION, _ROLE, _SAFE_DOMAIN, _TOP_LEVEL, _FILE_ENDING),
    *(_WORDS, _REFERENCE, _UUID, _DIGEST),
)


def entropy(text: bytes) -> float:
    """Shannon entropy of a text, in bits a byte."""
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values())


def is_documentation(secret: bytes) -> bool:
    """True for a secret that says itself that it is an example, a placeholder or a reference to one."""
    return _DOCUMENTATION.search(secret) is not None


def is_random(secret: bytes) -> bool:
    """True for what a generator made: neither words nor a reference, a UUID or a hash."""
    if entropy(secret) < 3.0 or _UUID.fullmatch(secret) or _WORDS.fullmatch(secret) or _REFERENCE.match(secret):
        return False
    return any(48 <= char <= 57 for char in secret) or len(set(secret)) >= 10


def is_no_hash(secret: bytes) -> bool:
    """True for what is random and has not the length of a digest in hex."""
    return is_random(secret) and not _DIGEST.fullmatch(secret)


def is_password(user: bytes, password: bytes, host: bytes) -> bool:
    """True for the password of a URL, unless it is one that every tutorial shows."""
    low = password.lower()
    return not (
        low in _COMMON
        or low == user.lower()
        or (password.isdigit() and len(password) <= 5)  # host:port@ in an odd place
        or is_documentation(password)
        or _REFERENCE.match(password)
        or (_SAFE_DOMAIN.search(host) and not host.lower().endswith((b".local", b".internal", b".lan")))
    )


def is_jwt(token: bytes) -> bool:
    """True when the first part of a token is a JOSE header."""
    head, _, rest = token.partition(b".")
    try:
        plain = base64.urlsafe_b64decode(head + b"=" * (-len(head) % 4))
    except binascii.Error:
        return False
    return b'"alg"' in plain and not rest.endswith(_DOCUMENTED_JWT)


def is_person(address: bytes, before: bytes) -> bool:
    """True for a person's e-mail address; `before` is what stands on its line, or a little more."""
    name, _, domain = address.rpartition(b"@")
    return not (
        _SAFE_DOMAIN.search(domain)
        or _TOP_LEVEL.fullmatch(domain.rpartition(b".")[2]) is None
        or _FILE_ENDING.search(domain)
        or _ROLE.fullmatch(name)
        or _ATTRIBUTION.search(before)
    )
