"""What a change did to a repository: `base...head` by git's plumbing. Objects are read, never the working tree.

So a checkout that converts line endings, lacks its submodules or is dirty changes nothing of what is seen.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from scoresheet.errors import Usage

LINK, SUBMODULE = "120000", "160000"
FULL_HISTORY = "check out with the whole history (actions/checkout: `fetch-depth: 0`; else `git fetch --unshallow`)"

_CHUNK = 1 << 18
_OF_ANOTHER_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Set in hooks; `--repo` decides here."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a commit."""

    mode: str
    oid: str
    size: int | None = None

    @property
    def regular(self) -> bool:
        """True for a file with content: no symlink, no submodule."""
        return self.mode not in (LINK, SUBMODULE)


@dataclass(frozen=True, slots=True)
class Changed:
    """One changed file: what it was, what it is. Paths hold bytes that are not UTF-8 as surrogates."""

    old_path: str | None
    new_path: str | None
    old: Entry | None
    new: Entry | None


@dataclass(frozen=True, slots=True)
class Content:
    """A file's bytes, as many as were asked for, and the digest of all of them."""

    sha256: str
    size: int
    data: bytes
    marks: frozenset[bytes]
    """Which of the marks that were looked for stand anywhere in the whole file."""

    @property
    def whole(self) -> bool:
        """True when `data` is all of it."""
        return len(self.data) == self.size


@dataclass(frozen=True, slots=True)
class Change:
    """`base...head`."""

    base: str
    """The commit that was asked for; `merge_base` is where the change began."""
    merge_base: str
    head: str
    files: tuple[Changed, ...]


