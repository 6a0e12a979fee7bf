"""Every refusal of freezing, all at once, and manifests that are the same everywhere."""

import json
import os
import re
import shutil
import socket
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scoresheet import digest
from scoresheet.digest import FileDigest
from scoresheet.documents.manifest import Exclusion
from scoresheet.errors import Refused, Usage
from scoresheet.pack import freeze, freezer, tree
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import Settings
from tests.pack.packs import deep, flat, lay, reference, tool, v1_task, v2_call, v2_task

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "manifest_v1.json").read_text())
NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def rules(root, settings=None):
    """(rule, where) of every error; and that nothing was written."""
    before = sorted(os.listdir(root))
    with pytest.raises(Refused) as caught:
        freezer.write(root, settings)
    assert sorted(os.listdir(root)) == before
    assert all(finding.what for finding in caught.value.findings)
    return {(f.rule, f.where) for f in caught.value.findings if f.severity == "error"}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["manifest_sha256"][:8])
def test_a_v1_manifest_is_the_vectors_byte_for_byte(vector):
    digests = {path: digest.of(content.encode()) for path, content in vector["files"].items() if freeze.is_task(path)}
    text = freeze.v1_manifest(digests).text()
    assert text.decode() == vector["manifest_text"]
    assert digest.of(text) == vector["manifest_sha256"]


def test_a_flat_pack_is_frozen_as_v1(tmp_path):
    written = freezer.write(flat(tmp_path), now=NOW)
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    assert list(manifest) == ["protocol", "retries", "seed", "tasks", "timeout_s"]
    assert manifest["protocol"] == "tool-replay-v1"
    assert manifest["timeout_s"] == 30
    assert written.sha256 == digest.of_file(tmp_path / "manifest.json").sha256
    assert (tmp_path / "frozen_at.txt").read_text() == "2026-11-30T12:00:00Z\n"
    tasks = [f"billing.{name}.json" for name in "abc"]
    assert sorted(os.listdir(tmp_path)) == [*tasks, "frozen_at.txt", "manifest.json"]


def test_a_pack_with_folders_is_frozen_as_v2_with_every_file(tmp_path):
    (deep(tmp_path) / "card.yaml").write_text("schema: agent-eval-protocol/v1\n")
    (tmp_path / "receipts.jsonl").write_text("")
    (tmp_path / "workspaces/two/README").chmod(0o755)
    freezer.write(tmp_path, Settings(repeats=3, excluded=(Exclusion(tool="mail", reason="it sends"),)))
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    assert manifest["protocol"] == "tool-replay-v2"
    assert sorted(manifest["tasks"]) == ["tasks/one.json", "tasks/two.json"]
    assert sorted(manifest["files"]) == [
        "oracles/two/test_it.py",
        "tools/search.json",
        "workspaces/two/.hidden",
        "workspaces/two/README",
    ]
    assert manifest["files"]["workspaces/two/README"] == {
        "exec": True,
        "sha256": digest.of(b"read me\n"),
        "size": 8,
    }
    assert manifest["files"]["workspaces/two/.hidden"]["exec"] is False
    assert (manifest["repeats"], manifest["on_mismatch"], manifest["on_exhausted"]) == (3, "stop", "last")
    assert manifest["excluded"] == [{"reason": "it sends", "tool": "mail"}]
    assert manifest["upstreams"] == {}


def test_one_v2_member_makes_a_flat_pack_v2(tmp_path):
    flat(tmp_path)
    lay(tmp_path, {"d.json": v1_task("d", tags=["x"]), "e.json": v1_task("e", my_own_member=1)})
    assert freezer.write(tmp_path).protocol == "tool-replay-v2"
    (tmp_path / "d.json").unlink()
    assert freezer.write(tmp_path).protocol == "tool-replay-v1"  # members that nobody knows are kept and ignored


def test_the_same_bytes_have_one_digest_anywhere_and_keep_their_time(tmp_path):
    first = freezer.write(deep(tmp_path / "a"), now=NOW)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / "frozen_at.txt").unlink()
    later = datetime(2027, 1, 1, tzinfo=UTC)
    assert freezer.write(tmp_path / "b", now=later).sha256 == first.sha256
    again = freezer.write(tmp_path / "a", now=later)
    assert (again.sha256, again.frozen_at) == (first.sha256, "2026-11-30T12:00:00Z")
    lay(tmp_path / "a", {"workspaces/two/README": b"other"})
    changed = freezer.write(tmp_path / "a", now=later)
    assert (changed.sha256 != first.sha256, changed.frozen_at) == (True, "2027-01-01T00:00:00Z")


