"""The session as a table of questions and answers: sequences, caps, misses, schema verdicts."""

import base64
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoresheet.documents.task import Call
from scoresheet.documents.tool import Request, Tool
from scoresheet.errors import Malformed
from scoresheet.pack.toolbox import Toolbox
from scoresheet.replay.session import Answer, Capped, Hit, Miss, OnExhausted, Session, Tape
from tests.replay.recordings import JSON, call, call_v1, tape, task, tool

VECTORS = Path(__file__).parent.parent / "vectors"


def ask(body: Any = None, target: str = "/pay", method: str = "POST") -> Request:
    return Request("api", method, target, JSON, b"" if body is None else json.dumps(body).encode())


def text(answer: Answer) -> str:
    assert isinstance(answer, Hit), answer
    return answer.recorded.response().body.decode()


def miss(answer: Answer) -> Miss:
    assert isinstance(answer, Miss), answer
    return answer


# -- sequences (notes/replay 29-42: only the first kept, first for ever, reverse order, shared counters)


def test_v2_plays_one_fingerprint_in_recorded_order_and_then_the_last() -> None:
    session = Session(tape(*(call("POST", "/pay", {"a": 1}, text=name) for name in ("one", "two", "three"))))
    answers = [session.ask(ask({"a": 1})) for _ in range(5)]
    assert [text(answer) for answer in answers] == ["one", "two", "three", "three", "three"]
    assert [answer.repeated for answer in answers if isinstance(answer, Hit)] == [False, False, False, True, True]


def test_an_exhausted_session_still_refuses() -> None:
    session = Session(tape(call("POST", "/pay", {"a": 1}), on_exhausted="refuse"))
    assert text(session.ask(ask({"a": 1}))) == "{}"
    for _ in range(3):
        refused = miss(session.ask(ask({"a": 1})))
        assert (refused.kind, refused.repeated) == ("exhausted", True)
        nearest = refused.nearest()
        assert nearest is not None
        assert nearest.difference == ("recorded 1 time, asked once more",)


def test_v1_answers_every_time_with_the_first_entry() -> None:
    calls = (call_v1("POST", "/pay", {"a": 1}, "first"), call_v1("POST", "/pay", {"a": 1}, "second"))
    session = Session(Tape.of(task(*calls), {}, "tool-replay-v1", "refuse"))
    answers = [session.ask(ask({"a": 1})) for _ in range(4)]
    assert [text(answer) for answer in answers] == ["first"] * 4
    assert [answer.repeated for answer in answers if isinstance(answer, Hit)] == [False, False, True, True]


@pytest.mark.parametrize("recorded", [None, {}])
def test_v1_looks_up_a_request_without_bytes_as_null_then_as_an_empty_object(recorded: Any) -> None:
    session = Session(Tape.of(task(call_v1("GET", "/orders?x=1", recorded, "found")), {}, "tool-replay-v1"))
    assert text(session.ask(Request("", "GET", "/orders?x=1"))) == "found"


def test_v1_prefers_null_when_both_are_recorded() -> None:
    calls = (call_v1("GET", "/o", {}, "object"), call_v1("GET", "/o", None, "null"))
    assert text(Session(Tape.of(task(*calls), {}, "tool-replay-v1")).ask(Request("", "GET", "/o"))) == "null"


def test_v1_misses_a_body_that_is_not_strict_json() -> None:
    session = Session(Tape.of(task(call_v1("POST", "/o", {"a": 1})), {}, "tool-replay-v1"))
    for body in (b'{"a":1,"a":1}', b"NaN", b"a=1", b"\xff"):
        refused = miss(session.ask(Request("", "POST", "/o", JSON, body)))
        assert (refused.kind, refused.fingerprint, refused.nearest()) == ("no_match", "", None)


