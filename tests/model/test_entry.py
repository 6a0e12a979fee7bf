import json

import pytest

from scoresheet.errors import Malformed
from scoresheet.model.entry import read_back
from tests.model.entries import entry


@pytest.mark.parametrize("line", [b"{}", b"[]", b"{"])
def test_a_line_that_is_none_is_refused_with_its_place(line):
    with pytest.raises(Malformed):
        list(read_back(entry().line() + line))


@pytest.mark.parametrize(
    ("member", "values"),
    [
        ("kind", (5, None, [])),
        ("method", (5, None, [])),
        ("path", (5, None, True)),
        ("request", (5, None, {"base64": "!"}, {"base64": 5}, {})),
        ("response", (5, None, {"base64": "!"})),
        ("request_headers", (5, [["a", 1]], [["a b", "c"]])),
        ("response_headers", (5, [["a", "b\r\nc: d"]], [["a", "\u2028"]], [["a", "b", "c"]])),
        ("status", ("200", True, 5, 99999, 10**400, [])),
        ("started_s", ("1.5", None, True, 10**400)),
        ("first_byte_s", ("1.5", [], 10**400)),
        ("ended_s", ("1.5", None, 10**400)),
        ("refused", (5, [])),
        ("fault", (5, True)),
        ("said", (5, {})),
    ],
)
def test_a_line_in_which_a_member_is_no_such_thing_is_refused(member, values):
    value = json.loads(entry(response_headers=(("a", "b\xe9\tc"),)).line())
    assert list(read_back(json.dumps(value).encode()))
    for wrong in values:
        with pytest.raises(Malformed):
            list(read_back(json.dumps(value | {member: wrong}).encode()))


def test_a_list_of_models_and_a_count_of_tokens_are_no_calls():
    assert entry(method="GET", path="/v1/models").exchange() is None
    assert entry(path="/v1/messages/count_tokens?beta=true").exchange() is None
    assert entry().exchange().status == 200


def test_what_the_door_said_in_the_models_place_is_kept():
    told = entry(status=None, response=b"", fault="unreachable", said="nobody there")
    assert list(read_back(told.line())) == [told]
    assert b'"said"' not in entry().line()


def test_a_call_that_was_sent_again_and_one_that_was_not_recorded_are_told_apart():
    again, missed = entry(fault="rate limited").exchange(), entry(fault="unrecorded", refused="no").exchange()
    assert (again.by_door, again.unrecorded, again.status) == (True, False, 200)
    assert (missed.by_door, missed.unrecorded, missed.refused) == (False, True, "no")


def test_a_list_of_models_that_was_not_recorded_is_no_call_and_yet_told():
    assert entry(method="GET", path="/v1/models", fault="unrecorded", refused="no").exchange().unrecorded
