"""Scans of real files: in every wrapping, of every kind of file, by one process and by several."""

import base64
import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import socket
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoresheet.documents.protocol_card import LeakAllowance
from scoresheet.errors import Refused, Usage
from scoresheet.gate import leak_content, leak_file, leaks, unwrap
from scoresheet.gate.leaks import leak_flag, scan
from tests.gate.leak_corpus import Maker

SECRET = "ghp_" + Maker(7).text(36)
LINE = f"one\ntwo\nGITHUB = {SECRET}\nfour\n".encode()
EXAMPLES = Path(__file__).parents[2] / "examples"


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def tarred(mode: str = "w", **members: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]  # one of w, w:gz, w:xz
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def pdf(content: bytes) -> bytes:
    stream = zlib.compress(content)
    return b"%PDF-1.7\n1 0 obj << /Filter /FlateDecode >>\nstream\n" + stream + b"\nendstream\nendobj\n"


WRAPPED: dict[str, bytes] = {
    "gzip": gzip.compress(LINE),
    "two gzip members": gzip.compress(b"x" * 100) + gzip.compress(LINE),
    "gzip and a tail": gzip.compress(b"x" * 100) + LINE,
    "zlib": zlib.compress(LINE),
    "bz2": bz2.compress(LINE),
    "xz": lzma.compress(LINE),
    "zip": zipped(inner=LINE),
    "zip behind a program": b"#!/bin/sh\nexit 0\n" + zipped(inner=LINE),
    "tar": tarred(inner=LINE),
    "tar.gz": tarred("w:gz", inner=LINE),
    "tar.xz": tarred("w:xz", inner=LINE),
    "zip in tar.gz": tarred("w:gz", inner=zipped(deep=LINE)),
    "pdf": pdf(LINE),
    "utf-16 with mark": b"\xff\xfe" + LINE.decode().encode("utf-16-le"),
    "utf-16 big endian": b"\xfe\xff" + LINE.decode().encode("utf-16-be"),
    "utf-16 in a binary": os.urandom(333).replace(b"\xff\xfe", b"") + LINE.decode().encode("utf-16-le") + b"\xff" * 99,
    "utf-32 with mark": b"\xff\xfe\0\0" + LINE.decode().encode("utf-32-le"),
    "utf-8 with mark": b"\xef\xbb\xbf" + LINE,
    "binary": b"\x7fELF" + bytes(range(256)) * 20 + LINE + bytes(range(256)),
    "a mark that lies": b"\xff\xfe" + LINE,
    "base64": b"data: " + base64.b64encode(LINE) + b"\n",
    "base64 by lines": base64.encodebytes(LINE * 4),
    "base64 for urls": base64.urlsafe_b64encode(b"\xff\xfe?>" + LINE * 2),
    "base64 in json": json.dumps({"data": base64.b64encode(LINE).decode()}).encode(),
    "gzip in base64": base64.b64encode(gzip.compress(LINE)),
    "base64 in base64": base64.b64encode(base64.b64encode(LINE)),
    "json escapes": ("{" + f'"k": "{SECRET}"' + "}").replace("ghp_", "g\\u0068p\\u005f").encode(),
    "json in json in json": json.dumps([json.dumps([json.dumps({"a": "x\n" + SECRET + "\ny"})])]).encode(),
    "percent": b"x%3D" + SECRET.replace("_", "%5F").encode(),
    "html": b"<a title=&quot;" + SECRET.encode() + b"&quot;>",
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_secret_is_found_in_every_wrapping(tmp_path, name):
    (tmp_path / "file").write_bytes(WRAPPED[name])
    found = scan(tmp_path)
    assert {finding.placed.rule for finding in found.findings} == {"leak-github-token"}
    assert {finding.placed.match_sha256 for finding in found.findings} == {hashlib.sha256(SECRET.encode()).hexdigest()}
    assert leak_flag(found) is True
    assert found.unknown == ()
    assert SECRET not in repr(found)


def test_a_finding_says_where(tmp_path):
    (tmp_path / "a.txt").write_bytes(LINE)
    (tmp_path / "b.zip").write_bytes(zipped(inner=LINE))
    (tmp_path / "c.json").write_text(json.dumps({"calls": [{"x": 1}, {"response_bytes": json.dumps({"k": SECRET})}]}))
    (tmp_path / "d.jsonl").write_text(f'{{"a": 1}}\n{{"b": "{SECRET}"}}\n')
    places = [(f.placed.path, f.placed.line, f.placed.pointer) for f in scan(tmp_path).findings]
    assert places == [
        ("a.txt", 3, ""),
        ("b.zip!inner", 3, ""),
        ("c.json", 1, "/calls/1/response_bytes"),
        ("d.jsonl", 2, ""),
    ]


def test_an_escaped_secret_is_placed_on_its_own_line(tmp_path):
    lines = [json.dumps({"n": n, "text": 'a\n"b"\t\\ é'}) for n in range(50)]
    lines[30] = json.dumps({"n": 30, "text": "a\nb\t" + SECRET.replace("ghp", "g\u0068p")}).replace(
        "ghp_", "\\u0067hp_"
    )
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    assert [finding.placed.line for finding in scan(tmp_path).findings] == [31]


@pytest.mark.parametrize("coding", ["gzip", "deflate", "bare deflate"])
def test_recorded_bodies_are_decoded_as_their_headers_say(tmp_path, coding):
    compress = {"gzip": gzip.compress, "deflate": zlib.compress, "bare deflate": lambda data: zlib.compress(data)[2:-4]}
    body = base64.b64encode(compress[coding](LINE)).decode()
    call = {"response_base64": body, "response_headers": [["Content-Encoding", coding.split()[-1]]]}
    asked = {"request": {"body_base64": body, "headers": [["content-encoding", coding.split()[-1]]]}}
    (tmp_path / "t.json").write_text(json.dumps({"task_id": "t", "calls": [{}, call]}))
    (tmp_path / "u.json").write_text(json.dumps({"task_id": "t", "calls": [asked]}))
    places = [(finding.placed.path, finding.placed.pointer) for finding in scan(tmp_path).findings]
    assert places == [("t.json", "/calls/1/response_base64"), ("u.json", "/calls/0/request/body_base64")]


def test_a_recorded_body_in_an_unknown_coding_is_unknown(tmp_path):
    call = {
        "response_base64": base64.b64encode(b"\x01\x02\x03").decode(),
        "response_headers": [["Content-Encoding", "x"]],
    }
    (tmp_path / "t.json").write_text(json.dumps({"calls": [call]}))
    found = scan(tmp_path)
    assert [(u.path, u.reason) for u in found.unknown] == [
        ("t.json#/calls/0/response_base64", "its Content-Encoding can't be undone")
    ]
    assert leak_flag(found) == "unknown"


def encrypted_zip() -> bytes:
    data = bytearray(zipped(inner=b"hello"))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


UNKNOWN: dict[str, tuple[bytes, str]] = {
    "7z": (b"7z\xbc\xaf\x27\x1c" + b"x" * 99, "a 7z archive"),
    "rar": (b"Rar!\x1a\x07\x01\0", "a RAR archive"),
    "zstd": (b"\x28\xb5\x2f\xfd" + b"x" * 99, "compressed by zstd"),
    "parquet": (b"PAR1" + b"x" * 99, "a Parquet file"),
    "openssl": (b"Salted__" + b"x" * 99, "encrypted by openssl"),
    "pgp": (b"-----BEGIN PGP MESSAGE-----\n\nxx", "encrypted by OpenPGP"),
    "encrypted zip": (encrypted_zip(), "encrypted"),
    "damaged zip": (zipped(inner=LINE)[:60], "a damaged zip archive"),
    "gzip cut short": (gzip.compress(os.urandom(5000))[:2000], "cut short"),
    "damaged gzip": (gzip.compress(b"x" * 99)[:-8] + b"\0" * 8, "damaged gzip data"),
    "damaged xz": (lzma.compress(os.urandom(5000))[:3000], "cut short"),
    "encrypted pdf": (b"%PDF-1.7\n<< /Encrypt 5 0 R >>", "an encrypted PDF"),
    "7z in zip": (zipped(inner=b"7z\xbc\xaf\x27\x1c" + b"x" * 99), "a 7z archive"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_cannot_be_searched_is_unknown(tmp_path, name):
    data, reason = UNKNOWN[name]
    (tmp_path / "file").write_bytes(data)
    found = scan(tmp_path)
    assert len(found.unknown) == 1
    assert reason in found.unknown[0].reason
    assert leak_flag(found) == "unknown"


def test_what_is_read_before_the_damage_counts(tmp_path):
    (tmp_path / "file.gz").write_bytes(gzip.compress(LINE + os.urandom(5000))[:-2000])
    found = scan(tmp_path)
    assert leak_flag(found) is True
    assert len(found.unknown) == 1


def test_bombs_end_at_the_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(unwrap, "MOST_BYTES", 8 << 20)
    monkeypatch.setattr(unwrap.Bounds, "__init__", lambda self: bounds_of(self))
    layer = gzip.compress(b"\0" * (64 << 20), 9)
    for name, data in (
        ("a.gz", layer),
        ("b.zip", zipped(inner=b"\0" * (64 << 20))),
        ("c.xz", lzma.compress(b"\0" * (64 << 20))),
        ("d.gz", gzip.compress(layer)),
    ):
        (tmp_path / name).write_bytes(data)
    found = scan(tmp_path)
    assert [each.path[0] for each in found.unknown] == ["a", "b", "c", "d"]
    assert all("unfolds to more than 8 MiB" in each.reason for each in found.unknown)


def bounds_of(bounds: unwrap.Bounds) -> None:
    bounds.room, bounds.members, bounds.seen = unwrap.MOST_BYTES, unwrap.MOST_MEMBERS, set()


def test_too_deep_a_nest_is_unknown(tmp_path):
    data = LINE
    for _ in range(6):
        data = gzip.compress(data)
    (tmp_path / "nest.gz").write_bytes(data)
    assert "wrapped more than" in scan(tmp_path).unknown[0].reason


def test_a_file_over_the_bound_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(leak_file, "MOST_FILE_BYTES", 1000)
    (tmp_path / "big").write_bytes(b"x" * 2000)
    assert "not read" in scan(tmp_path).unknown[0].reason


def test_more_findings_than_are_kept_are_unknown(tmp_path):
    maker = Maker()
    rows = "\n".join(f"{maker.text(9, 'abcdefghijkl')}@gmx.de" for _ in range(leak_content.MOST_FINDINGS + 500))
    (tmp_path / "rows.csv").write_text(rows)
    found = scan(tmp_path)
    assert len(found.findings) == leak_content.MOST_FINDINGS
    assert "findings: the rest is not listed" in found.unknown[0].reason


def test_links_are_not_followed_and_special_files_not_opened(tmp_path):
    (tmp_path / "outside").write_bytes(LINE)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "fine.txt").write_text("fine")
    (tree / "link").symlink_to(tmp_path / "outside")
    (tree / "loop").symlink_to(tree)
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "sock"))
        found = scan(tree)
    assert found.findings == ()
    assert found.links == 2
    assert [each.path for each in found.unknown] == ["pipe", "sock"]
    assert leak_flag(found) == "unknown"


