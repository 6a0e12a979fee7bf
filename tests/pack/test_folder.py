"""Frozen packs are read lazily, and nothing but frozen bytes is handed out."""

import json
import os

import pytest

from scoresheet.errors import Refused, Usage
from scoresheet.pack import checker, freezer
from scoresheet.pack.folder import Pack, manifest_of
from scoresheet.pack.freeze import Settings
from tests.pack.packs import deep, flat, lay, reference, tool, v1_task, v2_task


def refusal(action, *arguments):
    with pytest.raises(Refused) as caught:
        action(*arguments)
    return {finding.rule for finding in caught.value.findings}


def frozen(root, settings=None):
    freezer.write(root, settings)
    return Pack.open(root)


@pytest.fixture(params=[flat, deep])
def pack(request, tmp_path):
    return frozen(request.param(tmp_path / "pack"))


def test_a_pack_reads_back_what_was_frozen(pack):
    assert pack.verify() == ()
    tasks = list(pack.tasks())
    assert [task.task_id for task in tasks] == [pack.task(task.task_id).task_id for task in tasks]
    assert len(pack.task_paths) == len(tasks)
    for path in pack.task_paths:
        assert pack.read(path) == (pack.root / path).read_bytes()


def test_a_changed_file_is_never_handed_out(pack):
    path = pack.task_paths[0]
    place = pack.root / path
    task_id = pack.task_at(path).task_id
    place.write_bytes(place.read_bytes().replace(b"200", b"201"))
    assert refusal(pack.read, path) == refusal(pack.task, task_id) == {"pack-differs"}
    (finding,) = pack.verify()
    assert (finding.rule, finding.where) == ("pack-differs", path)
    assert "this task" in finding.what


@pytest.mark.parametrize("to", [b"\r\n", b"\n"])
def test_a_mismatch_that_is_only_line_endings_says_so(tmp_path, to):
    other = b"\n" if to == b"\r\n" else b"\r\n"
    lay(tmp_path, {"tasks/t.json": v2_task("t"), "workspaces/t/a.txt": b"one\n\ntwo\n".replace(b"\n", other)})
    pack = frozen(tmp_path)
    lay(tmp_path, {"workspaces/t/a.txt": b"one\n\ntwo\n".replace(b"\n", to)})
    (finding,) = pack.verify()
    assert "line endings" in finding.what
    assert "* -text" in finding.mend
    lay(tmp_path, {"workspaces/t/a.txt": b"one\n\ntwo"})
    assert "line endings" not in pack.verify()[0].what


def test_extra_missing_changed_and_executable_are_four_findings(tmp_path):
    pack = frozen(deep(tmp_path))
    lay(tmp_path, {"extra": b"", "tools/search.json": b"{}"})
    (tmp_path / "tasks/one.json").unlink()
    (tmp_path / "oracles/two/test_it.py").chmod(0o755)
    os.symlink("x", tmp_path / "link")
    lay(tmp_path, {"card.yaml": b"mine", "receipts.jsonl": b"", "frozen_at.txt": b"now"})
    assert {(finding.rule, finding.where) for finding in pack.verify()} == {
        ("pack-extra", "extra"),
        ("pack-missing", "tasks/one.json"),
        ("pack-differs", "tools/search.json"),
        ("pack-mode", "oracles/two/test_it.py"),
        ("pack-symlink", "link"),
    }
    assert refusal(pack.read, "extra") == {"pack-extra"}
    assert refusal(pack.task_at, "tasks/one.json") == {"pack-missing"}


def test_a_file_that_became_a_symlink_is_not_followed(tmp_path):
    pack = frozen(deep(tmp_path / "pack"))
    for place in (pack.root / "tasks/one.json", pack.root / "tasks"):
        kept = tmp_path / place.name
        os.rename(place, kept)
        os.symlink(kept, place)
        assert refusal(pack.task, "one") == {"pack-unreadable"}
        assert {finding.rule for finding in pack.verify()} >= {"pack-symlink"}
        place.unlink()
        os.rename(kept, place)
    assert pack.verify() == ()


def test_a_task_is_found_by_its_id_whatever_its_file_is_called(tmp_path):
    pack = frozen(lay(tmp_path, {"tasks/one.json": v2_task("two"), "tasks/two.json": v2_task("one")}))
    assert [pack.task(name).task_id for name in ("one", "two")] == ["one", "two"]


def test_a_task_that_is_not_there_names_its_neighbours(pack):
    some = pack.task_at(pack.task_paths[0]).task_id
    with pytest.raises(Usage) as caught:
        pack.task(some + "x")
    assert some in caught.value.mend


def test_one_task_is_read_without_reading_the_others(tmp_path):
    pack = frozen(lay(tmp_path, {f"tasks/{n}.json": v2_task(str(n)) for n in range(5)}))
    for n in range(4):
        (tmp_path / f"tasks/{n}.json").unlink()
    assert Pack.open(tmp_path).task("4").task_id == "4"
    assert pack.task("4").task_id == "4"


def test_tools_are_read_when_asked_for_and_verified(tmp_path):
    pack = frozen(deep(tmp_path))
    assert list(pack.tools) == ["search"]
    assert "mail" not in pack.tools
    assert pack.tools["search"].ignore == ("/json/trace",)
    lay(tmp_path, {"tools/search.json": tool("search")})
    assert refusal(Pack.open(tmp_path).tools.__getitem__, "search") == {"pack-differs"}


