"""Which states a recording is said to have gone through."""

import pytest

from scoresheet.documents.tool import CALL, Request, Response
from scoresheet.record.exchange import Exchange
from scoresheet.record.states import Told, infer
from scoresheet.record.states import told as told_states


def told(*calls, reading=()):
    """Of `(method, target, answer)`, with a status as a fourth: scenarios, and what each call says, written short."""
    exchanges = [
        Exchange(
            Request("" if method == CALL else "SHOP", method, target),
            Response(more[0] if more else 200, (), answer.encode()),
        )
        for method, target, answer, *more in calls
    ]
    found = infer(exchanges, [f"{method} {target}" for method, target, *_ in calls], frozenset(reading))
    short = [
        "" if state is None else f"{state.get('requires', '')}>{state.get('sets', '')}".rstrip(">")
        for state in found.calls
    ]
    return found.scenarios, short


def test_what_is_read_after_a_write_requires_the_state_that_the_write_led_to():
    scenarios, calls = told(
        ("GET", "/o", "open"), ("POST", "/cancel", "done"), ("GET", "/o", "gone"), ("GET", "/x", "same")
    )
    assert scenarios == {"SHOP": ["start", "write-1"]}
    assert calls == ["start", "start>write-1", "write-1", ""]


@pytest.mark.parametrize(("service", "scenario"), [("_API", "API"), ("__", "state"), ("A" * 80, "A" * 60)])
def test_a_service_whose_name_no_scenario_can_have_has_states_all_the_same(service, scenario):
    asked = (("GET", b"0"), ("POST", b"ok"), ("GET", b"1"))
    made = [Exchange(Request(service, method, "/o"), Response(200, (), body)) for method, body in asked]
    found = infer(made, [method for method, _ in asked])
    assert found.scenarios == {scenario: ["start", "write-1"]}
    assert {call["scenario"] for call in found.calls if call is not None} == {scenario}


def test_two_services_never_share_a_scenario():
    first = (("API", "GET", b"0"), ("API", "POST", b"ok"), ("API", "GET", b"1"), ("_API", "POST", b"ok"))
    asked = (*first, ("_API", "GET", b"0"), ("_API", "DELETE", b"ok"), ("_API", "GET", b"1"))
    made = [Exchange(Request(service, method, "/o"), Response(200, (), body)) for service, method, body in asked]
    found = infer(made, [f"{service} {method}" for service, method, _ in asked])
    assert found.scenarios == {"API": ["start", "write-1"], "API-2": ["start", "write-1", "write-2"]}


def test_a_recording_whose_answers_never_change_has_no_states():
    assert told(("GET", "/o", "a"), ("POST", "/log", ""), ("GET", "/o", "a"), ("GET", "/o", "a")) == ({}, [""] * 4)


def test_polling_without_a_write_is_a_sequence_and_no_state():
    assert told(("GET", "/job", "running"), ("GET", "/job", "done")) == ({}, ["", ""])


def test_a_write_that_was_refused_leads_nowhere_and_one_that_was_broken_off_may_have():
    _, calls = told(
        ("GET", "/o", "a"), ("PUT", "/o", "bad", 422), ("GET", "/o", "a"), ("PUT", "/o", "", 200), ("GET", "/o", "b")
    )
    assert calls == ["start", "", "start", "start>write-1", "write-1"]
    faulty = Exchange(Request("SHOP", "PUT", "/o"), Response(0, (), b"", 1.0, "connection_reset"))
    reads = [Exchange(Request("SHOP", "GET", "/o"), Response(200, (), body)) for body in (b"a", b"b")]
    found = infer([reads[0], faulty, reads[1]], ["r", "w", "r"])
    assert found.calls[1] == {"scenario": "SHOP", "requires": "start", "sets": "write-1"}


def test_a_write_that_is_made_twice_is_answered_by_its_state():
    scenarios, calls = told(("POST", "/c", "done"), ("POST", "/c", "already", 409), ("POST", "/c", "already", 409))
    assert scenarios == {"SHOP": ["start", "write-1"]}
    assert calls == ["start>write-1", "write-1", "write-1"]


def test_tools_without_http_have_a_scenario_of_their_own_and_say_which_only_read():
    calls = ((CALL, "get", "1"), (CALL, "set", ""), (CALL, "get", "2"))
    assert told(*calls, reading=["get"]) == ({"mcp": ["start", "write-1"]}, ["start", "start>write-1", "write-1"])
    assert told((CALL, "mcp/resources/read", "1"), (CALL, "set", ""), (CALL, "mcp/resources/read", "2"))[1] == [
        "start", "start>write-1", "write-1",
    ]  # fmt: skip


def test_a_service_whose_answers_did_not_change_gets_no_scenario_beside_one_whose_did():
    exchanges = [
        Exchange(Request(name, method, "/o"), Response(200, (), body))
        for name, method, body in (
            ("A", "GET", b"1"), ("B", "GET", b"1"), ("A", "POST", b""), ("B", "POST", b""), ("A", "GET", b"2"),
            ("B", "GET", b"1"),
        )
    ]  # fmt: skip
    found = infer(exchanges, [f"{each.request.upstream} {each.request.method}" for each in exchanges])
    assert found.scenarios == {"A": ["start", "write-1"]}
    assert [state is not None for state in found.calls] == [True, False, True, False, True, False]


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reading_never_leads_on(method):
    assert told((method, "/o", "a"), (method, "/p", "b"), (method, "/o", "c")) == ({}, ["", "", ""])


def test_states_that_another_tool_told_keep_their_names_as_far_as_a_pack_can_hold_them():
    calls = [
        Told("Zürich list", "Started", "état 1!"),
        None,
        Told("Zürich list", "état 1?", None),
        Told("b", None, None),
    ]
    found = told_states(calls, "Started")
    assert found.scenarios == {"Z-rich-list": ["Started", "tat-1", "tat-1-2"]}
    assert found.calls == (
        {"scenario": "Z-rich-list", "requires": "Started", "sets": "tat-1"},
        None,
        {"scenario": "Z-rich-list", "requires": "tat-1-2"},
        None,
    )
    assert told_states([Told("!!!", "?", "x" * 99)], "Started").scenarios == {"state": ["Started", "state", "x" * 60]}
