from decimal import Decimal

import pytest

from scoresheet.documents.prices import PriceTable
from scoresheet.documents.row import ModelUsage
from scoresheet.stats import bill
from scoresheet.stats.bill import UNIT, Bill


def table(**models) -> PriceTable:
    named = {name.replace("_", "-"): prices for name, prices in models.items()}
    return PriceTable.from_value({"currency": "USD", "date": "2026-11-30", "models": named}, "prices.yaml")


def usage(model="m", calls=1, **tokens) -> ModelUsage:
    return ModelUsage(model=model, calls=calls, **({"input": 0, "output": 0} | tokens))


FULL = table(m={"input": 3, "cached_input": 0.3, "cache_write": 3.75, "output": 15, "reasoning": "12.000001"})


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        ({}, "0"),
        ({"input": 1}, "0.000003"),
        ({"input": 1_000_000}, "3"),
        ({"output": 7}, "0.000105"),
        ({"input": 1000, "cached": 400, "cache_write": 100}, "0.001995"),
        ({"output": 1000, "reasoning": 1}, "0.014997000001"),
        ({"input": 10, "cached": 40}, "0.000012"),  # a provider that counts apart: nothing is below zero
        ({"input": 10**15}, "3000000000"),
    ],
)
def test_tokens_cost_what_the_table_says_to_the_last_digit(tokens, shown):
    found = bill.bill([usage(**tokens)], FULL)
    assert bill.text(found.amount) == shown
    assert bill.parsed(shown) == found.amount == found.whole


def test_a_kind_without_a_price_costs_what_holds_it():
    plain = table(m={"input": 2, "output": 8})
    whole = usage(input=1000, cached=900, cache_write=50, output=100, reasoning=99)
    assert bill.bill([whole], plain) == bill.bill([usage(input=1000, output=100)], plain) == Bill(2800 * UNIT // 10**6)


def test_a_price_that_no_float_holds_is_exact():
    tenth = table(m={"input": 0.1, "output": 0.2})
    one = bill.bill([usage(input=1)], tenth).amount
    assert (one * 10**7, bill.text(one)) == (UNIT, "0.0000001")
    assert bill.bill([usage(input=3)], tenth).amount == 3 * one


def test_a_model_without_a_price_is_named_and_never_costs_nothing():
    found = bill.bill([usage("m", input=1), usage("other", input=1), usage("other", input=2)], FULL)
    assert (found.unpriced, found.whole, bill.text(found.amount)) == (("other",), None, "0.000003")


@pytest.mark.parametrize(
    ("answered", "listed"),
    [
        ("gpt-x", "gpt-x"),
        ("gpt-x-2026-01-31", "gpt-x"),
        ("gpt-x@20260131", "gpt-x"),
        ("gpt-x-mini-2026-01-31", "gpt-x-mini"),
        ("gpt-x-0613", "gpt-x-0613"),
        ("gpt-x-large", None),
        ("gpt", None),
        ("GPT-X", None),
    ],
)
def test_a_dated_snapshot_has_the_price_of_its_name(answered, listed):
    prices = table(
        gpt_x={"input": 1, "output": 1}, gpt_x_mini={"input": 2, "output": 2}, gpt_x_0613={"input": 3, "output": 3}
    )
    found = bill.price_of(prices, answered)
    assert found == (None if listed is None else prices.models[listed])


@pytest.mark.parametrize("value", ["", "1.", ".5", "-1", "1e3", "0.1234567890123", "01", "1,5", "NaN"])
def test_an_amount_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match="decimal number"):
        bill.parsed(value)


def test_amounts_add_up_in_any_order():
    usages = [usage(input=number, output=number * 7, cached=number // 2) for number in range(50)]
    whole = bill.bill(usages, FULL).amount
    assert sum(bill.bill([each], FULL).amount for each in reversed(usages)) == whole
    assert Decimal(bill.text(whole)) == sum(Decimal(bill.text(bill.bill([each], FULL).amount)) for each in usages)


def test_a_name_that_is_empty_is_the_price_of_no_other():
    listed = table(**{"": {"input": 1, "output": 1}})
    assert bill.price_of(listed, "gpt") is bill.price_of(listed, "-2026") is None
