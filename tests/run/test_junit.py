"""What is read of a JUnit report: its test cases, and nothing that could be made up above them."""

import pytest

from scoresheet.errors import Malformed
from scoresheet.run import junit
from scoresheet.run.junit import Case


def report(*cases, totals='tests="9" failures="0" errors="0" skipped="0"'):
    return f"<?xml version='1.0'?><testsuites><testsuite {totals}>{''.join(cases)}</testsuite></testsuites>".encode()


def case(name, inside=""):
    return f'<testcase classname="tests.test_a" name="{name}">{inside}</testcase>'


def test_each_case_has_its_outcome():
    found = junit.cases(
        report(
            case("a"),
            case("b", '<failure message="no">text</failure>'),
            case("c", "<error/>"),
            case("d", '<skipped type="pytest.xfail"/>'),
            case("e", "<system-out>failure</system-out><properties><property name='failure'/></properties>"),
        )
    )
    assert [each.outcome for each in found] == ["passed", "failed", "failed", "skipped", "passed"]
    assert found[0] == Case("tests.test_a", "a", "passed")


def test_totals_are_never_read():
    assert junit.cases(report(totals='tests="5" failures="0"')) == ()
    assert junit.cases(report(case("a", "<failure/>"), totals='tests="1" failures="0"'))[0].outcome == "failed"


def test_a_failure_stays_one_whatever_follows_it():
    assert junit.cases(report(case("a", "<failure/><skipped/>")))[0].outcome == "failed"
    assert junit.cases(report(case("a", "<skipped/><error/>")))[0].outcome == "failed"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no xml",
        b"<testsuites>",
        b"<!DOCTYPE a><testsuites/>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><testsuites>&b;</testsuites>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><testsuites/>',
        b"<testsuites>&undefined;</testsuites>",
        b"<a>" * 40 + b"</a>" * 40,
        b"\xff\xfe<",
    ],
)
def test_what_is_no_plain_report_is_refused(data):
    with pytest.raises(Malformed):
        junit.cases(data)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("tests/test_a.py::test_b", ("tests.test_a", "test_b")),
        ("test_a.py::TestC::test_d[1-x::y]", ("test_a.TestC", "test_d[1-x::y]")),
        ("tests/unit/test_a.py::TestC::TestD::test_e", ("tests.unit.test_a.TestC.TestD", "test_e")),
    ],
)
def test_a_node_id_is_found_as_pytest_reports_it(node, expected):
    assert junit.key(node) == expected


def test_an_expected_test_must_have_passed_every_time():
    found = junit.cases(report(case("a"), case("b"), case("b", "<failure/>"), case("c", "<skipped/>")))
    nodes = [f"tests/test_a.py::{name}" for name in "abcd"]
    assert junit.missing(nodes, found) == tuple(nodes[1:])
