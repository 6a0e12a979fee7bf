"""A bundle as a file: a strict tar that is read front to back, every byte held against what it must be.

A bundle is an uncompressed tar in the form of `pack.archive`: `bundle.json`, `SHA256SUMS`, maybe `signatures/…`, then
every file of SHA256SUMS in its order. So the reader never looks for anything: it knows the next header but for its
size, makes it, and compares. Links, devices, other paths, doubled or reordered files can't be said in this form.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from scoresheet.digest import Digest
from scoresheet.documents.bundle import INDEX, SUMS, BundleIndex
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.pack import archive
from scoresheet.run.baselines import FILES, FOLDER

SIGNATURES = "signatures/"
SIGNATURE_SUMS = SIGNATURES + SUMS
TOP = (
    "baselines.json",
    "card.yaml",
    "confounds.jsonl",
    "judgments.jsonl",
    "outputs.sha256",
    "pack.json",
    "prices.yaml",
    "receipts.jsonl",
    "report.json",
    "report.md",
    "report.txt",
    "rows.jsonl",
    "run.json",
)
"""Files at the top of a bundle beside the index; the others lie in the folders below, in their order."""
BASELINE = tuple(f"{FOLDER}/{kind}/{name}" for kind in ("null", "oracle") for name in sorted(FILES))
"""What the verdict in baselines.json was made of. It holds the pack's answers: it goes where the pack goes."""
EPISODE = ("calls.jsonl", "dns.jsonl", "evidence.json")
"""Files that a bundle holds of every episode."""
JUDGED = "task.json"
"""And of one that a human judges, when the pack is there."""

_FOLDERS = ("agent", "baselines", "pack", "episodes")
_INDEX_BYTES = 4 << 20
_SIGNATURE_BYTES = 1 << 20
_SIGNATURE = re.compile(r"signatures/[a-z0-9][a-z0-9.-]{0,60}")
_LINE = re.compile(rb"([0-9a-f]{64})  ([^\x00-\x1f\x7f\\]+)\n")
_LONGEST = 4096
_DEEPEST = 255
_CHUNK = 1 << 20
_OCTAL = re.compile(rb"[0-7]{11}\0")
_SIZE = slice(124, 136)


def place(path: str) -> tuple[int, bytes]:
    """Where a file stands in a bundle: top, then each folder; inside of them in the order of its bytes."""
    top, slash, _ = path.partition("/")
    return (1 + _FOLDERS.index(top) if slash else 0), path.encode()


def sums_line(sha256: str, path: str) -> bytes:
    """A line of SHA256SUMS."""
    return f"{sha256}  {path}\n".encode()


def fault(where: str, what: str, rule: str = "bundle-byte") -> Refused:
    """That a bundle can't be read on from here."""
    return Refused(what, [Finding(rule, where, what)], where)


@dataclass(slots=True)
class Member:
    """A file of a bundle, to be read once, before the next one is asked for."""

    path: str
    size: int
    sha256: str
    _bundle: "BundleFile"
    read_whole: bool = False
    """True when it was read to its end, and compared."""

    def chunks(self) -> Iterator[bytes]:
        """Its content, in pieces; with the last one its digest and its filling are compared."""
        if self.size <= _CHUNK:
            yield self._small()
            return
        left, hashed = self.size, hashlib.sha256()
        while left:
            data = self._bundle.take(min(_CHUNK, left), self.path)
            left -= len(data)
            hashed.update(data)
            yield data
        self._compare(hashed.hexdigest(), self._bundle.take(-self.size % archive.BLOCK, self.path))

    def lines(self, longest: int) -> Iterator[bytes]:
        """Its lines with their newlines; one without comes last. Raises `Refused` for a line above `longest` bytes."""
        rest = b""
        for data in self.chunks():
            *whole, rest = (rest + data).split(b"\n") if rest else data.split(b"\n")
            for line in whole:
                yield line + b"\n"
            if len(rest) > longest:
                raise fault(self.path, f"a line of more than {longest >> 20} MiB", "bundle-size")
        if rest:
            yield rest

    def read(self, most: int) -> bytes:
        """All of it. Raises `Refused` above `most` bytes."""
        if self.size > most:
            raise fault(self.path, f"{self.size} bytes, but {most} are the most for such a file", "bundle-size")
        return self._small() if self.size <= _CHUNK else b"".join(self.chunks())

    def pass_over(self) -> None:
        """Read to its end, for its digest's sake."""
        for _ in self.chunks():
            pass

    def _small(self) -> bytes:
        """All of it at once."""
        block = self._bundle.take(self.size + -self.size % archive.BLOCK, self.path)
        data = block[: self.size]
        self._compare(hashlib.sha256(data).hexdigest(), block[self.size :])
        return data

    def _compare(self, sha256: str, padding: bytes) -> None:
        self.read_whole = True
        if sha256 != self.sha256:
            self._bundle.find(self.path, "not the bytes that the bundle was made of (its sha256 differs)")
        if padding.strip(b"\0"):
            self._bundle.find(self.path, "a byte after its content, where only zeros stand")


