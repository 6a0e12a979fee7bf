"""What the end of a test command says: a verdict only from a report that can be believed."""

import pytest

from scoresheet.documents.task import Oracle
from scoresheet.run import verdict
from scoresheet.run.verdict import Command, Crash, Verdict
from tests.run.test_junit import case, report

ORACLE = Oracle(kind="pytest", test_command="pytest", tests=("tests",))
PASSED = report(case("a"), case("b"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pytest -q tests", Command(("-q", "tests"), pytest=True)),
        ("python -m pytest", Command((), pytest=True, here=True)),
        ("A=1 B='x y' python3 -m pytest -k a", Command(("-k", "a"), (("A", "1"), ("B", "x y")), True, True)),
        ("python3.12 check.py", Command(("check.py",), python=True)),
        ("node --test 'my tests'", Command(("node", "--test", "my tests"))),
        ("sh -c 'pytest'", Command(("sh", "-c", "pytest"))),
    ],
)
def test_a_command_is_read_by_its_words(text, expected):
    assert verdict.command(text) == expected


@pytest.mark.parametrize("text", ["", "  ", "A=1", "pytest 'open"])
def test_what_is_no_command_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        verdict.command(text)


def test_exit_0_and_a_passed_case_is_right():
    assert verdict.of_pytest(ORACLE, 0, PASSED) == Verdict(True, None, 2, 0, 0)


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (1, PASSED),
        (2, PASSED),
        (5, None),
        (5, PASSED),
        (0, report()),
        (0, report(case("a", "<skipped/>"), case("b", "<skipped/>"))),
        (0, report(case("a", '<skipped type="pytest.xfail"/>'))),
        (0, report(case("a"), case("b", "<failure/>"))),
        (1, report(case("a"), case("b", "<failure/>"))),
    ],
)
def test_everything_less_is_wrong_and_says_why(code, data):
    found = verdict.of_pytest(ORACLE, code, data)
    assert isinstance(found, Verdict)
    assert not found.success
    assert found.detail


@pytest.mark.parametrize(
    ("code", "data"), [(0, None), (1, None), (3, PASSED), (4, None), (-9, None), (None, None), (0, b"<!DOCTYPE a><a/>")]
)
def test_without_a_report_that_can_be_believed_there_is_no_verdict(code, data):
    assert isinstance(verdict.of_pytest(ORACLE, code, data), Crash)


def test_every_expected_test_must_have_passed():
    oracle = ORACLE.model_copy(update={"expected_ids": ("tests/test_a.py::a", "tests/test_a.py::gone")})
    found = verdict.of_pytest(oracle, 0, PASSED)
    assert isinstance(found, Verdict)
    assert not found.success
    assert "gone" in str(found.detail)
    oracle = ORACLE.model_copy(update={"expected_ids": ("tests/test_a.py::a",)})
    assert verdict.of_pytest(oracle, 0, PASSED) == Verdict(True, None, 2, 0, 0)


@pytest.mark.parametrize(("code", "success"), [(0, True), (1, False), (5, False), (100, False)])
def test_any_other_command_counts_by_its_exit_status(code, success):
    found = verdict.of_exit(code)
    assert isinstance(found, Verdict)
    assert found.success is success


@pytest.mark.parametrize("code", [None, -11, 126, 127])
def test_a_command_that_can_not_be_run_says_nothing(code):
    assert isinstance(verdict.of_exit(code), Crash)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("-q",), False),
        (("tests",), True),
        (("./tests/",), True),
        (("tests/test_a.py::test_b",), True),
        (("-k", "test_a"), False),
        (("elsewhere",), False),
    ],
)
def test_whether_a_command_names_its_tests(words, named):
    assert verdict.paths_named(words, [b"shop.py", b"tests/test_a.py"]) is named