def test_a_secret_in_a_name_is_found_and_masked(tmp_path):
    (tmp_path / f"backup-{SECRET}.txt").write_text("fine")
    (tmp_path / "a.zip").write_bytes(zipped(**{f"{SECRET}/x": b"fine"}))
    (tmp_path / "b.json").write_text(json.dumps({SECRET: LINE.decode()}))
    found = scan(tmp_path)
    assert {finding.placed.line for finding in found.findings} == {0, 1}
    assert len(found.findings) == 4
    assert SECRET not in repr(found)


def test_a_name_that_is_not_utf8_is_shown(tmp_path):
    with open(os.path.join(os.fsencode(tmp_path), b"\xff\n\x1b.txt"), "wb") as file:
        file.write(LINE)
    assert [finding.placed.path for finding in scan(tmp_path).findings] == ["\\xff\\n\\x1b.txt"]


def test_one_file_can_be_scanned_through_a_link(tmp_path):
    (tmp_path / "file").write_bytes(LINE)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert leak_flag(scan(tmp_path / "link")) is True
    with pytest.raises(Usage):
        scan(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Usage):
        scan(tmp_path / "pipe")


def test_nothing_searched_is_not_clean(tmp_path):
    found = scan(tmp_path)
    assert found.files == 0
    assert leak_flag(found) == "unknown"
    assert not found.clean


