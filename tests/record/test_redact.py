import base64
import gzip
import json
import secrets
import string
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.documents.tool import Request, Response
from scoresheet.record.exchange import Exchange
from scoresheet.record.redact import redact

JSON = ("Content-Type", "application/json")
FORM = ("Content-Type", "application/x-www-form-urlencoded")


def letters(count, alphabet=string.ascii_letters + string.digits):
    return "".join(secrets.choice(alphabet) for _ in range(count))


def secret():
    """A value that nobody has seen; long and odd enough to be told from a word."""
    return "q7" + letters(22)


def call(target="/", headers=(), body=b"", method="POST", status=200, answer=b"", answer_headers=(JSON,), **more):
    return Exchange(
        Request("API", method, target, headers, body), Response(status, answer_headers, answer, 1.0, **more)
    )


def everything(redaction):
    """All that would be written of a recording, as one text; compressed bodies undone."""
    parts = []
    for each in redaction.exchanges:
        for body in (each.request.body, each.response.body):
            parts.append(body.decode("latin-1"))
            if body[:2] == b"\x1f\x8b":
                parts.append(gzip.decompress(body).decode("latin-1"))
        parts += [each.request.target, repr(each.request.headers), repr(each.response.headers)]
    parts += [str(each) for each in redaction.replaced] + [str(each) for each in redaction.findings]
    return "\n".join(parts + [rule for _, rule in redaction.ignored])


def test_only_headers_worth_keeping_are_kept():
    value = secret()
    headers = (
        ("Authorization", f"Bearer {value}"),
        ("X-Api-Key", value),
        ("Cookie", f"session={value}"),
        ("Proxy-Authorization", "Basic " + base64.b64encode(f"me:{value}".encode()).decode()),
        ("X-Whatever", "1"),
        ("User-Agent", "agent/1"),
        ("accept", "text/csv"),
        ("If-None-Match", '"abc"'),
        ("Range", "bytes=0-5"),
        ("Accept-Language", "de"),
        ("Prefer", "return=minimal"),
    )
    done = redact([call(headers=headers)])
    kept = [name for name, _ in done.exchanges[0].request.headers]
    assert kept == ["accept", "If-None-Match", "Range", "Accept-Language", "Prefer"]
    assert value not in everything(done)
    assert dict(done.dropped_headers)["authorization"] == 1


def test_a_credential_of_a_header_is_found_wherever_it_is_echoed():
    value = secret()
    password = secret()
    basic = base64.b64encode(f"me:{password}".encode()).decode()
    done = redact(
        [
            call(answer=json.dumps({"you": f"sent {value} and {password}", "again": basic}).encode()),
            call(headers=(("Authorization", f"Token {value}"),)),
            call(headers=(("Authorization", f"Basic {basic}"),)),
        ]
    )
    text = everything(done)
    assert not any(leaked in text for leaked in (value, password, basic))
    assert json.loads(done.exchanges[0].response.body)["you"].startswith("sent REDACTED-")


@pytest.mark.parametrize(
    "name",
    ["token", "api_key", "apikey", "access_token", "password", "secret", "client_secret", "X-Amz-Signature", "sig"],
)
def test_a_credential_in_a_query_is_replaced_and_ignored(name):
    value = secret() + "/+="
    done = redact([call(f"/a?q=1&{name}={quote(value, safe='')}&z", method="GET")])
    assert done.exchanges[0].request.target == f"/a?q=1&{name}=REDACTED-1&z"
    assert done.ignored == ((0, f"/query/{name}"),)
    assert [(each.where, each.rule) for each in done.replaced] == [(f"call 1, request query {name}", "named-parameter")]


def test_a_credential_in_a_form_is_replaced_and_ignored():
    value = secret()
    done = redact([call(headers=(FORM,), body=f"user=me&password={value}&user%20x={value}".encode())])
    assert done.exchanges[0].request.body == b"user=me&password=REDACTED-1&user%20x=REDACTED-1"
    assert done.ignored == ((0, "/form/password"), (0, "/form/user x"))


def test_a_credential_in_a_json_body_is_replaced_where_it_stands_and_its_member_ignored():
    value, other = secret(), secret()
    body = {
        "a/b": {"~Password": value, "keep": 1.50, "n": None},
        "list": [{"x": f"see {value}"}, "plain"],
        "header": f"Authorization: Bearer {other}",
        "items": [f"{value}"],
    }
    done = redact([call(headers=(JSON,), body=json.dumps(body).encode())])
    assert json.loads(done.exchanges[0].request.body) == {
        "a/b": {"~Password": "REDACTED-1", "keep": 1.5, "n": None},
        "list": [{"x": "see REDACTED-1"}, "plain"],
        "header": "Authorization: Bearer REDACTED-2",
        "items": ["REDACTED-1"],
    }
    assert set(done.ignored) == {
        (0, "/json/a~1b/~0Password"), (0, "/json/list/0/x"), (0, "/json/header"), (0, "/json/items")
    }  # fmt: skip
    assert done.findings == ()


