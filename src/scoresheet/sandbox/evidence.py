"""What a probe's findings prove: from values to `Evidence`. Pure: no sockets, no clock.

Proved means: every attempt inside failed, the core attempts outside succeeded, no canary heard the inside's word, and
every fact of posture holds. An attempt that fails outside too proves nothing: it is `not_applicable`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scoresheet.documents.evidence import Check

CORE = ("tcp4_host_loopback", "udp4_host_loopback", "unix_abstract", "unix_path")
"""Attempts whose success outside is required: without them the probe would pass vacuously."""
REACHED = "reached"
_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "console"))


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be found inside, and what the host saw of the process that reported."""

    writable: tuple[str, ...]
    places: tuple[str, ...]
    trees: tuple[str, ...]
    uid: int
    """The account, as the host sees it, of the process that reported."""
    seen_uid: int
    host_namespace: str
    seen_namespace: str
    """Network namespace of that process, as the host sees it."""
    name_service: str
    """nsswitch.conf and resolv.conf together."""
    shared_namespaces: tuple[str, ...] = ()
    """Kinds of namespaces that it shares with the host, or that could not be seen."""
    bound_sockets: tuple[str, ...] = ()
    """Unix sockets that lie in bound trees."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Every check, and the names of those that fail; none is proof."""

    checks: tuple[Check, ...]
    failing: tuple[str, ...]


def judge(report: Mapping[str, Any], control: Mapping[str, str], hits_inside: int, expected: Expected) -> Judgement:
    """The verdict on one sandbox: what its process 1 found, against what the same attempts gave outside."""
    checks: list[Check] = []
    failing: list[str] = []
    inside: Mapping[str, str] = report["reach"]
    for name, outside in control.items():
        found = inside.get(name, "not tried")
        if found in (REACHED, "not tried"):
            failing.append(name)
            verdict = "REACHED" if found == REACHED else "BROKEN"
        elif outside != REACHED and name in CORE:
            failing.append(f"control:{name}")
            verdict = "BROKEN"
        else:
            verdict = "denied" if outside == REACHED else "not_applicable"
        checks.append(Check.model_validate({"name": name, "inside": found, "control": outside, "verdict": verdict}))
    failing += [f"control:{name}" for name in CORE if name not in control]
    if hits_inside:
        failing.append("canary_hit")
    for name, holds, found in _posture(report["posture"], expected):
        if not holds:
            failing.append(name)
        verdict = "holds" if holds else "BROKEN"
        checks.append(Check.model_validate({"name": name, "inside": found, "control": None, "verdict": verdict}))
    return Judgement(tuple(checks), tuple(failing))


def _posture(posture: Mapping[str, Any], expected: Expected) -> tuple[tuple[str, bool, str], ...]:
    """(name, holds, what was found) of every fact."""
    granted: Mapping[str, str] = posture["privileges"]
    no_capability = all(int(granted.get(f"Cap{name}", "1"), 16) == 0 for name in ("Inh", "Prm", "Eff", "Bnd", "Amb"))
    descriptors: Mapping[str, str] = posture["descriptors"]
    extra = {number: kind for number, kind in descriptors.items() if number not in "012" or kind == "socket"}
    can_write = {place for place, may_write, kind in posture["mounts"] if may_write and _counts(place, kind)}
    unexpected = [place for place, _, kind in posture["mounts"] if not _declared(place, kind, expected)]
    wrong_writable = sorted(can_write ^ set(expected.writable))
    namespace = str(posture["network_namespace"])
    sockets = [*posture["unix_sockets"], *expected.bound_sockets]
    own_namespace = namespace == expected.seen_namespace != expected.host_namespace
    return (
        ("network", posture["network"] == ["link lo"], ", ".join(posture["network"])),
        ("network_namespace", own_namespace, f"{namespace}, seen from the host as {expected.seen_namespace}"),
        ("namespaces", not expected.shared_namespaces, ", ".join(expected.shared_namespaces) or "all its own"),
        ("account", expected.seen_uid == expected.uid != 0, str(expected.seen_uid)),
        ("capabilities", no_capability, f"CapEff {granted.get('CapEff')} CapBnd {granted.get('CapBnd')}"),
        ("no_new_privileges", granted.get("NoNewPrivs") == "1", str(granted.get("NoNewPrivs"))),
        ("seccomp", granted.get("Seccomp") == "2", str(granted.get("Seccomp"))),
        ("descriptors", not extra, _pairs(extra or descriptors)),
        ("writable_mounts", not wrong_writable, ", ".join(wrong_writable or sorted(can_write))),
        ("mounts", not unexpected, ", ".join(unexpected) or f"{len(posture['mounts'])} declared"),
        ("devices", not posture["devices"], ", ".join(posture["devices"]) or "the usual"),
        ("processes", posture["pids"] == [1], ", ".join(map(str, posture["pids"][:20]))),
        ("unix_sockets", not sockets, ", ".join(sockets) or "none"),
        ("environment", set(posture["environment"]) <= {"PWD"}, ", ".join(posture["environment"])),
        ("names", _no_names(posture, expected), str(posture["name_lookup"])),
    )


def _no_names(posture: Mapping[str, Any], expected: Expected) -> bool:
    return bool(posture["name_lookup"] != "resolved" and posture["name_service"] == expected.name_service)


def _counts(place: str, kind: str) -> bool:
    """Whether a mount that can be written to must have been declared: not the kernel's own, nor a device's node."""
    return kind not in ("proc", "devpts") and place not in _DEVICES


def _declared(place: str, kind: str, expected: Expected) -> bool:
    if place in expected.places or place in _DEVICES or place in expected.trees:
        return True
    if place.startswith("/proc/"):
        return kind == "proc"
    if place.startswith("/dev/"):
        return kind == "devpts"
    return any(place.startswith(tree + "/") for tree in expected.trees)


def _pairs(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.items())
