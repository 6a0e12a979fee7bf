"""Looks for what a command has left running on the host."""

import os
from pathlib import Path


def alive(marker: str | Path) -> list[str]:
    """Command lines of every other process of the host, in whatever namespace, that hold the marker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(marker) in command and pid != str(os.getpid()):
            found.append(command.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found
