"""The gathering: every entry is an exchange or has a reason."""

import pytest

from scoresheet.record.importers.intake import Intake, pairs
from scoresheet.record.importers.shape import LeftOut


def take(intake, **more):
    given = {
        "where": "w", "method": "GET", "url": "https://api.test/a", "sent": ((), b""),
        "status": 200, "answered": ((), b"x"),
    } | more  # fmt: skip
    with intake.entry("w"):
        intake.http(**given)


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"status": None}, "import-no-answer"),
        ({"status": 1000}, "import-no-answer"),
        ({"status": 103}, "import-no-replay"),
        ({"url": "https:///a"}, "import-url"),
        ({"url": "/a"}, "import-url"),
        ({"method": ""}, "import-shape"),
        ({"url": "https://api.test/\ud83d"}, "import-text"),
        ({"answered": ((("Content-Encoding", "zstd"),), b"x")}, "import-unreadable"),
    ],
)
def test_an_entry_that_cant_be_replayed_has_a_reason(more, rule):
    intake = Intake()
    take(intake, **more)
    result = intake.gathered()
    assert not result.exchanges
    assert [(finding.rule, finding.where) for finding in result.left_out] == [(rule, "w")]


def test_headers_that_would_break_a_message_are_left_out_and_counted():
    intake = Intake()
    bad = (("a b", "1"), ("X", "a\rb"), ("Connection", "close"), (":path", "/"), ("Y", " 2 "))
    take(intake, sent=(bad, b""))
    assert intake.gathered().exchanges[0].request.headers == (("Y", "2"),)
    assert intake.gathered().changed == (("a header that can't be sent was left out", 2),)


def test_bodies_beside_a_204_are_left_out_and_counted():
    intake = Intake()
    take(intake, status=204)
    assert intake.gathered().exchanges[0].response.body == b""
    assert intake.gathered().changed == (("a body beside a 204 was left out: none is sent with it", 1),)


def test_a_tool_has_a_name_that_can_stand_in_the_name_of_a_file():
    for name in ("", ".hidden", "a/b", "../x", "a" * 129, 7, None, "ü"):
        with pytest.raises(LeftOut):
            Intake().call("w", name, {}, b"", "text/plain")
    intake = Intake()
    intake.call("w", "a.b-c_9", None, b"", "text/plain")
    assert intake.gathered().exchanges[0].request.body == b"{}"


def test_a_described_tool_binds_no_host_and_ignores_nothing():
    intake = Intake()
    intake.tool("w", {"name": "a", "http": {"upstream": "X", "method": "GET", "path": "/"}, "ignore": ["/json/a"]})
    assert intake.gathered().tools[0].as_json() == {"name": "a"}
    with pytest.raises(LeftOut):
        intake.tool("w", {"name": "a", "description": 7})


def test_headers_with_many_values_become_pairs():
    assert pairs([("a", "1"), ("b", ["2", "3"])]) == (("a", "1"), ("b", "2"), ("b", "3"))
