from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from scoresheet.documents.prices import PriceTable
from scoresheet.errors import Refused
from scoresheet.publish import block
from scoresheet.publish.admissible import Evidence
from scoresheet.publish.outcomes import fold
from scoresheet.publish.report import build
from scoresheet.stats import resample
from scoresheet.stats.cost import cost_per_success
from tests.publish.runs import A, plan, row, rows

TABLE: Any = {"currency": "USD", "date": "2026-11-30", "models": {"m": {"input": 2, "output": 8}}}
PRICES = PriceTable.from_value(TABLE, "prices.yaml")


def spent(one, model="m", tokens=100, **more):
    usage = {"model": model, "calls": 1, "input": tokens, "output": tokens // 10}
    cost = f"{tokens * 2 + tokens // 10 * 8:06d}".rjust(7, "0")
    fields = {
        "model_calls": 1,
        "model_untold": 0,
        "tokens_in": tokens,
        "tokens_out": tokens // 10,
        "model_usage": [usage],
        "cost": f"{int(cost[:-6])}.{cost[-6:]}".rstrip("0").rstrip("."),
    }
    return type(one).from_value(one.model_dump(mode="json") | fields | more, "row")


def report(rows_, **more):
    the_plan = plan(prices_sha256="b" * 64, **more)
    outcomes = fold(the_plan, rows_, PRICES)
    return build(the_plan, outcomes, Evidence(prices=PRICES), "f" * 64)


def test_the_bill_is_exact_and_divided_by_what_it_bought():
    found = report([spent(one, tokens=100 + 10 * number) for number, one in enumerate(rows(A))])
    money = found.cost.money
    assert (money.currency, money.date, money.prices_sha256) == ("USD", "2026-11-30", "b" * 64)
    tokens = [100 + 10 * number for number in range(60)]
    assert money.total == f"{sum(each * 2 + each // 10 * 8 for each in tokens) / 10**6:g}"
    assert money.successes == sum(A)
    assert money.low < money.per_success < money.high
    assert money.text == f"{money.per_success} [{money.low}, {money.high}]"
    assert found.reasons
    assert not any("rows-cost" in reason for reason in found.reasons)


def test_the_ends_of_its_interval_are_rounded_outward():
    tokens = [100 + 7 * number for number in range(60)]
    money = report([spent(one, tokens=each) for one, each in zip(rows(A), tokens, strict=True)]).cost.money
    costs = [sum(each * 2 + each // 10 * 8 for each in tokens[at : at + 5]) for at in range(0, 60, 5)]
    exact = cost_per_success(costs, A, resample.prefix(plan().seed, plan().manifest_sha256))
    assert exact.ratio is not None
    assert exact.low is not None
    assert exact.high is not None
    micro = Fraction(1, 10**6)
    low, high = (Fraction(Decimal(text)) for text in (money.low, money.high))
    assert low <= exact.low * micro < low + micro
    assert high - micro < exact.high * micro <= high
    assert abs(Fraction(Decimal(money.per_success)) - exact.ratio * micro) <= micro / 2
    # the data is such that to the nearest would be another number
    assert {round(exact.low) * micro, round(exact.high) * micro} != {low, high}


def test_the_report_prints_the_bill_with_the_table_that_it_rests_on():
    lines = block.text(report([spent(one) for one in rows(A)])).splitlines()
    assert f"cost_total: 0.0168 USD, prices of 2026-11-30 (sha256:{'b' * 64})" in lines
    assert [line for line in lines if line.startswith("cost_per_success: USD 0.000")]


def test_a_model_without_a_price_is_named_and_the_bill_is_not_computed():
    found = report([spent(rows(A)[0], model="dear-one", cost=None), *(spent(one) for one in rows(A)[1:])])
    money = found.cost.money
    assert (money.total, money.per_success, money.unpriced) == (None, None, ("dear-one",))
    assert money.text == "not computed: the price table does not name dear-one"
    assert any(line.startswith("cost_total: not computed: the price") for line in block.text(found).splitlines())


def test_tokens_that_nobody_told_leave_the_bill_open():
    money = report([spent(rows(A)[0], model_untold=2, cost=None), *(spent(one) for one in rows(A)[1:])]).cost.money
    assert money.why_not == "of 2 model calls nobody told the tokens"


def test_an_episode_that_is_missing_leaves_the_bill_open():
    assert "1 of 60 planned episodes" in report([spent(one) for one in rows(A)[1:]]).cost.money.why_not


def test_nothing_passed_is_undefined_and_the_bill_is_still_told():
    money = report([spent(one) for one in rows([0] * 12)]).cost.money
    assert (money.total, money.text) == ("0.0168", "undefined (0 passing)")


def test_every_attempt_is_paid_for():
    first = [spent(row(one.task_id, one.repeat, 0)) for one in rows(A)]
    second = [spent(row(one.task_id, one.repeat, 1, attempt=1)) for one in rows(A)]
    assert report([*first, *second], retries=1, manifest={"retries": 1}).cost.money.total == "0.0336"


def test_a_row_whose_cost_does_not_follow_from_its_tokens_is_found():
    found = report([spent(rows(A)[0], cost="0.1"), *(spent(one) for one in rows(A)[1:])])
    assert "rows.jsonl:1: cost 0.1 does not follow from its tokens and prices.yaml [rows-cost]" in found.reasons


@pytest.mark.parametrize(
    ("told", "status", "faults"),
    [
        ({"spent_tokens": 6600, "spent_cost": "0.0168"}, "finished", []),
        ({"spent_tokens": 9000, "spent_cost": None}, "incomplete", []),
        ({"spent_tokens": 6599, "spent_cost": "0.0168"}, "finished", ["6599 tokens spent, but the rows tell of 6600"]),
        ({"spent_tokens": 6600, "spent_cost": "0.016799"}, "finished", ["0.016799 spent, but the rows tell of 0.0168"]),
        ({"spent_tokens": 0, "spent_cost": None}, "running", []),
    ],
)
def test_a_budget_that_tells_of_less_than_the_rows_is_found(told, status, faults):
    found = report([spent(one) for one in rows(A)], status=status, budget={"max_tokens_total": 9000, **told})
    assert [each for each in found.reasons if "rows-budget" in each] == [
        f"run.json#/budget/{'spent_tokens' if 'tokens' in fault else 'spent_cost'}: {fault} [rows-budget]"
        for fault in faults
    ]


def test_an_amount_beyond_all_money_is_no_row():
    with pytest.raises(Refused):
        spent(rows(A)[0], cost="1" + "0" * 18)


def test_without_a_table_nothing_is_priced():
    outcomes = fold(plan(), [spent(rows(A)[0])])
    assert build(plan(), outcomes, Evidence(), "f" * 64).cost.money is None
