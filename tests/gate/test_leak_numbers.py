"""Customers' numbers: check digits, shapes, and the numbers that are everybody's."""

import pytest

from scoresheet.gate import leak_numbers
from tests.gate.leak_corpus import Maker


def rules(text: str) -> list[str]:
    return [rule for *_, rule in leak_numbers.numbers(text.encode())]


@pytest.mark.parametrize(
    ("prefix", "length"), [("4", 16), ("51", 16), ("2221", 16), ("34", 15), ("6011", 16), ("36", 14)]
)
def test_cards_of_every_scheme(prefix, length):
    maker = Maker()
    for _ in range(20):
        number = maker.card(prefix, length)
        assert rules(f"card {number} ok") == ["leak-payment-card"]
        wrong = number[:-1] + str((int(number[-1]) + 1) % 10)
        assert rules(f"card {wrong} ok") == []


@pytest.mark.parametrize("join", [" ", "-"])
def test_cards_in_groups(join):
    number = Maker().card("4", 16)
    assert rules(join.join(number[at : at + 4] for at in range(0, 16, 4))) == ["leak-payment-card"]
    assert rules(f"{number[:3]}{join}{number[3:]}") == []


@pytest.mark.parametrize("text", ['{"order_id": @}', "tracking_number=@", "0.@", "@.5", "x@", "@abc", "1@2345"])
def test_a_number_that_is_something_else_is_no_card(text):
    assert rules(text.replace("@", Maker().card("4", 16))) == []


def test_an_iban_holds_by_its_check_digits():
    maker = Maker()
    for _ in range(20):
        account = maker.iban()
        spaced = " ".join(account[at : at + 4] for at in range(0, 22, 4))
        assert rules(f"to {account}.") == rules(f"to {spaced}.") == ["leak-iban"]
        wrong = account[:-1] + str((int(account[-1]) + 1) % 10)
        assert rules(f"to {wrong}.") == []
    assert rules("DE89370400440532013000") == []  # the registry's specimen


@pytest.mark.parametrize("text", ["+49 30 39284756", "+41 44 668 18 01", "(212) 867-5309", "+1 (212) 867-5309"])
def test_telephones(text):
    assert rules(f"call {text} now") == ["leak-phone"]


@pytest.mark.parametrize(
    "text",
    ["+1 202 555 0143", "(212) 555-0143", "2026-11-30T12:00+01:00", "+1980-02-29 01:02:03", "a+4930392847561b"],
)
def test_no_telephones(text):
    assert rules(text) == []


@pytest.mark.parametrize(
    ("text", "found"), [("536-22-1847", 1), ("123-45-6789", 0), ("000-22-1847", 0), ("936-22-1847", 0)]
)
def test_social_security(text, found):
    assert len(rules(f"ssn {text}")) == found
