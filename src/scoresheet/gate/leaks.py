"""The leak scan of a file, or of everything in a folder, by as many processes as there are cores.

No link is followed and nothing but regular files is opened. Nothing is passed over: what can't be searched is unknown,
and what is unknown is no `False`.
"""

import contextlib
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scoresheet import errors
from scoresheet.documents.protocol_card import LeakAllowance
from scoresheet.errors import Refused, Usage
from scoresheet.gate import leak_rules
from scoresheet.gate.leak_content import Content, Placed, Unknown, shown
from scoresheet.gate.leak_file import search_file
from scoresheet.pack import tree
from scoresheet.pack.tree import Entry, Progress

_ALONE = 3 << 20
"""Bytes up to which starting processes costs more than it saves."""
_PROCESS: tuple[str, ...] = ("-m", "scoresheet.gate.leak_process")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


Second = Callable[[str | Path], tuple[tuple[Placed, ...], tuple[Unknown, ...]]]
"""Another scanner: findings, and what it could not search."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A leak, where it is, and why it is allowed, if it is."""

    placed: Placed
    allowed: str | None = None
    """The reason in the card; `None` when no entry names this leak."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan found, and what it looked at."""

    findings: tuple[Finding, ...]
    unknown: tuple[Unknown, ...]
    unused: tuple[LeakAllowance, ...]
    """Allowances that matched nothing: a warning."""
    files: int
    size_bytes: int
    links: int
    """Symlinks, which are not followed; their targets' names are searched."""
    rules: int
    ruleset_sha256: str

    @property
    def leaks(self) -> tuple[Finding, ...]:
        """The findings that nobody allowed."""
        return tuple(finding for finding in self.findings if finding.allowed is None)

    @property
    def clean(self) -> bool:
        """True when something was searched, all of it, and no leak found."""
        return leak_flag(self) is False


def leak_flag(scan: Scan) -> bool | Literal["unknown"]:
    """What triage goes by: True for a leak that nobody allowed; `unknown` if anything was not searched, or nothing."""
    if scan.leaks:
        return True
    return "unknown" if scan.unknown or not scan.files else False


def allowances(card: str | Path) -> tuple[LeakAllowance, ...]:
    """The `leak_allow` of a protocol card. Raises `Usage` when the file can't be read, `Refused` when it is wrong."""
    from scoresheet import yaml12

    try:
        data = Path(card).read_bytes()
    except OSError as error:
        raise Usage(f"the card can't be read: {error.strerror}", str(card)) from error
    try:
        value = yaml12.load(data).value
    except yaml12.YamlError as error:
        raise error.with_place(str(card)) from error
    entries = value.get("leak_allow") if isinstance(value, dict) else None
    if entries is not None and not isinstance(entries, list):
        what = "leak_allow is no list"
        raise Refused(what, [errors.Finding("card-type", f"{card}#/leak_allow", what)], str(card))
    return tuple(
        LeakAllowance.from_value(entry, f"{card}#/leak_allow/{place}") for place, entry in enumerate(entries or ())
    )


def scan(
    path: str | Path,
    allow: Iterable[LeakAllowance] = (),
    progress: Progress = tree.quiet,
    second: Second | None = None,
) -> Scan:
    """The leaks of the file or folder at `path`. Raises `Usage` when it can't be read.

    `second` is another scanner, whose findings are added.

    `path` itself may be a symlink: the user named it.
    """
    root = Path(path)
    if root.is_dir():
        listing = _listing(root)
    else:
        root = Path(os.path.realpath(root))
        listing = _single(root)
        root = root.parent
    contents = _searched(root, listing.files, progress)
    if second is not None and listing.files:
        contents.append(Content(*second(path)))
    allowances = {each.match_sha256: each for each in allow}
    found = sorted(
        {*listing.findings, *(placed for content in contents for placed in content.findings)},
        key=lambda placed: (placed.path, placed.line, placed.pointer, placed.rule, placed.match_sha256),
    )
    findings = tuple(
        Finding(placed, allowances[placed.match_sha256].reason if placed.match_sha256 in allowances else None)
        for placed in found
    )
    used = {placed.match_sha256 for placed in found}
    unknown = sorted(
        {*listing.unknown, *(each for content in contents for each in content.unknown)},
        key=lambda each: (each.path, each.reason),
    )
    return Scan(
        findings,
        tuple(unknown),
        tuple(each for each in allowances.values() if each.match_sha256 not in used),
        len(listing.files),
        sum(entry.size_bytes for entry in listing.files),
        listing.links,
        len(leak_rules.NAMES),
        leak_rules.RULESET_SHA256,
    )


@dataclass(frozen=True, slots=True)
class _Listing:
    files: tuple[Entry, ...]
    unknown: tuple[Unknown, ...]
    findings: tuple[Placed, ...]
    links: int


def _single(path: Path) -> _Listing:
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode):
            with path.open("rb"):
                pass
    except OSError as error:
        raise Usage(f"the file can't be read: {error.strerror}", str(path)) from error
    if not stat.S_ISREG(status.st_mode):
        raise Usage("not a file and not a folder: it was not opened", str(path), "name a file or a folder")
    return _Listing((Entry(path.name, status.st_size),), (), (), 0)


