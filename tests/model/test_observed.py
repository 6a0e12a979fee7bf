from dataclasses import replace

import pytest

from scoresheet.model.observed import Exchange, Pinned, Retries, observe
from scoresheet.model.wire.parts import Answered, Asked, Failure, ToolCall, ToolOffered, Usage
from scoresheet.model.wire.reading import Read, Unobserved

PINNED = Pinned(0.0, (99, 7), "gpt-4o", frozenset({"lookup", "server:web_search"}), 40, 0)


def asked(question="q", **more):
    return Asked("openai_chat", "gpt-4o", question, **{"temperature": 0.0, "seed": 7, **more})


def answered(*names, **more):
    calls = tuple(ToolCall(name, f"c{number}", "{}") for number, name in enumerate(names))
    return Answered(200, "gpt-4o-2024-08-06", "stop", calls, Usage(10, 5, 4, 0, 2), **more)


def call(at=0.0, ask=None, answer=None, status=200, until=None):
    return Exchange(at, at + 1 if until is None else until, Read(ask or asked(), answer or answered()), status)


def control(name, *exchanges, pinned=PINNED):
    found = observe(exchanges, pinned)
    return next(each for each in found.controls if each.control in (name, f"controls.{name}"))


def test_a_run_that_keeps_its_card_is_verified_in_every_control():
    found = observe([call(0, asked("a"), answered("lookup")), call(2, asked("b"))], PINNED)
    assert {each.status for each in found.controls} == {"verified"}
    assert (found.calls, found.tokens_in, found.tokens_out, found.tool_calls, found.most_at_once) == (2, 20, 10, 1, 1)
    assert found.models == ("gpt-4o-2024-08-06",)
    assert found.ending is None


def test_another_temperature_is_violated_with_the_count_of_calls():
    seen = control("temperature", call(0, asked("a", temperature=0.7)), call(1, asked("b", temperature=0.7)), call(2))
    assert (seen.status, seen.violations, seen.seen) == ("violated", 2, (("0.7", 2), ("0", 1)))


def test_a_temperature_that_is_not_sent_is_unobserved_unless_the_answer_says_it():
    silent = asked(temperature=None)
    assert control("temperature", call(ask=silent)).status == "unobserved"
    assert control("temperature", call(ask=silent, answer=answered(temperature=1.0))).status == "violated"
    assert control("temperature", call(ask=silent, answer=answered(temperature=0.0))).status == "verified"


@pytest.mark.parametrize(("seed", "status"), [(7, "verified"), (99, "verified"), (8, "violated"), (None, "unobserved")])
def test_the_seed_of_the_card_or_of_the_episode_is_right(seed, status):
    assert control("seed", call(ask=asked(seed=seed))).status == status


@pytest.mark.parametrize(
    ("asks", "answers", "status"),
    [
        ("gpt-4o", "gpt-4o", "verified"),
        ("gpt-4o", "gpt-4o-2024-08-06", "verified"),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06", "verified"),
        ("gpt-4o", "gpt-4o-mini", "violated"),
        ("gpt-4o-mini", "gpt-4o-mini", "violated"),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", "violated"),
    ],
)
def test_a_dated_snapshot_of_the_pinned_model_is_that_model(asks, answers, status):
    exchange = call(ask=replace(asked(), model=asks), answer=replace(answered(), model=answers))
    assert control("model", exchange).status == status


def test_a_model_name_that_changes_is_seen():
    other = replace(answered(), model="gpt-4o-2024-11-20")
    seen = control("model_snapshot", call(0), call(2), call(4, answer=other))
    assert (seen.status, seen.violations) == ("violated", 1)


def test_a_tool_outside_the_allowlist_ends_the_episode():
    found = observe([call(ask=asked(tools=(ToolOffered("lookup", None), ToolOffered("bash", None))))], PINNED)
    assert found.ending == "mismatch"
    assert [(each.control, each.seen) for each in found.violated] == [("controls.tool_allowlist", (("bash", 1),))]
    assert observe([call(answer=answered("bash"))], PINNED).ending == "mismatch"


def test_a_tool_over_mcp_counts_under_its_own_name():
    assert PINNED.outside(asked(tools=(ToolOffered("mcp__replay__lookup", None),))) == ()
    assert PINNED.outside(asked(tools=(ToolOffered("mcp__replay__drop", None),))) == ("mcp__replay__drop",)


