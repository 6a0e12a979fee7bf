"""Grading in a real sandbox: what is laid back, what a crash is, and what a test command can see."""

import contextlib
import json
import threading
import time

import pytest

from scoresheet.documents.task import Oracle
from scoresheet.run import grading, surface
from scoresheet.run.grading import Grader, OracleFailed
from scoresheet.run.patch import Change, File
from scoresheet.run.verdict import Verdict
from scoresheet.sandbox.bwrap import BwrapSandbox
from tests.run.works import BROKEN, ORACLE, RIGHT, TESTS, work_of, works

SOLVED = Change(b"shop.py", File(BROKEN.encode()), File(RIGHT.encode()))


@pytest.fixture(scope="module")
def sandbox():
    with BwrapSandbox() as opened:
        yield opened


def grade(sandbox, folder, *changes, watch=contextlib.nullcontext, oracle=None, **pack):
    opened = works(folder / "pack", {"t": "x"}, oracle=ORACLE | (oracle or {}), **pack)
    task, work = opened.task("t"), work_of(opened, "t")
    kept = surface.judged(changes, work.frozen).kept
    assert task.oracle is not None
    bounds = grading.limits_for(task.oracle, None, 1 << 28, 64)
    return Grader(sandbox).grade(task, work, kept, folder / "grading", bounds, watch)


def sources(content):
    return Change(b"shop.py", File(BROKEN.encode()), File(content.encode()))


def test_a_right_patch_is_right_and_a_wrong_one_says_which_test_failed(sandbox, tmp_path):
    assert grade(sandbox, tmp_path / "a", SOLVED) == Verdict(True, None, 2, 0, 0)
    found = grade(sandbox, tmp_path / "b")
    assert (found.success, found.passed, found.failed) == (False, 1, 1)
    assert "tests.test_shop::test_a_page_is_full" in found.detail
    assert b"1 failed" in (tmp_path / "b/grading/stdout").read_bytes()
    assert (tmp_path / "b/grading/report.xml").read_bytes().startswith(b"<?xml")
    assert not list((tmp_path / "b/grading").rglob("shop.py"))


def test_hidden_tests_are_laid_over_and_graded(sandbox, tmp_path):
    hidden = {"tests/test_hidden.py": "from shop import page\n\n\ndef test_none():\n    assert page([], 0, 1) == []\n"}
    assert grade(sandbox, tmp_path, SOLVED, oracle_files=hidden) == Verdict(True, None, 3, 0, 0)


def test_a_command_that_names_no_path_runs_the_frozen_tests_only(sandbox, tmp_path):
    mine = Change(b"test_mine.py", None, File(b"def test_mine():\n    assert False\n"))
    found = grade(sandbox, tmp_path, SOLVED, mine, oracle={"test_command": "python -m pytest -q"})
    assert found == Verdict(True, None, 2, 0, 0)


def test_expected_tests_must_all_have_passed(sandbox, tmp_path):
    node = "tests/test_shop.py::test_a_page_is_full"
    assert grade(sandbox, tmp_path / "a", SOLVED, oracle={"expected_ids": [node]}).success
    found = grade(sandbox, tmp_path / "b", SOLVED, oracle={"expected_ids": [node, f"{node}_twice"]})
    assert not found.success
    assert "full_twice" in found.detail


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ("import pytest\n\n\n@pytest.mark.xfail(run=False)\ndef test_a():\n    pass\n", "no test passed"),
        ("import pytest\n\npytestmark = pytest.mark.skip\n\n\ndef test_a():\n    pass\n", "no test passed"),
        ("x = 1\n", "no test was collected"),
    ],
)
def test_what_did_not_run_is_no_pass(sandbox, tmp_path, tests, why):
    found = grade(sandbox, tmp_path, SOLVED, files={"shop.py": BROKEN, "tests/test_shop.py": tests})
    assert not found.success
    assert why in found.detail


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("import os\nos._exit(0)\n", "without a report; without the patch the tests can be run"),
        ("import os\nos.kill(os.getpid(), 11)\n", "died of signal 11; without the patch the tests can be run"),
        ("syntax error\n", "1 failed"),
        ("raise SystemExit(0)\n", ""),
        ("import atexit, os\natexit.register(os._exit, 0)\n" + BROKEN, "1 failed"),
        ("def page(items, number, size):\n    while True:\n        pass\n", "2 failed"),
    ],
)
def test_a_patch_that_breaks_the_tests_is_wrong(sandbox, tmp_path, content, why):
    found = grade(sandbox, tmp_path, sources(content), oracle={"case_timeout_s": 1})
    assert not found.success
    assert why in found.detail


def test_a_patch_that_never_ends_is_wrong_where_the_tests_end_without_it(sandbox, tmp_path):
    found = grade(sandbox, tmp_path, sources("while True:\n    pass\n"), oracle={"timeout_s": 3})
    assert not found.success
    assert found.detail == "the test command did not end within 3 s; without the patch the tests can be run"