def test_an_allowance_is_listed_and_an_unused_one_is_told(tmp_path):
    (tmp_path / "a.txt").write_bytes(LINE)
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    allow = [LeakAllowance(match_sha256=digest, reason="revoked"), LeakAllowance(match_sha256="0" * 64, reason="gone")]
    found = scan(tmp_path, allow)
    assert [finding.allowed for finding in found.findings] == ["revoked"]
    assert [each.reason for each in found.unused] == ["gone"]
    assert leak_flag(found) is False


def test_allowances_are_read_from_a_card(tmp_path):
    card = tmp_path / "card.yaml"
    card.write_text(f"schema: x\nleak_allow:\n  - {{match_sha256: {'a' * 64}, reason: documented}}\n")
    assert [each.reason for each in leaks.allowances(card)] == ["documented"]
    card.write_text("schema: x\n")
    assert leaks.allowances(card) == ()
    for wrong in ("leak_allow: yes", "leak_allow: [{match_sha256: abc, reason: r}]", "leak_allow: [1]"):
        card.write_text(wrong)
        with pytest.raises(Refused):
            leaks.allowances(card)


def test_processes_find_what_one_finds(tmp_path, monkeypatch):
    for number in range(200):
        secret = "ghp_" + Maker(number).text(36) if number % 9 == 0 else "fine"
        (tmp_path / f"{number:03}.txt").write_text("x" * 200 + f"\n{secret}\n")
    (tmp_path / "big.txt").write_bytes(b"line\n" * 10_000 + LINE)
    alone = scan(tmp_path)
    monkeypatch.setattr(leaks, "_ALONE", 0)
    seen: list[tuple[int, int]] = []
    assert scan(tmp_path, progress=lambda done, total: seen.append((done, total))) == alone
    assert len(alone.findings) == 24
    assert seen[-1][0] == seen[-1][1] == alone.size_bytes