@dataclass(slots=True)
class Repository:
    """A git repository, read through one `cat-file` process. Use it in a `with`."""

    root: Path
    _cat: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    def __enter__(self) -> Self:
        self._git("rev-parse", "--git-dir")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._cat is not None:
            assert self._cat.stdin is not None
            assert self._cat.stdout is not None
            self._cat.stdin.close()
            self._cat.stdout.close()
            self._cat.wait()

    def commit(self, revision: str) -> str | None:
        """The commit that `revision` names; `None` when there is none."""
        if revision.startswith("-"):
            return None
        done = self._run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def change(self, base: str, head: str = "HEAD") -> Change:
        """What `head` changed since it left `base`. Raises `Usage` when that can't be known: never an empty change."""
        shallow = self._git("rev-parse", "--is-shallow-repository").strip() == b"true"
        ends = []
        for revision in (base, head):
            commit = self.commit(revision)
            if commit is None:
                mend = FULL_HISTORY if shallow else "fetch it, or name another with --base"
                raise Usage("this repository has no such commit", revision, mend)
            ends.append(commit)
        found = self._run("merge-base", *ends)
        if found.returncode:
            what = "base and head have no common commit here, so what changed can't be known"
            mend = FULL_HISTORY if shallow else "name the branch that this change is to be merged into with --base"
            raise Usage(what, f"{base}...{head}", mend)
        merge_base = found.stdout.decode().split()[0]
        # only exact renames: they cost nothing, and one with an edit reads as well as a delete and an add
        raw = self._git("diff-tree", "-r", "-z", "-M100%", "--no-ext-diff", "--full-index", merge_base, ends[1])
        return Change(ends[0], merge_base, ends[1], tuple(_parse(raw)))

    def files(self, commit: str) -> dict[str, Entry]:
        """Path → file of a whole commit."""
        found = {}
        for line in self._git("ls-tree", "-r", "-z", "-l", "--full-tree", commit).split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, _kind, oid, size = facts.split()
            found[_text(path)] = Entry(mode.decode(), oid.decode(), int(size) if size.isdigit() else None)
        return found

    def mentioning(self, commit: str, text: str) -> tuple[str, ...]:
        """Paths of the files of a commit that hold `text`."""
        done = self._run("grep", "-z", "-l", "-a", "-F", "--no-textconv", "--full-name", "-e", text, commit, "--", ":/")
        if done.returncode > 1:
            raise Usage(f"git can't search the commit: {_said(done)}", commit)
        return tuple(_text(line.partition(b":")[2]) for line in done.stdout.split(b"\0")[:-1])

    def read(self, entry: Entry, most: int, marks: tuple[bytes, ...] = ()) -> Content:
        """A file's digest, its first `most` bytes and the marks in all of it, in bounded memory."""
        hashed, kept, size, tail = hashlib.sha256(), bytearray(), 0, b""
        found: set[bytes] = set()
        overlap = max((len(mark) for mark in marks), default=1) - 1
        for chunk in self._blob(entry.oid):
            hashed.update(chunk)
            size += len(chunk)
            kept += chunk[: most - len(kept)]
            window = tail + chunk
            found.update(mark for mark in marks if mark not in found and mark in window)
            tail = window[-overlap:] if overlap else b""
        return Content(hashed.hexdigest(), size, bytes(kept), frozenset(found))

    def copy(self, entry: Entry, out: BinaryIO) -> None:
        """Write a whole file to `out`."""
        for chunk in self._blob(entry.oid):
            out.write(chunk)

    def top(self) -> Path | None:
        """The folder of the working tree; `None` in a bare repository."""
        done = self._run("rev-parse", "--show-toplevel")
        return Path(_text(done.stdout.rstrip(b"\n"))) if done.returncode == 0 else None

    def _blob(self, oid: str) -> Iterator[bytes]:
        """The bytes of a blob. Read it to its end: what is left over would be taken for the next one."""
        if self._cat is None:
            self._cat = subprocess.Popen(
                [*self._command(), "cat-file", "--batch"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self._environment(),
            )  # fmt: skip
        assert self._cat.stdin is not None
        assert self._cat.stdout is not None
        self._cat.stdin.write(oid.encode() + b"\n")
        self._cat.stdin.flush()
        header = self._cat.stdout.readline().split()
        if len(header) != 3 or header[1] != b"blob":
            mend = "fetch every object: a partial clone can't be judged"
            raise Usage("an object of the change is missing from this repository", oid, mend)
        left = int(header[2])
        while left:
            chunk = self._cat.stdout.read(min(left, _CHUNK))
            if not chunk:
                raise Usage("git ended in the middle of an object", oid)
            left -= len(chunk)
            yield chunk
        self._cat.stdout.read(1)

    def _git(self, *arguments: str) -> bytes:
        done = self._run(*arguments)
        if done.returncode:
            raise Usage(f"git refuses: {_said(done)}", str(self.root), "name a git repository with --repo")
        return done.stdout

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        try:
            return subprocess.run(
                [*self._command(), *arguments], capture_output=True, check=False, env=self._environment()
            )
        except FileNotFoundError as error:
            raise Usage("git is not installed", "git", "install git") from error

    def _command(self) -> list[str]:
        return ["git", "-C", str(self.root), "-c", "core.quotePath=false"]

    def _environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_REPOSITORY}
        # replace refs would show other bytes than those that are merged
        return kept | {
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
        }


def shown(path: str) -> str:
    """A path as it may be printed: nothing in it begins a line or steers a terminal."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in text)


def _parse(raw: bytes) -> Iterator[Changed]:
    fields = iter(raw.split(b"\0")[:-1])
    for facts in fields:
        old_mode, new_mode, old_oid, new_oid, status = facts.decode().removeprefix(":").split()
        first = _text(next(fields))
        second = _text(next(fields)) if status[0] in "RC" else first
        old = None if status[0] == "A" else Entry(old_mode, old_oid)
        new = None if status[0] == "D" else Entry(new_mode, new_oid)
        yield Changed(first if old else None, second if new else None, old, new)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _said(done: "subprocess.CompletedProcess[bytes]") -> str:
    text = done.stderr.decode("utf-8", "replace").strip() or "no reason given"
    return " ".join(text.split())