@pytest.mark.parametrize(
    ("oracle", "why"),
    [
        ({"test_command": "sleep 30", "timeout_s": 1}, "did not end within 1 s"),
        ({"test_command": "no-such-runner tests"}, "exit 127"),
        ({"test_command": "python -m pytest --no-such-option tests"}, "exit 4"),
        ({"test_command": "sh -c 'kill -9 $$'"}, "signal 9"),
        ({"test_command": "head -c 100000000 /dev/zero"}, "output"),
    ],
)
def test_an_oracle_that_fails_by_itself_is_never_a_verdict(sandbox, tmp_path, oracle, why):
    with pytest.raises(OracleFailed) as error:
        grade(sandbox, tmp_path, SOLVED, oracle=oracle)
    assert why in error.value.what


def test_the_control_is_run_once(sandbox, tmp_path):
    pack = works(tmp_path / "pack", {"t": "x"})
    task, work = pack.task("t"), work_of(pack, "t")
    assert task.oracle is not None
    bounds = grading.limits_for(task.oracle, None, 1 << 28, 64)
    grader = Grader(sandbox)
    for number in range(2):
        change = sources("import os\nos._exit(0)\n")
        assert not grader.grade(task, work, [change], tmp_path / str(number), bounds).success
    assert (tmp_path / "0/control").is_dir()
    assert not (tmp_path / "1/control").exists()


@pytest.mark.parametrize(
    ("command", "success"),
    [
        ("sh check.sh", True),
        ("python check.py", True),
        ("ONE=1 sh -c 'test $ONE = 1'", True),
        ("sh -c 'exit 3'", False),
        ("grep -q nothing shop.py", False),
    ],
)
def test_a_command_in_any_language_counts_by_its_exit_status(sandbox, tmp_path, command, success):
    files = {"shop.py": BROKEN, "tests/x": ""}
    checks = {"check.sh": "grep -q 'size]' shop.py\n", "check.py": "from shop import page\nassert page([1], 0, 1)\n"}
    found = grade(sandbox, tmp_path, SOLVED, oracle={"test_command": command}, files=files, oracle_files=checks)
    assert found.success is success


def test_the_tests_see_no_network_no_pack_and_no_key(sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    tests = f"""\
import os, socket, sys


def test_it():
    assert not os.path.exists({str(tmp_path / "pack")!r})
    assert "SECRET" not in os.environ and "PYTEST_ADDOPTS" not in os.environ
    assert [name for _, name in socket.if_nameindex()] == ["lo"]
    assert os.getcwd() == "/work" and sys.flags.no_site and os.environ["PYTHONHASHSEED"] == "0"
    assert os.environ["TZ"] == "UTC" and os.getuid() == 1000
"""
    found = grade(sandbox, tmp_path, SOLVED, files={"shop.py": BROKEN, "tests/test_shop.py": tests})
    assert found.success, (tmp_path / "grading/stdout").read_text()


def test_the_configuration_of_the_pack_counts(sandbox, tmp_path):
    files = {
        "src/shop.py": RIGHT,
        "pytest.ini": "[pytest]\npythonpath = src\npython_files = check_*.py\n",
        "tests/check_shop.py": TESTS,
        "tests/test_other.py": "def test_other():\n    assert False\n",
    }
    assert grade(sandbox, tmp_path, files=files) == Verdict(True, None, 2, 0, 0)


def test_the_same_work_gets_the_same_verdict_without_isolation(tmp_path):
    from scoresheet.sandbox.unisolated import UnisolatedSandbox

    with UnisolatedSandbox() as sandbox:
        assert grade(sandbox, tmp_path / "a", SOLVED) == Verdict(True, None, 2, 0, 0)
        assert not grade(sandbox, tmp_path / "b").success


def test_grading_can_be_stopped(sandbox, tmp_path):
    @contextlib.contextmanager
    def watch(opened):
        threading.Timer(0.5, opened.stop, ["interrupted"]).start()
        yield

    began = time.monotonic()
    with pytest.raises(grading.Stopped):
        grade(sandbox, tmp_path, oracle={"test_command": "sleep 60"}, watch=watch)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"total": 3}', None),
        (None, "there is no file out.json"),
        (b'{"total": "3"}', "does not fit"),
        (b"{", "not strict JSON"),
        (b'{"total": 1, "total": 2}', "not strict JSON"),
    ],
)
def test_an_output_file_is_judged_by_its_schema(tmp_path, data, why):
    schema = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    oracle = {"kind": "schema", "output_file": "out.json", "output_schema": schema}
    pack = works(tmp_path / "pack", {"t": "x"}, oracle=oracle)
    found = grading.of_output(pack.task("t"), data)
    assert found.success is (why is None)
    assert (why or "") in (found.detail or "")


def test_limits_of_the_oracle_bound_the_grading():
    oracle = Oracle.from_bytes(json.dumps(ORACLE | {"timeout_s": 7}), "oracle")
    assert grading.limits_for(oracle, 5, 6, 7).wall_clock_s == 7