def test_episodes_on_one_tape_do_not_share_their_place() -> None:
    shared = tape(call("POST", "/pay", {"a": 1}, text="one"), call("POST", "/pay", {"a": 1}, text="two"))
    first, second = Session(shared), Session(shared)
    assert [text(first.ask(ask({"a": 1}))), text(first.ask(ask({"a": 1})))] == ["one", "two"]
    assert text(second.ask(ask({"a": 1}))) == "one"


def test_requests_of_one_path_have_a_counter_each() -> None:
    calls = [call("POST", "/pay", {"a": a}, text=f"{a}{n}") for a in (1, 2) for n in ("x", "y")]
    session = Session(tape(*calls))
    asked = (1, 2, 2, 1)
    assert [text(session.ask(ask({"a": a}))) for a in asked] == ["1x", "2x", "2y", "1y"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 4), max_size=12),
    st.lists(st.integers(0, 5), max_size=24),
    st.sampled_from(["last", "refuse"]),
)
def test_any_recording_and_any_asking_agree_with_a_plain_list(
    recorded: list[int], asked: list[int], on_exhausted: OnExhausted
) -> None:
    calls = [call("POST", "/pay", {"a": a}, text=str(place)) for place, a in enumerate(recorded)]
    session = Session(tape(*calls, on_exhausted=on_exhausted))
    for place, a in enumerate(asked):
        entries = [str(at) for at, was in enumerate(recorded) if was == a]
        nth = asked[:place].count(a)
        answer = session.ask(ask({"a": a}))
        if not entries:
            assert miss(answer).kind == "no_match"
        elif nth < len(entries):
            assert text(answer) == entries[nth]
        elif on_exhausted == "refuse":
            assert miss(answer).kind == "exhausted"
        else:
            assert text(answer) == entries[-1]
            assert isinstance(answer, Hit)
            assert answer.repeated


