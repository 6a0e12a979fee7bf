"""What freezing says of workspace tasks and their oracles: a table of packs that are wrong in one way."""

import json

import pytest

from scoresheet.errors import Refused
from scoresheet.pack import freezer
from scoresheet.pack.freeze import Settings
from tests.run.packs import shop
from tests.run.works import ORACLE, put, works


def findings(folder, change=lambda task: None, files=(), gone=()):
    """(rule, place, severity) of all that freezing a good pack finds after a change."""
    works(folder, {"t": "x"})
    task = json.loads((folder / "tasks/t.json").read_text())
    change(task)
    put(folder / "tasks/t.json", json.dumps(task))
    for path in files:
        put(folder / path, "x\n")
    for path in gone:
        (folder / path).unlink()
        if not any((folder / path).parent.iterdir()):
            (folder / path).parent.rmdir()
    found = freezer.examine(folder, Settings()).findings
    return [(finding.rule, finding.where, finding.severity) for finding in found]


def oracle(**members):
    def change(task):
        task["oracle"] = {key: value for key, value in (ORACLE | members).items() if value is not None}

    return change


def test_a_good_pack_has_no_finding(tmp_path):
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    ("change", "rule", "place"),
    [
        (oracle(test_command=None), "task-oracle", "tasks/t.json#/oracle"),
        (oracle(tests=None), "task-oracle", "tasks/t.json#/oracle"),
        (oracle(test_command="pytest '"), "task-oracle-command", "tasks/t.json#/oracle/test_command"),
        (oracle(test_command=""), "task-oracle-command", "tasks/t.json#/oracle/test_command"),
        (oracle(tests=["tests", "test"]), "task-oracle-tests", "tasks/t.json#/oracle/tests/1"),
        (oracle(tests=["../tests"]), "task-oracle-path", "tasks/t.json#/oracle/tests/0"),
        (oracle(tests=["/work/tests"]), "task-oracle-path", "tasks/t.json#/oracle/tests/0"),
        (oracle(tests=["./tests"]), "task-oracle-path", "tasks/t.json#/oracle/tests/0"),
        (oracle(tests=[""]), "task-oracle-path", "tasks/t.json#/oracle/tests/0"),
        (oracle(output_schema={}), "task-oracle-member", "tasks/t.json#/oracle/output_schema"),
        (
            lambda task: task.update(oracle={"kind": "schema", "output_file": "../x", "output_schema": {}}),
            "task-oracle-path",
            "tasks/t.json#/oracle/output_file",
        ),
        (lambda task: task.update(kind="replay"), "task-kind", "tasks/t.json#/kind"),
        (
            lambda task: task.update(kind="replay", oracle=None, expected={"a": 1}, workspace={"git": True}),
            "task-kind",
            "tasks/t.json#/workspace",
        ),
    ],
)
def test_one_fault_is_one_error_with_its_place(tmp_path, change, rule, place):
    assert findings(tmp_path, change) == [(rule, place, "error")]


def test_folders_of_no_task_are_refused(tmp_path):
    found = findings(tmp_path, files=("workspaces/u/a", "oracles/v/solution.patch"))
    assert found == [
        ("pack-no-such-task", "oracles/v", "error"),
        ("pack-no-such-task", "workspaces/u", "error"),
    ]


def test_a_workspace_without_files_is_refused(tmp_path):
    gone = [f"workspaces/t/{path}" for path in ("shop.py", "README.md", "pyproject.toml")]
    gone += ["workspaces/t/tests/test_shop.py", "workspaces/t/tests/conftest.py"]
    found = findings(tmp_path, gone=gone)
    assert ("task-workspace", "tasks/t.json", "error") in found


def test_tests_may_be_hidden_with_the_oracle(tmp_path):
    assert findings(tmp_path, oracle(tests=["tests", "hidden/test_h.py"]), ("oracles/t/hidden/test_h.py",)) == []


def test_without_a_reference_solution_freezing_warns(tmp_path):
    found = findings(tmp_path, files=("oracles/t/data",), gone=("oracles/t/solution.patch",))
    assert found == [("task-solution", "tasks/t.json", "warning")]


def test_what_a_human_judges_needs_a_reference_as_well(tmp_path):
    def human(task):
        task["oracle"] = {"kind": "human"}

    def answered(task):
        human(task)
        task["expected"] = {"text": "hello"}

    assert findings(tmp_path / "work", human) == []
    for folder, change, rules in (("bare", human, ["task-solution"]), ("answered", answered, [])):
        works(tmp_path / folder, {"t": "x"}, oracle_files={}, oracle={"kind": "human"})
        task = json.loads((tmp_path / folder / "tasks/t.json").read_text())
        change(task)
        put(tmp_path / folder / "tasks/t.json", json.dumps(task))
        found = freezer.examine(tmp_path / folder, Settings()).findings
        assert [(finding.rule, finding.severity) for finding in found] == [(rule, "warning") for rule in rules]


def test_an_answer_that_a_human_judges_needs_a_reference(tmp_path):
    shop(tmp_path / "bare", {"t": "x"}, extra={"oracle": {"kind": "human"}, "expected": {}})
    found = freezer.examine(tmp_path / "bare", Settings()).findings
    assert [(each.rule, each.where, each.severity) for each in found] == [("task-solution", "tasks/t.json", "warning")]
    shop(tmp_path / "answered", {"t": "x"}, extra={"oracle": {"kind": "human"}})
    assert freezer.examine(tmp_path / "answered", Settings()).findings == ()


def test_a_command_that_is_not_pytest_warns(tmp_path):
    found = findings(tmp_path, oracle(test_command="make test"))
    assert found == [("task-oracle-exit", "tasks/t.json#/oracle/test_command", "warning")]


def test_large_packs_are_read_by_a_second_interpreter_alike(tmp_path):
    works(tmp_path, {f"t{number}": "x" for number in range(3)}, files={"tests/a": ""}, oracle_files={})
    for number in range(freezer.PARALLEL_TASKS):
        put(tmp_path / f"tasks/more{number}.json", json.dumps({"task_id": f"more{number}", "prompt": "x"}))
    assert [each.rule for each in freezer.examine(tmp_path, Settings()).findings] == ["task-solution"] * 3


def test_nothing_is_written_when_it_is_refused(tmp_path):
    works(tmp_path, {"t": "x"})
    (tmp_path / "manifest.json").unlink()
    put(tmp_path / "oracles/u/x", "")
    with pytest.raises(Refused):
        freezer.write(tmp_path)
    assert not (tmp_path / "manifest.json").exists()
