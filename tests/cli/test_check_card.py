"""The installed command on cards: published lines, the pack beside, the tarball, the repository, task cards."""

import copy
import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scoresheet import digest, yaml12
from tests.command import SCORESHEET

HOUSE = Path(__file__).parents[2]
CASES = json.loads((HOUSE / "tests" / "vectors" / "validator_texts.json").read_text())["cases"]
OURS = {
    "suite": {"origins": {"internal-bug": ["t0", "t1", "t2"]}},
    "controls": {"tool_allowlist": ["read"], "network": "denied"},
    "environment": {"os": "debian-12"},
    "publishing": {"negative_results": "required", "confound_log": "required"},
}
"""What our card holds beyond the published one."""


def run(*arguments, code=0, **options):
    command = [str(SCORESHEET), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def git(folder, *arguments):
    names = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *names, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def whole(case):
    """The card of a published case, with what ours asks for added."""
    card = copy.deepcopy(case["card"])
    for section, members in OURS.items():
        card[section] = card.get(section, {}) | members
    return card


@pytest.fixture
def catalog(tmp_path):
    return Path(shutil.copytree(HOUSE / "examples" / "packs" / "catalog-v1", tmp_path / "catalog-v1"))


def edited(pack, before, after):
    card = pack / "card.yaml"
    text = card.read_text()
    assert before in text
    card.write_text(text.replace(before, after, 1))
    return card


@pytest.mark.parametrize(
    ("case", "suffix"),
    [*((case, "yaml") for case in CASES), *((case, "json") for case in CASES[:2])],
    ids=[*(case["name"] for case in CASES), *(f"json: {case['name']}" for case in CASES[:2])],
)
def test_every_published_line_is_printed_with_its_exit_code(tmp_path, case, suffix):
    path = tmp_path / f"card.{suffix}"
    path.write_text(json.dumps(whole(case)))
    options = []
    if case["fixture_text"] is not None:
        (tmp_path / "fixture").write_text(case["fixture_text"])
        options = ["--fixture", tmp_path / "fixture"]
    said = run("check", path, *options, code=1 if case["published_exit"] == 1 else 0).stdout.splitlines()
    published = case["published_lines"] or ["protocol card ok"]
    assert said[0] == published[0]
    assert [line for line in said if line in published] == published
    if said[0] == "protocol card invalid:":
        assert [line for line in said if line.startswith("  - ")] == published[1:]
        assert all(line.startswith("    ") for line in said[2::2])


@pytest.mark.parametrize("name", ["catalog-v1", "billing-v3"])
def test_the_cards_of_the_example_packs_are_complete(name):
    done = run("check", HOUSE / "examples" / "packs" / name / "card.yaml")
    lines = done.stdout.splitlines()
    assert lines[0] == "protocol card ok"
    assert lines[1] == "primary metric: share of runs that exit before wall_clock_s"
    assert lines[2].startswith("holdout tasks: ")
    assert lines[3].startswith("rules checked: ")
    assert done.stderr.splitlines()[-1].endswith(" rules on 1 card")


def test_a_pack_is_checked_with_the_card_beside_it(catalog):
    edited(catalog, "seed: 20260922", "seed: 7")
    done = run("check", catalog, code=1)
    assert "37 files, 33 tasks checked: ok\nprotocol card invalid:\n  - controls.seed is 7" in done.stdout


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("  holdout:\n", "  holdout:\n    - catalog.count.99\n", "which is no task of the pack"),
        ("get_catalog, ", "", "the pack offers get_catalog, outside controls.tool_allowlist"),
        ("wall_clock_s: 30", "wall_clock_s: 31", "controls.wall_clock_s is 31, but the manifest's timeout_s is 30"),
        ("task_count: 33", "task_count: 32", "suite.task_count is 32, but the pack has 33 tasks"),
        (
            "share of runs that exit before wall_clock_s",
            "holdout pass@1 with frozen tests",
            "needs workspace tasks, and the pack has none",
        ),
        (
            "share of runs that exit before wall_clock_s",
            "tokens + wall clock per passing task",
            "needs metrics.estimates.human_minutes_per_task",
        ),
    ],
)
def test_a_card_is_held_against_its_pack(catalog, before, after, line):
    assert line in run("check", edited(catalog, before, after), code=1).stdout


def test_the_card_names_the_tarball_that_freeze_writes(catalog, tmp_path):
    run("freeze", catalog, "--tar", tmp_path / "t.tar")
    sha256 = digest.of_file(tmp_path / "t.tar").sha256
    card = yaml12.load((catalog / "card.yaml").read_bytes()).value
    assert card["suite"]["fixture_hash"] == f"sha256:{sha256}"
    run("check", catalog / "card.yaml", "--fixture", tmp_path / "t.tar")


