"""What compared runs cost in money: the same ratios as of tokens, and where there is none, why."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from scoresheet.documents.prices import PriceTable
from scoresheet.publish import comparison_text
from scoresheet.publish.comparable import Contest
from scoresheet.publish.comparison import build
from scoresheet.publish.comparison_cost import money, tokens
from scoresheet.publish.outcome import Episodes
from scoresheet.stats import bill, ratio
from scoresheet.stats.rounding import downward, nearest, upward
from tests.publish.compared import PRICES, C, agent, entrant, entrants
from tests.publish.runs import A, B
from tests.stats.test_interval import START, TOKENS_A, TOKENS_B
from tests.stats.there import there

EUROS = PriceTable.from_value(PRICES.model_dump(mode="json") | {"currency": "EUR"}, "prices.yaml")


def careful(**more):
    given: dict[str, Any] = {"tokens": TOKENS_A, "prices": PRICES}
    return entrant(A, **(given | more))


def hasty(**more):
    given: dict[str, Any] = {"tokens": TOKENS_B, "prices": PRICES}
    return entrant(B, "hasty", **(given | more))


def axis(*given):
    found = money(Contest(entrants(*given)))
    assert not isinstance(found, str)
    return found


def lines(*given):
    return [*comparison_text.cost(build(entrants(*given)))]


def without_a_bill(one, repeats):
    """The same run, of which one episode's cost is not known in each of the first so many tasks."""
    episodes = Episodes(one.outcomes.episodes.grid)
    for at, each in enumerate(one.outcomes.episodes):
        lost = each.repeat == 0 and int(each.task_id[1:]) < repeats
        episodes.put(at, each._replace(cost=None) if lost else each)
    return replace(one, outcomes=replace(one.outcomes, episodes=episodes))


def with_a_model_that_has_no_price(one):
    lost = without_a_bill(one, 1)
    return replace(lost, outcomes=replace(lost.outcomes, unpriced=("dear-one",)))


def test_one_price_for_every_token_gives_the_ratio_of_tokens():
    contest = Contest(entrants(careful(), hasty()))
    spent, paid = tokens(contest), axis(careful(), hasty())
    assert not isinstance(spent, str)
    assert paid.pairs[0].geometric == spent.pairs[0].geometric
    assert paid.pairs[0].per_success == spent.pairs[0].per_success
    assert [each.total for each in paid.bills] == ["0.7033125", "0.721"]


def test_the_ratio_is_the_paired_geometric_mean_of_what_the_tasks_cost():
    dear = PriceTable.from_value(PRICES.model_dump(mode="json") | {"models": {"m": {"input": "0.1", "output": 1}}}, "p")
    fixed = {"prices": dear, "prices_sha256": "c" * 64}
    (pair,) = axis(careful(**fixed), hasty(**fixed)).pairs
    ids = [f"t{number:02}" for number in range(12)]
    ours, theirs = (
        {task: total * 100_000 * bill.UNIT // 10**12 for task, total in zip(ids, of, strict=True)}
        for of in (TOKENS_A, TOKENS_B)
    )
    exact = ratio.geometric(ours, theirs)
    assert pair.geometric is not None
    assert (pair.geometric.ratio, pair.geometric.low, pair.geometric.high) == (
        float(nearest(exact.ratio)), float(downward(there(exact.low))), float(upward(there(exact.high))),
    )  # fmt: skip
    whole = ratio.per_success((TOKENS_A, A), (TOKENS_B, B), START)
    assert pair.per_success is not None
    assert pair.per_success.ratio == float(nearest(there(whole).ratio))
    assert there(whole).ratio == Fraction(sum(TOKENS_A) * 32, 44 * sum(TOKENS_B))


def test_the_text_names_the_table_and_both_ratios():
    table, first, second, geometric, per_success = lines(careful(), hasty())
    sha256 = careful().plan.prices_sha256
    assert table == f"prices A, B: USD of 2026-11-30 (sha256:{sha256})"
    assert first == "cost A: 0.7033125 USD; per success 0.015984 [0.004370, 0.044875]"
    assert second.startswith("cost B: 0.721 USD; ")
    assert geometric == "cost A / B: 0.8653 [0.7732, 0.9684] A costs less, paired geometric mean"
    assert per_success == "cost per success A / B: 0.7094 [0.4742, 0.8936] A costs less"


def test_without_any_price_table_there_is_no_axis_and_it_says_so():
    assert lines(careful(prices=None), hasty(prices=None)) == [
        "cost: not compared: no run has a price table (run --prices FILE)"
    ]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (lambda: hasty(prices=None), "B: no price table (run --prices FILE)"),
        (
            lambda: replace(hasty(), evidence=replace(hasty().evidence, prices=None)),
            "B: its price table is not there, or not the one that its run began with",
        ),
        (lambda: without_a_bill(hasty(), 3), "B: 3 of 60 planned episodes have no bill"),
        (lambda: with_a_model_that_has_no_price(hasty()), "B: the price table does not name dear-one"),
    ],
    ids=["no table", "table lost", "episodes without a bill", "model without a price"],
)
def test_where_one_bill_is_not_whole_nothing_is_compared_and_nothing_is_zero(other, why):
    found = axis(careful(), other())
    (pair,) = found.pairs
    assert (pair.geometric, pair.per_success, pair.why_not) == (None, None, why)
    assert (found.bills[1].total, found.bills[1].per_success) == (None, None)
    assert found.bills[0].total == "0.7033125"
    said = lines(careful(), other())
    assert said[-2:] == [f"cost B: not known: {why.removeprefix('B: ')}", f"cost A / B: not computed: {why}"]


def test_two_tables_are_never_set_against_each_other():
    for other in (hasty(prices=EUROS), hasty(prices_sha256="c" * 64)):
        (pair,) = axis(careful(), other).pairs
        ours, theirs = (str(each.plan.prices_sha256)[:12] for each in (careful(), other))
        assert pair.why_not == f"two price tables: sha256:{ours} in A, sha256:{theirs} in B"
        assert (pair.geometric, pair.per_success) == (None, None)
    euros = str(hasty(prices=EUROS).plan.prices_sha256)
    assert f"prices B: EUR of 2026-11-30 (sha256:{euros})" in lines(careful(), hasty(prices=EUROS))


def test_a_task_that_costs_nothing_has_no_logarithm_but_is_on_the_bill():
    (pair,) = axis(careful(), hasty(tokens=(0, *TOKENS_B[1:]))).pairs
    assert (pair.geometric, pair.why_not) == (None, "1 tasks cost one of the two nothing")
    assert pair.per_success is not None


def test_of_three_runs_the_pair_that_knows_its_cost_is_compared():
    null = entrant((0,) * 12, "null", agent=agent("null", "null"))
    found = axis(careful(), null, hasty(), entrant(C, "third", tokens=TOKENS_B))
    assert [each.run for each in found.bills] == ["A", "C", "D"]
    assert [(each.first, each.second, each.geometric is None) for each in found.pairs] == [
        ("A", "C", False), ("A", "D", True), ("C", "D", True),
    ]  # fmt: skip


def test_of_few_tasks_the_ratio_has_no_interval_and_decides_nothing():
    (pair,) = axis(
        entrant((5,) * 4, tokens=(100,) * 4, prices=PRICES),
        entrant((5,) * 4, "hasty", tokens=(900,) * 4, prices=PRICES),
    ).pairs
    assert pair.geometric is not None
    assert (pair.geometric.verdict, pair.geometric.low) == ("unresolved", None)
