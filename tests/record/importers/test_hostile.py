"""Damaged files of every format: an error with its place, or what is left of them, within bounds; nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scoresheet.errors import Malformed, Refused
from scoresheet.record.importers.formats import FORMATS
from scoresheet.record.importers.hosts import Host
from tests.record.importers.replayed import CORPUS, gathered

REAL: dict[str, Path] = {
    "har": CORPUS / "har" / "mitmproxy-multipart.har",
    "vcr": CORPUS / "vcrpy-yaml" / "crossref-funders-200-404.yaml",
    "mcp": CORPUS / "mcp-sdk" / "everything.jsonl",
    "openai": CORPUS / "openai" / "responses-tool-result.json",
    "atif": CORPUS / "atif" / "terminus2-invalid-json.trajectory.json",
    "mitmproxy": CORPUS / "mitmproxy" / "library.flows",
    "wiremock": CORPUS / "wiremock" / "several-mappings-scenario.json",
    "openapi": CORPUS / "openapi" / "cars.yaml",
    "betamax": CORPUS / "betamax" / "httpbin-stream-repeated.json",
    "hoverfly": CORPUS / "hoverfly" / "base64-body.json",
    "nock": CORPUS / "nock" / "github-markdown.json",
    "postman": CORPUS / "postman" / "weather-forecast.postman_collection.json",
}
HOST = (Host("API", "api.test"),)
VALUES = st.sampled_from(
    [None, 7, "x", "", [], {}, [[1]], {"a": {}}, -1, True, 1.5, "\ud800", "http://x", [{}], "7", "{"]
)


def survives(kind: str, data: bytes) -> None:
    try:
        result = gathered(kind, data, REAL[kind].name, HOST)
    except (Malformed, Refused) as error:
        assert error.where.startswith(REAL[kind].name)  # noqa: PT017  # either end is right
        return
    assert all(finding.rule.startswith("import-") and finding.where and finding.what for finding in result.left_out)


def test_every_format_is_damaged_here():
    assert REAL.keys() == FORMATS.keys()


@pytest.mark.parametrize("kind", REAL)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_refused_with_its_place_or_read_as_far_as_it_goes(kind, data):
    whole = REAL[kind].read_bytes()[:20_000]
    place = data.draw(st.integers(0, len(whole)))
    cut = data.draw(st.integers(place, min(len(whole), place + 40)))
    survives(kind, whole[:place] + data.draw(st.binary(max_size=8)) + whole[cut:])


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every holder and key of a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from nodes(item)


@pytest.mark.parametrize("kind", [kind for kind in REAL if kind != "mitmproxy"])
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_any_value_where_another_belongs_is_no_crash(kind, data):
    text = REAL[kind].read_text()
    lines = text.splitlines() if kind == "mcp" else [text]
    number = data.draw(st.integers(0, len(lines) - 1))
    value = yaml.safe_load(lines[number]) if REAL[kind].suffix == ".yaml" else json.loads(lines[number])
    holder, key = data.draw(st.sampled_from(list(nodes(value))))
    if data.draw(st.booleans()) and isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = data.draw(VALUES)
    lines[number] = json.dumps(value, default=lambda odd: odd.decode("latin-1") if isinstance(odd, bytes) else str(odd))
    survives(kind, "\n".join(lines).encode())


@pytest.mark.parametrize("kind", [kind for kind in REAL if kind != "mitmproxy"])
@pytest.mark.parametrize("depth", [150, 190, 900])
def test_depth_is_no_crash(kind, depth):
    """A value in every place, nested as deeply as readers still read, and deeper."""
    text = REAL[kind].read_text()
    lines = text.splitlines() if kind == "mcp" else [text]
    for number in range(min(12, len(lines))):
        value = yaml.safe_load(lines[number]) if REAL[kind].suffix == ".yaml" else json.loads(lines[number])
        spots = list(nodes(value))
        for place in range(0, len(spots), max(1, len(spots) // 6)):
            holder, key = spots[place]
            before, holder[key] = holder[key], "DEEP"
            flat = json.dumps(value, default=lambda odd: odd.decode("latin-1") if isinstance(odd, bytes) else str(odd))
            holder[key] = before
            changed = [
                *lines[:number],
                flat.replace('"DEEP"', '{"a":' * depth + "1" + "}" * depth),
                *lines[number + 1 :],
            ]
            survives(kind, "\n".join(changed).encode())


@pytest.mark.parametrize("kind", REAL)
@settings(max_examples=15, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_no_crash(kind, data):
    survives(kind, data)
