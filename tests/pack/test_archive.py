"""One tarball, whatever the folder was through; digests of bundles."""

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet import digest
from scoresheet.digest import FileDigest
from scoresheet.errors import Refused, Usage
from scoresheet.pack import archive, bundle_digest, freezer
from tests.pack.packs import deep, flat, lay
from tests.strategies import text

VECTORS = Path(__file__).parents[1] / "vectors"


def test_a_tarball_holds_the_frozen_files_and_nothing_of_the_machine(tmp_path):
    (deep(tmp_path / "pack") / "card.yaml").write_text("")
    long = "workspaces/two/" + "/".join(["a rather long folder name"] * 8) + "/é.txt"
    lay(tmp_path / "pack", {long: b"deep", "workspaces/two/run.sh": b"#!/bin/sh\n"})
    (tmp_path / "pack/workspaces/two/run.sh").chmod(0o711)
    written = freezer.write(tmp_path / "pack")
    sha256 = archive.write(tmp_path / "pack", written.digests, tmp_path / "out.tar")
    data = (tmp_path / "out.tar").read_bytes()
    assert sha256 == hashlib.sha256(data).hexdigest() == archive.digest_of(tmp_path / "pack", written.digests)
    with tarfile.open(tmp_path / "out.tar") as tar:
        entries = tar.getmembers()
    assert [entry.name for entry in entries] == sorted(written.digests, key=str.encode)
    assert not {"manifest.json", "card.yaml", "frozen_at.txt"} & {entry.name for entry in entries}
    assert long in {entry.name for entry in entries}
    for entry in entries:
        facts = (entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname, entry.isreg())
        assert facts == (0, 0, 0, "", "", True)
        assert entry.mode == (0o755 if entry.name.endswith("run.sh") else 0o644)
    assert len(data) % 10240 == 0
    subprocess.run(
        ["tar", "--extract", "--file", tmp_path / "out.tar", "--one-top-level=unpacked"], cwd=tmp_path, check=True
    )
    assert freezer.write(tmp_path / "unpacked").sha256 == written.sha256


def test_a_copy_under_another_umask_and_time_gives_the_same_tarball(tmp_path):
    written = freezer.write(deep(tmp_path / "a"))
    shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=shutil.copyfile)
    for place in (tmp_path / "b").rglob("*"):
        place.chmod(0o700 if place.is_dir() else 0o600)
        os.utime(place, (1, 1))
    assert archive.digest_of(tmp_path / "a", written.digests) == archive.digest_of(tmp_path / "b", written.digests)


def test_a_file_that_changed_since_leaves_no_tarball(tmp_path):
    written = freezer.write(flat(tmp_path / "pack"))
    lay(tmp_path / "pack", {"billing.b.json": b"{}"})
    with pytest.raises(Refused) as caught:
        archive.write(tmp_path / "pack", written.digests, tmp_path / "out.tar")
    assert caught.value.findings[0].rule == "pack-changed"
    assert os.listdir(tmp_path) == ["pack"]


def test_a_tarball_inside_its_own_pack_is_refused(tmp_path):
    written = freezer.write(flat(tmp_path))
    with pytest.raises(Usage, match="inside the pack"):
        archive.write(tmp_path, written.digests, tmp_path / "out.tar")
    with pytest.raises(Usage, match="can't be written"):
        archive.write(tmp_path, written.digests, tmp_path.parent / "no such folder" / "out.tar")


@pytest.mark.parametrize("vector", json.loads((VECTORS / "bundle_v1.json").read_text()), ids=str)
def test_a_v1_bundle_has_its_digest(tmp_path, vector):
    files = {path: content.encode() for path, content in vector["files"].items()}
    assert bundle_digest.v1(files) == vector["bundle_sha256"]
    assert bundle_digest.v1_of(lay(tmp_path, files)) == vector["bundle_sha256"]


@pytest.mark.parametrize("vector", json.loads((VECTORS / "bundle_v2.json").read_text()), ids=str)
def test_a_v2_bundle_has_its_text_and_digest(tmp_path, vector):
    files = {
        path: FileDigest(digest.of(file["text"].encode()), len(file["text"].encode()), file["exec"], 1)
        for path, file in vector["files"].items()
    }
    assert bundle_digest.v2_text(files).decode() == vector["canonical"]
    assert bundle_digest.v2(files) == vector["bundle_sha256"]
    lay(tmp_path, {path: file["text"].encode() for path, file in vector["files"].items()})
    for path, file in vector["files"].items():
        (tmp_path / path).chmod(0o755 if file["exec"] else 0o644)
    assert bundle_digest.v2_of(tmp_path) == vector["bundle_sha256"]


def test_the_ambiguous_bundles_of_v1_differ_under_v2(tmp_path):
    one = lay(tmp_path / "one", {"x": b"1", "y": b"2"})
    other = lay(tmp_path / "other", {"x": b"1\0y\0002"})
    assert bundle_digest.v1_of(one) == bundle_digest.v1_of(other)
    assert bundle_digest.v2_of(one) != bundle_digest.v2_of(other)


def test_a_bundle_is_refused_for_what_a_pack_is_refused_for(tmp_path):
    with pytest.raises(Refused, match="refused"):
        bundle_digest.v2_of(tmp_path)
    os.symlink("x", lay(tmp_path, {"a": b""}) / "link")
    with pytest.raises(Refused) as caught:
        bundle_digest.v1_of(tmp_path)
    assert [finding.rule for finding in caught.value.findings] == ["pack-symlink"]


@given(
    st.one_of(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=101), text.filter(bool)),
    st.sampled_from([0, 1, 8**11 - 1, 8**11, 2**40]),
    st.booleans(),
)
def test_a_header_is_the_one_of_tarfile(path, size, executable):
    member = tarfile.TarInfo(path)
    member.size = size
    member.mode = 0o755 if executable else 0o644
    facts = FileDigest(digest.of(b""), size, executable, 1)
    assert archive.header(path, facts) == member.tobuf(tarfile.PAX_FORMAT)
