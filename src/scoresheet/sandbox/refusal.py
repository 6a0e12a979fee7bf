"""Why a machine can't isolate, and the one thing that mends it. Pure: from what bwrap said and the machine's facts.

There is no fallback: what can't be isolated is refused, in words that a person can act on.
"""

from dataclasses import dataclass
from typing import Final

from scoresheet.documents.evidence import Evidence
from scoresheet.errors import NotIsolated

OLDEST_BWRAP: Final = (0, 8)
"""`--disable-userns` came with 0.8 (Debian 12, Ubuntu 24.04)."""

_MENDS: Final[dict[str, tuple[str, str]]] = {
    "not-linux": (
        "isolation needs Linux",
        "run scoresheet in a Linux machine or virtual machine",
    ),
    "wsl1": ("WSL 1 has no namespaces", "wsl --set-version <distribution> 2"),
    "machine": ("no system call filter exists for this processor", "run on x86_64 or aarch64"),
    "bwrap-missing": (
        "bubblewrap (bwrap) is not installed",
        "apt install bubblewrap   (Fedora: dnf install bubblewrap)",
    ),
    "bwrap-too-old": (
        "this bubblewrap is older than 0.8, which can't forbid nested user namespaces",
        "upgrade to Debian 12, Ubuntu 24.04 or newer, then: apt install bubblewrap",
    ),
    "python-missing": (
        "no Python of 3.9 or newer can start inside the sandbox",
        "apt install python3   (Fedora: dnf install python3)",
    ),
    "userns-apparmor": (
        "AppArmor forbids user namespaces to programs without a profile",
        "apt install apparmor-profiles && install -m644 /usr/share/apparmor/extra-profiles/bwrap-userns-restrict"
        " /etc/apparmor.d/ && apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict",
    ),
    "userns-off": (
        "user namespaces are switched off",
        "sysctl -w user.max_user_namespaces=15000   (older Debian: kernel.unprivileged_userns_clone=1)",
    ),
    "userns-container": (
        "this container forbids user namespaces",
        "start it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
        "   (podman: --security-opt seccomp=unconfined --security-opt unmask=ALL)",
    ),
    "proc-masked": (
        "a fresh /proc can't be mounted, for this container masks parts of its own",
        "start it with --security-opt systempaths=unconfined   (podman: --security-opt unmask=ALL)",
    ),
    "netns": (
        "a network namespace was made, but its loopback can't be set up",
        "let the AppArmor or SELinux profile of bwrap keep CAP_NET_ADMIN inside user namespaces",
    ),
    "staging-denied": (
        "as root, paths that the episode's account can't traverse are bound in a private mount namespace,"
        " which is forbidden here",
        "run scoresheet as an ordinary user, or from a directory that everybody may enter",
    ),
    "account-missing": (
        "as root, episodes need accounts of their own, and this user namespace maps none",
        "run scoresheet as an ordinary user, or give the container a range of ids (/etc/subuid, /etc/subgid)",
    ),
    "control-failed": (
        "the positive control failed: what must be reachable outside is not",
        "let this account use loopback sockets (is scoresheet itself in a sandbox?)",
    ),
    "sandbox-failed": (
        "bubblewrap could not build the sandbox",
        "see what it said, and `scoresheet doctor`",
    ),
}
CODES: Final = (*_MENDS, "isolation-not-proved")


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts that tell apart why user namespaces fail."""

    apparmor_restricts: bool
    user_namespaces_off: bool
    container: bool


def refuse(code: str, where: str = "") -> NotIsolated:
    """The error of a known code."""
    what, mend = _MENDS[code]
    return NotIsolated(code, what, where=where, mend=mend)


class NotProved(NotIsolated):
    """A sandbox stands, but its probe was not wholly denied. `evidence` holds every check."""

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(
            "isolation-not-proved",
            ", ".join(evidence.reasons),
            mend="run `scoresheet doctor`: it shows each check, inside and outside",
        )
        self.evidence = evidence


def classify(said: str, machine: Machine) -> NotIsolated:
    """The error that what bwrap said on stderr amounts to on this machine."""
    line = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "bwrap said nothing")
    lower = said.lower()
    if "mount proc" in lower:
        code = "proc-masked"
    elif "unknown option" in lower:
        code = "bwrap-too-old"
    elif "rtm_newaddr" in lower or "loopback" in lower:
        code = "userns-apparmor" if machine.apparmor_restricts else "netns"
    elif "namespace" in lower or "uid map" in lower or "permitted" in lower or "no space left" in lower:
        if machine.apparmor_restricts:
            code = "userns-apparmor"
        elif machine.user_namespaces_off or "no space left" in lower:
            code = "userns-off"
        else:
            code = "userns-container" if machine.container else "sandbox-failed"
    else:
        code = "sandbox-failed"
    return refuse(code, where=line)


def version(text: str) -> tuple[int, ...] | None:
    """`bubblewrap 0.8.0` → (0, 8, 0); `None` for anything else."""
    words = text.split()
    if len(words) < 2 or words[0] != "bubblewrap":
        return None
    parts = words[1].split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else None