def test_threads_never_get_one_place_twice() -> None:
    count, workers = 4000, 4
    session = Session(tape(*(call("POST", "/pay", {"a": 1}, text=str(n)) for n in range(count)), on_exhausted="refuse"))
    looked = session.tape.look(ask({"a": 1}))
    got: list[list[str]] = [[] for _ in range(workers)]

    def work(mine: list[str]) -> None:
        mine.extend(text(session.take(looked)) for _ in range(count // workers))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(one) for mine in got for one in mine) == list(range(count))
    assert miss(session.take(looked)).kind == "exhausted"


# -- the cap


def test_one_call_more_than_the_cap_is_not_answered_whatever_it_asks() -> None:
    session = Session(tape(call("POST", "/pay", {"a": 1})), max_tool_calls=2)
    assert text(session.ask(ask({"a": 1}))) == "{}"
    assert miss(session.ask(ask({"a": 2}))).kind == "no_match"
    assert isinstance(session.ask(ask({"a": 1})), Capped)
    assert isinstance(session.call("nothing", b""), Capped)


def test_a_cap_of_zero_answers_nothing() -> None:
    assert isinstance(Session(tape(call("POST", "/pay", {"a": 1})), 0).ask(ask({"a": 1})), Capped)


# -- which recording answers (vectors/request_pairs_v2.json)


def pairs() -> list[Any]:
    return list(json.loads((VECTORS / "request_pairs_v2.json").read_text()))


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: pair["name"])
def test_a_recording_answers_exactly_the_requests_that_mean_the_same(pair: Any) -> None:
    types = pair["content_type"].split("|")

    def request(side: str, media: str) -> Request:
        one = pair[side]
        headers = (("Content-Type", media),) if media else ()
        return Request("api", one["method"], one["target"], headers, base64.b64decode(one.get("body_base64") or ""))

    recorded, asked = request("a", types[0]), request("b", types[-1])
    path, mark, query = recorded.target.partition("?")
    copy = {
        "query": query if mark else None,
        "headers": recorded.headers,
        "body_base64": base64.b64encode(recorded.body).decode(),
    }
    session = Session(tape(call(recorded.method, path, request=copy)))
    assert text(session.ask(recorded)) == "{}"
    answer = session.ask(asked)
    if pair["expect"] == "same":
        assert text(answer) == "{}"
    else:
        nearest = miss(answer).nearest()
        assert nearest is not None
        assert nearest.difference


# -- the nearest recording


def near(recorded: Call, asked: Request) -> tuple[str, ...]:
    nearest = miss(Session(tape(recorded)).ask(asked)).nearest()
    assert nearest is not None
    return nearest.difference


def test_a_miss_names_the_members_that_differ() -> None:
    recorded = call("POST", "/pay", {"amount": 12, "to": {"a/b": [1, 2]}, "old": None})
    asked = ask({"amount": 13, "to": {"a/b": [1, 3, 4]}, "new": True})
    assert near(recorded, asked) == (
        "body /amount: recorded 12, asked 13",
        "body /new: recorded nothing, asked true",
        "body /old: recorded null, asked nothing",
        "body /to/a~1b/1: recorded 2, asked 3",
        "body /to/a~1b: recorded 2 items, asked 3",
    )


def test_a_miss_names_query_path_method_and_kind_of_body() -> None:
    recorded = call("GET", "/orders", query="page=1&tag=a&tag=b&flag")
    assert near(recorded, Request("api", "GET", "/orders?page=2&tag=a&flag=")) == (
        'query flag: recorded no value, asked ""',
        'query page: recorded "1", asked "2"',
        'query tag: recorded "a", "b", asked "a"',
    )
    assert near(recorded, Request("api", "GET", "/orders/7?page=1&tag=a&tag=b&flag")) == (
        'path: recorded "/orders", asked "/orders/7"',
    )
    assert near(recorded, Request("api", "HEAD", "/orders?page=1&tag=a&tag=b&flag"))[0] == (
        'method: recorded "GET", asked "HEAD"'
    )
    assert near(call("POST", "/pay", {}), Request("api", "POST", "/pay", (), b"x")) == (
        "body: recorded JSON, asked bytes that are not JSON",
    )


def test_one_and_true_differ_and_one_and_one_point_zero_do_not() -> None:
    recorded = call("POST", "/pay", {"a": 1, "b": 1})
    asked = Request("api", "POST", "/pay", JSON, b'{"a":1.0,"b":true}')
    assert near(recorded, asked) == ("body /b: recorded 1, asked true",)


def test_the_nearest_of_many_is_the_one_with_fewest_differences() -> None:
    calls = [call("POST", "/pay", {"amount": n, "currency": "eur", "to": n}) for n in range(500)]
    nearest = miss(Session(tape(*calls)).ask(ask({"amount": 250, "currency": "usd", "to": 250}))).nearest()
    assert nearest is not None
    assert nearest.difference == ('body /currency: recorded "eur", asked "usd"',)


def test_a_miss_in_a_long_task_stays_quick() -> None:
    recorded = [call("POST", f"/orders/{n}", {"n": n}) for n in range(200)]
    same_place = [call("POST", "/rpc", {"n": 1, "m": 0})]
    big = tape(
        *recorded,
        *(
            one.model_copy(update={"request_fingerprint": f"sha256:{n:064x}"})
            for one in same_place
            for n in range(20_000)
        ),
    )
    session = Session(big)
    assert miss(session.ask(ask({"n": 9}, "/rpc"))).nearest() is not None  # builds the index of the group
    start = time.process_time()
    for n in range(10):
        assert miss(session.ask(ask({"n": n}, "/rpc"))).nearest() is not None
        assert miss(session.ask(ask({"n": n}, f"/orders/9{n}x"))).nearest() is not None
    assert time.process_time() - start < 10


def test_a_tape_without_readable_requests_has_no_nearest() -> None:
    assert miss(Session(Tape.of(task(call_v1("GET", "/a", None)), {}, "tool-replay-v1")).ask(ask())).nearest() is None
    assert miss(Session(tape()).ask(ask())).nearest() is None


@settings(max_examples=80, deadline=None)
@given(
    st.binary(max_size=60),
    st.sampled_from(["application/json", "application/x-www-form-urlencoded", "", "multipart/form-data; boundary=x"]),
)
def test_any_miss_can_be_explained(body: bytes, media: str) -> None:
    recorded = call("POST", "/pay", request={"body_text": "a=1", "headers": (("content-type", media),)})
    answer = Session(tape(recorded)).ask(Request("api", "POST", "/pay", (("content-type", media),), body))
    if isinstance(answer, Miss):
        nearest = answer.nearest()
        assert nearest is not None
        assert nearest.difference


# -- tools and schemas

PAY = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


def test_a_recorded_call_that_breaks_its_schema_is_a_hit_all_the_same() -> None:
    pay = tool("pay", PAY, method="POST", path="/pay")
    answer = Session(tape(call("POST", "/pay", {"amount": "12"}), tools=(pay,))).ask(ask({"amount": "12"}))
    assert text(answer) == "{}"
    assert answer.verdict.tool == "pay"
    assert answer.verdict.errors == ('pay: /amount: "12" is not of type "integer"',)


def test_a_valid_call_has_no_schema_errors() -> None:
    pay = tool("pay", PAY, method="POST", path="/pay")
    answer = Session(tape(call("POST", "/pay", {"amount": 12}), tools=(pay,))).ask(ask({"amount": 12}))
    assert (answer.verdict.tool, answer.verdict.errors) == ("pay", ())


def test_path_and_query_are_checked_as_the_schema_types_them() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "full": {"type": "boolean"}},
        "additionalProperties": False,
    }
    get = tool("get_order", schema, method="GET", path="/orders/{id}")
    session = Session(tape(call("GET", "/orders/7", query="full=true"), call("GET", "/orders/x"), tools=(get,)))
    assert session.ask(Request("api", "GET", "/orders/7?full=true")).verdict.errors == ()
    assert session.ask(Request("api", "GET", "/orders/x")).verdict.errors == (
        'get_order: /id: "x" is not of type "integer"',
    )


