"""Vectors and properties of both fingerprints."""

import base64
import json
from pathlib import Path

import pytest

from scoresheet.canonical import jcs
from scoresheet.documents.tool import Request
from scoresheet.pack import fingerprint

VECTORS = Path(__file__).parents[1] / "vectors"


def vectors(name):
    return json.loads((VECTORS / name).read_text())


def request_of(vector):
    headers = [("Content-Type", vector["content_type"])] if vector.get("content_type") else []
    if "content_encoding" in vector:
        headers.append(("Content-Encoding", vector["content_encoding"]))
    headers += [(name.title(), value) for name, value in vector.get("vary", [])]
    body = jcs(vector["arguments"]) if "arguments" in vector else base64.b64decode(vector["body_base64"])
    return Request(vector.get("upstream", "API"), vector["method"], vector["target"], tuple(headers), body)


@pytest.mark.parametrize("vector", vectors("fingerprint_v1.json"), ids=str)
def test_a_v1_vector_has_its_digest(vector):
    assert fingerprint.v1(vector["method"], vector["path"], vector["body"]) == vector["fingerprint"]


@pytest.mark.parametrize("vector", vectors("fingerprint_v2.json"), ids=lambda vector: vector["name"])
def test_a_v2_vector_has_its_text_and_digest(vector):
    vary = [name for name, _ in vector.get("vary", [])]
    found = fingerprint.canonical(request_of(vector), vary)
    assert found.text.decode() == vector["canonical"]
    assert found.fingerprint == fingerprint.v2(request_of(vector), vary) == vector["fingerprint"]
    assert jcs(fingerprint.form(request_of(vector), vary)) == found.text


@pytest.mark.parametrize("pair", vectors("request_pairs_v2.json"), ids=lambda pair: pair["name"])
def test_a_request_that_others_confuse_is_told_apart(pair):
    kinds = (pair["content_type"].split("|") * 2)[:2]
    a, b = (request_of(pair[side] | {"content_type": kind}) for side, kind in zip("ab", kinds, strict=True))
    assert (fingerprint.v2(a) == fingerprint.v2(b)) is (pair["expect"] == "same")
