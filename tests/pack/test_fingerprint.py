"""Vectors and properties of both fingerprints."""

import base64
import gzip
import hashlib
import json
import zlib
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.canonical import jcs, loads
from scoresheet.documents.tool import Request
from scoresheet.pack import fingerprint
from tests.strategies import json_objects, json_values, spelt, text

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


def post(body, target="/v1/refunds", media="application/json", method="POST", more=()):
    return Request("API", method, target, (("Content-Type", media), *more), body)


@given(spelt())
def test_how_a_body_is_spelt_never_changes_its_fingerprint(spelling):
    value, text = spelling
    assert fingerprint.v2(post(text)) == fingerprint.v2(post(jcs(value)))
    assert fingerprint.v1_of(post(text)) == (fingerprint.v1("POST", "/v1/refunds", value),)


@given(json_values, json_values)
def test_another_value_has_another_fingerprint(one, other):
    same = jcs(one) == jcs(other)
    assert (fingerprint.v2(post(jcs(one))) == fingerprint.v2(post(jcs(other)))) is same
    assert fingerprint.v1("GET", "/", one) != fingerprint.v1("GET", "/", other) or same


@given(st.lists(st.tuples(text, text), max_size=5), st.randoms())
def test_the_order_of_names_in_a_query_never_counts_and_that_of_values_does(pairs, random):
    def target(items):
        return "/s?" + "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in items)

    shuffled = sorted(pairs, key=lambda pair: random.random())
    regrouped = [next(p for p in rest if p[0] == name) for name, rest in _grouped(shuffled, pairs)]
    assert fingerprint.v2(Request("A", "GET", target(pairs))) == fingerprint.v2(Request("A", "GET", target(regrouped)))
    swapped = list(reversed(pairs))
    same = sorted(pairs, key=lambda p: p[0].encode()) == sorted(swapped, key=lambda p: p[0].encode())
    one, other = (fingerprint.v2(Request("A", "GET", target(items))) for items in (pairs, swapped))
    assert (one == other) is same


def _grouped(shuffled, pairs):
    """Names in shuffled order, each with its values that are not yet taken, in their own order."""
    left = list(pairs)
    for name, _ in shuffled:
        yield name, list(left)
        left.remove(next(pair for pair in left if pair[0] == name))


@given(st.binary(max_size=60), st.sampled_from(["application/json", "multipart/form-data; boundary=x", "text/x", ""]))
def test_every_request_has_a_fingerprint(body, media):
    for encoding in ("", "gzip", "deflate", "br", "zstd", "gzip, deflate", "rot13"):
        request = post(body, "/\udcff?a=\udcfe&%zz=%", media, more=(("Content-Encoding", encoding),))
        found = fingerprint.canonical(
            request, vary=("X-\udcff",), ignore=("/json/a", "/query/a", "/form/b", "nonsense")
        )
        assert jcs(loads(found.text)) == found.text
        fingerprint.v1_of(request)


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_request_without_bytes_is_looked_up_as_null_then_as_an_empty_object(method):
    expected = fingerprint.v1(method, "/p?a=1", None), fingerprint.v1(method, "/p?a=1", {})
    assert fingerprint.v1_of(Request("", method, "/p?a=1")) == expected


@pytest.mark.parametrize("body", [b"{", b'{"a":1,"a":1}', b"NaN", b"\xff", b"a=1"])
def test_a_body_that_is_no_strict_json_has_no_v1_fingerprint(body):
    assert fingerprint.v1_of(post(body)) == ()


def test_under_v1_the_documented_pair_differs():
    assert fingerprint.v1("POST", "/", {"n": 1}) != fingerprint.v1("POST", "/", {"n": 1.0})


@pytest.mark.parametrize(
    ("rule", "request_", "left"),
    [
        ("/json/token", post(b'{"token":1,"a":2}'), {"body": ["json", {"a": 2}]}),
        ("/json/a/0/t", post(b'{"a":[{"t":1,"u":2}]}'), {"body": ["json", {"a": [{"u": 2}]}]}),
        ("/json/a~1b", post(b'{"a/b":1}'), {"body": ["json", {}]}),
        ("/query/key", post(b"", "/s?key=1&q=2&key=3"), {"query": [["q", "2"]]}),
        ("/form/key", post(b"key=1&q=2", media="application/x-www-form-urlencoded"), {"body": ["form", [["q", "2"]]]}),
    ],
)
def test_an_ignore_rule_removes_its_member_and_is_counted(rule, request_, left):
    found = fingerprint.canonical(request_, ignore=(rule, "/json/absent"))
    assert found.removed == (rule,)
    form = loads(found.text)
    assert {name: form[name] for name in left} == left
    assert fingerprint.form(request_, ignore=(rule,)) == form


@pytest.mark.parametrize("rule", ["/json", "/json/a/0", "/json/a/x", "/query/absent", "/form/a", "", "json", "/nope/a"])
def test_array_items_and_absent_members_are_never_removed(rule):
    request = post(b'{"a":[1,2]}', "/s?q=1")
    assert fingerprint.canonical(request, ignore=(rule,)) == fingerprint.canonical(request)