def test_a_hit_on_a_tool_that_the_task_does_not_offer_is_a_schema_error() -> None:
    pay, void = tool("pay", PAY, method="POST", path="/pay"), tool("void", {}, method="POST", path="/void")
    session = Session(tape(call("POST", "/void", {}), call("GET", "/x"), tools=(pay, void), offered=("pay",)))
    assert session.ask(ask({}, "/void")).verdict.errors == ("void: the task does not offer this tool",)
    assert session.ask(Request("api", "GET", "/x")).verdict.errors == ("GET /x: no offered tool takes this request",)


def test_tools_of_v1_without_a_file_are_named_as_unchecked() -> None:
    pay = Tool.model_validate({"name": "pay", "inputSchema": PAY})  # a file, but no http: v1 can't tell its calls
    tape_v1 = Tape.of(task(call_v1("POST", "/pay", {}), tools=("pay", "void")), {"pay": pay}, "tool-replay-v1")
    assert tape_v1.schema_unchecked == ("pay", "void")
    answer = Session(tape_v1).ask(Request("", "POST", "/pay", JSON, b"{}"))
    assert (answer.verdict.tool, answer.verdict.errors) == (None, ())


def test_v1_tools_with_http_are_checked() -> None:
    pay = tool("pay", PAY, method="POST", path="/pay")
    tape_v1 = Tape.of(task(call_v1("POST", "/pay", {}), tools=("pay",)), {"pay": pay}, "tool-replay-v1")
    assert tape_v1.schema_unchecked == ()
    assert Session(tape_v1).ask(ask({})).verdict.errors == ('pay: (whole): "amount" is a required property',)