def test_a_time_that_is_no_time_is_not_kept(tmp_path):
    freezer.write(flat(tmp_path), now=NOW)
    (tmp_path / "frozen_at.txt").write_text("yesterday\n")
    assert freezer.write(tmp_path, now=NOW).frozen_at == "2026-11-30T12:00:00Z"


def test_every_finding_of_a_folder_comes_at_once(tmp_path):
    deep(tmp_path)
    os.symlink("one.json", tmp_path / "tasks/link.json")
    os.symlink("/nowhere", tmp_path / "workspaces/two/dangling")
    os.symlink(".", tmp_path / "workspaces/loop")
    os.mkfifo(tmp_path / "workspaces/two/fifo")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(os.path.relpath(tmp_path / "workspaces/two/door"))
    (tmp_path / ".git").mkdir()
    (tmp_path / "workspaces/two/empty").mkdir()
    lay(
        tmp_path,
        {
            "workspaces/.DS_Store": b"",
            "workspaces/two/__pycache__/x.pyc": b"",
            "workspaces/two/a\nb": b"",
            "workspaces/two/x\u202ey": b"",
            "workspaces/two/aux.txt": b"",
            "workspaces/two/dot.": b"",
            "workspaces/two/a:b": b"",
            "workspaces/two/e\u0301": b"",
            "workspaces/two/readme": b"",
            "tasks/notes.txt": b"",
        },
    )
    with open(os.fsencode(tmp_path) + b"/workspaces/\xff", "wb"):
        pass
    found = rules(tmp_path)
    assert found == {
        ("pack-symlink", "tasks/link.json"),
        ("pack-symlink", "workspaces/two/dangling"),
        ("pack-symlink", "workspaces/loop"),
        ("pack-type", "workspaces/two/fifo"),
        ("pack-type", "workspaces/two/door"),
        ("pack-git", ".git"),
        ("pack-empty-folder", "workspaces/two/empty"),
        ("pack-dropping", "workspaces/.DS_Store"),
        ("pack-dropping", "workspaces/two/__pycache__"),
        ("pack-name", r"workspaces/two/a\nb"),
        ("pack-name", r"workspaces/two/x\u202ey"),
        ("pack-name", "workspaces/two/aux.txt"),
        ("pack-name", "workspaces/two/dot."),
        ("pack-name", "workspaces/two/a:b"),
        ("pack-name", r"workspaces/two/e\u0301"),
        ("pack-name", r"workspaces/\xff"),
        ("pack-case", "workspaces/two/readme"),
        ("pack-not-a-task", "tasks/notes.txt"),
    }


def test_droppings_come_with_the_command_that_removes_them(tmp_path):
    root = lay(tmp_path / "my pack", {"a.json": v1_task("a"), "__pycache__/a.pyc": b"", ".DS_Store": b""})
    with pytest.raises(Refused) as caught:
        freezer.write(root)
    for finding in caught.value.findings:
        if finding.rule == "pack-dropping":
            assert os.system(finding.mend) == 0
    assert freezer.write(root).tasks == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a device")
def test_a_device_is_refused_without_opening_it(tmp_path):
    os.mknod(flat(tmp_path) / "tty", 0o20600, os.makedev(5, 0))
    assert rules(tmp_path) == {("pack-type", "tty")}


def test_a_hard_link_is_a_warning(tmp_path):
    os.link(flat(tmp_path / "pack") / "billing.a.json", tmp_path / "elsewhere")
    written = freezer.write(tmp_path / "pack")
    assert [(f.rule, f.severity) for f in written.warnings] == [("pack-hard-link", "warning")]


@pytest.mark.parametrize("files", [{}, {"README.md": b"x"}, {"card.yaml": b"", "frozen_at.txt": b""}])
def test_a_pack_without_a_task_is_refused(tmp_path, files):
    assert ("pack-empty", ".") in rules(lay(tmp_path, files))


def test_a_folder_that_is_not_there_can_not_be_read(tmp_path):
    with pytest.raises(Usage, match="can't be read"):
        freezer.write(tmp_path / "absent")


