"""The digest of a task card's bundle: a folder of fixtures, under either formula (docs/formats, Bundle digest)."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from scoresheet import digest
from scoresheet.digest import Digest, FileDigest
from scoresheet.errors import Finding, Refused
from scoresheet.pack import tree

SCHEMA = "fixture-bundle/v2"


def v1(files: Mapping[str, bytes]) -> Digest:
    """The v1 digest: path, NUL, content, NUL, in the order of the paths (vectors/bundle_v1.json).

    Ambiguous: a NUL in a content can stand for the next path. Kept to check old cards; new ones use `v2`.
    """
    hashed = hashlib.sha256()
    for path in sorted(files):
        hashed.update(path.encode() + b"\0" + files[path] + b"\0")
    return Digest(hashed.hexdigest())


def v2_text(files: Mapping[str, FileDigest]) -> bytes:
    """The text that v2 hashes; written to a file, `sha256sum` gives the bundle's digest (vectors/bundle_v2.json)."""
    entries = [
        {"exec": facts.exec, "path": path, "sha256": facts.sha256, "size": facts.size}
        for path, facts in sorted(files.items(), key=lambda item: item[0].encode())
    ]
    value = {"files": entries, "schema": SCHEMA}
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def v2(files: Mapping[str, FileDigest]) -> Digest:
    """The v2 digest: each entry is a JSON object, so no two different bundles have one text."""
    return digest.of(v2_text(files))


def v1_of(folder: str | Path) -> Digest:
    """The v1 digest of the files in a folder. Raises `Usage`, and `Refused` with the refusals of a pack."""
    return v1({path: tree.read(folder, path)[1] for path in _files(folder)})


def v2_of(folder: str | Path) -> Digest:
    """The v2 digest of the files in a folder. Raises `Usage`, and `Refused` with the refusals of a pack."""
    return v2(_files(folder))


def _files(folder: str | Path) -> dict[str, FileDigest]:
    listing = tree.listing(folder)
    files, findings = tree.digests(folder, listing.files)
    problems = (*listing.findings, *findings)
    if not files and not problems:
        problems = (Finding("pack-empty", str(folder), "the bundle holds no file", "put the fixtures there"),)
    if problems:
        raise Refused("the bundle is refused", problems, str(folder))
    return files