def test_ignored_members_and_named_headers_decide_as_the_tool_says() -> None:
    members = {"name": "pay", "http": {"upstream": "api", "method": "POST", "path": "/pay", "vary": ["x-tenant"]}}
    pay = Tool.model_validate(members | {"ignore": ["/json/at"]})
    box = Toolbox((pay,))
    recorded = call("POST", "/pay", {"a": 1, "at": 1}, request={"headers": (*JSON, ("X-Tenant", "red"))}, toolbox=box)
    session = Session(Tape.of(task(recorded, tools=("pay",)), box))
    red, blue = (
        Request("api", "POST", "/pay", (*JSON, ("x-tenant", who)), b'{"at":2,"a":1}') for who in ("red", "blue")
    )
    assert text(session.ask(red)) == "{}"
    assert session.ask(red).verdict.ignored == ("/json/at",)
    assert session.ask(replace(red, body=b'{"a":1}')).verdict.ignored == ()
    nearest = miss(session.ask(blue)).nearest()
    assert nearest is not None
    assert nearest.difference == ('header x-tenant: recorded "red", asked "blue"',)


def test_a_call_by_name_is_the_request_that_the_tool_makes() -> None:
    get = tool("get", {"type": "object"}, method="GET", path="/orders/{id}")
    pay = tool("pay", PAY, method="POST", path="/pay")
    session = Session(
        tape(call("GET", "/orders/a%2Fb", query="x=1"), call("POST", "/pay", {"amount": 1}), tools=(get, pay))
    )
    assert text(session.call("get", b'{"id":"a/b","x":1}')) == "{}"
    assert text(session.call("pay", b' {"amount": 1.0} ')) == "{}"
    assert session.call("pay", b'{"amount":1}').verdict.tool == "pay"


def test_a_tool_without_http_is_recorded_as_call() -> None:
    add = tool("add", {"type": "object", "required": ["a"]})
    session = Session(tape(call("CALL", "add", {"a": 1}, upstream="", text="2"), tools=(add,)))
    assert text(session.call("add", b'{"a":1}')) == "2"
    refused = miss(session.call("add", b"{}"))
    assert (refused.kind, refused.verdict.errors) == ("no_match", ('add: (whole): "a" is a required property',))


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "says"),
    [
        ("nope", b"{}", "unknown_tool", "the task offers no such tool"),
        ("add", b'{"a":1,"a":2}', "no_match", "not strict JSON"),
        ("add", b'{"a":NaN}', "no_match", "not strict JSON"),
        ("add", b"\xff", "no_match", "not strict JSON"),
        ("add", b"[1]", "no_match", "must be a JSON object"),
        ("get", b"{}", "no_match", "'id'"),
    ],
)
def test_a_call_by_name_that_can_not_be_made_is_a_miss_with_its_reason(
    name: str, arguments: bytes, kind: str, says: str
) -> None:
    tools = (tool("add"), tool("get", None, method="GET", path="/o/{id}"))
    refused = miss(Session(tape(tools=tools)).call(name, arguments))
    assert refused.kind == kind
    assert says in refused.verdict.errors[0]


def test_a_schema_that_refers_outside_itself_is_refused_and_nothing_is_fetched() -> None:
    with pytest.raises(Malformed, match="nothing is fetched"):
        tape(tools=(tool("pay", {"$ref": "http://127.0.0.1:9/schema.json"}),))
    with pytest.raises(Malformed, match="inputSchema"):
        tape(tools=(tool("pay", {"type": "nope"}),))


def test_the_price_of_a_request_does_not_grow_with_the_tape() -> None:
    one = call("POST", "/pay", {"a": 1})
    others = tuple(one.model_copy(update={"request_fingerprint": f"sha256:{n:064x}"}) for n in range(50_000))

    def price(session: Session) -> float:
        best = 9.0
        for _ in range(7):
            start = time.process_time()
            for _ in range(300):
                session.ask(ask({"a": 1}))
            best = min(best, time.process_time() - start)
        return best

    assert price(Session(tape(one, *others))) < 20 * price(Session(tape(one)))