def test_a_file_that_changed_after_freezing_is_named_and_the_hash_differs(catalog):
    with (catalog / "tasks" / "catalog.row.1.json").open("ab") as file:
        file.write(b" ")
    said = run("check", catalog / "card.yaml", code=1).stdout
    assert "fixture_hash mismatch: card=5c53" in said
    assert "tasks/catalog.row.1.json [pack-differs]" in said


def test_a_compressed_tarball_counts_by_its_own_digest(catalog, tmp_path):
    run("freeze", catalog, "--tar", tmp_path / "t.tar")
    packed = gzip.compress((tmp_path / "t.tar").read_bytes())
    (tmp_path / "t.tar.gz").write_bytes(packed)
    said = run("check", catalog / "card.yaml", "--fixture", tmp_path / "t.tar.gz", code=1).stdout
    assert f"file={digest.of(packed)}" in said
    card = yaml12.load((catalog / "card.yaml").read_bytes()).value["suite"]["fixture_hash"]
    run("check", edited(catalog, card, digest.of(packed)), "--fixture", tmp_path / "t.tar.gz")


def test_a_copied_task_in_both_splits_is_found_whatever_it_calls_itself(catalog):
    task = json.loads((catalog / "tasks" / "catalog.count.1.json").read_bytes())
    twin = task | {"task_id": "catalog.count.6", "tags": ["new"]}
    (catalog / "tasks" / "catalog.count.6.json").write_text(json.dumps(twin, indent=1))
    run("freeze", catalog)
    edited(catalog, "  holdout:\n", "  holdout:\n    - catalog.count.6\n")
    said = run("check", catalog / "card.yaml", code=1).stdout
    assert "'catalog.count.6' has the same content as train_like task 'catalog.count.1'" in said


def test_what_could_not_be_judged_is_said(tmp_path, catalog):
    (catalog / "manifest.json").unlink()
    said = run("check", catalog / "card.yaml").stderr
    assert "not judged: task ids, tools" in said
    assert "not judged: suite.fixture_hash" in said
    assert "not judged: whether the repository holds suite.git_sha: the card lies in no git repository" in said


def test_the_repository_is_asked_for_the_commit(catalog):
    git(catalog.parent, "init", "-q")
    git(catalog.parent, "add", ".")
    git(catalog.parent, "commit", "-qm", "pack")
    assert "is not in this repository" in run("check", catalog / "card.yaml", code=1).stdout
    old = yaml12.load((catalog / "card.yaml").read_bytes()).value["suite"]["git_sha"]
    done = run("check", edited(catalog, old, git(catalog.parent, "rev-parse", "HEAD")))
    assert "git_sha" not in done.stderr


def test_a_blob_is_no_commit(catalog):
    git(catalog.parent, "init", "-q")
    blob = git(catalog.parent, "hash-object", "-w", "catalog-v1/card.yaml")
    old = yaml12.load((catalog / "card.yaml").read_bytes()).value["suite"]["git_sha"]
    assert "is not in this repository" in run("check", edited(catalog, old, blob), code=1).stdout


def test_the_repository_of_the_card_is_asked_also_inside_a_hook_of_another(catalog, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    done = run("check", catalog / "card.yaml", env={**os.environ, "GIT_DIR": str(other / ".git")})
    assert "the card lies in no git repository" in done.stderr


def test_a_shallow_clone_and_a_missing_git_are_not_judged(catalog, tmp_path):
    git(catalog.parent, "init", "-q")
    git(catalog.parent, "add", ".")
    git(catalog.parent, "commit", "-qm", "one")
    git(catalog.parent, "commit", "-qm", "two", "--allow-empty")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{tmp_path}", "shallow")
    assert "the clone is shallow" in run("check", tmp_path / "shallow" / "catalog-v1" / "card.yaml").stderr
    done = run("check", catalog / "card.yaml", env={**os.environ, "PATH": "/nonexistent"})
    assert "git is not installed" in done.stderr


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("suite: 1\nsuite: 2\n", "2:1", "key 'suite' is given twice, first at 1:1"),
        ("a: &x 1\n", "1:4", "anchors are not allowed"),
        ("", "1:1", "the document is empty"),
        ("a: [1\n", "2:1", ""),
        ("\ufeffa: 1\n", "1:1", "a byte order mark"),
        ("a: " + "[" * 3000, "", "nested more than 32 levels deep"),
        ("a: " + "x" * 300_000, "1:1", "larger than 256 KiB"),
    ],
)
def test_a_card_that_cannot_be_read_is_an_invalid_card(tmp_path, text, where, what):
    path = tmp_path / "card.yaml"
    path.write_text(text)
    lines = run("check", path, code=1).stdout.splitlines()
    assert lines[0] == "protocol card invalid:"
    assert lines[1].startswith(f"  - {what}")
    assert f"{path}:{where}" in lines[2]
    assert lines[2].endswith("[card-yaml]")


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"a": NaN}', "{", "[" * 50 + "]" * 50, '{"suite": ' + "9" * 5000 + "}"]
)
def test_a_json_card_is_read_as_strictly(tmp_path, text):
    path = tmp_path / "card.json"
    path.write_text(text)
    assert run("check", path, code=1).stdout.splitlines()[0] == "protocol card invalid:"


