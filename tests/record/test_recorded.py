import json
from dataclasses import replace

import pytest

from scoresheet import canonical, digest
from scoresheet.documents.task import Task
from scoresheet.documents.tool import Request, Response
from scoresheet.errors import Refused
from scoresheet.pack import fingerprint
from scoresheet.record.exchange import Exchange
from scoresheet.record.recorded import Draft, add
from scoresheet.record.redact import redact

JSON = ("Content-Type", "application/json")


def exchange(method="GET", target="/a", headers=(), body=b"", **more):
    return Exchange(Request("API", method, target, headers, body), Response(200, (JSON,), b"{}", 1.5, **more))


def draft(*exchanges, task_id="t", **more):
    return Draft(task_id, "Do it.", {"x": 1}, exchanges, redact(exchanges), {"API": "api.example.com"}, **more)


def recorded(*drafts, files=None):
    pack = dict(files or {})
    for each in drafts:
        for path, data in add(each, pack).files.items():
            if data is None:
                del pack[path]
            else:
                pack[path] = data
    return pack


def task(pack, task_id="t"):
    return Task.from_bytes(pack[f"tasks/{task_id}.json"], task_id)


@pytest.mark.parametrize(
    ("headers", "body", "member"),
    [
        ((), b"", None),
        ((JSON,), b'{"b": 1.50, "a": [12345678901234567890, null]}', "body"),
        ((JSON,), b"null", "body"),
        ((JSON,), b'{"a": 1, "a": 2}', "body_text"),
        ((JSON,), b"{broken", "body_text"),
        ((JSON, ("Content-Encoding", "gzip")), b"not gzip, but text", "body_text"),
        ((), b'{"a": 1}', "body_text"),
        ((("Content-Type", "text/plain"),), b"hi\r\n", "body_text"),
        ((("Content-Type", "image/png"),), b"\x89PNG\xff", "body_base64"),
    ],
)
def test_the_copy_of_a_request_has_its_fingerprint(headers, body, member):
    sent = exchange("POST", "/a?q=%2B+x&flag", headers, body)
    kept = Draft("t", "p", {"x": 1}, (sent,), replace(redact([exchange()]), exchanges=(sent,)), {})
    (call,) = task(recorded(kept)).calls
    assert call.request is not None
    assert call.request_fingerprint == fingerprint.v2(sent.request) == fingerprint.v2(call.request.as_request())
    given = call.request.model_fields_set & {"body", "body_text", "body_base64"}
    assert given == ({member} if member else set())


def test_answers_are_kept_as_text_or_base64_with_faults_and_boundaries():
    pack = recorded(
        draft(
            Exchange(Request("API", "GET", "/t"), Response(200, (("A", "1"), ("a", "2")), "é\r\n".encode(), 1.25)),
            Exchange(Request("API", "GET", "/b"), Response(500, (), b"\xff\x00", 2.0, None, (1, 2))),
            Exchange(Request("API", "GET", "/f"), Response(0, (), b"", 3.0, "connection_reset")),
        )
    )
    text, binary, fault = (call.response() for call in task(pack).calls)
    assert text == Response(200, (("A", "1"), ("a", "2")), "é\r\n".encode(), 1.25)
    assert binary == Response(500, (), b"\xff\x00", 2.0, None, (1, 2))
    assert fault == Response(0, (), b"", 3.0, "connection_reset")


def test_a_repeated_call_keeps_its_place_in_the_sequence():
    pack = recorded(draft(exchange(), exchange(target="/b"), exchange()))
    prints = [call.request_fingerprint for call in task(pack).calls]
    assert prints[0] == prints[2] != prints[1]


def test_a_member_ignored_later_brings_earlier_tasks_up_to_date():
    login = (JSON,)
    first = draft(exchange("POST", "/s", login, b'{"q": 1, "memo": "x"}'), task_id="one")
    secret = "q7" + "Ab3" * 8
    second = draft(
        exchange("GET", "/x", (("Authorization", f"Bearer {secret}"),)),
        exchange("POST", "/s", login, json.dumps({"q": 1, "memo": secret}).encode()),
        task_id="two",
    )
    pack = recorded(first, second)
    prints = [task(pack, "one").calls[0].request_fingerprint, task(pack, "two").calls[1].request_fingerprint]
    assert prints[0] == prints[1]
    assert json.loads(pack["tools/post_s.json"])["ignore"] == ["/json/memo"]


def test_a_pack_does_not_depend_on_the_order_of_its_tasks():
    drafts = [
        draft(exchange(target="/orders/17")),
        draft(exchange(target="/orders/18?expand=x"), task_id="u"),
        draft(exchange("POST", "/orders", (JSON,), b'{"n": 1}'), exchange(target="/orders/19"), task_id="v"),
    ]
    assert recorded(*drafts) == recorded(*reversed(drafts))