# -- states of scenarios

ORDER = {"order": ("open", "cancelled")}


def stated(path: str, text: str, method: str = "GET", status: int = 200, **state: str) -> Call:
    return call(method, path, text=text, status=status, state={"scenario": "order", **state} if state else None)


CANCEL = (
    stated("/orders/17", "open", requires="open"),
    stated("/orders/17/cancel", "done", "POST", requires="open", sets="cancelled"),
    stated("/orders/17", "cancelled", requires="cancelled"),
    stated("/orders/17/cancel", "twice", "POST", 409, requires="cancelled"),
)


def scenario(*calls: Call, on_exhausted: OnExhausted = "last", **scenarios: tuple[str, ...]) -> Tape:
    made = task(*calls).model_copy(update={"scenarios": scenarios or ORDER})
    return Tape.of(made, {}, "tool-replay-v2", on_exhausted)


def to(path: str, method: str = "GET") -> Request:
    return Request("api", method, path)


def test_a_read_is_answered_by_the_state_that_the_last_write_left_however_often_it_is_asked() -> None:
    session = Session(scenario(*CANCEL))
    assert [text(session.ask(to("/orders/17"))) for _ in range(3)] == ["open"] * 3
    assert text(session.ask(to("/orders/17/cancel", "POST"))) == "done"
    assert [text(session.ask(to("/orders/17"))) for _ in range(3)] == ["cancelled"] * 3
    assert text(session.ask(to("/orders/17/cancel", "POST"))) == "twice"


def test_each_episode_begins_in_the_first_state() -> None:
    shared = scenario(*CANCEL)
    first = Session(shared)
    first.ask(to("/orders/17/cancel", "POST"))
    assert text(Session(shared).ask(to("/orders/17"))) == "open"
    assert text(first.ask(to("/orders/17"))) == "cancelled"


def test_a_call_that_was_recorded_in_another_state_is_a_miss_that_names_both() -> None:
    session = Session(scenario(*CANCEL[1:]))
    refused = miss(session.ask(to("/orders/17")))
    assert (refused.kind, refused.states, refused.repeated) == ("wrong_state", (("order", "open"),), False)
    nearest = refused.nearest()
    assert nearest is not None
    assert nearest.difference == ("state order: recorded in cancelled, asked in open",)
    session.ask(to("/orders/17/cancel", "POST"))
    assert text(session.ask(to("/orders/17"))) == "cancelled"


def test_any_miss_says_in_which_state_the_episode_was() -> None:
    session = Session(scenario(*CANCEL, on_exhausted="refuse"))
    session.ask(to("/orders/17/cancel", "POST"))
    assert miss(session.ask(to("/orders/18"))).states == (("order", "cancelled"),)
    session.ask(to("/orders/17"))
    again = miss(session.ask(to("/orders/17")))
    assert (again.kind, again.states) == ("exhausted", (("order", "cancelled"),))
    nearest = again.nearest()
    assert nearest is not None
    assert nearest.difference == ("recorded 1 time in the state cancelled of order, asked once more",)


def test_calls_of_one_state_are_a_sequence_and_the_last_may_lead_on() -> None:
    polls = [stated("/job", name, requires="queued") for name in ("queued", "running")]
    session = Session(
        scenario(
            *polls,
            stated("/job", "done", requires="queued", sets="ready"),
            stated("/result", "none", status=404, requires="queued"),
            stated("/result", "42", requires="ready"),
            stated("/job", "done", requires="ready"),
            order=("queued", "ready"),
        )
    )
    seen = [text(session.ask(to(path))) for path in ("/job", "/result", "/job", "/result", "/job", "/result", "/job")]
    assert seen == ["queued", "none", "running", "none", "done", "42", "done"]


def test_what_requires_nothing_answers_in_every_state_that_no_other_requires() -> None:
    session = Session(scenario(stated("/a", "any"), stated("/a", "late", requires="cancelled"), *CANCEL))
    assert text(session.ask(to("/a"))) == "any"
    session.ask(to("/orders/17/cancel", "POST"))
    assert text(session.ask(to("/a"))) == "late"


