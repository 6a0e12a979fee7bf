"""A frozen pack as its card sees it."""

import json
import tarfile

import pytest

from scoresheet.errors import Refused
from scoresheet.gate import suite
from scoresheet.pack import archive, freezer
from scoresheet.pack.folder import Pack
from tests.pack.packs import deep, flat


@pytest.mark.parametrize("make", [flat, deep])
def test_the_tarball_is_the_one_that_freeze_writes(tmp_path, make):
    root = make(tmp_path / "pack")
    written = freezer.write(root)
    seen = suite.look(Pack.open(root))
    assert seen.fixture_sha256 == archive.write(root, written.digests, tmp_path / "out.tar")
    assert seen.findings == ()
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert set(tar.getnames()) == set(written.digests)


@pytest.mark.parametrize("make", [flat, deep])
def test_facts_are_those_of_the_tasks(tmp_path, make):
    root = make(tmp_path / "pack")
    freezer.write(root)
    pack = Pack.open(root)
    facts = suite.look(pack).pack
    tasks = list(pack.tasks())
    assert facts.task_ids == tuple(task.task_id for task in tasks)
    assert {tool.name for task in tasks for tool in task.tools} <= set(facts.tools)
    assert facts.kinds == {task.kind for task in tasks}
    assert facts.timeout_s == pack.manifest.timeout_s


def test_a_task_that_changed_and_one_that_is_a_link_are_findings(tmp_path):
    root = flat(tmp_path / "pack")
    freezer.write(root)
    first, *_ = sorted(Pack.open(root).task_paths)
    (root / first).write_bytes((root / first).read_bytes() + b"\n")
    (root / "tools" / "x.json").parent.mkdir(exist_ok=True)
    (root / "tools" / "x.json").symlink_to("/etc/passwd")
    found = suite.look(Pack.open(root)).findings
    assert {(finding.rule, finding.where) for finding in found} == {
        ("pack-differs", first),
        ("pack-symlink", "tools/x.json"),
    }


@pytest.mark.parametrize("make", [flat, deep])
def test_a_task_that_is_gone_and_one_that_is_new_are_findings(tmp_path, make):
    root = make(tmp_path / "pack")
    freezer.write(root)
    first, *_ = sorted(Pack.open(root).task_paths)
    (root / first).rename((root / first).with_name("other.json"))
    rules = {finding.rule for finding in suite.look(Pack.open(root)).findings}
    assert {"pack-missing", "pack-extra"} <= rules


def test_tasks_that_differ_in_what_they_say_of_themselves_only_are_copies(tmp_path):
    root = tmp_path / "pack"
    (root / "tasks").mkdir(parents=True)
    task = {"task_id": "a", "prompt": "p", "calls": [], "expected": {"x": 1}}
    (root / "tasks" / "a.json").write_text(json.dumps(task))
    (root / "tasks" / "b.json").write_text(
        json.dumps(task | {"task_id": "b", "tags": ["t"], "origin": "synthetic"}, indent=2)
    )
    (root / "tasks" / "c.json").write_text(json.dumps(task | {"task_id": "c", "prompt": "q"}))
    freezer.write(root)
    facts = suite.look(Pack.open(root)).pack
    assert facts.content["a"] == facts.content["b"] != facts.content["c"]
    assert facts.origins == {"b": "synthetic"}


def test_a_frozen_task_that_is_none_is_a_finding_not_a_traceback(tmp_path):
    root = flat(tmp_path / "pack")
    freezer.write(root)
    first, *_ = sorted(Pack.open(root).task_paths)
    (root / first).write_bytes(b"\xff[]")
    assert {"task-json", "pack-differs"} <= {finding.rule for finding in suite.look(Pack.open(root)).findings}


def test_a_folder_without_a_manifest_has_no_facts(tmp_path):
    with pytest.raises(Refused, match="not frozen"):
        suite.look(Pack.open(flat(tmp_path / "pack")))