def test_a_v1_tool_is_pinned_by_the_tasks_that_offer_it(tmp_path):
    data = tool("s")
    lay(tmp_path, {"t.json": v1_task("t", tools=[reference("s", data)]), "tools/s.json": data})
    pack = frozen(tmp_path)
    assert pack.task("t").tools[0].name == "s"
    assert pack.verify() == ()
    lay(tmp_path, {"tools/s.json": tool("s", description="another")})
    changed = Pack.open(tmp_path)
    assert refusal(changed.task, "t") == {"tool-schema"}
    assert {finding.rule for finding in changed.verify()} == {"tool-schema"}
    assert refusal(lambda: pack.tools["s"]) == {"pack-changed"}


def test_files_below_a_folder_are_listed(tmp_path):
    pack = frozen(deep(tmp_path))
    assert list(pack.files_under("workspaces/two")) == ["workspaces/two/.hidden", "workspaces/two/README"]
    assert pack.files_under("workspaces/tw") == {}


@pytest.mark.parametrize(
    ("change", "rule", "say"),
    [
        (lambda data: data.replace(b"\n", b"\r\n"), "manifest-bytes", "CRLF"),
        (lambda data: b"\xef\xbb\xbf" + data, "manifest-bytes", "byte order mark"),
        (lambda data: data.rstrip(), "manifest-bytes", "edited"),
        (lambda data: json.dumps(json.loads(data)).encode(), "manifest-bytes", "edited"),
        (lambda data: data[: len(data) // 2], "manifest-bytes", "not a manifest"),
        (lambda data: data.replace(b"tool-replay-v2", b"tool-replay-v9"), "manifest-field", ""),
        (lambda data: data.replace(b'"retries": 0', b'"retries": -1'), "manifest-field", ""),
        (lambda data: data.replace(b'{\n  "excluded"', b'{\n  "a": 1,\n  "excluded"'), "manifest-member", "a"),
    ],
)
def test_a_manifest_that_freeze_did_not_write_is_refused(tmp_path, change, rule, say):
    frozen(deep(tmp_path))
    place = tmp_path / "manifest.json"
    place.write_bytes(change(place.read_bytes()))
    with pytest.raises(Refused) as caught:
        Pack.open(tmp_path)
    assert {finding.rule for finding in caught.value.findings} == {rule}
    assert say in str(caught.value.findings[0].what)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x.json",
        "tasks/../../x.json",
        "./a.json",
        "a//b.json",
        "a/",
        "",
        "a\\b",
        "a\nb",
        "nul",
        "card.yaml",
        "manifest.json",
    ],
)
@pytest.mark.parametrize("section", ["tasks", "files"])
def test_a_path_that_leaves_the_pack_is_refused_before_anything_is_opened(section, path):
    entry = "a" * 64 if section == "tasks" else {"exec": False, "sha256": "a" * 64, "size": 0}
    sections = {"tasks": {"tasks/t.json": "a" * 64}, "files": {}}
    value = {"protocol": "tool-replay-v2", **sections, section: sections[section] | {path: entry}}
    data = json.dumps(value, indent=2, sort_keys=True).encode() + b"\n"
    assert refusal(manifest_of, data) == {"manifest-path"}


def test_a_v1_manifest_holds_top_level_tasks_only():
    value = {"protocol": "tool-replay-v1", "tasks": {"tasks/t.json": "a" * 64}}
    data = json.dumps(value, indent=2, sort_keys=True).encode() + b"\n"
    assert refusal(manifest_of, data) == {"manifest-path"}


def test_a_pack_that_is_not_frozen_says_how_to_freeze_it(tmp_path):
    with pytest.raises(Refused) as caught:
        Pack.open(flat(tmp_path))
    assert caught.value.findings[0].rule == "pack-not-frozen"
    assert caught.value.findings[0].mend == f"scoresheet freeze {tmp_path}"
    with pytest.raises(Usage):
        Pack.open(tmp_path / "absent")


def test_a_manifest_that_is_a_symlink_or_a_fifo_is_not_read(tmp_path):
    frozen(flat(tmp_path))
    os.rename(tmp_path / "manifest.json", tmp_path / "other.txt")
    os.symlink("other.txt", tmp_path / "manifest.json")
    assert refusal(Pack.open, tmp_path) == {"pack-unreadable"}
    (tmp_path / "manifest.json").unlink()
    os.mkfifo(tmp_path / "manifest.json")
    assert refusal(Pack.open, tmp_path) == {"pack-type"}


def test_checking_finds_broken_rules_and_differences_together(tmp_path):
    frozen(deep(tmp_path))
    assert checker.check(tmp_path).ok
    lay(tmp_path, {"tasks/new.json": b"{"})
    (tmp_path / "tasks/two.json").unlink()
    checked = checker.check(tmp_path)
    assert not checked.ok
    assert {finding.rule for finding in checked.findings} == {"task-json", "pack-extra", "pack-missing"}


def test_checking_nothing_is_not_ok(tmp_path):
    assert not checker.check(tmp_path).ok
    lay(tmp_path, {"README": b""})
    assert not checker.check(tmp_path).ok


def test_a_recorded_pack_that_is_not_frozen_yet_can_be_checked(tmp_path):
    draft = {"protocol": "tool-replay-v2", "tasks": {}, "upstreams": {"API": "api.example"}}
    lay(deep(tmp_path), {"manifest.json": json.dumps(draft, indent=2, sort_keys=True).encode() + b"\n"})
    assert refusal(Pack.open, tmp_path) == {"pack-not-frozen"}
    checked = checker.check(tmp_path)
    assert (checked.ok, checked.manifest_sha256, checked.tasks) == (True, None, 2)
    assert freezer.recorded_hosts(tmp_path) == (("API", "api.example"),)
    assert frozen(tmp_path, Settings(upstreams=freezer.recorded_hosts(tmp_path))).manifest.upstreams == {
        "API": "api.example"
    }