def test_a_body_without_credentials_keeps_its_very_bytes():
    body = b'{ "a" : 1.50,\n "token_count": 12, "next_page_token": "abc", "password": "" }'
    done = redact([call(headers=(JSON,), body=body, answer=body)])
    assert done.exchanges[0].request.body == body
    assert done.exchanges[0].response.body == body
    assert done.replaced == ()


def test_compressed_bodies_are_searched_and_compressed_again():
    value = secret()
    packed = gzip.compress(json.dumps({"password": value}).encode())
    headers = (JSON, ("Content-Encoding", "gzip"))
    done = redact(
        [
            call(
                headers=headers,
                body=packed,
                answer=packed,
                answer_headers=(*headers, ("Content-Length", str(len(packed)))),
            )
        ]
    )
    (clean,) = done.exchanges
    assert json.loads(gzip.decompress(clean.request.body)) == {"password": "REDACTED-1"}
    assert json.loads(gzip.decompress(clean.response.body)) == {"password": "REDACTED-1"}
    assert dict(clean.response.headers)["Content-Length"] == str(len(clean.response.body))
    assert value not in everything(done)


def test_answers_lose_cookies_and_tokens_but_keep_all_else():
    value, cookie = secret(), secret()
    text = f'{{"access_token" : "{value}", "expires_in":3600, "next": "https://x.example/?page=2&api_key={value}"}}'
    headers = (
        JSON,
        ("Set-Cookie", f"sid={cookie}; Path=/; HttpOnly"),
        ("set-cookie", "theme=dark"),
        ("X-Api-Key", value),
    )
    done = redact([call(answer=text.encode(), answer_headers=headers)])
    response = done.exchanges[0].response
    assert response.body.decode() == text.replace(value, "REDACTED-3")
    assert [value for _, value in response.headers[1:]] == [
        "sid=REDACTED-1; Path=/; HttpOnly", "theme=REDACTED-2", "REDACTED-3"
    ]  # fmt: skip
    assert not any(leaked in everything(done) for leaked in (value, cookie))


def test_a_login_token_that_the_agent_sends_on_has_one_placeholder_everywhere():
    value = secret()
    done = redact(
        [
            call("/login", answer=json.dumps({"token": value}).encode()),
            call(f"/me?auth={value}", method="GET"),
            call("/do", headers=(JSON,), body=json.dumps({"session": {"handle": value}}).encode()),
        ]
    )
    assert json.loads(done.exchanges[0].response.body) == {"token": "REDACTED-1"}
    assert done.exchanges[1].request.target == "/me?auth=REDACTED-1"
    assert json.loads(done.exchanges[2].request.body) == {"session": {"handle": "REDACTED-1"}}
    assert done.ignored == ((1, "/query/auth"), (2, "/json/session/handle"))


def test_chunk_boundaries_follow_the_text_that_was_replaced():
    value = secret()
    first, second = 'data: {"é": 1}\n\n', f'data: {{"token": "{value}"}}\n\n'
    body = (first + second + first).encode()
    ends = (len(first.encode()), len((first + second).encode()), len(body))
    inside = ends[0] + second.index(value) + 3
    stream = (ends[0], inside, ends[1], ends[2])
    sse = (("Content-Type", "text/event-stream"),)
    done = redact([call(answer=body, answer_headers=sse, stream=stream)])
    response = done.exchanges[0].response
    clean = second.replace(value, "REDACTED-1")
    assert response.body.decode() == first + clean + first
    new = (ends[0], ends[0] + len(clean.encode()), ends[2] - len(value) + len("REDACTED-1"))
    assert (response.stream[0], *response.stream[2:]) == new
    assert response.stream[1] == ends[0] + clean.index("REDACTED-1") + len("REDACTED-1")


def shapes():
    upper = string.ascii_uppercase + "234567"
    lower = string.ascii_letters + string.digits
    return {
        "aws": "AKIA" + letters(16, upper),
        "github": "gh" + "p_" + letters(36, lower),
        "stripe": "sk_" + "live_" + letters(24, lower),
        "google": "AI" + "za" + letters(35, lower),
        "slack": "xox" + "b-" + letters(30, string.digits),
        "jwt": "ey" + "J" + letters(20) + ".ey" + "J" + letters(30) + "." + letters(40),
        "url": letters(12),
        "key": letters(64),
    }


def test_known_shapes_are_found_in_any_text_of_an_answer():
    found = shapes()
    text = (
        f"a {found['aws']} b {found['github']} c {found['stripe']} d {found['google']} e {found['slack']}"
        f" f {found['jwt']} postgres://me:{found['url']}@db.internal/x -----BEGIN RSA PRIVATE KEY-----\n"
        f"{found['key']}\n"
        "-----END RSA PRIVATE KEY----- <password>" + found["key"] + "</password>"
    )
    done = redact([call(answer=text.encode(), answer_headers=(("Content-Type", "text/plain"),))])
    clean = done.exchanges[0].response.body.decode()
    assert not any(value in clean for value in found.values())
    assert "postgres://me:REDACTED-" in clean
    assert {each.rule for each in done.replaced} >= {"aws-key-id", "github-token", "stripe-key", "jwt", "url-password"}


