"""What rows say of workspaces, held against real patches and the pack: of runs and bundles, with and without it."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from scoresheet import canonical, digest
from scoresheet.publish import audit, bundle, run_folder
from tests.command import SCORESHEET, call
from tests.run.packs import write_card
from tests.run.works import ACT, FIX, works

PROMPTS = {
    "fix": FIX,
    "tests": f"{FIX}; echo '#' >> tests/test_shop.py; echo > tests/test_new.py; echo > conftest.py; rm README.md",
    "odd": "printf 'a\\0b' > bin; ln -s shop.py link; mkfifo pipe; rm shop.py; ln -s bin shop.py; chmod +x README.md",
    "large": "head -c 33600000 /dev/zero > tests/test_shop.py",
}


def ran(folder, prompts, **task):
    """A real run of a pack of workspaces, and the pack."""
    pack = works(folder / "pack", prompts, **task)

    def card(card):
        card["controls"] |= {"tool_allowlist": ["none"], "test_command": "python -m pytest tests"}

    write_card(pack, card)
    words = ["run", pack.root, "--agent", ACT, "--seat", "s", "--out", folder / "run", "--quiet", "--draft"]
    done = subprocess.run([SCORESHEET, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder / "run", pack


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ran(tmp_path_factory.mktemp("works"), PROMPTS)


@pytest.fixture
def edited(run, tmp_path):
    shutil.copytree(run[0], tmp_path / "run")
    return tmp_path / "run"


def verified(path, pack=None):
    with tempfile.TemporaryDirectory() as scratch:
        return audit.read(path, Path(scratch), pack)


def told(path, pack=None):
    return [str(finding) for finding in verified(path, pack).findings if not finding.rule.startswith("audit-report")]


def edit(path, task_id, **members):
    lines = [json.loads(line) for line in (path / "rows.jsonl").read_bytes().splitlines()]
    made = [value | (members if value["task_id"] == task_id else {}) for value in lines]
    (path / "rows.jsonl").write_bytes(b"".join(map(canonical.line, made)))


def test_what_a_real_run_left_is_derived_again(run):
    path, pack = run
    seen = verified(path, pack)
    assert seen.findings == ()
    assert "patches: the lines of 4 counted again" in seen.checked
    assert "patches: which frozen tests they touch and what bends grading, in 4 workspaces" in seen.checked
    rows = {row["task_id"]: row for row in map(json.loads, (path / "rows.jsonl").read_bytes().splitlines())}
    assert (rows["tests"]["tests_changed"], rows["tests"]["tests_added"]) == (
        ["tests/test_shop.py"],
        ["tests/test_new.py"],
    )
    assert rows["tests"]["grading_surface"] == ["conftest.py: conftest.py"]
    assert (rows["large"]["tests_changed"], rows["large"]["patch_lines"]) == (["tests/test_shop.py"], 0)


def test_without_the_pack_lines_are_counted_and_the_rest_is_said_to_be_unchecked(run):
    seen = verified(run[0])
    assert seen.findings == ()
    assert "patches: the lines of 4 counted again" in seen.checked
    assert "which tests 4 patches touch: the pack is not here" in seen.unchecked


@pytest.mark.parametrize(
    ("task_id", "members", "needs_pack"),
    [
        ("fix", {"patch_lines": 1}, False),
        ("odd", {"patch_lines": 5}, False),
        ("tests", {"tests_changed": [], "tests_identical": 1, "test_files_changed": 0}, True),
        ("tests", {"tests_added": []}, True),
        ("tests", {"grading_surface": []}, True),
        ("fix", {"tests_identical": None, "test_files_changed": None}, True),
        ("large", {"tests_changed": [], "tests_identical": 1, "test_files_changed": 0, "patch_left_out": []}, True),
        ("fix", {"tests_changed": ["tests/test_shop.py"], "tests_identical": 0, "test_files_changed": 1}, True),
    ],
    ids=str,
)
def test_an_edited_measure_is_named(edited, run, task_id, members, needs_pack):
    edit(edited, task_id, **members)
    name = next(iter(members))
    if task_id == "large":  # only who saw the workspace knows what lay there and is in no patch
        assert told(edited, run[1]) == []
        return
    assert any(
        f"{name} does not follow from episodes/{task_id}/0.0/patch.diff" in each for each in told(edited, run[1])
    )
    assert bool(told(edited)) != needs_pack


def test_another_patch_that_its_row_names_is_held_against_the_packs_files(edited, run):
    place = edited / "episodes/fix/0.0/patch.diff"
    place.write_bytes(place.read_bytes().replace(b"-    return items[number", b"-    return other[number"))
    assert any("not the patch of fix 0.0" in each for each in told(edited))
    edit(edited, "fix", patch_sha256=digest.of(place.read_bytes()))
    assert told(edited) == []
    assert any("shop.py: not a patch of the file that was there" in each for each in told(edited, run[1]))
    place.write_bytes(place.read_bytes() + b"and more\n")
    edit(edited, "fix", patch_sha256=digest.of(place.read_bytes()))
    assert any("no line of a patch" in each for each in told(edited))


def test_files_of_a_patch_that_stand_in_no_order_are_named(edited, run):
    place = edited / "episodes/tests/0.0/patch.diff"
    first, second, *rest = place.read_bytes().split(b"diff --git ")[1:]
    place.write_bytes(b"".join(b"diff --git " + part for part in (second, first, *rest)))
    edit(edited, "tests", patch_sha256=digest.of(place.read_bytes()))
    assert any("stands there twice, or in no order" in each for each in told(edited, run[1]))


def test_a_patch_that_no_row_names_is_told(edited):
    gone = {"patch_lines": None, "patch_sha256": None, "tests_identical": None, "test_files_changed": None}
    edit(edited, "fix", **gone)
    assert any("episodes/fix/0.0/patch.diff is there, and the row does not name it" in each for each in told(edited))


def test_of_another_version_only_what_no_version_changes_is_compared(edited, run):
    value = json.loads((edited / "run.json").read_bytes())
    value["host"]["python"] = "3.99.0"
    (edited / "run.json").write_bytes(canonical.pretty(value))
    edit(edited, "tests", tests_added=[])
    seen = verified(edited, run[1])
    assert not any(finding.rule == "row-follows" for finding in seen.findings)
    assert any("told again only by the version of scoresheet and of Python" in line for line in seen.unchecked)


def bundled(path, out, pack=None):
    read = run_folder.read(path)
    bundle.write(bundle.Ready(path, read.plan, read.report(), pack=pack), out)
    return out


def test_a_bundle_of_workspaces_holds_and_says_that_only_digests_of_patches_are_there(run, tmp_path):
    path, pack = run
    done = call("bundle", path, "-o", tmp_path / "b.tar", "--pack", pack.root)
    assert done.returncode == 0, done.stderr
    done = call("verify", tmp_path / "b.tar")
    assert (done.returncode, "does not hold" in done.stdout) == (0, False), done.stdout
    assert "patches: of 4 only the digests are here, not their lines or which tests they touch" in done.stdout


def test_a_bundle_whose_rows_name_another_patch_is_found(edited, run, tmp_path):
    edit(edited, "fix", patch_sha256="5" * 64)
    found = told(bundled(edited, tmp_path / "b.tar", run[1]))
    assert any("patch.diff is not what fix 0.0 left [row-patch]" in each for each in found)
    (edited / "episodes/fix/0.0/patch.diff").unlink()
    found = told(bundled(edited, tmp_path / "c.tar"))
    assert any("4 rows name a patch, and the digests of 3 are here" in each for each in found)


def test_a_named_output_file_is_judged_again_from_its_patch(tmp_path):
    oracle = {"kind": "schema", "output_file": "out.json", "output_schema": {"type": "object", "required": ["price"]}}
    prompts = {"right": "echo '{\"price\": 1}' > out.json", "wrong": "echo '{}' > out.json", "none": "true"}
    path, pack = ran(tmp_path, prompts, oracle=oracle)
    seen = verified(path, pack)
    assert seen.findings == ()
    assert "output files: 3 judged again by their task's schema" in seen.checked
    for task_id, success in (("right", 0), ("wrong", 1), ("none", 1)):
        edit(path, task_id, success=success)
        assert any(f"success {success} does not follow from its out.json" in each for each in told(path, pack))
