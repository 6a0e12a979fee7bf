import json

import pytest

from scoresheet.model.recording import Hit, Miss, Tape, difference, fingerprint
from tests.model.entries import entry

PATH = "/v1/chat/completions"


def asked(text="hello", **more):
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **more}).encode()


def call(text="hello", answer=b"A", at=0.0, **more):
    return entry(path=PATH, request=asked(text), response=answer, started_s=at, **more)


def ask(tape, body, path=PATH, method="POST", kind="openai"):
    return tape.ask(kind, method, path, body)


def why(found):
    assert isinstance(found, Miss)
    return found.why


def test_a_recorded_call_is_answered_by_its_answer():
    found = ask(Tape([call("a", b"A"), call("b", b"B", 1)]), asked("b"))
    assert isinstance(found, Hit)
    assert found.entry.response == b"B"


def test_the_same_call_again_gets_the_next_answer_and_one_too_many_is_a_miss():
    tape = Tape([call(answer=b"second", at=2), call(answer=b"first", at=1)])
    assert [ask(tape, asked()).entry.response for _ in range(2)] == [b"first", b"second"]
    assert why(ask(tape, asked())) == f"POST {PATH} was recorded 2 times, and is asked once more"


def test_members_in_another_order_and_numbers_written_otherwise_are_the_same_call():
    one = b'{"model":"m","seed":7,"temperature":0}'
    two = b'{ "temperature": 0.0, "model": "\\u006d", "seed": 7 }'
    assert fingerprint("openai", "POST", PATH, one) == fingerprint("openai", "POST", PATH, two)


@pytest.mark.parametrize("name", ["metadata", "user", "safety_identifier", "prompt_cache_key", "client_metadata"])
def test_who_asks_is_no_part_of_the_question(name):
    assert isinstance(ask(Tape([call()]), asked(**{name: "session 7"})), Hit)


def test_the_same_name_inside_a_message_is_part_of_it():
    tape = Tape([entry(path=PATH, request=b'{"messages":[{"user":"a"}]}')])
    assert why(ask(tape, b'{"messages":[{"user":"b"}]}')).endswith("differs at /messages/0/user")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"temperature": 1}, "/temperature"),
        ({"stream": True}, "/stream"),
        ({"seed": 8}, "/seed"),
        ({"model": "n"}, "/model"),
        ({"messages": []}, "/messages/0"),
        ({"a/b~c": 1}, "/a~1b~0c"),
    ],
)
def test_a_miss_says_where_the_call_is_another_one(change, place):
    found = why(ask(Tape([call()]), asked(**change)))
    assert found == f"POST {PATH} is not what was recorded: call 1 of the recording differs at {place}"


def test_a_miss_is_held_against_the_next_call_that_was_not_asked_yet():
    tape = Tape([call("a"), call("b", at=1)])
    ask(tape, asked("a"))
    assert "call 2 of the recording differs at /messages/0/content" in why(ask(tape, asked("c")))


@pytest.mark.parametrize(
    ("kind", "method", "path"),
    [("anthropic", "POST", PATH), ("openai", "GET", PATH), ("openai", "POST", "/v1/responses")],
)
def test_kind_method_and_path_are_part_of_the_call(kind, method, path):
    found = ask(Tape([call()]), asked(), path, method, kind)
    assert why(found) == f"{method} {path} was never recorded in this episode"


def test_bodies_that_are_no_json_are_known_by_their_bytes():
    tape = Tape([entry(path=PATH, request=b"\xff{"), entry(method="GET", path="/v1/models", request=b"")])
    assert "differs at its text" in why(ask(tape, b"\xfe{"))
    assert isinstance(ask(tape, b"\xff{"), Hit)
    assert isinstance(ask(tape, b"", "/v1/models", "GET"), Hit)


def test_what_the_door_refused_was_never_answered():
    assert isinstance(ask(Tape([call(refused="no")]), asked()), Miss)


def test_answers_that_the_door_asked_again_for_come_before_the_one_that_it_passed_on():
    tape = Tape([call(answer=b"wait", fault="rate limited"), call(answer=b"A", at=1)])
    found = ask(tape, asked())
    assert isinstance(found, Hit)
    assert (found.entry.response, [each.response for each in found.before]) == (b"A", [b"wait"])
    assert "recorded once" in why(ask(tape, asked()))


def test_equal_values_have_no_difference():
    assert difference({"a": [1]}, {"a": [1]}) is None
    assert difference([1], [1, 2]) == "/1"
    assert difference({"user": 1}, {"user": 2}) is None