def test_a_process_that_dies_leaves_its_file_unknown(tmp_path, monkeypatch):
    for number in range(10):
        (tmp_path / f"{number}.txt").write_text("fine")
    (tmp_path / "killer.txt").write_text("bad")
    script = tmp_path.parent / "dying.py"
    script.write_text(
        "import json, sys\nfor line in sys.stdin:\n    paths = json.loads(line)\n"
        "    if 'killer.txt' in paths: sys.exit(9)\n"
        "    print(json.dumps([{'findings': [], 'unknown': []} for _ in paths]), flush=True)\n"
    )
    monkeypatch.setattr(leaks, "_ALONE", 0)
    monkeypatch.setattr(leaks, "_PROCESS", (str(script),))
    found = scan(tmp_path)
    assert [each.path for each in found.unknown] == ["killer.txt"]
    assert leak_flag(found) == "unknown"


def test_the_example_packs_are_clean():
    packs = sorted(file.parent for file in (EXAMPLES / "packs").glob("*/manifest.json"))
    assert len(packs) >= 3
    for pack in packs:
        found = scan(pack)
        assert leak_flag(found) is False, found
        assert found.files > 5


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=3000), st.sampled_from(sorted(WRAPPED)), st.integers(0, 200))
def test_no_bytes_break_the_search(data, name, cut):
    leak_content.search(data, "x.json")
    wrapped = WRAPPED[name]
    leak_content.search(wrapped[: max(0, len(wrapped) - cut)] + data, "x.json")
    leak_content.search(wrapped[:cut] + data + wrapped[cut:], "x")


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from('{}[]:,"\\ \nabu0041%&;'), max_size=200))
def test_no_broken_json_breaks_the_search(text):
    data = text.encode() + LINE
    content = leak_content.search(data, "x.json")
    assert any(placed.rule == "leak-github-token" for placed in content.findings)