def test_windows_line_endings_are_taken(catalog):
    card = catalog / "card.yaml"
    card.write_bytes(card.read_bytes().replace(b"\n", b"\r\n"))
    run("check", card)


def test_a_fifo_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "card.yaml")
    assert "not a regular file" in run("check", tmp_path / "card.yaml", code=2).stderr


def test_a_key_with_control_characters_ends_no_line(tmp_path):
    path = tmp_path / "card.yaml"
    path.write_text('"x\\n  - protocol card ok\\e[2J": 1\nschema: agent-eval-protocol/v1\n')
    said = run("check", path, code=1).stdout
    assert "\x1b" not in said
    assert "  - protocol card ok" not in said.splitlines()


TASK_CARD = """\
task_id: refund-1
goal: refund it
oracle_kind: pytest
mutation_scope: read_only
fixture_sha256: abc
frozen_at: 2026-11-30T12:00:00Z
stale_after_hours: 24
leak_flag: false
"""


def test_a_task_card_is_told_from_a_protocol_card(tmp_path):
    (tmp_path / "task.yaml").write_text(TASK_CARD)
    done = run("check", tmp_path / "task.yaml")
    assert done.stdout == "task card ok\nrules checked: 4\n"
    assert done.stderr == "4 rules on 1 card\n"


@pytest.mark.parametrize(
    ("before", "after", "line", "mend"),
    [
        (
            "mutation_scope:",
            "mutation_scop:",
            "mutation_scop is not a member of a task card",
            "did you mean mutation_scope?",
        ),
        ("pytest", "vibes", "oracle_kind is the text 'vibes', which is none of", "write one of pytest"),
        (
            "read_only",
            "read-only",
            "mutation_scope is the text 'read-only', which is none of",
            "did you mean read_only?",
        ),
        ("pytest", "[pytest]", "oracle_kind is a list, which is none of", "write one of"),
        ("leak_flag: false", "leak_flag: no", "leak_flag is the text 'no', but must be true, false or unknown", ""),
        ("24", "'24'", "stale_after_hours is the text '24', but must be a number of hours", ""),
        ("2026-11-30T12:00:00Z", "yesterday", "frozen_at 'yesterday' is not an RFC 3339 time", ""),
    ],
)
def test_a_task_card_that_is_wrong_in_one_place_is_told_so(tmp_path, before, after, line, mend):
    (tmp_path / "task.yaml").write_text(TASK_CARD.replace(before, after))
    lines = run("check", tmp_path / "task.yaml", code=1).stdout.splitlines()
    assert lines[0] == "task card invalid:"
    assert len(lines) == 3
    assert lines[1].startswith(f"  - {line}")
    assert mend in lines[2]


def test_a_task_card_that_says_little_is_no_fault(tmp_path):
    (tmp_path / "task.yaml").write_text("goal: refund it\n")
    run("check", tmp_path / "task.yaml")


def test_a_task_of_a_pack_is_checked_with_its_pack(catalog):
    done = run("check", catalog / "tasks" / "catalog.row.1.json", code=2)
    assert f"scoresheet check {catalog}" in done.stderr


def test_paths_are_the_repositorys_in_annotations_and_sarif(catalog):
    git(catalog.parent, "init", "-q")
    edited(catalog, "license: Apache-2.0 AND MIT", "license: TBD")
    said = run("check", "card.yaml", "--format", "github", code=1, cwd=catalog).stdout
    assert "::error file=catalog-v1/card.yaml,line=7,col=12,title=card-empty::suite.license is empty%0A" in said
    log = json.loads(run("check", "card.yaml", "--format", "sarif", code=1, cwd=catalog).stdout)
    uris = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in log["runs"][0]["results"]
    }
    assert uris == {"catalog-v1/card.yaml"}


def test_many_targets_have_one_verdict(catalog):
    bad = catalog.parent / "bad.yaml"
    bad.write_text("schema: agent-eval-protocol/v1\n")
    checked = json.loads(run("check", catalog, bad, "--json", code=1).stdout)
    assert [target["ok"] for target in checked["targets"]] == [True, True, False]
    assert checked["cards"] == 2
    assert checked["rules"] == 62


def test_checking_writes_nothing(catalog):
    before = {path: path.stat().st_mtime_ns for path in catalog.rglob("*")}
    run("check", catalog)
    assert before == {path: path.stat().st_mtime_ns for path in catalog.rglob("*")}


def test_a_run_is_no_pack_and_is_told_who_judges_it(tmp_path):
    (tmp_path / "rows.jsonl").touch()
    said = run("check", tmp_path, code=2).stderr
    assert said.startswith(f"error: this is a run, not a pack — {tmp_path}\n  mend: scoresheet report {tmp_path} ")
