import json
from itertools import permutations

import pytest

from scoresheet.documents.tool import Request, Response, Tool
from scoresheet.pack.toolbox import Toolbox
from scoresheet.record.tools import Observation, infer, unfit

JSON = (("Content-Type", "application/json"),)


def seen(method, target, body=None, answer=None, status=200, headers=(), sent=None):
    data = b"" if body is None else json.dumps(body).encode()
    request = Request("API", method, target, (*headers, *(JSON if data else ())), data)
    response = Response(status, JSON, b"" if answer is None else json.dumps(answer).encode())
    return Observation.of(request, response, sent)


def tools_of(*observations, before=(), ignored=None):
    return infer(observations, before, ignored or {})


def by_path(tools):
    return {f"{tool.http.method} {tool.http.path}": tool for tool in tools}


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/orders/17", "/orders/{order_id}"),
        ("/orders/17.json", "/orders/{order_id}.json"),
        ("/v1/orders", "/v1/orders"),
        ("/v2.1/a/3f2b8c1e-1111-4222-8333-abcdefabcdef", "/v2.1/a/{a_id}"),
        ("/categories/ORD-1042/lines/7", "/categories/{category_id}/lines/{line_id}"),
        ("/users/ada@example.com", "/users/{user_id}"),
        ("/days/2026-11-30", "/days/{day_id}"),
        ("/c/cus_9f8Gh2kLm", "/c/{c_id}"),
        ("/reports/summary", "/reports/summary"),
        ("/", "/"),
        ("/a//b/", "/a//b/"),
        ("/oauth2/token", "/oauth2/token"),
        ("/files/5f2c9a0b77", "/files/{file_id}"),
    ],
)
def test_what_looks_like_an_id_is_a_parameter(path, template):
    assert list(by_path(tools_of(seen("GET", path)))) == [f"GET {template}"]


def test_values_that_were_answered_alike_are_one_endpoint():
    tools = tools_of(
        seen("GET", "/products/blue-shirt", answer={"sku": 1, "price": 2}),
        seen("GET", "/products/red-hat", answer={"sku": 1, "price": 2, "sale": True}),
        seen("GET", "/products/nothing", answer={"error": "none"}, status=404),
        seen("GET", "/products/search", answer={"hits": [], "took": 1}),
    )
    assert list(by_path(tools)) == ["GET /products/{product_id}", "GET /products/search"]


def test_a_value_that_is_no_id_joins_ids_that_were_answered_alike_or_failed():
    tools = tools_of(
        seen("GET", "/orders/17", answer={"id": 17, "total": 1}),
        seen("GET", "/orders/latest", answer={"id": 18, "total": 2}),
        seen("GET", "/orders/nothing", answer={"error": "none"}, status=404),
        seen("GET", "/orders/summary", answer={"count": 3}),
    )
    assert list(by_path(tools)) == ["GET /orders/{order_id}", "GET /orders/summary"]


def test_values_that_were_answered_differently_stay_apart():
    tools = tools_of(seen("GET", "/users/me", answer={"id": 1}), seen("GET", "/users/search", answer={"hits": []}))
    assert list(by_path(tools)) == ["GET /users/me", "GET /users/search"]


def test_one_value_alone_is_no_parameter():
    assert list(by_path(tools_of(seen("GET", "/products/blue-shirt", answer={"sku": 1})))) == [
        "GET /products/blue-shirt"
    ]


def test_arguments_get_the_types_that_were_seen():
    tools = tools_of(
        seen("GET", "/s?n=1&x=1.5&b=true&w=07&t=a&t=b&f"),
        seen("GET", "/s?n=2&x=2&b=false&w=12&t=c&f&extra=z"),
    )
    schema = tools[0].input_schema
    assert schema["properties"] == {
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "b": {"type": "boolean"},
        "w": {"type": "string"},
        "t": {"type": "array", "items": {"type": "string"}},
        "f": {"type": "boolean"},
        "extra": {"type": "string"},
    }
    assert schema["required"] == ["b", "f", "n", "t", "w", "x"]
    assert schema["additionalProperties"] is False


def test_json_bodies_are_described_member_by_member():
    tools = tools_of(
        seen("POST", "/o/7?dry=1", {"lines": [{"sku": "a", "n": 1}, {"sku": "b"}], "note": None, "x": 1}),
        seen("POST", "/o/8?dry=0", {"lines": [], "note": "hi", "x": 1.5}),
    )
    schema = tools[0].input_schema
    assert schema["properties"]["lines"] == {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "sku": {"type": "string"}},
            "required": ["sku"],
        },
    }
    assert schema["properties"]["note"] == {"type": ["null", "string"]}
    assert schema["properties"]["x"] == {"type": "number"}
    assert schema["required"] == ["dry", "lines", "note", "o_id", "x"]


def test_a_body_that_is_no_arguments_leaves_the_tool_without_a_schema():
    raw = Observation(Request("API", "PUT", "/f/1", (("Content-Type", "image/png"),), b"\x89PNG"))
    assert tools_of(raw)[0].input_schema is None
    assert tools_of(seen("PUT", "/f/1", [1, 2]))[0].input_schema is None


