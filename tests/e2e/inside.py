"""All that the processes of a sandbox hold, looked at from outside: memory, environment, command line, files."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PIECE = 1 << 20
_FOLDERS = ("home", "tmp", "work", "run", "dev/shm", "etc")
"""What is an episode's own: everything else is the host's, read-only."""


@dataclass(frozen=True)
class Holding:
    """Where something was found."""

    pid: int
    where: str
    count: int


def sandboxed(runner: int) -> list[int]:
    """Processes below `runner` that are in another process namespace, its first process left out."""
    ours = os.readlink("/proc/self/ns/pid")
    found = []
    for pid in _below(runner):
        try:
            theirs = os.readlink(f"/proc/{pid}/ns/pid")
            numbers = next(line for line in _text(pid, "status").splitlines() if line.startswith("NSpid:")).split()[1:]
        except (OSError, StopIteration):
            continue
        if theirs != ours and numbers[-1] != "1":
            found.append(pid)
    return found


def holdings(pids: Sequence[int], wanted: Sequence[bytes]) -> dict[bytes, list[Holding]]:
    """Where each of the texts is in the memory, environment, command lines and files of these processes."""
    found: dict[bytes, list[Holding]] = {each: [] for each in wanted}

    def look(pid: int, where: str, data: bytes) -> None:
        for each in wanted:
            if count := data.count(each):
                found[each].append(Holding(pid, where, count))

    for pid in pids:
        for name in ("environ", "cmdline"):
            look(pid, name, Path(f"/proc/{pid}/{name}").read_bytes())
        for piece in memory(pid, max(map(len, wanted))):
            look(pid, "memory", piece)
    for folder in _FOLDERS if pids else ():
        for path in files(Path(f"/proc/{pids[0]}/root/{folder}")):
            look(pids[0], str(path), path.read_bytes())
    return found


def memory(pid: int, overlap: int) -> Iterator[bytes]:
    """What is resident of a process's memory, in pieces that overlap."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for start, end in _resident(pid):
            before = b""
            for place in range(start, end, PIECE):
                try:
                    memory.seek(place)
                    data = memory.read(min(PIECE, end - place))
                except OSError:  # the kernel's own pages
                    break
                yield before + data
                before = data[-overlap:]


def files(folder: Path) -> Iterator[Path]:
    """Regular files below a folder that may be read, whoever owns them."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink() and os.access(path, os.R_OK):
                yield path


def _resident(pid: int) -> Iterator[tuple[int, int]]:
    place = (0, 0)
    for line in _text(pid, "smaps").splitlines():
        first, *rest = line.split()
        if "-" in first and rest and len(rest[0]) == 4 and not first.endswith(":"):
            low, _, high = first.partition("-")
            place = (int(low, 16), int(high, 16)) if rest[0][0] == "r" else (0, 0)
        elif first == "Rss:" and int(rest[0]) and place[1]:
            yield from _pages(pid, *place)


def _pages(pid: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The resident part of a mapping; large ones are reserved far beyond what is used."""
    size = os.sysconf("SC_PAGE_SIZE")
    if end - start <= 64 * PIECE:
        yield start, end
        return
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pages:
        for place in range(start, end, 512 * PIECE):
            most = min(512 * PIECE, end - place) // size
            pages.seek(place // size * 8)
            told = pages.read(most * 8)
            begun = None
            for number in range(len(told) // 8 + 1):
                there = number < len(told) // 8 and told[number * 8 + 7] & 0xC0
                if there and begun is None:
                    begun = place + number * size
                elif not there and begun is not None:
                    yield begun, place + number * size
                    begun = None


def _below(pid: int) -> list[int]:
    """Every process that descends from `pid`."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def _text(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text("utf-8", "replace")
