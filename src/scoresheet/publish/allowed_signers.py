"""The allowed signers file of OpenSSH, read before ssh-keygen is asked, so that a careless line is told. Pure.

A principal that is a pattern would let a key claim any name that fits: such a file is refused as a whole.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scoresheet.errors import Finding, Refused

_FIELDS = re.compile(r'(?:[^\s"]|"[^"]*")+')
_KEY_TYPE = re.compile(r"(ssh-|ecdsa-|sk-)[a-z0-9@.-]+")


@dataclass(frozen=True, slots=True)
class Allowed:
    """One line: who may sign with which key."""

    line: int
    principals: tuple[str, ...]
    options: str
    key: str
    """Type and base64, as `ssh-keygen` prints a public key."""


def parse(data: bytes, where: str) -> tuple[Allowed, ...]:
    """The lines of a file. Raises `Refused` with a finding for every line that can't be trusted or read."""
    found, findings = [], []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        fields = _FIELDS.findall(text)
        at = next((place for place, field in enumerate(fields[:3]) if place and _KEY_TYPE.fullmatch(field)), None)
        place = f"{where}:{number}"
        if at is None or len(fields) <= at + 1:
            findings.append(Finding("signers-line", place, "not `principals [options] keytype key`"))
            continue
        allowed = Allowed(
            number, tuple(fields[0].strip('"').split(",")), fields[1] if at == 2 else "", " ".join(fields[at : at + 2])
        )
        findings += _faults(allowed, place)
        found.append(allowed)
    if findings:
        raise Refused("these allowed signers can't be relied on", findings, where)
    return tuple(found)


def _faults(allowed: Allowed, where: str) -> Iterator[Finding]:
    for principal in allowed.principals:
        if set(principal) & set("*?!") or not principal:
            what = f"the principal {principal!r} is a pattern: its key could claim any name that fits"
            yield Finding("signers-wildcard", where, what, "name every signer")
    if "cert-authority" in allowed.options.lower().split(","):
        what = "a certificate authority: whom it lets sign stands nowhere in this file"
        yield Finding("signers-authority", where, what, "name the signers' own keys")