def test_vary_counts_the_named_headers_only_and_in_any_order():
    plain = Request("API", "GET", "/r", (("Accept", "text/csv"), ("X-Trace", "1")))
    other = Request("API", "GET", "/r", (("accept", "text/html"), ("X-Trace", "2")))
    assert fingerprint.v2(plain) == fingerprint.v2(other)
    assert fingerprint.v2(plain, vary=("Accept",)) != fingerprint.v2(other, vary=("accept",))
    assert fingerprint.v2(plain, vary=("range", "accept")) == fingerprint.v2(plain, vary=("accept", "range"))


def test_the_same_call_over_another_upstream_differs():
    assert fingerprint.v2(Request("A", "GET", "/")) != fingerprint.v2(Request("B", "GET", "/"))


def test_a_tool_without_http_is_fingerprinted_by_name_and_arguments():
    call = Request("", "CALL", "refund?x=%41", (), b'{"b":1.0,"a":2}')
    assert fingerprint.form(call) | {"v": 2} == {
        "v": 2,
        "upstream": "",
        "method": "CALL",
        "path": "refund?x=%41",
        "query": [],
        "vary": [],
        "body": ["json", {"a": 2, "b": 1.0}],
    }
    assert fingerprint.form(Request("", "CALL", "refund"))["body"] == ["json", {}]
    assert fingerprint.v2(Request("API", "CALL", "/x")) != fingerprint.v2(Request("", "CALL", "/x"))


def test_a_body_is_compared_after_its_encoding_is_undone():
    plain = fingerprint.v2(post(b'{"a": 1}'))
    raw = zlib.compressobj(wbits=-15)
    for coding, packed in {
        "gzip": gzip.compress(b'{"a":1}'),
        "x-gzip": gzip.compress(b'{"a"') + gzip.compress(b":1}"),
        "deflate": zlib.compress(b'{"a":1}'),
        "Deflate": raw.compress(b'{"a":1}') + raw.flush(),
        "identity": b'{"a":1}',
        "deflate, gzip": gzip.compress(zlib.compress(b'{"a":1}')),
    }.items():
        assert fingerprint.v2(post(packed, more=(("content-encoding", coding),))) == plain, coding


PACKED = gzip.compress(b"{}", mtime=0)


@pytest.mark.parametrize("body", [b"no gzip", PACKED[:-4], PACKED + b"trailing"])
def test_a_broken_encoding_is_compared_as_the_bytes_that_were_sent(body):
    form = fingerprint.form(post(body, more=(("Content-Encoding", "gzip"),)))
    assert form["body"] == ["bytes", "application/json", hashlib.sha256(body).hexdigest()]


def test_a_body_that_unfolds_without_end_is_a_broken_encoding(monkeypatch):
    monkeypatch.setattr("scoresheet.pack.body.MAX_DECODED", 1000)
    for coding, packed in {"gzip": gzip.compress(bytes(1001)), "deflate": zlib.compress(bytes(1001))}.items():
        assert fingerprint.form(post(packed, more=(("Content-Encoding", coding),)))["body"][0] == "bytes"
    small = gzip.compress(b"1" * 1000)
    assert fingerprint.form(post(small, more=(("Content-Encoding", "gzip"),)))["body"][0] == "json"


MULTIPART = (
    b'preamble\r\n--B\r\nContent-Disposition: form-data; name="a \\"q\\""\r\n\r\none\r\n'
    b'--B \r\ncontent-disposition: form-data; name=f; filename="x.bin"\r\n'
    b"Content-Type: Text/Plain; charset=utf-8\r\n\r\n\r\n--C\r\n\r\n--B--\r\nepilogue"
)


def test_the_parts_of_a_multipart_body_are_compared_without_their_boundary():
    form = fingerprint.form(post(MULTIPART, media='multipart/form-data; boundary="B"'))
    names = [(part["name"], part["filename"], part["type"]) for part in form["body"][1]]
    assert names == [('a "q"', None, None), ("f", "x.bin", "text/plain")]
    other = MULTIPART.replace(b"--B", b"--other")
    assert fingerprint.v2(post(other, media="multipart/form-data; boundary=other")) == fingerprint.v2(
        post(MULTIPART, media="multipart/form-data; boundary=B")
    )


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("multipart/form-data", MULTIPART),
        ("multipart/form-data; boundary=none", MULTIPART),
        ("multipart/form-data; boundary=B", MULTIPART.replace(b"--B--", b"")),
        ("multipart/form-data; boundary=B", MULTIPART.replace(b"\r\n\r\none", b"")),
        ("multipart/form-data; boundary=B", MULTIPART.replace(b"--B \r\n", b"--B x\r\n")),
        ("multipart/form-data; boundary=B", MULTIPART.replace(b"x.bin", b"\xff")),
        ("multipart/mixed; boundary=B", MULTIPART),
    ],
)
def test_a_multipart_body_that_is_not_one_is_bytes(media, body):
    form = fingerprint.form(post(body, media=media))
    assert form["body"] == ["bytes", media.partition(";")[0], hashlib.sha256(body).hexdigest()]


@given(spelt(json_objects))
def test_the_quick_way_to_a_fingerprint_gives_the_text_of_the_form(spelling):
    request = post(spelling[1], "/a%7Eb?b=1&a=%ff+")
    assert fingerprint.canonical(request).text == jcs(fingerprint.form(request))
