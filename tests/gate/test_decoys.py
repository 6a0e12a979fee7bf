"""What is left alone, and what only looks as if it should be."""

import pytest

from scoresheet.gate import decoys
from tests.gate.leak_corpus import Maker


@pytest.mark.parametrize(
    "text",
    [b"my-secret-name", b"SettingsManager", b"self._secret,", b"/run/secrets/db", b"${TOKEN}", b"sha256:abcdef0123",
     b"arn:aws:secretsmanager:eu", b"os.environ[KEY]", b"config.json", b"123e4567-e89b-12d3-a456-426614174000",
     b"aaaaaaaaaaaa", b"correct horse", b"get_token()", b"true"],
)  # fmt: skip
def test_words_references_and_ids_are_not_random(text):
    assert not decoys.is_random(text)


def test_what_a_generator_made_is_random():
    maker = Maker()
    assert all(decoys.is_random(maker.password().encode()) for _ in range(200))
    assert all(decoys.is_random(maker.hex(32).encode()) for _ in range(200))


def test_a_hash_is_random_but_no_secret():
    digest = Maker().hex(64).encode()
    assert decoys.is_random(digest)
    assert not decoys.is_no_hash(digest)


@pytest.mark.parametrize(
    ("user", "password", "host", "is_one"),
    [(b"svc", b"k8Jd02!x", b"db.corp.internal", True), (b"svc", b"k8Jd02!x", b"db.example.com", False),
     (b"postgres", b"postgres", b"db", False), (b"u", b"5432", b"db", False), (b"u", b"${PW}", b"db", False)],
)  # fmt: skip
def test_passwords_of_urls(user, password, host, is_one):
    assert decoys.is_password(user, password, host) is is_one


@pytest.mark.parametrize(
    ("address", "before", "is_one"),
    [(b"m.weber@gmx.de", b"customer: ", True), (b"m.weber@gmx.de", b"Author: ", False),
     (b"support@gmx.de", b"", False), (b"m.weber@example.org", b"", False), (b"icon@2x.png", b"", False),
     (b"m.weber@numpy.transpose", b"", False), (b"m.weber@gmx.de", b"contact ", True)],
)  # fmt: skip
def test_people(address, before, is_one):
    assert decoys.is_person(address, before) is is_one


def test_a_jwt_has_a_jose_header():
    maker = Maker()
    assert decoys.is_jwt(maker.jwt().encode())
    assert not decoys.is_jwt(f"eyJ{maker.text(20)}.eyJ{maker.text(20)}.{maker.text(40)}".encode())


def test_entropy_is_in_bits_a_byte():
    assert decoys.entropy(b"aaaa") == 0
    assert decoys.entropy(bytes(range(256))) == 8
