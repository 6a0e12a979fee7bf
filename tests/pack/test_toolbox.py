"""From a tool's arguments to its request, and back."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.canonical import jcs
from scoresheet.documents.tool import Request, Tool
from scoresheet.errors import Malformed
from scoresheet.pack import fingerprint
from scoresheet.pack.toolbox import Toolbox
from tests.strategies import json_objects, text


def tool(name, method="GET", path="/", properties=None, upstream="API", **more):
    schema = {"type": "object", "properties": properties or {}}
    binding = {"upstream": upstream, "method": method, "path": path}
    binding |= {"vary": more.pop("vary")} if "vary" in more else {}
    return Tool.from_value({"name": name, "inputSchema": schema, "http": binding} | more, name)


ORDER = {
    "order_id": {"type": "string"},
    "n": {"type": "integer"},
    "tags": {"type": "array", "items": {"type": "number"}},
}
LIST = tool("orders_list", "GET", "/orders", ORDER)
GET = tool("orders_get", "get", "/orders/{order_id}", ORDER, vary=["accept"], ignore=["/query/key"])
LATEST = tool("orders_latest", "GET", "/orders/latest")
FILE = tool("orders_file", "GET", "/orders/{order_id}/{name}.pdf")
MAKE = tool("orders_make", "POST", "/orders", ORDER)
CANCEL = tool("orders_cancel", "POST", "/orders/{order_id}/cancel", {"order_id": {"type": "string"}})
CALL = Tool.from_value({"name": "search", "ignore": ["/json/trace"]}, "search")
BOX = Toolbox([LIST, GET, LATEST, FILE, MAKE, CANCEL, CALL])


@pytest.mark.parametrize(
    ("used", "arguments", "method", "target", "body"),
    [
        (GET, {"order_id": "a/b c", "n": 2.0}, "GET", "/orders/a%2Fb%20c?n=2", b""),
        (GET, {"order_id": "1", "tags": [1, 2.5]}, "GET", "/orders/1?tags=1&tags=2.5", b""),
        (LIST, {}, "GET", "/orders", b""),
        (LIST, {"q": "a&b=c", "flag": None, "ok": True}, "GET", "/orders?q=a%26b%3Dc&flag&ok=true", b""),
        (MAKE, {"b": [1.0], "a": {}}, "POST", "/orders", b'{"a":{},"b":[1]}'),
        (MAKE, {}, "POST", "/orders", b"{}"),
        (CANCEL, {"order_id": "7"}, "POST", "/orders/7/cancel", b""),
        (CALL, {"q": "é"}, "CALL", "search", '{"q":"é"}'.encode()),
    ],
)
def test_arguments_go_to_path_query_or_body(used, arguments, method, target, body):
    made = BOX.request_for(used, arguments)
    assert (made.method, made.target, made.body) == (method, target, body)
    assert made.upstream == ("" if used is CALL else "API")


def test_an_argument_of_the_path_can_not_be_missing():
    with pytest.raises(Malformed, match="order_id"):
        BOX.request_for(GET, {"n": 1})


@pytest.mark.parametrize(
    ("request_", "name", "arguments"),
    [
        (
            Request("API", "GET", "/orders/a%2Fb?n=3&tags=1&tags=2.5"),
            "orders_get",
            {"order_id": "a/b", "n": 3, "tags": [1, 2.5]},
        ),
        (Request("API", "GET", "/orders/latest"), "orders_latest", {}),
        (Request("API", "get", "/%6Frders/l%61test"), "orders_latest", {}),
        (Request("API", "GET", "/orders/7/x.pdf"), "orders_file", {"order_id": "7", "name": "x"}),
        (Request("API", "GET", "/orders/7?n=x"), "orders_get", {"order_id": "7", "n": "x"}),
        (Request("API", "GET", "/orders/7?n=1&n=2"), "orders_get", {"order_id": "7", "n": [1, 2]}),
        (Request("API", "GET", "/orders/7?tags=1"), "orders_get", {"order_id": "7", "tags": [1]}),
        (Request("", "GET", "/orders/7"), "orders_get", {"order_id": "7"}),
        (Request("", "CALL", "search", (), b'{"q":1}'), "search", {"q": 1}),
        (Request("", "CALL", "search"), "search", {}),
        (Request("", "CALL", "search", (), b"{"), "search", None),
        (
            Request("API", "POST", "/orders", (("Content-Type", "application/json"),), b'{"n":"1"}'),
            "orders_make",
            {"n": "1"},
        ),
        (Request("API", "POST", "/orders", (("Content-Type", "application/json"),), b"[1]"), "orders_make", [1]),
        (Request("API", "POST", "/orders", (("Content-Type", "text/plain"),), b"x"), "orders_make", None),
        (
            Request("API", "POST", "/orders", (("Content-Type", "application/x-www-form-urlencoded"),), b"n=1&q=a+b"),
            "orders_make",
            {"n": 1, "q": "a b"},
        ),
    ],
)
def test_a_request_names_its_tool_and_arguments(request_, name, arguments):
    found = BOX.find(request_)
    assert found is not None
    assert (found[0].name, found[1]) == (name, arguments)


@pytest.mark.parametrize(
    "request_",
    [
        Request("API", "GET", "/orders/7/"),
        Request("API", "GET", "/orders//x.pdf"),
        Request("API", "GET", "//orders"),
        Request("API", "PUT", "/orders"),
        Request("OTHER", "GET", "/orders"),
        Request("API", "GET", "orders"),
        Request("", "CALL", "orders"),
        Request("API", "CALL", "search"),
    ],
)
def test_a_request_that_fits_no_template_calls_no_tool(request_):
    assert BOX.find(request_) is None
    assert BOX.rules_for(request_) == (None, (), ())


def test_the_rules_of_a_request_are_its_tools():
    assert BOX.rules_for(Request("API", "GET", "/orders/7?key=1")) == (GET, ("accept",), ("/query/key",))
    assert BOX.rules_for(Request("", "CALL", "search")) == (CALL, (), ("/json/trace",))


@given(text.filter(bool), st.integers(), st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False)))
def test_arguments_survive_the_way_there_and_back(order_id, n, tags):
    arguments = {"order_id": order_id, "n": n} | ({"tags": tags} if tags else {})
    found = BOX.find(BOX.request_for(GET, arguments))
    if order_id in ("latest",):
        return
    assert found is not None
    assert (found[0], jcs(found[1])) == (GET, jcs(arguments))


@given(json_objects)
def test_a_body_survives_the_way_there_and_back(arguments):
    for used in (MAKE, CALL):
        found = BOX.find(BOX.request_for(used, arguments))
        assert found is not None
        assert (found[0], jcs(found[1])) == (used, jcs(arguments))  # a large double reads back as an integer


@given(json_objects)
def test_a_call_by_arguments_has_the_fingerprint_of_the_http_request(arguments):
    made = BOX.request_for(MAKE, arguments)
    assert fingerprint.v2(made) == fingerprint.v2(
        Request("API", "POST", "/orders", (("content-type", "application/json; charset=utf-8"),), made.body)
    )


@pytest.mark.parametrize(
    ("schema", "sent", "value"),
    [
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "1", "1"),
        ({"type": ["integer", "null"]}, "", None),
        ({"type": ["integer", "string"]}, "7", 7),
        ({"type": "string"}, "7", "7"),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "number"}, "0x1", "0x1"),
        ({"type": "integer"}, "01", "01"),
        ({"type": "integer"}, "9007199254740993", 9007199254740993),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "7", 7),
        ({"enum": [1, 2]}, "2", 2),
        ({"$ref": "#/$defs/count"}, "7", 7),
        ({"$ref": "#/$defs/ring"}, "7", "7"),
        ({"type": "object"}, '{"a":1}', {"a": 1}),
        ({}, "7", "7"),
        (True, "7", "7"),
    ],
)
def test_a_text_is_read_as_the_schema_types_it(schema, sent, value):
    definitions = {"count": {"type": "integer"}, "ring": {"$ref": "#/$defs/ring"}}
    one = Tool.from_value(
        {
            "name": "t",
            "inputSchema": {"properties": {"v": schema}, "$defs": definitions},
            "http": {"upstream": "A", "method": "GET", "path": "/t"},
        },
        "t",
    )
    request = Toolbox([]).request_for(one, {"v": sent})
    assert Toolbox([one]).find(request) == (one, {"v": value})


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(Malformed, match="two tools"):
        Toolbox([CALL, CALL])


def test_looking_up_a_tool_does_not_cost_more_in_a_large_toolbox():
    def cost(count):
        box = Toolbox([tool(f"t{n}", "GET", f"/r{n}/{{id}}", ORDER) for n in range(count)])
        requests = [Request("API", "GET", f"/r{count - 1}/{n}") for n in range(2000)]
        started = time.process_time()
        for request in requests:
            assert box.rules_for(request)[0] is not None
        return time.process_time() - started

    small = min(cost(10) for _ in range(3))
    assert min(cost(5000) for _ in range(3)) < 20 * small + 0.05
