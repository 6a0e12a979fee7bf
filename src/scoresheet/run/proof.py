"""What an episode's evidence.json proves, for whoever did not see the episode. Pure.

The sandboxes of one run differ in three names alone: digest of the command line, network namespace, account. So a text
that is another, judged before, but for those names, is judged by it: a verdict hangs on none of them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from scoresheet.canonical import JsonValue
from scoresheet.documents.evidence import Evidence
from scoresheet.errors import Finding, Refused
from scoresheet.sandbox.evidence import CORE

_SHOWN = 3
_KEPT = 64
_ARGV = re.compile(rb'\{\n  "argv_sha256": "[0-9a-f]{64}"')
_NAMES = re.compile(rb'"network_namespace": "(net:\[[0-9]+\])",[^\0]*"uid": ([1-9][0-9]*)\n\}\n\Z')
_TAIL = 1024


@dataclass(frozen=True, slots=True)
class Proof:
    """One evidence.json."""

    state: str | None
    """`None`: it can't be read."""
    suspended_s: float = 0.0
    findings: tuple[Finding, ...] = ()
    """What is wrong with it in itself."""
    backend: str | None = None
    """What isolated it; `None`: it can't be read."""
    limits: Mapping[str, JsonValue] = field(default_factory=dict)
    """Limit → its value."""


@dataclass(slots=True)
class Proofs:
    """The evidence of a run's episodes, one after another."""

    _known: dict[bytes, Proof] = field(default_factory=dict)
    """Text without its names → what it proves; texts in which something is wrong are read every time."""

    def of(self, data: bytes, where: str) -> Proof:
        """What the evidence in `data` proves."""
        text = _without_names(data)
        known = self._known.get(text) if text is not None else None
        if known is not None:
            return known
        proof = _judged(data, where)
        if text is not None and not proof.findings:
            if len(self._known) == _KEPT:
                self._known.clear()
            self._known[text] = proof
        return proof


def _without_names(data: bytes) -> bytes | None:
    """The text with NUL, which no JSON holds, and a letter for each name; `None` where they are not found.

    The namespace can stand nowhere but in strings, and the account is replaced only as a whole string and as the last
    member: so two texts that become one are both JSON, with the same members, or neither is.
    """
    argv = _ARGV.match(data)
    names = _NAMES.search(data, max(0, len(data) - _TAIL))
    if argv is None or names is None or b"\0" in data:
        return None
    namespace, uid = names.groups()
    body = data[argv.end() : names.start(2)]
    return body.replace(namespace, b"\0n").replace(b'"%s"' % uid, b'"\0u"')


def _judged(data: bytes, where: str) -> Proof:
    try:
        proof = Evidence.from_bytes(data, where)
    except Refused as refused:
        return Proof(None, findings=tuple(refused.findings[:_SHOWN]))
    return Proof(proof.state, proof.suspended_s, tuple(_faults(proof, where)), proof.backend, _limits(proof))


def _limits(proof: Evidence) -> Mapping[str, JsonValue]:
    return {name: each["value"] for name, each in proof.limits.items() if isinstance(each, dict) and "value" in each}


def _faults(proof: Evidence, where: str) -> Iterator[Finding]:
    if proof.state != "proved":
        return
    broken = [check.name for check in proof.checks if check.verdict in ("REACHED", "BROKEN")]
    denied = {check.name for check in proof.checks if check.verdict == "denied"}
    if broken or proof.reasons or proof.canary_hits_inside or not denied.issuperset(CORE):
        why = ", ".join(broken or sorted(set(CORE) - denied)) or "its own reasons say so"
        yield Finding("evidence-state", where, f"says proved, but its own checks do not: {why}")
