from scoresheet.publish.exports.subject import json_text, sheet, sheet_members
from tests.publish.exports.subjects import HOSTILE, hostile, subject
from tests.publish.runs import plan


def test_the_sheet_begins_with_confounds_and_holds_the_whole_block():
    found = sheet(subject(confounds=("the fan broke", "resumed once")).report)
    assert found[:3] == (("confounds", "2"), ("confound", "the fan broke"), ("confound", "resumed once"))
    keys = [key for key, _ in found]
    assert keys[3:5] == ["protocol", "manifest_sha256"]
    assert {"success_ci95", "unauthorized_rate", "never_solved", "gap", "figures_sha256"} <= set(keys)


def test_lines_of_one_key_are_joined_in_an_object():
    members = sheet_members(subject(confounds=("a", "b")).report)
    assert members["confound"] == "a | b"
    assert members["confounds"] == "2"


def test_a_log_that_is_not_there_and_attendance_are_told():
    report = subject().report.model_copy(update={"confounds": None, "attended": True})
    assert sheet(report)[:2] == (("confounds", "no log"), ("attended", "true"))


def test_nothing_in_the_sheet_ends_a_line_or_steers_a_terminal():
    for key, value in sheet(hostile().report):
        assert key.isprintable()
        assert value.isprintable()
    assert HOSTILE not in sheet_members(hostile().report)["confound"]


def test_only_attempts_that_count_enter_and_a_run_without_an_end_has_its_start():
    there = subject()
    assert sum(1 for _ in there.counted) == 60
    assert there.ended_at == "2026-09-22T10:05:00Z"
    assert subject().plan.model_copy(update={"ended_at": None}).started_at == plan().started_at


def test_a_value_is_written_whatever_it_holds():
    assert json_text({"b": 1, "a": "é"}) == '{"b": 1, "a": "é"}'
    assert json_text("é", ascii_only=True) == '"\\u00e9"'
    assert json_text({"b": 10**5000, "a": 1}) == '{"a":1,"b":1' + "0" * 5000 + "}"