def test_states_go_round_and_their_sequences_go_on() -> None:
    session = Session(
        scenario(
            stated("/lamp", "on", "POST", requires="off", sets="on"),
            stated("/lamp", "off", "POST", requires="on", sets="off"),
            stated("/look", "dark", requires="off"),
            stated("/look", "dark again", requires="off"),
            stated("/look", "bright", requires="on"),
            order=("off", "on"),
        )
    )
    seen = []
    for _ in range(3):
        seen.append(text(session.ask(to("/look"))))
        session.ask(to("/lamp", "POST"))
    assert seen == ["dark", "bright", "dark again"]


def test_two_scenarios_do_not_move_each_other() -> None:
    def of(name: str, path: str, **state: str) -> Call:
        return call("POST", path, text=state["requires"], state={"scenario": name, **state})

    session = Session(
        scenario(
            of("a", "/a", requires="1", sets="2"),
            of("a", "/a", requires="2"),
            of("b", "/b", requires="1", sets="2"),
            of("b", "/b", requires="2"),
            a=("1", "2"),
            b=("1", "2"),
        )
    )
    assert [text(session.ask(to(path, "POST"))) for path in ("/a", "/b", "/a", "/b")] == ["1", "1", "2", "2"]


def test_a_capped_call_moves_no_state() -> None:
    session = Session(scenario(*CANCEL), max_tool_calls=0)
    assert isinstance(session.ask(to("/orders/17/cancel", "POST")), Capped)
    session.max_tool_calls = None
    assert text(session.ask(to("/orders/17"))) == "open"


def test_threads_with_a_lock_make_one_write_once() -> None:
    for _ in range(20):
        session = Session(scenario(*CANCEL), turns=threading.Lock())
        looked = session.tape.look(to("/orders/17/cancel", "POST"))
        got: list[str] = []
        start = threading.Barrier(8)

        def work(session: Session = session, looked: Any = looked, start: Any = start, got: list[str] = got) -> None:
            start.wait()
            got.append(text(session.take(looked)))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == ["done"] + ["twice"] * 7


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["", "a", "b", "c"]), st.sampled_from(["", "a", "b", "c"])),
        max_size=10,
    ),
    st.lists(st.integers(0, 3), max_size=20),
    st.sampled_from(["last", "refuse"]),
)
def test_any_scenario_and_any_asking_agree_with_a_plain_list(
    recorded: list[tuple[int, str, str]], asked: list[int], on_exhausted: OnExhausted
) -> None:
    def state(requires: str, sets: str) -> dict[str, Any]:
        return {name: value for name, value in (("requires", requires), ("sets", sets)) if value}

    calls = [
        stated(f"/{path}", str(place), "POST", **state(requires, sets))
        for place, (path, requires, sets) in enumerate(recorded)
    ]
    session = Session(scenario(*calls, on_exhausted=on_exhausted, order=("a", "b", "c")))
    now, taken = "a", dict[tuple[int, str], int]()
    for path in asked:
        mine = [(place, each) for place, each in enumerate(recorded) if each[0] == path]
        here = [(place, each) for place, each in mine if each[1] == now]
        entries = here or [(place, each) for place, each in mine if not each[1]]
        answer = session.ask(to(f"/{path}", "POST"))
        if not entries:
            assert miss(answer).kind == ("wrong_state" if mine else "no_match")
            assert miss(answer).states == (("order", now),)
            continue
        key = (path, now if here else "")
        nth = taken[key] = taken.get(key, -1) + 1
        if nth >= len(entries) and on_exhausted == "refuse":
            assert miss(answer).kind == "exhausted"
            continue
        place, entry = entries[min(nth, len(entries) - 1)]
        assert text(answer) == str(place)
        now = entry[2] or now
