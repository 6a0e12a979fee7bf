import pytest

from scoresheet.documents.tool import Request
from scoresheet.errors import Malformed
from scoresheet.pack.toolbox import Toolbox
from scoresheet.record import openapi
from scoresheet.record.tools import unfit

JSON = (("Content-Type", "application/json"),)
SHOP = {
    "openapi": "3.0.3",
    "servers": [{"url": "https://shop.example.com/v1"}],
    "paths": {
        "/orders/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {
                "operationId": "getOrder",
                "summary": "One order.",
                "description": "With its lines.",
                "parameters": [
                    {"name": "expand", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                ],
            },
            "delete": {},
        },
        "/orders": {
            "post": {
                "operationId": "place order!",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/NewOrder"}}},
                },
            }
        },
        "/batch": {
            "post": {"requestBody": {"content": {"application/json": {"schema": {"oneOf": [{"type": "object"}]}}}}}
        },
    },
    "components": {
        "parameters": {"Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}},
        "schemas": {
            "NewOrder": {
                "allOf": [
                    {"$ref": "#/components/schemas/Base"},
                    {
                        "type": "object",
                        "properties": {"lines": {"type": "array", "items": {"$ref": "#/components/schemas/Line"}}},
                    },
                ],
                "required": ["lines"],
            },
            "Base": {"type": "object", "properties": {"note": {"type": "string", "nullable": True}}},
            "Line": {
                "type": "object",
                "properties": {
                    "n": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Line"}},
                },
            },
        },
    },
}


def path_of(tool):
    return tool.http.path


def shop():
    return {tool.name: tool for tool in openapi.tools(SHOP, "SHOP")}


def test_every_operation_is_a_tool():
    tools = shop()
    assert sorted(tools) == ["delete_v1_orders_id", "getOrder", "place_order", "post_v1_batch"]
    assert tools["getOrder"].description == "One order.\n\nWith its lines."
    assert path_of(tools["getOrder"]) == "/v1/orders/{id}"
    assert tools["getOrder"].annotations == {"readOnlyHint": True}
    assert tools["getOrder"].input_schema == {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "expand": {"type": "array", "items": {"type": "string"}}},
        "additionalProperties": False,
        "required": ["id"],
    }


def test_the_path_of_the_upstream_is_taken_off():
    tools = {tool.name: tool for tool in openapi.tools(SHOP, "SHOP", "/v1")}
    assert path_of(tools["getOrder"]) == "/orders/{id}"


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        (b'{"lines": [{"n": 1, "parts": [{"n": 2}]}], "note": null}', True),
        (b'{"lines": [{"n": 0}]}', False),
        (b'{"lines": [{"n": 1, "parts": [{"n": "2"}]}]}', False),
        (b'{"note": "x"}', False),
        (b'{"lines": [], "more": 1}', False),
    ],
)
def test_bodies_are_judged_with_references_followed_also_recursive_ones(body, fits):
    request = Request("SHOP", "POST", "/v1/orders", JSON, body)
    assert (list(unfit(shop().values(), [request])) == []) is fits


def test_requests_find_their_operation():
    found = Toolbox(shop().values()).find(Request("SHOP", "GET", "/v1/orders/17?expand=a&expand=b"))
    assert found is not None
    assert (found[0].name, found[1]) == ("getOrder", {"id": 17, "expand": ["a", "b"]})


def test_openapi_3_1_schemas_pass_as_they_are():
    schema = {"type": ["string", "null"], "exclusiveMinimum": 3}
    document = {
        "openapi": "3.1.0",
        "paths": {"/a": {"get": {"parameters": [{"name": "q", "in": "query", "schema": schema}]}}},
    }
    (tool,) = openapi.tools(document, "A")
    assert tool.input_schema["properties"] == {"q": schema}
    assert (tool.name, path_of(tool)) == ("get_a", "/a")


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"swagger": "2.0"}, "not an OpenAPI 3.x document"),
        ([], "not an OpenAPI 3.x document"),
        ({"openapi": "3.0.0", "paths": {"/a": {"$ref": "other.yaml#/a"}}}, "outside the document"),
        ({"openapi": "3.0.0", "paths": {"/a": {"$ref": "#/components/x"}}}, "refers to nothing"),
        ({"openapi": "3.0.0", "paths": {"/a": {"$ref": "#/paths/~1a"}}}, "ring"),
        ({"openapi": "3.0.0", "paths": {"/a": {"get": []}}}, "where an object belongs"),
        (
            {"openapi": "3.0.0", "paths": {"/a": {"get": {"operationId": "x"}}, "/b": {"get": {"operationId": "x"}}}},
            "two operations are called 'x'",
        ),
        ({"openapi": "3.0.0", "paths": {"/a": {"get": {"parameters": [{"in": "query"}]}}}}, "a parameter has no name"),
    ],
)
def test_a_document_that_cannot_be_used_says_why(document, what):
    with pytest.raises(Malformed, match=what):
        openapi.tools(document, "A", where="api.yaml")
