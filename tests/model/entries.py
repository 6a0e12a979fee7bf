"""Calls at a model's door, as a log holds them."""

from typing import Any

from scoresheet.model.entry import Entry


def entry(**more: Any) -> Entry:
    values: dict[str, Any] = {
        "kind": "openai",
        "method": "POST",
        "path": "/v1/responses",
        "request_headers": (("a", "b"),),
        "request": b'{"model":"m"}',
        "status": 200,
        "response_headers": (("content-type", "application/json"),),
        "response": b"\xff\x00",
        "started_s": 1.5,
        "first_byte_s": 1.75,
        "ended_s": 2.0,
        **more,
    }
    return Entry(**values)
