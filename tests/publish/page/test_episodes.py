import json

import pytest

from scoresheet.publish.page import episodes
from scoresheet.publish.page.episodes import Expected, Found, Lines, Text
from scoresheet.run import oracle
from tests.publish import runs
from tests.publish.page.pages import HOSTILE, call, miss

ROOM = 64_000


def lines(*values):
    return Lines(tuple(json.dumps(value).encode() for value in values))


NOTHING, UNKNOWN = Found(), Expected()


def shown(found=NOTHING, expected=UNKNOWN, room=ROOM, **row):
    return episodes.attempt(runs.row(**row), 1, "success", found, expected, room)


def test_a_miss_stands_with_the_nearest_recording_and_how_it_differs():
    one = shown(Found(calls=lines(call(0), miss(1))))["calls"]["rows"]
    assert [each["outcome"] for each in one] == ["hit", "miss"]
    assert one[1]["nearest"] == {
        "asked": "POST /v1/refunds",
        "difference": ["body /amount: recorded 1200, asked 1300"],
    }
    assert one[1]["body"] == '{"payment_id": "pay-501", "amount": 1300}'


def test_the_answer_stands_member_by_member_against_the_expected_one():
    found = shown(answer={"amount": 1200, "more": 1}, expected=Expected({"amount": 1200, "refunded": True}))
    assert found["expected"]["members"] == [["amount", "1200", "1200", 1], ["refunded", "true", "not there", 0]]
    assert json.loads(found["answer"]) == {"amount": 1200, "more": 1}


@pytest.mark.parametrize(("given", "expected"), [(1, True), ("1", 1), (1.5, 1), (None, 0)])
def test_answers_of_another_type_are_not_the_same(given, expected):
    found = shown(answer={"a": given}, expected=Expected({"a": expected}))
    assert found["expected"]["members"][0][3] == 0


def test_without_the_pack_it_says_why_the_expected_answer_is_not_there():
    assert "--pack PACK" in shown()["expected"]["why_not"]
    assert shown(expected=Expected(why_not="it is secret"))["expected"] == {"why_not": "it is secret", "members": []}


def test_nothing_that_an_agent_wrote_leaves_invisible():
    found = Found(
        calls=lines(call(0, path=HOSTILE, body=HOSTILE, tool=HOSTILE, schema_errors=[HOSTILE], method=HOSTILE)),
        model=lines({"method": "POST", "path": HOSTILE, "status": 200, "started_s": 0.1, "ended_s": 0.2}),
        trajectory=None,
        texts={"stdout": Text(HOSTILE.encode(), len(HOSTILE.encode())), "patch.diff": Text(b"\xff\xfe\x00", 3)},
    )
    text = json.dumps(
        shown(found, Expected({HOSTILE: HOSTILE}), answer={HOSTILE: HOSTILE}, detail=HOSTILE), ensure_ascii=False
    )
    assert not {"\x1b", "\x07", "\u202e", "\u2066", "\x00"} & {*text}
    assert "\\\\u202e" in text


def test_a_lone_surrogate_is_named():
    found = Found(texts={"stdout": Text(b"\xed\xa0\x80", 3)})
    assert shown(found)["texts"] == [["stdout", "\\xed\\xa0\\x80"]]


def test_what_is_cut_says_so_and_where_the_whole_of_it_lies():
    found = Found(texts={"stdout": Text(b"x" * 1000, 50_000_000)})
    name, text = shown(found, room=400)["texts"][0]
    assert name == "stdout"
    assert text.endswith("… cut here: the whole of it is in episodes/t00/0.0/stdout (50000000 bytes)")
    assert len(text) < 500


@pytest.mark.parametrize("text", ["ä漢😀" * 20, "\x1b\u202e" * 20])
def test_what_is_all_there_is_not_called_cut_and_what_is_not_is(text):
    data = text.encode()
    whole = shown(Found(texts={"stdout": Text(data, len(data))}))["texts"][0][1]
    assert "cut here" not in whole
    head = shown(Found(texts={"stdout": Text(data[:-1], len(data))}))["texts"][0][1]
    assert head.endswith(f"… cut here: the whole of it is in episodes/t00/0.0/stdout ({len(data)} bytes)")


def test_an_attempt_never_takes_much_more_than_its_room():
    huge = "y" * 300_000
    found = Found(
        calls=lines(*(call(n, path=huge, body=huge) for n in range(50))),
        trajectory=Text(b"", 0),
        texts={name: Text(huge.encode(), 300_000) for name in ("patch.diff", "stderr", "stdout")},
    )
    assert len(json.dumps(shown(found, Expected({"a": huge}), room=4000, answer={"a": huge}))) < 12_000