def test_recording_into_a_pack_leaves_what_it_need_not_touch():
    pack = recorded(draft(exchange()))
    value = canonical.as_object(canonical.loads(pack["tasks/t.json"]))
    pack["tasks/t.json"] = json.dumps(value | {"note": "mine"}).encode()
    pack["manifest.json"] = b'{"protocol":"tool-replay-v2","tasks":{},"seed":7,"upstreams":{"OLD":"o"}}'
    changes = add(draft(exchange(target="/other"), task_id="u"), pack)
    assert sorted(changes.files) == ["manifest.json", "tasks/u.json", "tools/get_other.json"]
    manifest = json.loads(changes.files["manifest.json"] or b"")
    assert (manifest["seed"], manifest["upstreams"]) == (7, {"OLD": "o", "API": "api.example.com"})


def test_members_of_a_task_that_nobody_knows_survive_a_change_of_its_tools():
    pack = recorded(draft(exchange(target="/orders/1")))
    value = canonical.as_object(canonical.loads(pack["tasks/t.json"]))
    pack["tasks/t.json"] = canonical.pretty(value | {"note": "mine"})
    after = recorded(draft(exchange(target="/orders/2?x=1"), task_id="u"), files=pack)
    assert json.loads(after["tasks/t.json"])["note"] == "mine"


def test_one_id_is_one_task():
    pack = recorded(draft(exchange()))
    with pytest.raises(Refused, match="recorded already"):
        add(draft(exchange()), pack)
    assert add(draft(exchange(target="/z")), pack, replace=True).files["tools/get_a.json"] is None
    with pytest.raises(Refused, match="another file"):
        add(draft(exchange()), {"tasks/other.json": pack["tasks/t.json"]})
    with pytest.raises(Refused, match="another file"):
        add(draft(exchange()), {"t.json": b"{}"})


def test_a_recording_that_would_not_answer_itself_is_refused():
    clean = exchange("POST", "/s", (JSON,), b'{"q": 2}')
    lying = draft(clean)
    with pytest.raises(Refused) as caught:
        add(Draft("t", "p", {}, (exchange("POST", "/s", (JSON,), b'{"q": 1}'),), lying.redaction, {}), {})
    assert [finding.rule for finding in caught.value.findings] == ["record-round-trip"]


def appended(pack, one, path="tasks/t.json"):
    from scoresheet.record.recorded import append

    changes = append(path, one, redact([one]), pack, {"API": "api.example.com", "NEW": "new.example.com"})
    return pack | {place: data for place, data in changes.files.items() if data is not None}, changes


def test_a_call_that_is_added_leaves_the_others_as_they_are():
    pack = recorded(draft(exchange(target="/orders/17"), exchange("POST", "/pay", (JSON,), b'{"a": 1}')))
    value = json.loads(pack["tasks/t.json"])
    value["calls"][0]["mine"] = {"kept": True}
    value["scenarios"] = {"order": ["open", "paid"]}
    value["calls"][1]["state"] = {"scenario": "order", "sets": "paid"}
    pack["tasks/t.json"] = canonical.pretty(value)
    after, changes = appended(pack, exchange(target="/orders/18"))
    added = json.loads(after["tasks/t.json"])
    assert added["calls"][:2] == value["calls"]
    assert added["calls"][2]["request"]["path"] == "/orders/18"
    assert {name: added[name] for name in value if name not in ("calls", "tools")} == {
        name: value[name] for name in value if name not in ("calls", "tools")
    }
    assert changes.tools == ("get_orders_by_order_id",)
    assert json.loads(after["manifest.json"])["upstreams"] == {"API": "api.example.com", "NEW": "new.example.com"}


def test_a_call_that_is_added_brings_its_tool_and_widens_the_one_it_shares():
    pack = recorded(draft(exchange(target="/orders/17")), draft(exchange(target="/orders/18"), task_id="other"))
    after, _ = appended(pack, exchange(target="/stock?all=true"))
    names = [reference["name"] for reference in json.loads(after["tasks/t.json"])["tools"]]
    assert names == ["get_orders_by_order_id", "get_stock"]
    again, changes = appended(after, exchange(target="/stock?all=true&page=2"))
    assert json.loads(again["tools/get_stock.json"])["inputSchema"]["properties"].keys() == {"all", "page"}
    assert "tasks/other.json" not in changes.files
    for name, data in ((name, json.loads(again["tasks/t.json"])["tools"]) for name in ("get_stock",)):
        (reference,) = (each for each in data if each["name"] == name)
        assert reference["schema_sha256"] == "sha256:" + digest.of(again[f"tools/{name}.json"])
