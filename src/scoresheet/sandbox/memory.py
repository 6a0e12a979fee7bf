"""A real bound on memory where the machine lets us make one: a cgroup of our own, version 1 or 2."""

import contextlib
import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Home:
    """Where groups can be made."""

    parent: Path
    version: int


@dataclass(frozen=True, slots=True)
class Used:
    """What a group measured."""

    peak_bytes: int | None
    oom_kills: int


def homes(own_cgroups: str, mountinfo: str) -> tuple[Home, ...]:
    """Candidates, nearest first, from /proc/self/cgroup and /proc/self/mountinfo. Pure."""
    found: list[Home] = []
    mounted: dict[int, tuple[str, str]] = {}  # version → root of the mount, place
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")
        if kind[0] == "cgroup" and "memory" in kind[-1].split(","):
            mounted[1] = (fields[3], fields[4])
        elif kind[0] == "cgroup2":
            mounted[2] = (fields[3], fields[4])
    for line in own_cgroups.splitlines():
        number, controllers, path = line.split(":", 2)
        version = 1 if "memory" in controllers.split(",") else 2 if number == "0" else 0
        if version not in mounted:
            continue
        root, place = mounted[version]
        inner = os.path.relpath(path, root) if root != "/" and path.startswith(root) else path.lstrip("/")
        own = Path(os.path.normpath(Path(place) / inner))
        if version == 1:
            found.insert(0, Home(own, 1))
        else:
            found += [Home(one, 2) for one in (own, *own.parents) if one == Path(place) or Path(place) in one.parents]
    return tuple(found)


class Groups:
    """The groups of one run, made when first asked for. `folder` is the run's own, or `None` where none can be."""

    def __init__(self, name: str) -> None:
        self._home = next((home for home in self._candidates() if _usable(home)), None)
        self.folder = None if self._home is None else self._home.parent / name
        self._numbers = itertools.count(1)  # episodes come from several threads

    @staticmethod
    def _candidates() -> tuple[Home, ...]:
        try:
            return homes(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
        except OSError:
            return ()

    def hold(self, pid: int, most_bytes: int) -> "Group | None":
        """A group of that bound with that process in it, or `None`: then memory is not bound by a group."""
        if self.folder is None or self._home is None:
            return None
        group = Group(self.folder / str(next(self._numbers)), self._home.version)
        try:
            self.folder.mkdir(exist_ok=True)
            if self._home.version == 2:
                (self.folder / "cgroup.subtree_control").write_text("+memory")
            group.make(most_bytes)
            (group.folder / "cgroup.procs").write_text(str(pid))
        except OSError:
            group.remove()
            return None
        return group

    def close(self) -> None:
        if self.folder is not None:
            with contextlib.suppress(OSError):
                self.folder.rmdir()


class Group:
    """One episode's group."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder, self._version = folder, version

    def make(self, most_bytes: int) -> None:
        self.folder.mkdir()
        if self._version == 1:
            (self.folder / "memory.limit_in_bytes").write_text(str(most_bytes))
            swap, value = "memory.memsw.limit_in_bytes", most_bytes
        else:
            (self.folder / "memory.max").write_text(str(most_bytes))
            swap, value = "memory.swap.max", 0
        with contextlib.suppress(OSError):  # absent where the kernel does not account swap
            (self.folder / swap).write_text(str(value))

    def used(self) -> Used:
        peak = "memory.max_usage_in_bytes" if self._version == 1 else "memory.peak"
        events = "memory.oom_control" if self._version == 1 else "memory.events"
        peak_bytes, kills = None, 0
        with contextlib.suppress(OSError, ValueError):
            peak_bytes = int((self.folder / peak).read_text())
        with contextlib.suppress(OSError, ValueError):
            for line in (self.folder / events).read_text().splitlines():
                if line.startswith("oom_kill "):
                    kills = int(line.split()[1])
        return Used(peak_bytes, kills)

    def remove(self) -> None:
        """Remove the group, whose processes are dead; the kernel may need a moment to believe it."""
        for _ in range(50):
            try:
                self.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)
            else:
                return


def _usable(home: Home) -> bool:
    if not os.access(home.parent, os.W_OK):
        return False
    if home.version == 1:
        return True
    with contextlib.suppress(OSError):
        return "memory" in (home.parent / "cgroup.subtree_control").read_text().split()
    return False