@pytest.mark.parametrize(
    "where", ["path", "multipart", "binary answer", "array", "member name", "escaped path", "text"]
)
def test_what_cannot_be_ignored_stops_the_recording(where):
    value = "gh" + "p_" + letters(36)
    multipart = f'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n{value}\r\n--b--\r\n'.encode()
    exchange = {
        "path": call(f"/bot{value}/send", headers=(("Authorization", f"Bearer {value}"),)),
        "escaped path": call("/x/" + "".join(f"%{ord(letter):02x}" for letter in value)),
        "multipart": call(headers=(("Content-Type", "multipart/form-data; boundary=b"),), body=multipart),
        "binary answer": call(answer=b"\xff\xfe" + value.encode(), answer_headers=()),
        "array": call(headers=(JSON,), body=json.dumps([value]).encode()),
        "member name": call(headers=(JSON,), body=json.dumps({value: 1}).encode()),
        "text": call(headers=(("Content-Type", "text/plain"),), body=f"use {value}".encode()),
    }[where]
    done = redact([exchange])
    assert done.findings
    if "path" in where:
        assert [finding.rule for finding in done.findings] == ["record-secret-in-path"]
    assert not any(value in str(finding) + finding.where for finding in done.findings)


def test_a_body_that_cannot_be_searched_stops_the_recording():
    headers = (("Content-Encoding", "compress"),)
    assert [each.rule for each in redact([call(answer=b"xyz", answer_headers=headers)]).findings] == [
        "record-unreadable"
    ]
    assert redact([call(answer=b"", answer_headers=headers)]).findings == ()


def test_a_truncated_compressed_answer_is_searched_as_far_as_it_goes():
    value = "gh" + "p_" + letters(36)
    headers = (("Content-Encoding", "gzip"), JSON)
    packed = gzip.compress(b"x" * 100 + f'{{"token": "{value}"}}'.encode() + secrets.token_bytes(4000))[:-500]
    assert redact([call(answer=packed, answer_headers=headers, fault="truncated")]).findings
    plain = gzip.compress(b"hello" * 1000)[:-8]
    done = redact([call(answer=plain, answer_headers=headers, fault="truncated")])
    assert done.findings == ()
    assert done.exchanges[0].response.body == plain


def test_a_credential_that_the_command_was_given_is_found_by_its_value_alone():
    value = secret()
    done = redact([call("/a?cursor=" + value, method="GET")], known=[value])
    assert done.exchanges[0].request.target == "/a?cursor=REDACTED-1"
    assert redact([call(f"/tenants/{value}")], known=[value]).findings


def test_a_name_that_a_person_clears_is_no_credential():
    done = redact([call("/a?token=eth&secret=abcdefgh1", method="GET")], not_secret=["Token"])
    assert done.exchanges[0].request.target == "/a?token=eth&secret=REDACTED-1"


def test_a_plain_word_that_is_a_password_is_not_torn_out_of_other_words():
    body = json.dumps({"password": "password", "hint": "my password"}).encode()
    done = redact([call(headers=(JSON,), body=body, answer=b'{"password_policy": "any password"}')])
    assert json.loads(done.exchanges[0].request.body) == {"password": "REDACTED-1", "hint": "my password"}
    assert done.exchanges[0].response.body == b'{"password_policy": "any password"}'


def test_redacting_what_was_redacted_changes_nothing():
    value = secret()
    body = json.dumps({"client_secret": value, "deep": {"x": [value]}}).encode()
    once = redact([call(f"/a?token={value}", headers=(JSON,), body=body, answer=body)])
    again = redact(once.exchanges)
    assert again.exchanges == once.exchanges
    assert again.replaced == ()


VALUES = st.text(string.ascii_letters + string.digits + '-_.~+/=%&" \\é', min_size=22, max_size=40).map(
    lambda text: "Zq9" + text
)


@given(VALUES, st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)))
def test_no_form_of_a_named_credential_survives(value, other):
    body = json.dumps({"password": value, "other": other, "deep": {"again": f"<{value}>"}}).encode()
    target = f"/a?x={quote(value)}&api_key={quote_plus(value)}"
    done = redact([call(target, headers=(JSON,), body=body, answer=json.dumps({"echo": [value, target]}).encode())])
    texts = [everything(done), json.dumps([json.loads(e.response.body) for e in done.exchanges])]
    for form in {value, quote(value), quote_plus(value), quote(value, safe=""), json.dumps(value)[1:-1]}:
        assert not any(form in text for text in texts)