def test_a_tool_of_the_providers_own_is_allowed_only_as_such():
    search = ToolOffered("web_search", None, server=True)
    assert PINNED.outside(asked(tools=(search,))) == ()
    assert replace(PINNED, tools=frozenset({"web_search"})).outside(asked(tools=(search,))) == ("server:web_search",)


def test_the_41st_tool_call_ends_the_episode():
    calls = [call(number, asked(str(number)), answered(*["lookup"] * 4)) for number in range(10)]
    assert observe(calls, PINNED).ending is None
    found = observe([*calls, call(11, asked("x"), answered("lookup"))], PINNED)
    assert (found.ending, found.tool_calls) == ("tool_cap", 41)
    assert [each.violations for each in found.violated] == [1]


@pytest.mark.parametrize(
    "failed",
    [
        Exchange(0, 1, Read(asked(), Answered(500, failure=Failure("server_error", ""))), 500),
        Exchange(0, 1, Read(asked(), None), None),
        Exchange(0, 1, Read(asked(), answered(complete=False)), 200),
    ],
    ids=["500", "dropped", "cut"],
)
def test_the_same_request_again_after_a_failure_is_a_retry(failed):
    found = observe([failed, call(2), call(4)], PINNED)
    assert (found.retries, found.failed) == (1, 1)
    assert [each.control for each in found.violated] == ["controls.retries"]
    assert observe([failed, call(2)], replace(PINNED, retries=1)).violated == ()


def test_the_same_request_after_an_answer_is_no_retry():
    assert observe([call(0), call(2)], PINNED).retries == 0


def test_an_unknown_dialect_leaves_every_control_unobserved():
    found = observe([call(0, asked("a")), Exchange(1, 2, Unobserved("a dialect that is not known"), 200)], PINNED)
    assert {each.status for each in found.controls} == {"unobserved"}
    assert found.unobserved == 1


def test_without_calls_nothing_is_verified():
    found = observe([], PINNED)
    assert {each.status for each in found.controls} == {"unobserved"}
    assert (found.tokens_in, found.gave_up) == (None, None)


def test_calls_that_overlap_are_counted():
    assert observe([call(0, until=3), call(1, until=2), call(2, until=4)], PINNED).most_at_once == 2


def test_a_last_call_that_fails_says_why():
    failed = Exchange(0, 1, Read(asked(), Answered(429, failure=Failure("rate_limit", "slow down"))), 429)
    assert observe([failed], PINNED).gave_up == "rate_limit: slow down"


def test_a_request_that_the_door_refused_is_no_call_but_its_tools_are_seen():
    tools = (ToolOffered("web_search_preview", None, server=True),)
    found = observe([Exchange(0, 0, Read(asked(tools=tools), None), None, "server tool")], PINNED)
    assert (found.calls, found.refused, found.ending) == (0, 1, "mismatch")


def test_what_will_have_been_asked_again_is_counted_with_the_call_that_fails_now():
    retries, failed, question = Retries(), call(status=429), "q"
    assert retries.after_failure(question) == 1
    retries.take(failed, question)
    assert retries.after_failure(question) == 2  # the agent's own retry fails, and the door would send one more
    retries.take(failed, question)
    retries.take(call(), question)
    assert (retries.again[question], retries.after_failure(question), retries.after_failure("other")) == (2, 3, 1)


def test_tokens_are_told_model_by_model():
    one, two = (
        Read(asked(), replace(answered(), model=name, usage=Usage(10, 2, cached=4, cache_write=1, reasoning=1)))
        for name in "ab"
    )
    found = observe([Exchange(0, 1, each, 200) for each in (two, one, one)], PINNED)
    assert [(each.model, each.calls, each.usage) for each in found.spent] == [
        ("a", 2, Usage(20, 4, 8, 2, 2)),
        ("b", 1, Usage(10, 2, 4, 1, 1)),
    ]


def test_calls_whose_tokens_nobody_told_are_counted():
    silent = Exchange(0, 1, Read(asked(), replace(answered(), usage=None)), 200)
    gone = Exchange(2, 3, Read(asked("b"), None), None)
    blind = Exchange(4, 5, Unobserved("a dialect that is not known"), 200)
    failed = Exchange(6, 7, Read(asked("c"), Answered(500, failure=Failure("server", "no"))), 500)
    assert observe([silent, gone, blind, failed], PINNED).untold == 3


def test_a_call_that_a_recording_does_not_hold_ends_the_episode():
    found = observe([Exchange(0, 0, Read(asked(), None), None, "not there", unrecorded=True)], PINNED)
    assert (found.ending, found.unrecorded, found.calls) == ("mismatch", ("not there",), 0)
