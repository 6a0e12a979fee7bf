"""Suggestions of what to ignore."""

import json

from scoresheet.documents.tool import Request, Response
from scoresheet.record.exchange import Exchange
from scoresheet.record.importers.volatile import applies, suggest, unpaired

UUIDS = [f"0f8fad5b-d9cb-469f-a165-{number:012}" for number in range(9)]
JSON = (("Content-Type", "application/json"),)


def call(target="/a", answer=b"{}", **members):
    body = json.dumps(members).encode() if members else b""
    return Exchange(Request("A", "POST", target, JSON if members else (), body), Response(200, (), answer))


def told(*exchanges, others=()):
    return [(each.rule, each.differing, each.compared, each.look) for each in suggest(exchanges, others)]


def test_made_up_values_of_repeats_with_one_answer_are_suggested():
    assert told(call(n=UUIDS[0], x=1), call(n=UUIDS[1], x=1)) == [("/json/n", 1, 1, "a UUID")]
    assert told(call(a={"b~/": UUIDS[0]}), call(a={"b~/": UUIDS[1]}))[0][0] == "/json/a/b~0~1"
    times = call("/a?t=1767225600&q=x"), call("/a?t=1767225601&q=x")
    assert told(*times) == [("/query/t", 1, 1, "a time in seconds or less")]


def test_two_volatile_members_at_once_are_both_found():
    first, second = (call(n=UUIDS[n], t=f"2026-01-01T00:00:0{n}Z", x=1) for n in (1, 2))
    assert [each[0] for each in told(first, second)] == ["/json/n", "/json/t"]


def test_other_answers_other_data_and_plain_words_are_not_suggested():
    assert not told(call(n=UUIDS[0]), call(n=UUIDS[1], answer=b"[]"))
    assert not told(call(n=UUIDS[0], x=1), call(n=UUIDS[1], x=2))
    assert not told(call(n="one"), call(n="two"))
    assert not told(call(n=UUIDS[0]), call(n=UUIDS[0]))


def test_what_an_earlier_answer_gave_is_not_suggested():
    given = call("/new", answer=json.dumps(UUIDS).encode())
    assert not told(given, call(n=UUIDS[0]), call(n=UUIDS[1]))


def test_another_recording_shows_what_differs_whatever_it_looks_like():
    assert told(call(n="one", x=1), others=[[call(n="two", x=1)]]) == [("/json/n", 1, 1, "")]
    assert not told(call(n="one"), call(n="two"), others=[[call(n="two"), call(n="one")]])
    assert unpaired([call(n=1)], [call(n=2), call(n=3), call("/b", n=1)]) == 2


def test_a_rule_applies_where_it_removes_something():
    request = call("/a?t=1", n=1).request
    assert applies("/json/n", request)
    assert applies("/query/t", request)
    assert not applies("/json/m", request)
    assert not applies("nonsense", request)


def test_no_suggestion_shows_a_value():
    assert UUIDS[0] not in str(suggest([call(n=UUIDS[0]), call(n=UUIDS[1])])[0])
