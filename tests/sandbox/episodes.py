"""Real episodes for tests: run an agent in a real sandbox, look for what it left on the host."""

import os
import pickle
import resource  # noqa: F401  # os.wait4 loads it when called: a child that gave root away may not read it
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scoresheet.documents.evidence import Evidence
from scoresheet.sandbox import programs
from scoresheet.sandbox.bwrap import BwrapSandbox
from scoresheet.sandbox.spec import HOME, Door, Ended, Launch, Limits, SandboxSpec

PYTHON = "/usr/bin/python3"
PATH = "/usr/local/bin:/usr/bin:/bin"
ORDINARY_UID = 54321
"""An account without a name, for tests that root starts: nothing is added to the machine."""


def a_spec(wall_clock_s: float = 20, **fields: Any) -> SandboxSpec:
    limits = Limits(wall_clock_s=wall_clock_s, **fields.pop("limits", {}))
    return SandboxSpec(doors=fields.pop("doors", (Door("api", 8080),)), limits=limits, **fields)


def a_launch(*argv: str, token: str = "", stdin: bytes = b"") -> Launch:
    return Launch(argv=argv, env=(("PATH", PATH), ("HOME", HOME), ("TOKEN", token)), stdin=stdin)


def run(sandbox: BwrapSandbox, *argv: str, spec: SandboxSpec | None = None, **launch: Any) -> tuple[Ended, Evidence]:
    with sandbox.open(spec or a_spec()) as opened:
        ended = opened.start(a_launch(*argv, **launch))
        return ended, opened.evidence


def run_python(sandbox: BwrapSandbox, program: str, **more: Any) -> Ended:
    return run(sandbox, PYTHON, "-I", "-c", program, **more)[0]


def survivors(token: str) -> list[str]:
    """Command lines of living processes of the host that carry the token in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and f"TOKEN={token}".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


def none_survive(token: str, within_s: float = 0) -> bool:
    deadline = time.monotonic() + within_s
    while survivors(token):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def as_ordinary(job: Callable[[], Any], groups: Sequence[int] = ()) -> Any:
    """What the job gives when an ordinary account does it: in a child that gave root away."""
    programs._sources()  # what is read only once must be read while this account still may
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            if os.geteuid() == 0:
                os.setgroups(groups)
                os.setgid(ORDINARY_UID)
                os.setuid(ORDINARY_UID)
            result: tuple[bool, Any] = (True, job())
        except BaseException:  # noqa: BLE001  # told to the parent
            result = (False, traceback.format_exc())
        with os.fdopen(writing, "wb") as out:
            out.write(pickle.dumps(result))
        sys.stderr.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as found:
        said = found.read()
    os.waitpid(child, 0)
    fine, value = pickle.loads(said)
    assert fine, value
    return value