def _listing(root: Path) -> _Listing:
    files: list[Entry] = []
    unknown: list[Unknown] = []
    findings: list[Placed] = []
    links = 0
    with tree.opened_root(root) as root_fd:
        folders = [("", os.dup(root_fd))]
        while folders:
            prefix, fd = folders.pop()
            try:
                for name in sorted(os.listdir(fd)):
                    path = prefix + name
                    try:
                        mode = os.stat(name, dir_fd=fd, follow_symlinks=False)
                        if stat.S_ISDIR(mode.st_mode):
                            folders.append((path + "/", os.open(name, _FOLDER, dir_fd=fd)))
                        elif stat.S_ISREG(mode.st_mode):
                            files.append(Entry(path, mode.st_size))
                        elif stat.S_ISLNK(mode.st_mode):
                            links += 1
                            findings += _link(path, os.readlink(name, dir_fd=fd))
                        else:
                            unknown.append(Unknown(shown(path), "neither a file nor a folder: it was not opened"))
                    except OSError as error:
                        unknown.append(Unknown(shown(path), f"can't be read: {error.strerror}"))
            except OSError as error:
                unknown.append(Unknown(shown(prefix), f"the folder can't be listed: {error.strerror}"))
            finally:
                os.close(fd)
    files.sort(key=lambda entry: os.fsencode(entry.path))
    return _Listing(tuple(files), tuple(unknown), tuple(findings), links)


def _link(path: str, target: str) -> Iterator[Placed]:
    for leak in leak_rules.leaks(os.fsencode(f"{path} {target}")):
        yield Placed(shown(path), 0, "", leak.rule, leak.kind, leak.match_sha256)


def _searched(root: Path, entries: Sequence[Entry], progress: Progress) -> list[Content]:
    total = sum(entry.size_bytes for entry in entries)
    workers = min(tree.workers(), len(entries))
    contents: list[Content] = []
    lock = threading.Lock()
    done = 0

    def add(entry: Entry, content: Content) -> None:
        nonlocal done
        with lock:
            contents.append(content)
            done += entry.size_bytes
            progress(done, total)

    if workers < 2 or total < _ALONE:
        for entry in entries:
            add(entry, search_file(root, entry.path))
        return contents
    queue = _Queue(entries)
    with ThreadPoolExecutor(workers) as pool:
        try:
            for ended in [pool.submit(_by_processes, root, queue, add) for _ in range(workers)]:
                ended.result()
        finally:
            queue.close()
    return contents


class _Queue:
    """Batches of files, the largest first, for whichever process is free."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = sorted(entries, key=lambda entry: entry.size_bytes)
        self._alone: list[Entry] = []
        self._lock = threading.Lock()
        self._closed = False
        self._processes: list[subprocess.Popen[str]] = []

    def batch(self) -> list[Entry]:
        """Up to 64 files, or 1 MiB of them; empty at the end."""
        taken: list[Entry] = []
        with self._lock:
            if not self._entries and self._alone:
                return [self._alone.pop()]
            while self._entries and len(taken) < 64 and sum(entry.size_bytes for entry in taken) < 1 << 20:
                taken.append(self._entries.pop())
        return taken

    def again(self, batch: Sequence[Entry]) -> None:
        """Search these once more, each alone: one of them ended the process."""
        with self._lock:
            self._alone += () if self._closed else batch

    def started(self, process: "subprocess.Popen[str]") -> None:
        """A process that has to end with the queue."""
        with self._lock:
            self._processes.append(process)
            if self._closed:
                process.kill()

    def close(self) -> None:
        """Hand out nothing more, and end what still runs."""
        with self._lock:
            self._closed = True
            self._entries.clear()
            self._alone.clear()
            for process in self._processes:
                process.kill()


_Add = Callable[[Entry, Content], None]


def _by_processes(root: Path, queue: _Queue, add: _Add) -> None:
    while batch := queue.batch():
        lost = _by_process(root, queue, batch, add)
        if len(lost) == 1:
            add(lost[0], Content((), (Unknown(shown(lost[0].path), "the process that searched it was ended"),)))
        else:
            queue.again(lost)


def _by_process(root: Path, queue: _Queue, batch: list[Entry], add: _Add) -> list[Entry]:
    """Search `batch` and all that follow in a process of its own; the batch at which it died, if it did."""
    command = [sys.executable, *_PROCESS, str(root)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, process_group=0) as process:  # no one's Ctrl-C
        queue.started(process)
        assert process.stdin is not None
        assert process.stdout is not None
        while batch:
            try:
                process.stdin.write(json.dumps([entry.path for entry in batch]) + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            except BrokenPipeError:
                answer = ""
            if not answer.endswith("\n"):
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
                return batch
            for entry, value in zip(batch, json.loads(answer), strict=True):
                add(entry, _content(value))
            batch = queue.batch()
        process.stdin.close()
    return []


def _content(value: dict[str, Any]) -> Content:
    return Content(
        tuple(Placed(**each) for each in value["findings"]), tuple(Unknown(**each) for each in value["unknown"])
    )
