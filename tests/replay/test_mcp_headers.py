"""Which arguments a schema wants repeated in headers, and what a header may say of them."""

from typing import Any

import pytest

from scoresheet.replay.mcp_headers import contradiction, declared, decoded

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "deep": {"type": "object", "properties": {"id": {"type": "string", "x-mcp-header": "Deep"}}},
        "query": {"type": "string"},
    },
}


def one(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A", **members}}}


def said(arguments: Any, *headers: tuple[str, str]) -> str | None:
    return contradiction(declared(SCHEMA), arguments, headers)


def test_marks_are_found_wherever_properties_alone_lead() -> None:
    assert {(each.path, each.header, each.integer) for each in declared(SCHEMA)} == {
        (("region",), "mcp-param-region", False),
        (("count",), "mcp-param-count", True),
        (("dry",), "mcp-param-dry-run", False),
        (("deep", "id"), "mcp-param-deep", False),
    }
    assert declared({"type": "object", "default": {"x-mcp-header": "A"}}) == ()
    assert declared(None) == declared(True) == declared([]) == ()


@pytest.mark.parametrize(
    "schema",
    [
        one(**{"x-mcp-header": ""}),
        one(**{"x-mcp-header": "a b"}),
        one(**{"x-mcp-header": 7}),
        one(type="number"),
        one(type=["string", "null"]),
        {"x-mcp-header": "A", "type": "string"},
        {"properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}},
        {"anyOf": [one()]},
        {"$defs": {"a": one()["properties"]["a"]}},
        {"properties": {**one()["properties"], "b": {"type": "string", "x-mcp-header": "a"}}},
    ],
)
def test_one_mark_that_is_not_valid_leaves_the_tool_without_any(schema: Any) -> None:
    assert declared(schema) == ()


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"query": "x"}, ()),
        ({"region": "eu", "query": "x"}, (("Mcp-Param-Region", "eu"),)),
        ({"region": "eu"}, (("mcp-param-REGION", " eu\t"),)),
        ({"region": "Zürich "}, (("Mcp-Param-Region", "=?base64?WsO8cmljaCA=?="),)),
        ({"region": "=?base64?"}, (("Mcp-Param-Region", "=?base64?"),)),
        ({"region": ""}, (("Mcp-Param-Region", ""),)),
        ({"count": 42}, (("Mcp-Param-Count", "42"),)),
        ({"count": 42.0}, (("Mcp-Param-Count", "42"),)),
        ({"count": 42}, (("Mcp-Param-Count", "42.0"),)),
        ({"count": 2**70}, (("Mcp-Param-Count", str(2**70)),)),
        ({"dry": True, "deep": {"id": "7"}}, (("Mcp-Param-Dry-Run", "true"), ("Mcp-Param-Deep", "7"))),
        ({"region": None, "deep": {}}, ()),
        ({"region": ["eu"]}, ()),
        ({}, (("Mcp-Param-Other", "x"), ("Mcp-Param-Other", "y"))),
    ],
)
def test_headers_that_repeat_the_body_are_taken(arguments: Any, headers: Any) -> None:
    assert said(arguments, *headers) is None


@pytest.mark.parametrize(
    ("arguments", "headers", "says"),
    [
        ({"region": "eu"}, (("Mcp-Param-Region", "us"),), "is not the argument region"),
        ({"region": "eu"}, (("Mcp-Param-Region", "EU"),), "is not the argument region"),
        ({"region": "eu"}, (), "is missing"),
        ({}, (("Mcp-Param-Region", "eu"),), "is not the argument region"),
        ({"region": None}, (("Mcp-Param-Region", "eu"),), "is not the argument region"),
        ({"region": ["eu"]}, (("Mcp-Param-Region", "eu"),), "is not the argument region"),
        ({"region": "eu"}, (("Mcp-Param-Region", "eu"), ("mcp-param-region", "eu")), "more than once"),
        ({"region": "a"}, (("Mcp-Param-Region", "=?base64?%%?="),), "is not the argument region"),
        ({"region": "a"}, (("Mcp-Param-Region", "=?base64?YR==?="),), "is not the argument region"),
        ({"count": 42}, (("Mcp-Param-Count", "42.5"),), "is not the argument count"),
        ({"count": 42}, (("Mcp-Param-Count", "4.2e1"),), "is not the argument count"),
        ({"count": 1}, (("Mcp-Param-Count", "true"),), "is not the argument count"),
        ({"count": True}, (("Mcp-Param-Count", "1"),), "is not the argument count"),
        ({"dry": True}, (("Mcp-Param-Dry-Run", "True"),), "is not the argument dry"),
        ({"deep": {"id": "7"}}, (), "has the argument deep.id"),
        ("no object", (("Mcp-Param-Region", "eu"),), "is not the argument region"),
    ],
)
def test_headers_that_say_something_else_are_named(arguments: Any, headers: Any, says: str) -> None:
    found = said(arguments, *headers)
    assert found is not None
    assert says in found


def test_base64_is_undone_only_where_it_is_meant() -> None:
    assert decoded("plain") == "plain"
    assert decoded("=?base64?ZWNobw==?=") == "echo"
    assert decoded("=?base64??=") == ""
    assert decoded("=?base64?=") == "=?base64?="
    assert decoded("=?base64?/w==?=") is None