TRAFFIC = (
    seen("GET", "/products/blue-shirt?size=3", answer={"sku": 1, "price": 2}),
    seen("GET", "/products/red-hat", answer={"sku": 1, "price": 2}),
    seen("POST", "/orders", {"sku": "a", "n": 1}),
    seen("POST", "/orders", {"sku": "a", "n": 1.5, "gift": True}),
    seen("GET", "/orders/17?expand=lines"),
)


def test_the_order_of_traffic_does_not_matter():
    expected = tools_of(*TRAFFIC)
    assert all(tools_of(*order) == expected for order in permutations(TRAFFIC))


def test_recording_call_by_call_ends_where_recording_at_once_ends():
    for order in permutations(TRAFFIC, 5):
        tools = ()
        for count in range(1, len(order) + 1):
            tools = tools_of(*order[:count], before=tools)
        assert tools == tools_of(*TRAFFIC)


def test_every_request_fits_the_tool_that_was_inferred_from_it():
    tools = tools_of(*TRAFFIC)
    requests = [each.request for each in TRAFFIC]
    assert list(unfit(tools, requests)) == []
    found = [Toolbox(tools).rules_for(request)[0] for request in requests]
    assert [tool and tool.name for tool in found] == [
        "get_products_by_product_id",
        "get_products_by_product_id",
        "post_orders",
        "post_orders",
        "get_orders_by_order_id",
    ]


def test_a_tool_that_people_own_is_left_alone_but_for_what_is_ignored():
    http = {"upstream": "API", "method": "POST", "path": "/orders"}
    own = Tool.from_value({"name": "place", "inputSchema": {"type": "object"}, "http": http}, "tools/place.json")
    request = TRAFFIC[2].request
    tools = {tool.name: tool for tool in tools_of(*TRAFFIC, before=[own], ignored={request: ["/json/token"]})}
    assert tools["place"].input_schema == {"type": "object"}
    assert tools["place"].ignore == ("/json/token",)
    assert "post_orders" not in tools


def test_what_people_wrote_into_an_inferred_tool_stays():
    (tool,) = tools_of(TRAFFIC[4])
    value = tool.as_json()
    value["name"], value["description"] = "look_up", "Looks up an order."
    value["inputSchema"]["properties"]["expand"]["description"] = "What to expand."
    edited = Tool.from_value(value, "tools/look_up.json")
    (after,) = tools_of(TRAFFIC[4], seen("GET", "/orders/A-18"), before=[edited])
    assert (after.name, after.description) == ("look_up", "Looks up an order.")
    assert after.input_schema["properties"] == {
        "expand": {"type": "string", "description": "What to expand."},
        "order_id": {"type": ["integer", "string"]},
    }
    assert after.input_schema["required"] == ["order_id"]


def test_an_ignored_member_is_not_demanded_and_takes_any_value():
    clean = seen("POST", "/orders", {"sku": "a", "password": "REDACTED-1"})
    (tool,) = tools_of(clean, ignored={clean.request: ["/json/password"]})
    assert tool.input_schema["required"] == ["sku"]
    other = [Request("API", "POST", "/orders", JSON, body) for body in (b'{"sku":"a","password":1}', b'{"sku":"a"}')]
    assert list(unfit([tool], other)) == []


def test_types_come_from_what_was_sent_not_from_placeholders():
    sent = Request("API", "GET", "/a?pin=1234")
    (tool,) = tools_of(Observation(Request("API", "GET", "/a?pin=REDACTED-1"), None, sent))
    assert list(unfit([tool], [sent])) == []


def test_headers_that_tell_recordings_apart_are_added_to_vary():
    (tool,) = tools_of(
        seen("GET", "/a", headers=(("Accept", "text/csv"),)), seen("GET", "/a", headers=(("Accept", "text/html"),))
    )
    assert tool.http.vary == ("accept",)
    (tool,) = tools_of(
        seen("GET", "/a?x=1", headers=(("Accept", "text/csv"),)), seen("GET", "/a", headers=(("Accept", "a/b"),))
    )
    assert tool.http.vary == ()


def test_a_parameter_of_the_path_does_not_take_the_name_of_another_argument():
    (tool,) = tools_of(seen("GET", "/orders/17?order_id=3"))
    assert tool.http.path == "/orders/{order_id_2}"
    before = tools_of(seen("GET", "/orders/17"))
    (tool,) = tools_of(seen("GET", "/orders/17"), seen("GET", "/orders/17?order_id=3"), before=before)
    assert (tool.name, tool.http.path) == ("get_orders_by_order_id", "/orders/{order_id_2}")
    assert sorted(tool.input_schema["properties"]) == ["order_id", "order_id_2"]


def test_two_services_with_one_path_get_two_names():
    one = Observation(Request("A", "GET", "/x"))
    other = Observation(Request("B", "GET", "/x"))
    assert {tool.name for tool in tools_of(one, other)} == {"get_x", "b_get_x"}
