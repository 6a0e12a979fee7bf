"""What the runner needs of an agent, whoever wrote it: a command line, what it may see, and who it is."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from scoresheet.documents.run_plan import AgentIdentity
from scoresheet.documents.task import Task
from scoresheet.model.upstream import Kind
from scoresheet.sandbox.spec import HOME, WORK, Bind

if TYPE_CHECKING:
    from scoresheet.run.workspace import Work

PROGRAMS = "/run/scoresheet"
"""Where our own small programs lie inside."""
_ELSEWHERE = "/run/scoresheet/host"
_TAKEN = tuple(Path(place) for place in (WORK, HOME, "/run", "/proc", "/dev", "/sys"))
"""Places inside that are not the host's: what lies below them on the host is bound under `_ELSEWHERE`."""
_VISIBLE = tuple(
    Path(place) for place in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives")
)
"""Host folders that every sandbox shows."""

Files = tuple[tuple[str, bytes], ...]


class Private(Protocol):
    """Files of one task that only one agent gets."""

    def __call__(self, task: Task, work: "Work | None" = None) -> Files: ...


def _nothing(task: Task, work: "Work | None" = None) -> Files:
    return ()


@dataclass(frozen=True, slots=True)
class Needs:
    """What an agent can't do without, where that is known before it runs."""

    name: str
    kind: Kind
    """Of the model that it calls."""
    model: str | None
    """The model that it was told to use; `None`: the card's."""
    offers: tuple[str, ...]
    """Tools that it offers to the model in any case."""
    offers_with_mcp: tuple[str, ...]
    """And those that it offers beside tools over MCP."""
    together: tuple[str, ...]
    """Tools that it offers all or none of, when the card names one of them."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent, ready to be launched under the agent contract."""

    identity: AgentIdentity
    argv: tuple[str, ...]
    """As it is launched inside."""
    binds: tuple[Bind, ...] = ()
    files: Files = ()
    path: tuple[str, ...] = ()
    """Folders that go before the others on PATH: those of its own interpreter."""
    private: Private = field(default=_nothing)
    """Files of one task that only this agent gets; nothing but for the oracle."""
    notes: tuple[str, ...] = ()
    """What a person should know of how the agent was read."""
    needs: Needs | None = None
    """`None` where nothing is known."""


def inside(path: Path) -> str:
    """Where a host path is inside: the same place, unless that is one of the sandbox's own (`/work`, `/run`…)."""
    return f"{_ELSEWHERE}{path}" if _below(path, _TAKEN) else str(path)


def visible(path: Path) -> bool:
    """True for what every sandbox shows of the host."""
    return _below(path, _VISIBLE)


def binds(paths: Iterable[Path]) -> tuple[Bind, ...]:
    """The fewest binds that show `paths`: nothing that is visible anyway, nothing below another one."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda path: (len(path.parts), str(path))):
        if not visible(path) and not _below(path, kept):
            kept.append(path)
    return tuple(Bind(path, inside(path)) for path in kept)


def _below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)
