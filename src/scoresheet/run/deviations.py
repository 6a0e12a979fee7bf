"""Card against run: what the card pins, the run can see, and is not the same. Pure.

What can't be seen is no deviation: a control in free words is compared only where it names what the run knows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scoresheet.canonical import JsonValue
from scoresheet.documents.pack_record import PackRecord
from scoresheet.documents.run_plan import RunPlan

_VERSIONED = re.compile(r"([A-Za-z][A-Za-z+]*)[\s/=:@-]*v?(\d+(?:\.\d+)*)")
_SYSTEM = re.compile(
    r"(?i)\b(debian|ubuntu|fedora|alpine|arch|rhel|centos|rocky|suse|nixos|linux|macos|darwin|windows)\b"
    r"(?:\s*(?:gnu/)?(?:linux)?[\s/:-]*v?(\d+(?:\.\d+)*))?"
)
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


@dataclass(frozen=True, slots=True)
class Deviation:
    """One control that the run did not keep."""

    control: str
    """As the card names it."""
    pinned: str
    seen: str

    def __str__(self) -> str:
        return f"{self.control}: the card pins {self.pinned}, the run had {self.seen}"


def deviations(card: JsonValue, plan: RunPlan, record: PackRecord) -> tuple[Deviation, ...]:
    """Every deviation of a run from its card, in the card's order."""
    return tuple(_deviations(card, plan, record)) if isinstance(card, dict) else ()


def _deviations(card: dict[str, JsonValue], plan: RunPlan, record: PackRecord) -> Iterator[Deviation]:
    controls = _section(card, "controls")
    yield from _runtime(controls.get("runtime"), plan)
    yield from _lockfile(controls.get("lockfile"), plan)
    allowed = controls.get("tool_allowlist")
    if isinstance(allowed, list):
        outside = [name for name in record.tools if name not in allowed]
        if outside:
            yield Deviation("controls.tool_allowlist", f"{len(allowed)} tools", f"also {', '.join(outside)}")
    command = controls.get("test_command")
    for task_id, task in record.tasks.items():
        if task.test_command is not None and isinstance(command, str) and task.test_command != command:
            yield Deviation("controls.test_command", repr(command), f"{task.test_command!r} in {task_id}")
    numbers: tuple[tuple[str, float | int | None], ...] = (
        ("wall_clock_s", plan.limits.wall_clock_s),
        ("max_tool_calls", plan.limits.max_tool_calls),
        ("seed", plan.seed),
        ("parallel_jobs", plan.jobs),
        ("retries", plan.retries),
        ("repeats", plan.repeats),
    )
    for name, seen in numbers:
        pinned = controls.get(name)
        if isinstance(pinned, int | float) and not isinstance(pinned, bool) and pinned != seen:
            yield Deviation(f"controls.{name}", f"{pinned:g}", "none" if seen is None else f"{seen:g}")
    if controls.get("network") == "denied" and plan.model_endpoints:
        yield Deviation("controls.network", "denied", ", ".join(plan.model_endpoints))
    yield from _system(_section(card, "environment").get("os"), plan)


def _runtime(pinned: JsonValue, plan: RunPlan) -> Iterator[Deviation]:
    """Versions of Python, and of the agent's own interpreter, where the card's words name one."""
    seen = {"python": plan.host.python}
    for name, version in _VERSIONED.findall(plan.agent.interpreter or ""):
        seen[_name(name)] = version
    for name, version in _VERSIONED.findall(pinned) if isinstance(pinned, str) else ():
        found = seen.get(_name(name))
        if found is not None and not _within(found, version):
            yield Deviation("controls.runtime", f"{name} {version}", f"{name} {found}")


def _lockfile(pinned: JsonValue, plan: RunPlan) -> Iterator[Deviation]:
    if not isinstance(pinned, str) or plan.lockfile_sha256 is None:
        return
    for sha256 in _DIGEST.findall(pinned):
        if sha256 != plan.lockfile_sha256:
            yield Deviation("controls.lockfile", sha256, plan.lockfile_sha256)


def _system(pinned: JsonValue, plan: RunPlan) -> Iterator[Deviation]:
    here = f"{plan.host.os or ''} {plan.host.system}"
    seen = {name.casefold(): version for name, version in reversed(_SYSTEM.findall(here))}
    for name, version in _SYSTEM.findall(pinned) if isinstance(pinned, str) else ():
        found = seen.get(name.casefold())
        if found is None or (version and found and not _within(found, version)):
            yield Deviation("environment.os", f"{name} {version}".strip(), here.strip())
            return


def _within(version: str, pinned: str) -> bool:
    """True when `version` is `pinned` or more exact than it: 3.11.7 is within 3.11."""
    parts = pinned.split(".")
    return version.split(".")[: len(parts)] == parts


def _name(name: str) -> str:
    return {"cpython": "python", "python3": "python", "nodejs": "node"}.get(name.casefold(), name.casefold())


def _section(card: dict[str, JsonValue], name: str) -> dict[str, JsonValue]:
    found = card.get(name)
    return found if isinstance(found, dict) else {}