@dataclass(slots=True)
class BundleFile:
    """A bundle being read. `findings` grows as bytes turn out not to be what they must."""

    file: BinaryIO
    name: str
    size: int
    index: BundleIndex = field(init=False)
    sha256: Digest = field(init=False)
    """Of bundle.json: the bundle's name."""
    index_bytes: bytes = field(init=False)
    signatures: dict[str, bytes] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _at: int = 0
    _sums_at: int = 0
    _ahead: bytes = b""

    def __post_init__(self) -> None:
        self._read_index()
        self._read_sums()
        self._read_signatures()

    def find(self, where: str, what: str, rule: str = "bundle-byte") -> None:
        """Take note of a difference that the rest can be read in spite of."""
        if len(self.findings) < 200:
            self.findings.append(Finding(rule, where, what))

    def take(self, count: int, where: str) -> bytes:
        """The next bytes. Raises `Refused` when the file ends before."""
        if self._ahead:
            data, self._ahead = self._ahead[:count], self._ahead[count:]
            data += self.file.read(count - len(data))
        else:
            data = self.file.read(count)
        if len(data) != count:
            raise fault(where, f"the bundle ends in the middle of it, at byte {self._at + len(data)}", "bundle-cut")
        self._at += count
        return data

    def members(self) -> Iterator[Member]:
        """Every file of SHA256SUMS, in its order; each must be read (or passed over) before the next."""
        executable, seen, last = set(self.index.executable), 0, (0, b"")
        for sha256, path in self._sums():
            seen += 1
            at = place(path) if _is_allowed(path) else None
            if at is None:
                raise fault(f"{SUMS}:{seen}", f"{_shown(path)} can't be the name of a file here", "bundle-path")
            if at <= last:
                raise fault(f"{SUMS}:{seen}", f"{path} is there twice, or out of order", "bundle-order")
            last = at
            member = Member(path, self._header(path, path in executable), sha256, self)
            yield member
            if not member.read_whole:
                member.pass_over()
            executable.discard(path)
        if seen != self.index.files:
            self.find(INDEX, f"says {self.index.files} files, SHA256SUMS has {seen}", "bundle-index")
        if executable:
            self.find(INDEX, f"says executable of a file that is not there: {min(executable)}", "bundle-index")
        expected = archive.end(self._at)
        rest = self._ahead + self.file.read(len(expected) + 1 - len(self._ahead))
        if rest != expected:
            what = f"after the last file, at byte {self._at}, there is not what ends a bundle"
            self.find("the end of the bundle", what)

    def _read_index(self) -> None:
        size = self._header(INDEX, False, _INDEX_BYTES)
        data = self.take(size, INDEX)
        padding = self.take(-size % archive.BLOCK, INDEX)
        try:
            index = BundleIndex.from_bytes(data, INDEX)
        except Refused as error:
            raise fault(INDEX, f"it can't be read: {error.findings[0].what}", "bundle-index") from error
        if index.text() != data or padding.strip(b"\0"):
            raise fault(INDEX, "not the bytes that `bundle` writes", "bundle-index")
        self.index, self.index_bytes, self.sha256 = index, data, Digest(hashlib.sha256(data).hexdigest())

    def _read_sums(self) -> None:
        size = self._header(SUMS, False)
        self._sums_at = self._at
        if size != self.index.sums_size:
            raise fault(SUMS, f"{size} bytes, bundle.json says {self.index.sums_size}", "bundle-index")
        member = Member(SUMS, size, self.index.sums_sha256, self)
        for _ in member.chunks():
            pass
        if self.findings:  # nothing that it says of the others can be taken
            raise Refused(self.findings[0].what, self.findings, SUMS)

    def _read_signatures(self) -> None:
        template = archive.header_of(SIGNATURE_SUMS, 0, False)
        first = self.file.read(archive.BLOCK)
        self._ahead = first
        if not first.startswith(template[: len(SIGNATURE_SUMS) + 1]):
            return
        size = self._header(SIGNATURE_SUMS, False, _SIGNATURE_BYTES)
        data = self.take(size, SIGNATURE_SUMS)
        if self.take(-size % archive.BLOCK, SIGNATURE_SUMS).strip(b"\0"):
            self.find(SIGNATURE_SUMS, "a byte after its content, where only zeros stand")
        last = b""
        for line in data.splitlines(keepends=True):
            match = _LINE.fullmatch(line)
            path = match[2].decode("utf-8", "replace") if match else ""
            if match is None or not _SIGNATURE.fullmatch(path) or match[2] <= last:
                raise fault(SIGNATURE_SUMS, "not a list of signatures")
            last = match[2]
            size = self._header(path, False, _SIGNATURE_BYTES)
            self.signatures[path] = Member(path, size, match[1].decode(), self).read(_SIGNATURE_BYTES)

    def _sums(self) -> Iterator[tuple[str, str]]:
        """The lines of SHA256SUMS, read again beside the files that they name."""
        at, end = self._sums_at, self._sums_at + self.index.sums_size
        rest = b""
        while at < end:
            data = os.pread(self.file.fileno(), min(_CHUNK, end - at), at)
            if not data:
                return
            at += len(data)
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > _LONGEST:
                raise fault(SUMS, "a line is too long", "bundle-path")
            for line in lines:
                match = _LINE.fullmatch(line + b"\n")
                if match is None:
                    raise fault(SUMS, "a line is not `sha256  path`", "bundle-path")
                try:
                    yield match[1].decode(), match[2].decode()
                except UnicodeDecodeError as error:
                    raise fault(SUMS, "a path is not UTF-8", "bundle-path") from error
        if rest:
            raise fault(SUMS, "its last line has no end", "bundle-path")

    def _header(self, path: str, executable: bool, most: int | None = None) -> int:
        """The size that the next header says, which must be that of `path` and nothing else. Raises `Refused`."""
        at, length = self._at, archive.header_size(path)
        data = self.take(length, f"the header of {path}")
        said = data[_SIZE] if length == archive.BLOCK else data[length - archive.BLOCK :][_SIZE]
        size = int(said[:-1], 8) if _OCTAL.fullmatch(said) else -1
        if size < 0 or data != archive.header_of(path, size, executable):
            what = f"its header, at byte {at}, is not that of this file"
            raise fault(path, what if at else f"this is no bundle: {what}")
        if size > self.size - self._at:
            raise fault(path, f"its header says {size} bytes, more than the bundle has", "bundle-cut")
        if most is not None and size > most:
            raise fault(path, f"{size} bytes, but {most} are the most for such a file", "bundle-size")
        return size


@contextmanager
def opened(path: str | Path) -> Iterator[BundleFile]:
    """The bundle in the file at `path`. Raises `Usage` when it can't be read, `Refused` when it is none."""
    if os.path.exists(path) and not os.path.isfile(path):  # opening a FIFO would wait for ever
        raise Usage("a bundle is a file", str(path), "name the file that `scoresheet bundle` wrote")
    try:
        file = open(path, "rb", buffering=_CHUNK)  # noqa: SIM115  # closed below
    except OSError as error:
        raise Usage(f"the bundle can't be read: {error.strerror}", str(path)) from error
    with file:
        status = os.fstat(file.fileno())
        yield BundleFile(file, Path(path).name, status.st_size)


def _is_allowed(path: str) -> bool:
    top, slash, rest = path.partition("/")
    if not slash:
        return path in TOP
    if top == FOLDER:
        return path in BASELINE
    parts = f"/{rest}/"
    plain = "//" not in parts and "/./" not in parts and "/../" not in parts
    return top in _FOLDERS and plain and rest.count("/") < _DEEPEST


def _shown(path: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in path)[:200]