TASK_FAULTS = {
    "broken": (b'{"task_id":', "task-json", ""),
    "twice": (b'{"task_id":"t","task_id":"t","prompt":""}', "task-json", ""),
    "no prompt": (b'{"task_id":"t"}', "task-field", "#/prompt"),
    "bad id": (b'{"task_id":"../t","prompt":""}', "task-field", "#/task_id"),
    "drill": (v2_task("t", kind="drill"), "task-drill", "#/kind"),
    "card": (v2_task("t", card={"frozen_at": "x"}), "task-card-derived", "#/card/frozen_at"),
    "limit": (v2_task("t", limits={"wall_clock_s": 31.0}), "task-limit", "#/limits/wall_clock_s"),
    "origin": (v2_task("t", origin="dreamt"), "task-field", "#/origin"),
    "fingerprint": (
        v2_task("t", v2_call() | {"request_fingerprint": "sha256:" + "0" * 64}),
        "task-fingerprint",
        "#/calls/0/request_fingerprint",
    ),
    "base64": (
        v2_task("t", v2_call() | {"request": {"method": "GET", "path": "/", "body_base64": "?"}}),
        "task-request",
        "#/calls/0/request",
    ),
    "stream": (v2_task("t", v2_call(stream=[3])), "task-stream", "#/calls/0/stream"),
    "vary": (
        v2_task("t", *(v2_call(request={"headers": [["Accept", kind]]}) for kind in ("text/csv", "text/html"))),
        "task-vary",
        "#/calls/0",
    ),
    "range": (
        v2_task("t", v2_call(), v2_call(request={"headers": [["range", "bytes=0-1"]]})),
        "task-vary",
        "#/calls/0",
    ),
    "tool twice": (v2_task("t", tools=[reference("s", b"")] * 2), "task-tool-twice", "#/tools"),
}


@pytest.mark.parametrize(("data", "rule", "pointer"), TASK_FAULTS.values(), ids=TASK_FAULTS)
def test_a_faulty_task_is_refused_by_name(tmp_path, data, rule, pointer):
    found = rules(lay(tmp_path, {"tasks/t.json": data, "tasks/good.json": v2_task("good")}))
    assert {(name, re.sub(r":[0-9:]+$", "", where)) for name, where in found} == {(rule, f"tasks/t.json{pointer}")}


def test_two_tasks_of_one_id_are_refused(tmp_path):
    found = rules(lay(tmp_path, {"tasks/a.json": v2_task("same"), "tasks/b.json": v2_task("same")}))
    assert found == {("task-id-twice", "tasks/b.json#/task_id")}


def test_the_rules_of_a_tool_count_when_a_request_is_fingerprinted_again(tmp_path):
    http = {"upstream": "API", "method": "GET", "path": "/v1/payments/{n}", "vary": ["accept"]}
    search = tool("payments", http=http, ignore=["/query/key"])
    kinds = [
        v2_call(request={"headers": [["Accept", kind]], "query": "key=1"}, vary=["accept"], ignore=["/query/key"])
        for kind in ("text/csv", "text/html")
    ]
    lay(tmp_path, {"tasks/t.json": v2_task("t", *kinds), "tools/payments.json": search})
    assert freezer.write(tmp_path).protocol == "tool-replay-v2"
    shutil.rmtree(tmp_path / "tools")
    assert {rule for rule, _ in rules(tmp_path)} == {"task-fingerprint"}


@pytest.mark.parametrize(
    ("path", "data", "rule"),
    [
        ("tools/a.json", b"{", "tool-json"),
        ("tools/a.json", b"{}", "tool-field"),
        ("tools/a.json", tool("b"), "tool-name"),
        ("tools/a.json", tool("a", ignore=["token"]), "tool-ignore"),
        ("tools/a.json", tool("a", http={"upstream": "A", "method": "GET", "path": "/x?y={z}"}), "tool-path"),
        ("tools/a.json", tool("a", http={"upstream": "A", "method": "GET", "path": "/{z}/{z}"}), "tool-path"),
        ("tools/a.txt", b"", "pack-not-a-tool"),
    ],
)
def test_a_faulty_tool_is_refused_by_name(tmp_path, path, data, rule):
    found = rules(lay(tmp_path, {"tasks/t.json": v2_task("t"), path: data}))
    assert {(name, where.partition("#")[0].partition(":")[0]) for name, where in found} == {(rule, path)}


