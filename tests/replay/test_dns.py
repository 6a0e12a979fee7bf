"""The responder alone: what it says of any message, and what it keeps."""

import struct

from hypothesis import example, given
from hypothesis import strategies as st

from scoresheet.replay import dns
from scoresheet.replay.dns import NameLog, Responder

A, AAAA, HTTPS = 1, 28, 65


def question(name, kind=A, group=1, number=0x1234, flags=0x0100, tail=b""):
    encoded = [label.encode() for label in name.split(".") if label]
    labels = b"".join(bytes((len(label),)) + label for label in encoded) + b"\0"
    return (
        struct.pack(">HHHHHH", number, flags, 1, 0, 0, 1 if tail else 0)
        + labels
        + struct.pack(">HH", kind, group)
        + tail
    )


def responder():
    return Responder(frozenset({"api.example.com"}), NameLog(clock=lambda: 5.0, _zero=3.0))


def parts(reply):
    number, flags, *counts = struct.unpack(">HHHHHH", reply[:12])
    return number, flags & 15, counts[0], counts[1]


def test_a_recorded_host_is_at_our_own_address():
    asked = question("API.example.com")
    reply = responder().answer(asked)
    assert parts(reply) == (0x1234, 0, 1, 1)
    assert reply[12:].startswith(asked[12:])
    assert reply.endswith(b"\x00\x04\x7f\x00\x00\x01")


def test_such_a_host_has_no_other_records():
    for kind in (AAAA, HTTPS):
        assert parts(responder().answer(question("api.example.com", kind))) == (0x1234, 0, 1, 0)


def test_every_other_name_does_not_exist():
    for name in ("example.com", "x.api.example.com", "api.example.com.evil.example", ""):
        assert parts(responder().answer(question(name))) == (0x1234, 3, 1, 0)
    assert parts(responder().answer(question("api.example.com", group=3))) == (0x1234, 3, 1, 0)


def test_extensions_of_a_question_are_passed_over():
    option = b"\0\0\x29\x04\xd0\0\0\0\0\0\0"
    assert parts(responder().answer(question("api.example.com", tail=option))) == (0x1234, 0, 1, 1)


def test_every_question_is_counted_under_its_name_type_and_answer():
    asked = responder()
    for name, kind in (("API.example.com", A), ("api.example.com", A), ("api.example.com", HTTPS), ("é.example", AAAA)):
        asked.answer(question(name, kind))
    asked.answer(question("a")[:-1])
    assert [(each.name, each.type, each.answer, each.first_s, each.count) for each in asked.log.records()] == [
        ("api.example.com", "A", "address", 2.0, 2),
        ("api.example.com", "TYPE65", "empty", 2.0, 1),
        ("\\xc3\\xa9.example", "AAAA", "no_such_name", 2.0, 1),
        ("", "", "malformed", 2.0, 1),
    ]
    assert len(asked.log.lines().splitlines()) == 4


def test_names_beyond_a_number_are_counted_together(monkeypatch):
    monkeypatch.setattr(dns, "MOST_NAMES", 2)
    asked = responder()
    for name in ("a", "b", "c", "d", "a"):
        asked.answer(question(name))
    assert [(each.name, each.count) for each in asked.log.records()] == [("a", 2), ("b", 1), ("*", 2)]


def test_answers_are_never_answered():
    assert responder().answer(question("api.example.com", flags=0x8180)) == b""


@given(st.binary(max_size=80))
@example(question("api.example.com")[:12] + b"\xc0\x0c\0\1\0\1")
def test_no_message_breaks_it_and_no_reply_is_a_question(message):
    reply = responder().answer(message)
    assert reply == b"" or (reply[:2] == message[:2] and reply[2] & 0x80)
