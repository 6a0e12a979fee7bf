import secrets
from urllib.parse import quote

import pytest

from scoresheet.record.credentials import Credentials, plain_name


@pytest.mark.parametrize(
    "name",
    ["token", "Access-Token", "api_key", "apiKey", "X-API-Key", "client_secret", "dbPassword", "AWSAccessKeyId", "jwt"],
)
def test_names_that_say_credential(name):
    assert Credentials().named(name, "value")


@pytest.mark.parametrize(
    "name",
    ["tokens", "token_count", "next_page_token", "key", "author", "secretary", "passport", "session"],
)
def test_names_that_only_sound_so(name):
    assert not Credentials().named(name, "value")


def test_a_key_is_one_when_its_value_looks_like_it():
    assert Credentials().named("key", "q7" + secrets.token_urlsafe(24))
    assert not Credentials().named("key", "a-plain-key-of-a-store")


@pytest.mark.parametrize("value", ["", "REDACTED-3", "***", "<your token>", "{{token}}", "${TOKEN}"])
def test_placeholders_are_no_credentials(value):
    assert not Credentials().named("token", value)


def test_a_value_has_one_placeholder_and_numbers_go_up():
    credentials = Credentials()
    assert [credentials.placeholder(value) for value in "abab"] == [
        "REDACTED-1",
        "REDACTED-2",
        "REDACTED-1",
        "REDACTED-2",
    ]


def test_a_watched_value_is_found_in_every_spelling():
    value = 'q7"' + secrets.token_urlsafe(12) + "é/+ =&"
    credentials = Credentials()
    credentials.watch(value, "request-header")
    text = f"{value} {quote(value)} {quote(value, safe='').lower()}"
    clean, edits, reported = credentials.replaced(text)
    assert len(edits) == 3 or "REDACTED-1" in clean
    assert {rule for rule, _ in reported} == {"request-header"}
    assert not credentials.left(clean.replace("REDACTED-1", ""))


def test_plain_words_are_not_watched():
    credentials = Credentials()
    for word in ("password", "abc", "secret", "token"):
        credentials.watch(word, "named-member")
        assert credentials.found(f"a {word} here") == []


def test_overlapping_finds_become_one():
    credentials = Credentials()
    first, second = "abc1234567890xyz9QQ", "xyz9QQrest8765"
    credentials.watch(first, "one")
    credentials.watch(second, "two")
    clean, edits, _ = credentials.replaced(f"<{first}rest8765>")
    assert "rest8765" not in clean or len(edits) == 1


def test_what_is_left_is_seen_through_escapes():
    credentials = Credentials()
    value = "zz" + secrets.token_hex(12)
    credentials.watch(value, "request-header")
    assert credentials.left("".join(f"%{ord(letter):02X}" for letter in value))
    assert credentials.left("".join(f"\\u{ord(letter):04x}" for letter in value))
    assert not credentials.left(value[:-1])


def test_names_are_compared_by_letters_and_digits():
    assert plain_name("X-Api_Key 2") == "xapikey2"
