import xml.etree.ElementTree as ElementTree
from dataclasses import replace

from scoresheet.publish.exports import junit
from scoresheet.run import junit as reader
from tests.publish.exports.subjects import HOSTILE, hostile, subject, text
from tests.publish.runs import B, row, rows


def parsed(written: str) -> ElementTree.Element:
    return ElementTree.fromstring(written.encode())


def test_a_planned_episode_is_a_case_and_what_did_not_succeed_is_a_failure():
    found = parsed(text(junit.build(subject())))
    (suite,) = found
    assert found.tag == "testsuites"
    assert suite.attrib | {"name": ""} == {
        "name": "",
        "tests": "60",
        "failures": str(60 - sum(B)),
        "errors": "0",
        "skipped": "0",
        "timestamp": "2026-09-22T10:05:00",
        "hostname": "h1",
    }
    cases = suite.findall("testcase")
    assert len(cases) == 60
    assert len(suite.findall("testcase/failure")) == 60 - sum(B)
    assert cases[0].attrib == {"classname": "billing.t00", "name": "repeat 0", "time": "0.250000"}
    assert cases[4].find("failure").attrib == {
        "type": "completed",
        "message": "not what the oracle asks (match)",
    }


def test_the_sheet_stands_in_the_suites_properties():
    (suite,) = parsed(text(junit.build(subject(confounds=("the fan broke",)))))
    found = [(one.attrib["name"], one.attrib["value"]) for one in suite.findall("properties/property")]
    assert found[0] == ("confounds", "1")
    assert found[1] == ("confound", "the fan broke")
    assert ("success_ci95", "[0.3000, 0.7500]") in found


def test_what_ended_an_episode_is_told():
    late = row("t00", 0, 0, exit_reason="timeout", timeout=1, detail="ended after 30 s")
    silent = row("t00", 1, 0, exit_reason="agent_error", agent_exit=1)
    (suite,) = parsed(text(junit.build(subject([late, silent, *rows(B)[2:]]))))
    first, second = suite.findall("testcase/failure")[:2]
    assert first.attrib == {"type": "timeout", "message": "ended after 30 s"}
    assert second.attrib == {"type": "agent_error", "message": "ended by agent_error"}


def test_hostile_text_is_shown_and_harmless():
    written = text(junit.build(hostile()))
    assert "<script" not in written
    assert all(mark.isprintable() or mark == "\n" for mark in written)
    (suite,) = parsed(written)
    assert len(suite.findall("testcase")) == 60
    told = suite.findtext("testcase/failure", "")
    assert "<script>alert(1)</script>" in told
    assert "\\x1b[2J" in told
    assert "not recorded: GET /items/" in told
    assert HOSTILE not in told


def test_a_long_answer_is_cut():
    long = row("t00", 0, 0, answer="x" * 100_000)
    (suite,) = parsed(text(junit.build(subject([long, *rows(B)[1:]]))))
    assert len(suite.findtext("testcase/failure", "")) < 5000


def test_scoresheets_own_reader_counts_the_same_cases():
    found = reader.cases(text(junit.build(hostile())).encode())
    assert len(found) == 60
    assert sum(case.outcome == "passed" for case in found) == sum(B) - 2


def test_a_time_that_is_none_makes_no_xml_that_cannot_be_read():
    made = subject()
    spoiled = replace(made, plan=made.plan.model_copy(update={"ended_at": "\x01\ufffe<"}))
    (suite,) = parsed(text(junit.build(spoiled)))
    assert suite.attrib["timestamp"] == "\\x01\\ufffe<"