@pytest.mark.parametrize("protocol", ["tool-replay-v1", "tool-replay-v2"])
def test_a_tool_that_is_not_the_one_that_a_task_names_is_refused(tmp_path, protocol):
    data = v1_task("t", tools=[reference("s", b"another")])
    lay(tmp_path, {"t.json": data, "tools/s.json": tool("s")})
    assert rules(tmp_path, Settings(protocol=protocol)) == {("tool-schema", "t.json#/tools/0/schema_sha256")}


def test_v1_says_which_files_nothing_pins(tmp_path):
    data = tool("s")
    lay(flat(tmp_path), {"t.json": v1_task("t", tools=[reference("s", data)]), "tools/s.json": data, "README.md": b""})
    (warning,) = freezer.write(tmp_path).warnings
    assert (warning.rule, warning.where, warning.severity) == ("v1-not-pinned", "README.md", "warning")


def test_v1_refuses_what_it_can_not_hold(tmp_path):
    lay(tmp_path, {"tasks/a.json": v1_task("a"), "b.json": v1_task("b", split="dev")})
    settings = Settings(protocol="tool-replay-v1", repeats=3, upstreams=(("API", "api.example"),))
    assert rules(tmp_path, settings) == {
        ("v1-layout", "tasks/a.json"),
        ("v1-field", "b.json#/split"),
        ("v1-setting", "manifest.json"),
    }


def test_v2_says_which_calls_it_could_not_check(tmp_path):
    (warning,) = freezer.write(flat(tmp_path), Settings(protocol="tool-replay-v2")).warnings
    assert (warning.rule, warning.severity) == ("task-unchecked", "warning")
    assert warning.what.startswith("3 calls in 3 tasks")


def test_a_refused_pack_keeps_the_manifest_that_it_had(tmp_path):
    freezer.write(flat(tmp_path))
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    lay(tmp_path, {"bad.json": b"{"})
    rules(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_a_second_reader_finds_what_the_first_would(tmp_path, monkeypatch):
    files = {f"tasks/{n:03}.json": v2_task(f"t{n}", v2_call(f"/{n}")) for n in range(40)}
    files |= {"tasks/broken.json": b"{", "tasks/zero.json": v2_task("zero", kind="drill")}
    lay(tmp_path, files)
    alone = freezer.examine(tmp_path)
    seen = []
    monkeypatch.setattr(freezer, "PARALLEL_TASKS", 1)
    monkeypatch.setattr(freezer, "HEAD_START_TASKS", 4)
    monkeypatch.setattr("scoresheet.pack.tree.workers", lambda: 3)
    together = freezer.examine(tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert together == alone
    assert {rule.rule for rule in alone.findings} == {"task-json", "task-drill"}
    assert all(done <= total for done, total in seen)
    (tmp_path / "tasks/broken.json").unlink()
    (tmp_path / "tasks/zero.json").unlink()
    assert list(freezer.write(tmp_path).digests) == list(Pack.open(tmp_path).task_paths)


def test_a_pack_that_is_named_by_a_symlink_is_frozen(tmp_path):
    flat(tmp_path / "real")
    os.symlink("real", tmp_path / "link")
    assert freezer.write(tmp_path / "link").tasks == 3


def test_files_hashed_ahead_are_those_hashed_in_their_turn(tmp_path):
    deep(tmp_path)
    (tmp_path / "workspaces").mkdir(exist_ok=True)
    for name in ("a.bin", "b.bin"):
        (tmp_path / "workspaces" / name).write_bytes(name.encode() * 400_000)
    with tree.hashing_ahead(tmp_path) as ahead:
        assert sorted(ahead.digests) == ["workspaces/a.bin", "workspaces/b.bin"]
        hashed = freezer.examine(tmp_path, ahead=ahead)
    assert hashed == freezer.examine(tmp_path)


def test_a_large_file_that_went_away_while_it_was_to_be_hashed_is_refused_by_name(tmp_path):
    deep(tmp_path)
    (tmp_path / "workspaces").mkdir(exist_ok=True)
    big = tmp_path / "workspaces" / "a.bin"
    big.write_bytes(b"a" * 2_000_000)
    listed = tree.listing(tmp_path)
    big.unlink()
    gone: Future[FileDigest] = Future()
    gone.set_exception(FileNotFoundError(2, "No such file or directory"))
    ahead = tree.Ahead(listed, {"workspaces/a.bin": gone})
    assert ("pack-missing", "workspaces/a.bin") in {
        (f.rule, f.where) for f in freezer.examine(tmp_path, ahead=ahead).findings
    }
