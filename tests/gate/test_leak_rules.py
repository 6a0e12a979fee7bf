"""The rules against a planted corpus: recall, false positives, and every way in which one could be fooled."""

import hashlib
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoresheet.gate import leak_content, leak_rules
from tests.gate.leak_corpus import COPIES, DECOYS, PII, SECRETS, Maker


def found(text: str) -> set[str]:
    """The rules that a file with this text breaks."""
    content = leak_content.search(text.encode(), "notes.txt")
    assert content.unknown == ()
    return {placed.rule for placed in content.findings}


def missed(kinds) -> list[str]:
    maker = Maker()
    return [kind for kind, make in kinds.items() for _ in range(COPIES) if not found(f"one\n{make(maker)}\nlast\n")]


def test_planted_secrets_are_found(capsys):
    lost = missed(SECRETS)
    total = len(SECRETS) * COPIES
    with capsys.disabled():
        print(f"\nsecrets: {total - len(lost)}/{total} found, of {len(SECRETS)} kinds; missed: {sorted(set(lost))}")
    assert len(SECRETS) >= 20
    assert 1 - len(lost) / total >= 0.99


def test_planted_customer_data_is_found(capsys):
    lost = missed(PII)
    total = len(PII) * COPIES
    with capsys.disabled():
        print(f"\ncustomer data: {total - len(lost)}/{total} found, of {len(PII)} kinds; missed: {sorted(set(lost))}")
    assert len(PII) >= 9
    assert 1 - len(lost) / total >= 0.85


def test_decoys_are_left_alone(capsys):
    maker = Maker()
    files = [(kind, make(maker)) for kind, make in DECOYS.items() for _ in range(COPIES)]
    wrong = [(kind, found(f"one\n{text}\nlast\n")) for kind, text in files]
    wrong = [(kind, rules) for kind, rules in wrong if rules]
    with capsys.disabled():
        print(f"\ndecoys: {len(wrong)} of {len(files)} reported")
    assert len(files) >= 260
    assert wrong == []


@pytest.mark.parametrize("marker", ["gitleaks:allow", "pragma: allowlist secret", "nosec", "noqa", "betterleaks:allow"])
def test_a_marker_in_the_file_excuses_nothing(marker):
    assert found(f"token ghp_{Maker().text(36)}  # {marker}") == {"leak-github-token"}


def test_a_leak_carries_a_digest_and_never_the_secret():
    secret = "ghp_" + Maker().text(36)
    (leak,) = leak_rules.leaks(f"x {secret}".encode())
    assert leak.match_sha256 == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in repr(leak)
    assert (leak.start, leak.end) == (2, 2 + len(secret))


def test_numbers_are_digested_by_their_digits():
    number = Maker().card("4", 16)
    grouped = " ".join(number[at : at + 4] for at in range(0, 16, 4))
    plain, spaced = (leak_rules.leaks(f"card {text}".encode()) for text in (number, grouped))
    assert [leak.match_sha256 for leak in plain] == [leak.match_sha256 for leak in spaced]


def test_a_secret_that_two_rules_know_is_one_finding():
    text = f'api_key = "ghp_{Maker().text(36)}"'
    assert [leak.rule for leak in leak_rules.leaks(text.encode())] == ["leak-github-token"]


def test_neighbours_are_all_found():
    maker = Maker()
    lines = [f'password = "{maker.password()}"; secret = "{maker.text(20)}"' for _ in range(20)]
    assert len(leak_rules.leaks("\n".join(lines).encode())) == 40


def test_a_secret_on_the_border_of_two_blocks_is_found_once():
    secret = b"ghp_" + Maker().text(36).encode()
    for before in range((1 << 20) - 45, (1 << 20) + 5, 7):
        assert len(leak_rules.leaks(b" " * before + secret + b" " * 90)) == 1


def test_a_private_key_on_the_border_of_two_blocks_is_found_once():
    key = Maker().private_key("RSA PRIVATE " + "KEY").encode()
    for before in range((1 << 20) - len(key) - 10, (1 << 20) + 5, 111):
        assert len(leak_rules.leaks(b" " * before + key + b" " * 900)) == 1


def test_two_private_keys_have_two_digests():
    maker = Maker()
    keys = [maker.private_key("PRIVATE " + "KEY") for _ in range(2)]
    assert len({leak.match_sha256 for leak in leak_rules.leaks("\n".join(keys).encode())}) == 2


def test_a_search_ends_when_it_has_found_enough():
    maker = Maker()
    rows = "\n".join(f"{maker.text(8, 'abcdefghij')}@gmx.de" for _ in range(100_000)).encode()
    assert 100 < len(leak_rules.leaks(rows, most=100)) < 90_000


def test_lists_of_authors_may_hold_addresses():
    line = b"Jo Roe <jo.roe@posteo.de>"
    assert leak_rules.leaks(line) != ()
    assert leak_rules.leaks(line, authors=True) == ()


@pytest.mark.parametrize(
    "text",
    [b"9" * (4 << 20), b"a" * (4 << 20), b"@" * (1 << 20), b"a@" * (1 << 20), b"://" * (1 << 19),
     b"-----BEGIN " * 60000, b"password=" * 100_000, b"A1" * (1 << 20), b"+1 " * (1 << 19), b"eyJ" * (1 << 19),
     b"a.b@c." * (1 << 17), b"cookie: " + b"x;" * (1 << 18), b"key:" * (1 << 18), b"4 " * (1 << 19), b"(" * (1 << 20),
     b"Cookie: " * (1 << 16), b"aws" * (1 << 17), b"twilio" * (1 << 16), b"phone:1 " * (1 << 16)],
)  # fmt: skip
def test_no_text_is_slow(text):
    started = time.process_time()
    leak_rules.leaks(text)
    assert (time.process_time() - started) / (len(text) / 1e6) < 3  # seconds per MB


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_can_be_searched(data):
    for leak in leak_rules.leaks(data):
        assert 0 <= leak.start < leak.end <= len(data)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ghp_AKIA0123456789 \n\"':=@.com+-keypasswordtoken/\\{}"), max_size=300))
def test_any_text_of_the_rules_own_alphabet_can_be_searched(text):
    leak_content.search(text.encode(), "notes.txt")


def test_the_rule_set_has_a_digest_and_every_name_is_one():
    assert len(leak_rules.RULESET_SHA256) == 64
    assert len(set(leak_rules.NAMES)) == len(leak_rules.NAMES) >= 30


def test_every_rule_has_its_section():
    page = (Path(__file__).parents[2] / "docs" / "gates.md").read_text(encoding="utf-8")
    sections = {line.removeprefix("### ") for line in page.splitlines() if line.startswith("### leak-")}
    assert sections == {*leak_rules.NAMES, "leak-allow-unused"}


def test_tokens_in_a_text_are_placed_by_characters():
    token = "glpat-" + Maker().text(20)
    assert list(leak_rules.tokens(f"é\udcff {token} ü")) == [(3, 3 + len(token), "gitlab-token", token)]


def test_what_stands_before_a_border_still_counts():
    maker = Maker()
    token, password = b"ghp_" + maker.text(36).encode(), maker.password().encode()
    border = 1 << 20
    assert leak_rules.leaks(b" " * (border - 1) + b"x" + token) == ()
    named = b'password = "' + password + b'"'
    for before in range(border - len(named), border + 1):
        assert len(leak_rules.leaks(b" " * before + named + b" " * 50)) == 1
