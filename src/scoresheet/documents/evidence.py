"""What was proved of one episode's isolation: written beside its row, quoted by the report."""

from typing import Literal

from scoresheet.canonical import JsonValue
from scoresheet.documents.model import Document, Many


class Check(Document):
    """One thing that the probe tried inside, and what the same attempt did outside."""

    rule = "evidence"
    name: str
    inside: str
    control: str | None
    """`None` for facts of posture, which have no outside twin."""
    verdict: Literal["denied", "not_applicable", "holds", "REACHED", "BROKEN"]
    """`not_applicable`: the control failed too, so the check proves nothing and is never counted as proof."""


class Evidence(Document):
    """The proof of one sandbox, or its absence."""

    rule = "evidence"
    backend: str
    state: Literal["proved", "not_isolated", "not_proved"]
    reasons: Many[str] = ()
    """Why isolation is not proved; empty when it is."""
    checks: Many[Check] = ()
    canary_hits_inside: int = 0
    canary_hits_control: int = 0
    kernel: str = ""
    bwrap: str = ""
    bwrap_sha256: str = ""
    argv_sha256: str = ""
    seccomp_sha256: str = ""
    uid: int | None = None
    network_namespace: str = ""
    """Inode of the network namespace of the process that became the agent's pid 1; differs from the host's."""
    host_network_namespace: str = ""
    limits: dict[str, JsonValue] = {}
    """Limit → value and what enforces it (`cgroup`, `rlimit`, `tmpfs`, `watchdog`, `none`)."""
    suspended_s: float = 0.0
    """CLOCK_BOOTTIME minus CLOCK_MONOTONIC over the episode: above a second the clock can't be trusted."""