def test_calls_that_have_no_room_are_counted():
    found = shown(Found(calls=Lines(lines(*(call(n) for n in range(500))).lines, more=True)))
    assert len(found["calls"]["rows"]) == 400
    assert found["calls"]["note"] == "more calls are in episodes/t00/0.0/calls.jsonl: at least 101"
    assert shown()["calls"]["note"] == "episodes/t00/0.0/calls.jsonl is not there"
    assert shown(Found(calls=lines()))["calls"] == {"rows": [], "note": ""}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"not json",
        b'{"path": 5, "status": "x", "at_s": true, "nearest": [], "body": {"base64": "AA=="}}',
        b"\xff\xfe",
        b'{"at_s": 1e400}',
        b'{"nearest": {"difference": "no list", "path": null}, "outcome": "miss"}',
        b'{"status": 1e300}',
    ],
)
def test_a_line_that_is_no_call_harms_nothing(line):
    found = shown(Found(calls=Lines((line,)), model=Lines((line,))))
    assert len(found["calls"]["rows"]) == 1


def test_without_a_trajectory_the_doors_tell_what_came_when():
    found = Found(
        calls=lines(call(0, at_s=0.5)),
        model=lines({"method": "POST", "path": "/v1/messages", "status": 200, "started_s": 0.1, "ended_s": 0.4}),
    )
    assert shown(found)["moments"] == [
        ["0.100", "model", "POST /v1/messages → 200, 0.300 s"],
        ["0.500", "tool", "GET /v1/items/0 → hit 200"],
    ]
    assert shown(Found(calls=lines(call(0))))["moments"] == []


def test_a_trajectory_stands_step_by_step():
    steps = [
        {"step_id": 1, "source": "user", "message": "Refund it."},
        {
            "step_id": 2,
            "source": "agent",
            "message": [{"type": "text", "text": "I look."}, {"type": "image"}],
            "reasoning_content": "hm",
            "tool_calls": [{"function_name": "get_item", "arguments": {"id": 7}}],
            "observation": {"results": [{"content": "socks"}, {"content": None}]},
        },
        "no step",
    ]
    data = json.dumps({"schema_version": "ATIF-v1.8", "steps": steps}).encode()
    found = shown(Found(trajectory=Text(data, len(data))))
    assert found["steps"] == [
        ["1", "user", "Refund it."],
        ["2", "agent", '(thought) hm\nI look.\n[image]\n→ get_item {"id":7}\n← socks\n← '],
    ]
    cut = shown(Found(trajectory=Text(data, len(data))), room=8)["steps"]
    assert cut[-1][2].startswith("… cut here: ")
    for odd in (b"[]", b'{"steps": 5}', b"\xff", b'{"steps": [{"tool_calls": 5, "observation": []}]}'):
        assert shown(Found(trajectory=Text(odd, len(odd))))["steps"] in ([], [["1", "", ""]])
    assert shown(Found(trajectory=Text(data, len(data) + 1)))["steps"] == []


def test_numbers_of_any_size_are_shown():
    assert len(shown(answer={"n": 10**5000})["answer"]) > 5000


def test_facts_tell_what_the_row_knows():
    facts = dict(
        shown(
            exit_reason="timeout", success=0, limit="wall_clock", limit_at_s=30.0, detail="slow", model_calls=2,
            tokens_in=5, models=("m-1",), controls={"temperature": "violated"}, violations=("temperature 1",),
            patch_lines=3, patch_sha256="ab", ignored={"get /x": 2}, tests_changed=("tests/a.py",), agent_exit=1,
        )["facts"]
    )  # fmt: skip
    assert facts["limit"] == "wall_clock after 30 s"
    assert facts["model"] == "m-1: 2 calls, 5 tokens in, uncounted out"
    assert facts["control temperature"] == "violated"
    assert facts["frozen test changed"] == "tests/a.py"
    assert facts["ignored in matching"] == "get /x, in 2 calls"
    assert dict(shown(success=None)["facts"])["success"] == "waits for a human, or was judged by one"


def test_a_page_has_room_for_all_of_few_attempts_and_the_heads_of_many():
    assert episodes.room(1) == episodes.room(90) == 256 << 10
    assert 2000 < episodes.room(10_000) < 3000
    assert episodes.room(10**9) == 512


@pytest.mark.parametrize(
    ("given", "expected"), [(1.0, 1), (1, 1.0), ([2.0], [2]), (-0.0, 0), (0.000001, 1e-6), (True, True)]
)
def test_the_verdict_on_a_member_is_the_oracles(given, expected):
    found = shown(answer={"a": given}, expected=Expected({"a": expected}))
    assert oracle.matches({"a": expected}, {"a": given})
    assert found["expected"]["members"][0][3] == 1
